"""``nsjax warm``: programs of classes that later processes find."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
from typing import Any

import pytest

import nsjax
from nsjax.cli import main, warm

WARM = """
from nsjax.cli import main, warm
common = warm.common
warm.common = lambda: [x for x in common() if x[0] == "chain of 1 hinges, 2D"]
assert main(["warm"]) == 0
"""
OTHER = """
import nsjax
from nsjax import multibody as mb, schemes
from nsjax.jaxtools import cache
made, make = [], cache._exported
cache._exported = lambda *given: made.append(given[1].__name__) or make(*given)
nsjax.configure()
rod = mb.body("rod", mass=3.0, inertia=0.4, com=(0.2, 0.1))
pin = mb.hinge("pin", "rod", "ground", at=(0.1, 0.0))
problem = mb.assemble(rod, pin, gravity=1.62, start={"pin": 0.4})
traj = nsjax.simulate(*nsjax.side_by_side(problem).problem(), schemes.moreau(), dt=1e-3, steps=5)
print(int(traj.status), made)
"""


def said(script: str, folder: pathlib.Path) -> list[str]:
    """What another process prints."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("JAX_")}
    environment["JAX_COMPILATION_CACHE_DIR"] = str(folder)
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.slow
def test_a_mechanism_of_a_warm_class_is_not_traced(tmp_path: pathlib.Path) -> None:
    """A pendulum of other numbers, whose hinge is given from the rod to the ground, in a new process."""
    first, last = said(WARM, tmp_path)
    assert first.startswith("chain of 1 hinges, 2D: ")
    assert first.endswith(" s")
    assert last.startswith(f"programs in {tmp_path}: ")
    assert said(OTHER, tmp_path) == ["0 []"]


def test_programs_that_are_not_kept_are_not_compiled(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr(warm, "use_cache", lambda: None)
    assert main(["warm"]) == 2
    words = "warm: programs are not kept; nsjax.configure(cache='folder') chooses a folder"
    assert words in capsys.readouterr().err


def test_common_mechanisms_have_classes_of_their_own() -> None:
    classes = [nsjax.side_by_side(problem).size_class for _, problem in warm.common()]
    assert len({*classes}) == len(classes)
