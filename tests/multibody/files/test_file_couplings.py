"""Couplings of model files: accelerations with equalities held rigidly, against the package `mujoco`."""

from __future__ import annotations

import pytest

from nsjax.multibody import read_mjcf
from tests.multibody.files.oracle import quiet

mujoco = pytest.importorskip("mujoco", reason="the package mujoco is not installed")

MASS = "<inertial pos='0.1 0.05 -0.1' mass='{}' diaginertia='0.2 0.3 0.25'/>"
ARM = (
    "<mujoco><compiler angle='radian'/><worldbody><body name='a' pos='0 0 1'>"
    "<joint name='j1' axis='0 1 0' ref='0.3' stiffness='3' damping='0.2'/>" + MASS.format(1.5)
    + "<body name='b' pos='0.4 0 0' euler='0.2 0.1 0'>"
    "<joint name='j2' axis='1 0 0.5' damping='0.1'/>" + MASS.format(0.8)
    + "<body name='c' pos='0.3 0.1 0'><joint name='j3' type='slide' axis='0 0.6 0.8' ref='0.05'/>"
    + MASS.format(0.5) + "</body></body>"
    "<body name='d' pos='-0.3 0 0'><joint name='j4' axis='0 0 1'/>" + MASS.format(0.7) + "</body></body>"
    "</worldbody><equality>{}</equality></mujoco>"
)  # fmt: skip


def test_what_does_not_couple_is_told() -> None:
    text = ARM.format("<joint joint1='j1' joint2='j2' active='false'/>")
    assert any("not active at the start" in x for x in quiet(read_mjcf, text).left_out)


def test_a_weld_that_leaves_turns_free() -> None:
    """``torquescale='0'`` holds points alone: it is a ball, as the library's rows of it are."""
    weld = "<weld name='w' body1='c' body2='d' anchor='0.1 0 0' torquescale='{}'/>"
    files = [quiet(read_mjcf, ARM.format(weld.format(scale))) for scale in (0, 1)]
    kinds = [next(x.kind for x in file if x.name == "w") for file in files]
    assert kinds == ["ball", "fixed"]
