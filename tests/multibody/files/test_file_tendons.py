"""Tendons of model files: lengths, accelerations and forces of actuators, against the package `mujoco`."""

from __future__ import annotations

import pytest

from nsjax.multibody import assemble, read_mjcf
from tests.multibody.files.oracle import quiet

mujoco = pytest.importorskip("mujoco", reason="the package mujoco is not installed")

MASS = "<inertial pos='0.1 0.05 -0.1' mass='{}' diaginertia='0.2 0.3 0.25'/>"
ARM = (
    "<mujoco><compiler angle='radian'/><worldbody><site name='w' pos='0.5 0.2 1.6'/>"
    "<site name='w2' pos='-0.6 0.1 1.2'/><body name='a' pos='0 0 1'>"
    "<joint name='j1' axis='0 1 0' ref='0.3' stiffness='3' damping='0.2'/>" + MASS.format(1.5)
    + "<site name='sa' pos='0.1 0.2 0.1'/><site name='sa2' pos='-0.2 0.1 0.15'/>"
    "<body name='b' pos='0.4 0 0' euler='0.2 0.1 0'>"
    "<joint name='j2' axis='1 0 0.5' damping='0.1'/>" + MASS.format(0.8)
    + "<site name='sb' pos='0.2 -0.1 0.3'/>"
    "<body name='c' pos='0.3 0.1 0'><joint name='j3' type='slide' axis='0 0.6 0.8' ref='0.05'/>"
    + MASS.format(0.5) + "<site name='sc' pos='0.1 0.1 0.1'/></body></body>"
    "<body name='d' pos='-0.3 0 0'><joint name='j4' axis='0 0 1'/>" + MASS.format(0.7)
    + "<site name='sd' pos='-0.1 0.2 -0.1'/>"
    "<body name='e'><site name='se' pos='-0.2 0.1 0.4'/></body></body></body>"
    "<body name='f' pos='1 1 1'><freejoint/>" + MASS.format(0.6)
    + "<site name='sf' pos='0 0.1 0.1'/></body>"
    "</worldbody><tendon>{}</tendon><actuator>{}</actuator><sensor>{}</sensor></mujoco>"
)  # fmt: skip


FIXED = "<joint joint='j1' coef='0.4'/><joint joint='j3' coef='-1.2'/><joint joint='j4' coef='0.3'/>"


def test_numbers_of_a_file() -> None:
    text = ARM.format(
        f"<fixed name='t' limited='true' range='-0.1 0.3' frictionloss='0.7'>{FIXED}</fixed>", "", ""
    )
    problem = assemble(*(file := quiet(read_mjcf, text)), gravity=file.gravity)
    assert problem.system.labels.contacts[-2:] == ("t.lower", "t.upper")
    assert problem.system.labels.drags == ("t",)
    t = problem.params["t"]
    assert (t.lower, t.upper, t.friction, t.restitution) == (-0.1, 0.3, 0.7, 0.0)


def test_what_winds_about_a_geometry_is_told() -> None:
    text = ARM.format(
        "<spatial name='t'><site site='w'/><geom geom='ball'/><site site='sa'/></spatial>"
        f"<fixed name='u' armature='0.1'>{FIXED}</fixed>",
        "<motor name='m' tendon='t'/>", "",
    ).replace("<site name='sa2'", "<geom name='ball' size='0.02' mass='0'/><site name='sa2'")  # fmt: skip
    file = quiet(read_mjcf, text)
    assert any("wind about a geometry are left out" in x for x in file.left_out)
    assert any("act on a tendon that is left out" in x for x in file.left_out)
    assert any("tendons whose armature is left out" in x for x in file.left_out)
    assert [x.name for x in file if x.kind in ("tendon", "joint_tendon")] == ["u"]


def test_a_tendon_over_a_ball_is_told() -> None:
    text = (
        "<mujoco><worldbody><body><joint name='b' type='ball'/><geom size='0.1'/><body><joint name='h'/>"
        "<geom size='0.1'/></body></body></worldbody><tendon><fixed name='t'><joint joint='h' coef='1'/>"
        "<joint joint='b' coef='2'/></fixed></tendon></mujoco>"
    )
    file = quiet(read_mjcf, text)
    assert any("tendons that run over a ball or free joint are left out" in x for x in file.left_out)
    file.problem()
