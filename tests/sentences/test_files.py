"""Files that do not fit, and wrong commands, refused before anything is compiled."""

from __future__ import annotations

import dataclasses
import importlib
import pathlib
import types
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import nsjax
from nsjax import InputError, models, schemes
from nsjax.cli import identify, main
from nsjax.io import codec as saved_scheme
from nsjax.io import driver, files
from nsjax.trajectory import Impacts
from tests.plot.coasting import coasting

BALL, CRANK, MOREAU = models.bouncing_ball(), models.slider_crank(), schemes.moreau()
FALL = coasting(BALL)
HEADER = {"registered": True, "model": "bouncing_ball", "choices": None, "sizes": {}}


@dataclasses.dataclass(frozen=True)
class Record:
    """What is saved."""

    mass: float


def rebuilt(**change: Any) -> Any:
    """A scheme from a file in which something stands otherwise."""
    content = saved_scheme.describe_scheme(MOREAU)
    return saved_scheme.rebuild_scheme({**content, **change})


def traced(call: Callable[[Any], Any]) -> None:
    jax.make_jaxpr(call)(1.0)


def of_damaged() -> None:
    with driver._named_if_damaged("run.npz"):
        raise KeyError("carry")


def of_a_scheme_inside() -> None:
    outer = saved_scheme.describe_scheme(schemes.localized(MOREAU))
    saved_scheme.rebuild_scheme({**outer, "options": {**outer["options"], "inner": "moreau()"}})


def list_of(**change: Any) -> None:
    """A list of impacts beside a system that has them."""
    names = ("contact", "rate_before", "rate_after", "impulse_normal")
    made: Any = Impacts(
        **{f.name: np.zeros(()) for f in dataclasses.fields(Impacts)}
        | {name: np.zeros(3) for name in ("time", *names)}
        | {"impulse_tangential": np.zeros((3, BALL.system.nt))} | change
    )  # fmt: skip
    files._check_events(BALL.system, made)


MADE = "tests.sentences.test_files:Record"


SPHERE = "import nsjax\nfrom nsjax import models\nproblem = models.bouncing_ball()\n"
CONFIG = 'model = "bouncing_ball"\ndt = 0.1\n[train]\nrestitution = "positive"\n'
HINGED = """<robot name="r"><link name="base"/><link name="arm"><inertial>
<origin xyz="1 0 0"/><mass value="1"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="pin" type="continuous"><parent link="base"/><child link="arm"/>
<axis xyz="0 1 0"/></joint></robot>"""

FILES = {
    "empty.toml": "dt = 0.1\n", "blank.toml": f"{CONFIG}[[data]]\nnoise = 0.1\n",
    "other.toml": f'{CONFIG}[[data]]\nfile = "t.csv"\ncolumns = {{ y = "hight" }}\n',
    "kind.toml": CONFIG.replace("positive", "postive") + '[[data]]\nfile = "t.csv"\n',
    "t.csv": "t,y\n0.1,1\n0.2,2\n", "short.csv": "t,y\n0.1\n", "words.csv": "t,y\n0.1,one\n",
    "arm.urdf": HINGED, "own.py": SPHERE,
}  # fmt: skip

COMMANDS = {
    "identify empty.toml": "empty.toml: model is missing; see nsjax identify --help",
    "identify blank.toml": "blank.toml: a recording has no file",
    "identify other.toml": "t.csv: no column 'hight'; ",
    "identify kind.toml": "transform = 'postive'; ",
    "simulate bounzing-ball": "; or give a Python file, a URDF or MJCF",
    "simulate gone.py": "gone.py does not exist",
    "simulate bouncing-ball --scheme moro": "unknown scheme 'moro'; ",
    "simulate bouncing-ball --set hight=1": "bouncing_ball: unknown parameter 'hight'; ",
    "simulate block --set dimension=four": "block: dimension = 'four'; give a whole number",
    "simulate arm.urdf --set start=3": "--set start=3: write it as {'joint': 0.3}",
    "simulate own.py": "own.py has no default step size and duration; give --dt and --time",
    "simulate bouncing-ball --animate run.avi": "run.avi: animations are pages or films; end the name in",
    "sweep own.py dt=0.1:0.2:2": "own.py has no default duration; give --time",
    "sweep bouncing-ball height=1": "height: nothing varies; give at least two values",
    "sweep bouncing-ball restitution=0.1:0.2:2 --quantity hight": "--quantity hight: ",
    "sweep bouncing-ball restitution=0.1:0.2:2 --devices 0": "--devices 0; it must be at least 1",
    "reproduce gone/fig1": "reproduce: unknown 'gone/fig1'; ",
}


@pytest.mark.parametrize("command", COMMANDS)
def test_commands(
    command: str,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    assert main(command.split()) == 2
    assert COMMANDS[command] in capsys.readouterr().err


def test_tables(tmp_path: pathlib.Path) -> None:
    for name in ("short.csv", "words.csv"):
        (tmp_path / name).write_text(FILES[name])
    with pytest.raises(
        InputError, match="row 2 has 1 entries, the heading 2 names; a missing value is an empty"
    ):
        identify.read_columns(tmp_path / "short.csv")
    with pytest.raises(InputError, match="row 2, column y: 'one' is no number"):
        identify.read_columns(tmp_path / "words.csv")


def test_experiments_that_are_not_there(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.setattr(importlib.import_module("nsjax.cli.commands"), "PACKAGE", "none")
    assert main(["reproduce", "table4"]) == 2
    assert "reproduce: the experiments are not installed; use a checkout" in capsys.readouterr().err


def spring(stiffness: Any) -> None:
    raise TypeError("no number")


def test_a_checkpoint_of_a_scheme_of_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its functions are not in the file, and nobody passes them."""
    found = types.SimpleNamespace(traj=None, scheme=None, scheme_note="it is one's own")
    monkeypatch.setattr(driver, "load", lambda *given, **more: found)
    monkeypatch.setattr(driver, "read_unfinished", lambda path: {})
    with pytest.raises(InputError, match=r"it is one's own; pass the scheme, resume\(path, scheme=...\)"):
        nsjax.resume("run.npz")
