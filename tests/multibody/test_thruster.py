"""Thrusters: forces and moments in proportion to one effort, and actuators of model files that are such."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import schemes
from nsjax.core import InputError
from nsjax.core.operators import prepared
from nsjax.multibody import LeftOutWarning, assemble, ball, body, read_mjcf, thruster
from tests.multibody.files.oracle import compared, quiet

MASS, OWN, ARM, EFFORT, SIDE = 1.3, 0.2, 0.4, 2.0, 0.3


def force_of(problem: Any) -> np.ndarray:
    system = problem.system
    p = prepared(system, jax.tree.map(lambda x: jnp.asarray(x, float), problem.params))
    return np.asarray(
        system.force(jnp.zeros(()), jnp.asarray(problem.state.q), jnp.asarray(problem.state.v), p)
    )


@pytest.mark.parametrize(("coordinates", "follower"), [("joint", True), ("absolute", False)])
def test_in_the_plane(follower: bool, coordinates: str) -> None:
    """Force and moment about the centre, in turned axes or those of the ground."""
    angle = 0.7
    push = thruster("jet", ("a", (ARM, 0.1)), EFFORT, axis=(0.0, 1.5), moment=SIDE, follower=follower)
    problem = assemble(
        body("a", mass=MASS, inertia=OWN), push, start={"a": (0.0, 0.0, angle)}, coordinates=coordinates
    )
    turned = angle if follower else 0.0
    along = 1.5 * EFFORT * np.array([-np.sin(turned), np.cos(turned)])
    c, s = np.cos(angle), np.sin(angle)
    x, y = c * ARM - s * 0.1, s * ARM + c * 0.1
    wanted = [*along, x * along[1] - y * along[0] + SIDE * EFFORT]
    assert np.allclose(force_of(problem), wanted, atol=1e-14)


def test_a_law_of_the_rate() -> None:
    """``m v' = -k v`` by a law, and its derivative: ``v = v0 exp(-k t / m)``, ``dv/dk = -v t / m``."""

    def end(k: Any) -> Any:
        brake = thruster(
            "brake", "a", axis=(1.0, 0.0), law=lambda t, length, rate, own: -own * rate, own=0.5
        )
        problem = assemble(
            body("a", mass=MASS, inertia=OWN), brake, start={"a": (np.zeros(3), (2.0, 0.0, 0.0))}
        )
        problem = problem.replace({"brake.own": k})
        return nsjax.simulate(*problem, schemes.generalized_alpha(), dt=5e-3, steps=200).v[-1, 0]

    found, slope = jax.value_and_grad(end)(0.5)
    wanted = 2.0 * np.exp(-0.5 / MASS)
    assert abs(found - wanted) < 1e-5  # order 2: (k dt / m)^2 / 12
    assert abs(slope + wanted / MASS) < 1e-5


@pytest.mark.slow
def test_a_moment_and_its_reaction() -> None:
    """In a ball joint it acts on both bodies: the spin of the pair is not changed by it."""
    twin = {"mass": MASS, "inertia": (OWN, 0.3, 0.4)}
    problem = assemble(
        body("a", **twin), body("b", **twin), ball("pin", "a", "b"),
        thruster("gyro", "b", EFFORT, moment=(0.0, 0.0, SIDE), against="a"),
        start={"a": ((0.0, 0.0, 0.0), (0.3, -0.5, 0.2)), "pin": (0.4, 0.1, -0.2)},
    )  # fmt: skip
    found = force_of(problem)
    assert np.allclose(found[:6], 0.0, atol=1e-14)
    assert np.allclose(found[6:], [0.0, 0.0, EFFORT * SIDE], atol=1e-14)


DRONE = """<mujoco><worldbody><site name="w"/>
<body name="frame" pos="0 0 1"><joint name="fly" type="free"/>
  <geom type="box" size="0.2 0.15 0.05" mass="1"/>
  <site name="r1" pos="0.2 0.1 0.02" euler="10 20 30"/><site name="r2" pos="-0.2 0.1 0"/>
  <body name="hub" pos="0 0 0.1"><site name="r3" pos="0.01 0 0.1" euler="0 40 0"/></body>
  <body name="camera" pos="0.3 0 0"><joint name="gimbal" type="ball"/>
    <geom type="box" size="0.05 0.04 0.03" pos="0.02 0 0.01" mass="0.2"/></body></body></worldbody>
<actuator><motor name="a1" site="r1" gear="0 0 1 0 0 -0.02" ctrlrange="0 0.5"/>
<general name="a2" site="r2" gear="0.5 0 2 0.1 0 0" gainprm="3" biastype="affine" biasprm="0.2 0 -0.3"/>
<general name="a3" site="r3" gear="0 1 1 0 0 0.1" dyntype="filter" dynprm="0.1" gainprm="2"
  forcerange="-1 1"/>
<motor name="a4" joint="gimbal" gear="0.1 -0.2 0.3"/>
<velocity name="a5" joint="gimbal" gear="0 1 0" kv="0.1"/>
<motor name="a6" joint="fly" gear="1 2 3 0.1 0.2 0.3"/>{}</actuator><sensor>{}</sensor></mujoco>"""


def test_a_drone_of_a_file() -> None:
    """Rotors at turned sites, motors of a ball and of the free body, with servos of rates and filters."""
    worst = compared(DRONE.format("", "<gyro site='r1'/>"), states=6)
    assert worst["accelerations"] < 1e-12
    assert max(worst.values()) < 1e-12


def test_what_is_left_out_beside_a_drone() -> None:
    more = (
        "<position name='b1' joint='gimbal' gear='1 0 0' kp='1'/>"
        "<motor name='b2' site='r1' refsite='r2' gear='1 0 0 0 0 0'/>"
        "<motor name='b3' site='w' gear='1 0 0 0 0 0'/>"
    )
    with pytest.warns(LeftOutWarning) as told:
        file = read_mjcf(DRONE.format(more, "<actuatorfrc actuator='a1'/>"))
    said = " ".join(str(x.message) for x in told)
    assert "actuators that serve the position of a ball are left out: 'b1'" in said
    assert "actuators that act at a site relative to another one (refsite) are left out: 'b2'" in said
    assert "actuators that act at a site of the ground are left out: 'b3'" in said
    assert "sensors that have no equal are left out" in said
    assert [x.name for x in file if x.kind == "thruster"] == ["a1", "a2", "a3", "a4", "a5", "a6"]


def test_a_drone_hovers() -> None:
    """Four commands that carry the weight, as inputs by the names of the rotors."""
    text = "<mujoco><worldbody><body name='d' pos='0 0 1'><freejoint/>"
    text += "<geom type='box' size='.1 .1 .02' mass='0.5'/>"
    text += "".join(
        f"<site name='s{k}' pos='{x} {y} 0'/>"
        for k, (x, y) in enumerate(((1, 1), (-1, 1), (-1, -1), (1, -1)))
    )
    text += "</body></worldbody><actuator>"
    text += "".join(f"<motor name='m{k}' site='s{k}' gear='0 0 1 0 0 {(-1) ** k}'/>" for k in range(4))
    problem = quiet(read_mjcf, text + "</actuator></mujoco>").problem()
    inputs = {f"m{k}": 0.5 * 9.81 / 4.0 for k in range(4)}
    traj = nsjax.simulate(*problem, schemes.moreau(), dt=1e-3, steps=50, inputs=inputs)
    assert np.allclose(traj.q[-1], problem.state.q, atol=1e-12)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"axis": (0.0, 1.0)}, "thruster 'x': give effort or law, one of them"),
        ({"effort": 1.0}, "thruster 'x': neither axis nor moment; give one of them"),
        (
            {"effort": 1.0, "axis": (0.0, 1.0), "against": "b"},
            "thruster 'x': axis with against = 'b'; only a moment has a reaction",
        ),
    ],
)
def test_sentences(given: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        thruster("x", "a", given.pop("effort", None), **given)
    with pytest.raises(InputError, match="acts on the ground, which does not move"):
        thruster("x", "ground", 1.0, axis=(0.0, 1.0))
