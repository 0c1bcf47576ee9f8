"""Sensors by name, and those of model files against `mujoco`."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import InputError, schemes
from nsjax.multibody import assemble, body, hinge, read_mjcf, sensor
from nsjax.multibody.sensors import sensed
from tests.control.mechanisms import hopper

mujoco = pytest.importorskip("mujoco", reason="the package mujoco is not installed")

TEXT = """<mujoco><option gravity="0.3 -0.2 -9.81"/><worldbody>
<body name="base" pos="0 0 1"><freejoint/><inertial pos="0.1 0 0" mass="2" diaginertia="0.1 0.2 0.3"/>
<site name="eye" pos="0.1 0.2 0.3" euler="10 20 30"/>
<body name="arm" pos="0.2 0 0" euler="0 30 0"><joint name="elbow" axis="0 1 0" pos="0.1 0 0"/>
<inertial pos="0 0.1 -0.4" mass="1" diaginertia="0.1 0.1 0.01" euler="5 0 0"/>
<site name="hand" pos="0 0 -0.8" euler="0 45 10"/>
<body name="rod" pos="0 0 -0.8"><joint name="reach" type="slide" axis="0 0 1"/>
<inertial pos="0 0 -0.1" mass="0.5" diaginertia="0.02 0.02 0.01"/></body></body></body></worldbody>
<actuator><position name="servo" joint="elbow" kp="20" gear="2" ctrlrange="-1 1" forcerange="-3 3"/>
<motor name="drive" joint="reach" gear="0.5"/></actuator>
<sensor><jointpos joint="elbow"/><jointvel name="speed" joint="reach"/><actuatorpos actuator="servo"/>
<actuatorvel actuator="servo"/><actuatorfrc actuator="servo"/><actuatorfrc actuator="drive"/>
<framepos objtype="site" objname="hand"/><framepos objtype="body" objname="arm"/>
<framepos objtype="xbody" objname="arm"/><framelinvel objtype="site" objname="hand"/>
<frameangvel objtype="xbody" objname="rod"/><framelinacc objtype="site" objname="hand"/>
<frameangacc objtype="xbody" objname="arm"/><framequat objtype="site" objname="eye"/>
<framexaxis objtype="site" objname="hand"/><frameyaxis objtype="site" objname="hand"/>
<framezaxis objtype="site" objname="eye"/><velocimeter site="hand"/><gyro site="hand"/>
<accelerometer name="felt" site="hand"/><subtreecom body="arm"/>
<framepos objtype="site" objname="hand" reftype="site" refname="eye"/>
<framelinvel objtype="body" objname="rod" reftype="site" refname="eye"/>
<frameangvel objtype="site" objname="hand" reftype="body" refname="base"/>
<framequat objtype="site" objname="hand" reftype="xbody" refname="base"/>
<framezaxis objtype="site" objname="hand" reftype="site" refname="eye"/></sensor>
<keyframe><key name="bent" qpos="0 0 1 1 0 0 0 0.4 0.1" ctrl="0.5 2"/></keyframe></mujoco>"""


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_sensors_of_a_file(seed: int) -> None:
    model = mujoco.MjModel.from_xml_string(TEXT)
    data, rng = mujoco.MjData(model), np.random.default_rng(seed)
    data.qpos[:] = rng.normal(size=model.nq)
    data.qpos[3:7] /= np.linalg.norm(data.qpos[3:7])
    data.qvel[:], data.ctrl[:] = rng.normal(size=model.nv), [0.3, -0.7]
    mujoco.mj_forward(model, data)
    file = read_mjcf(TEXT)
    assert len(file.sensors) == model.nsensor
    assert not file.left_out
    problem = file.problem().replace(
        {"state.q": data.qpos.copy(), "state.v": data.qvel.copy(), "servo.own.control": 0.3,
         "drive.own.control": -0.7}
    )  # fmt: skip
    run = nsjax.simulate(*problem, schemes.moreau(), dt=1e-4, steps=1)
    for k, (name, own) in enumerate(file.sensors.items()):
        first = int(model.sensor_adr[k])
        wanted = data.sensordata[first : first + int(model.sensor_dim[k])]
        found = np.ravel(run.sensor(own)[0])
        if own.kind == "quaternion":  # two of them are the same rotation
            found = found * np.sign(found @ wanted)
        assert found == pytest.approx(wanted, rel=1e-10, abs=1e-10), name


def test_a_key_frame_by_name() -> None:
    file = read_mjcf(TEXT)
    problem = file.problem("bent")
    assert problem.params["drive"].own.control == 2.0
    assert problem.state.q[-2:] == pytest.approx([0.4, 0.1], abs=1e-12)
    with pytest.raises(InputError, match="bent"):
        file.problem("bend")


def test_names_of_a_run_are_what_it_shows() -> None:
    run = nsjax.simulate(*hopper(), schemes.moreau(), dt=1e-3, steps=250, every=10)
    assert np.array_equal(run.sensor("leg.velocity"), run.body("leg").velocity)
    assert np.array_equal(run.sensor("thigh.rate"), run.joint("thigh").rate)
    assert np.array_equal(run.sensor("guide.force"), run.joint("guide").force)
    assert np.array_equal(run.sensor("motor.power"), run.load("motor").power)
    assert np.array_equal(run.sensor("foot.force"), run.contact("foot").force)
    assert np.array_equal(run.sensor("energy"), run["energy"])
    assert np.array_equal(run.sensor("guide.position"), run["guide.position"])
    free = run.sensor("trunk.acceleration")[0]
    push = run.sensor(sensor("push", "effort", "motor"))[0]
    assert free[1] == pytest.approx(-9.81 - push / 3.0, rel=1e-9)
    apart = run.sensor(sensor("length", "distance", ("trunk", "leg")))
    assert apart == pytest.approx(run.joint("thigh").position, rel=1e-12)
    # standing: nothing accelerates, the ground carries the weight
    assert run.status == 0


@pytest.mark.slow
def test_what_is_measured_in_a_frame_that_turns() -> None:
    """In the plane: the velocity is the rate of the position as the frame shows it."""
    problem = assemble(
        body("a", mass=1.0, inertia=0.1), hinge("A", "ground", "a"),
        body("b", mass=1.0, inertia=0.1), hinge("B", "a", "b", at=0.4),
    )  # fmt: skip
    mechanism, p = problem.system.parts, problem.params
    frame = ("a", (0.1, 0.2), ((0.6, 0.8), (-0.8, 0.6)))
    place, rate, spin = (
        sensor("s", kind, "b", at=(0.3, -0.1), frame=frame) for kind in ("position", "velocity", "spin")
    )
    t, q, v = jnp.zeros(()), jnp.array([0.3, 1.1]), jnp.array([0.7, -0.4])
    shown, wanted = jax.jvp(lambda s: sensed(mechanism, place, t, q + s * v, v, None, p), (t,), (t + 1.0,))
    arm = (0.3 * np.cos(0.8) + 0.1 * np.sin(0.8), 0.3 * np.sin(0.8) - 0.1 * np.cos(0.8))  # in the axes of a
    assert np.asarray(shown) == pytest.approx(np.array(frame[2]) @ (arm[0] + 0.3, arm[1] - 0.2), abs=1e-12)
    assert np.asarray(sensed(mechanism, rate, t, q, v, None, p)) == pytest.approx(
        np.asarray(wanted), abs=1e-12
    )
    assert float(sensed(mechanism, spin, t, q, v, None, p)) == pytest.approx(-1.1, abs=1e-12)
