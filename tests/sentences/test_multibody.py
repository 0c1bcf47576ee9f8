"""Wrong parts of mechanisms; more of them in ``tests/multibody/test_sentences.py``."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

from nsjax import InputError
from nsjax import multibody as mb

SECTION = mb.circular(0.01, E=1e9, rho=1e3)
SPACE = mb.body("rod", mass=1.0, inertia=(1.0, 1.0, 1.0))
SQUARE = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
URDF = '<robot name="r"><link name="base"/></robot>'
MJCF = "<mujoco><worldbody/></mujoco>"


def beam(*ends: Any, **given: Any) -> Any:
    return mb.beam("arm", *(ends or ((0.0, 0.0, 0.0), (1.0, 0.0, 0.0))), section=SECTION, **given)


def bar(**given: Any) -> Any:
    return mb.body("rod", **({"mass": 1.0, "inertia": 0.1} | given))


def traced(make: Callable[[Any], Any]) -> Any:
    """With nodes that nobody knows yet."""
    jax.make_jaxpr(lambda x: make(x * np.eye(3)[:2]) and 0.0)(1.0)


def test_model_files(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mujoco", reason="model files are read by mujoco (extra files)")
    with pytest.raises(
        InputError, match=r"read_urdf: gone.urdf does not exist; give a path, or the text of a"
    ):
        mb.read_urdf("gone.urdf")
    with pytest.raises(InputError, match=r"read_urdf: .* has the root <mujoco>; use read_mjcf"):
        mb.read_urdf(MJCF)
    with pytest.raises(InputError, match=r"read_mjcf: .* has the root <robot>; use read_urdf"):
        mb.read_mjcf(URDF)
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(ImportError, match=r"reading model files needs mujoco; install it with: pip"):
        mb.read_mjcf(MJCF)
