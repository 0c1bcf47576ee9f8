"""What wrong input is answered: `table.txt`, one line for each `call => text`.

A section, ``[core.test_checks]``, names the module of `tests` in whose names its calls are evaluated,
beside those of `NAMES` and of its lines of imports. An indented line continues the one before. Dots stand
for any words in a text, which begins with the kind of the error where that is no `InputError`. A line that
compiles for a second begins with `SLOW`.
"""

from __future__ import annotations

import importlib
import pathlib
import re
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import models, multibody, schemes

NAMES = {
    **{name: getattr(multibody, name) for name in multibody.__all__},
    **{"jax": jax, "jnp": jnp, "np": np, "mb": multibody},
    **{"nsjax": nsjax, "models": models, "schemes": schemes, "InputError": nsjax.InputError},
}

SLOW = "slow: "


def lines() -> Iterator[str]:
    """Of the table, with those that continue them."""
    text = pathlib.Path(__file__).with_name("table.txt").read_text()
    yield from re.sub(r"\n +", " ", text).splitlines()


def cases() -> Iterator[object]:
    """Section, its imports, call and text."""
    section, imports = "", ""
    for line in lines():
        if line.startswith("["):
            section, imports = line[1:-1], ""
        elif line.startswith(("from ", "import ")):
            imports += f"{line}\n"
        elif line and not line.startswith("#"):
            call, text = line.removeprefix(SLOW).split(" => ")
            marks = [pytest.mark.slow] if line.startswith(SLOW) else []
            yield pytest.param(section, imports, call, text, id=f"{section}: {call}"[:90], marks=marks)


@pytest.mark.parametrize(("section", "imports", "call", "text"), list(cases()))
def test_refused(section: str, imports: str, call: str, text: str, tmp_path, monkeypatch) -> None:
    """In a folder to which nothing is written."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {**NAMES, **vars(importlib.import_module(f"tests.{section}"))}
    exec(imports, names)
    kind, said = re.fullmatch(r"(?:(\w+Error): )?(.*)", text).groups()  # type: ignore[union-attr]
    words = ".*".join(map(re.escape, said.split("...")))
    with pytest.raises(Exception, match=words) as caught:
        eval(call, names)
    assert caught.type.__name__ == (kind or "InputError")
    assert not list(tmp_path.iterdir())
