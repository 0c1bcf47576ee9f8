"""Tendons of model files: lengths, accelerations and forces of actuators, against the package `mujoco`."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nsjax.core.operators import prepared
from nsjax.multibody import assemble, read_mjcf
from nsjax.multibody.body_sensors import sensed
from nsjax.multibody.reactions import Instant
from tests.design import slow_but
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
SENSORS = "<tendonpos name='x' tendon='t'/><tendonvel name='r' tendon='t'/>"


def sites(*names: str) -> str:
    return "".join(f"<site site='{x}'/>" for x in names)


FIXED = "<joint joint='j1' coef='0.4'/><joint joint='j3' coef='-1.2'/><joint joint='j4' coef='0.3'/>"
PULLEYS = sites("w", "sa", "sb") + "<pulley divisor='2'/>" + sites("sd", "w2", "sc")
FILES = {
    "fixed": (f"<fixed name='t' stiffness='40' damping='3' springlength='0.1'>{FIXED}</fixed>", ""),
    "slack": (f"<fixed name='t' stiffness='40' springlength='-0.1 0.2'>{FIXED}</fixed>", ""),
    "spatial": (
        f"<spatial name='t' stiffness='30' damping='2'>{sites('w', 'sa', 'sb', 'sc')}</spatial>", "",
    ),
    "pulleys": (f"<spatial name='t' stiffness='30' damping='2'>{PULLEYS}</spatial>", ""),
    "first pulley": (
        f"<spatial name='t' stiffness='9' springlength='0 0.4'><pulley divisor='3'/>{sites('w', 'sc')}"
        f"<pulley divisor='0.5'/>{sites('se', 'w2')}</spatial>", "",
    ),
    "free body": (f"<spatial name='t' stiffness='30' damping='2'>{sites('sf', 'sa', 'se')}</spatial>", ""),
    "actuators": (
        f"<spatial name='t' damping='1'>{PULLEYS}</spatial><fixed name='u'>{FIXED}</fixed>",
        "<motor name='m' tendon='t' gear='1.7'/><position name='p' tendon='u' kp='20' kv='2' gear='0.6'/>"
        "<general name='g' tendon='t' gainprm='3' biastype='affine' biasprm='1 -2 -0.3' "
        "forcerange='-4 4'/><motor name='j' joint='j1' gear='2'/>",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", slow_but(FILES, "first pulley", "actuators"))
def test_tendons(case: str) -> None:
    lines, motors = FILES[case]
    sensors = SENSORS + "".join(
        f"<actuatorfrc name='f{x}' actuator='{x}'/><actuatorpos name='l{x}' actuator='{x}'/>"
        for x in "mpgj" * bool(motors)
    )
    text = ARM.format(lines, motors, sensors)
    file = quiet(read_mjcf, text)
    assert not any("tendon" in x or "actuator" in x or "sensor" in x for x in file.left_out)
    spec = mujoco.MjSpec.from_string(text)
    spec.compiler.fusestatic = False
    model = spec.compile()
    data = mujoco.MjData(model)
    problem = assemble(*file, gravity=file.gravity, start=file.start)
    rng = np.random.default_rng(5)
    controls = rng.normal(size=model.nu)
    problem = problem.replace(
        {f"{model.actuator(k).name}.own.control": float(u) for k, u in enumerate(controls)}
    )
    system, p = problem.system, prepared(problem.system, problem.params)
    labels = [x.split(".")[0] for x in system.labels.q]
    places = np.array([labels.index(f"j{k}") for k in (1, 2, 3, 4)])

    @jax.jit
    def looked(q: jax.Array, v: jax.Array) -> Any:
        t = jnp.zeros(())
        seen = {x: sensed(system.parts, y, t, q, v, None, p) for x, y in file.sensors.items()}
        return Instant(system.parts, t, q, v, p).balance[0], seen

    for _ in range(10):
        # the free body stays where it is: its axes are those of both programs there
        q, v = np.array(problem.state.q, float), np.array(problem.state.v, float)
        x, rate = rng.uniform(-0.5, 0.5, 4), rng.normal(size=4)
        q[places], v[[system.labels.v.index(x) for x in system.labels.v if x[:2] in JOINTS]] = x, rate
        data.qpos[:], data.qvel[:] = model.qpos0, 0.0
        data.qpos[:4], data.qvel[:4], data.ctrl[:] = x, rate, controls
        mujoco.mj_forward(model, data)
        found, seen = looked(jnp.asarray(q), jnp.asarray(v))
        wanted = data.qacc[:4]
        here = np.asarray(found)[[k for k, x in enumerate(system.labels.v) if x[:2] in JOINTS]]
        assert np.max(np.abs(here - wanted)) <= 1e-8 * (1.0 + np.max(np.abs(wanted)))
        for name, value in seen.items():
            asked = float(data.sensor(name).data[0])
            assert abs(float(value) - asked) <= (1e-10 if name[0] == "f" else 1e-12) * (1.0 + abs(asked))


JOINTS = ("j1", "j2", "j3", "j4")


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
