"""Laws of the friction in joints: clutches that turn in one sense, friction that falls with the rate."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import InputError, Problem, schemes
from nsjax import multibody as mb
from tests.contact.test_rate_laws import NUMBERS, check_cycle, event_driven, limit_cycle
from tests.design import each_family

BELT, LAW = 0.4, {"rest": 2.0, "speed": 0.15}


def _push(t: Any) -> Any:
    return 3.0 * jnp.cos(3.0 * t)


def ratchet(coordinates: str = "joint", sense: int = 1) -> Problem:
    """A driven arm and a wheel on one axle; the clutch between them turns in one sense."""
    return mb.assemble(
        mb.body("arm", mass=1.0, inertia=1.0), mb.body("wheel", mass=1.0, inertia=2.0),
        mb.hinge("axle", "ground", "arm"),
        mb.hinge("clutch", "arm", "wheel", friction_law=mb.OneWay(sense)),
        mb.torque("drive", "arm", law=lambda t, scene, own: sense * _push(t)),
        mb.torque("damper", "wheel", law=lambda t, scene, own: -own * scene.spin("wheel"), own=0.7),
        start={"arm": (0.0, 0.0), "wheel": (0.0, 0.4 * sense)}, coordinates=coordinates,
    )  # fmt: skip


@pytest.mark.parametrize("sense", [1, pytest.param(-1, marks=pytest.mark.slow)])
@each_family("name", "moreau")
def test_a_clutch_turns_in_one_sense(name: str, sense: int) -> None:
    if name.startswith("nsga"):
        pytest.skip("refuses laws of users")
    traj = nsjax.simulate(*ratchet(sense=sense), getattr(schemes, name)(), dt=2e-3, time=4.0)
    assert int(traj.status) == 0
    found = np.array([traj["arm.omega"][-1], traj["wheel.omega"][-1]])
    np.testing.assert_allclose(sense * found, event_driven(NUMBERS), atol=1e-4)


@pytest.mark.slow
def test_a_clutch_in_absolute_coordinates_and_its_derivative() -> None:
    problem, h = ratchet("absolute"), 1e-4

    def end(damping: Any) -> Any:
        driven = problem.replace({"damper.own": damping})
        traj = nsjax.simulate(*driven, schemes.moreau(), dt=2e-3, time=4.0)
        return jnp.stack([traj["arm.omega"][-1], traj["wheel.omega"][-1]])

    value, slope = jax.jit(lambda x: jax.jvp(end, (x,), (1.0,)))(0.7)
    np.testing.assert_allclose(value, event_driven(NUMBERS), atol=1e-4)
    ends = [event_driven(NUMBERS | {"damping": 0.7 + s * h}) for s in (1, -1)]
    np.testing.assert_allclose(slope, (ends[0] - ends[1]) / (2 * h), atol=2e-3)


@pytest.mark.parametrize(("sense", "coordinates"), [(1, "joint"), (-1, "absolute")])
def test_a_clutch_rubs_in_its_free_sense(sense: int, coordinates: str) -> None:
    """Moment 3 and friction 1 stop 0.1 kg m^2 from 5 rad/s in 1/8 s, and the clutch holds it there."""
    wheel = mb.assemble(
        mb.body("wheel", mass=1.0, inertia=0.1), mb.torque("pull", "wheel", -3.0 * sense),
        mb.hinge("clutch", "ground", "wheel", friction=1.0, friction_law=mb.OneWay(sense)),
        start={"wheel": (0.0, 5.0 * sense)}, coordinates=coordinates,
    )  # fmt: skip
    traj = nsjax.simulate(*wheel, schemes.moreau(), dt=1e-3, steps=200)
    np.testing.assert_allclose(traj["wheel.angle"][125:], sense * 0.1 * 25 / 2 / 4.0, atol=1e-6)


def slider() -> Problem:
    """A block on a spring, in a guide on a belt of steady speed."""
    return mb.assemble(
        mb.body("belt", mass=1.0), mb.slide("moving", "ground", "belt", motion=lambda t: BELT * t),
        mb.body("block", mass=1.0), mb.slide("guide", "ground", "block"),
        mb.slide("rubs", "belt", "block", friction=1.0, own=LAW, friction_law=mb.Stribeck(), loop=True),
        mb.joint_spring("spring", "guide", stiffness=20.0), start={"guide": (0.0, BELT)},
    )  # fmt: skip


@pytest.mark.slow
def test_stick_and_slip_of_a_block() -> None:
    traj = nsjax.simulate(*slider(), schemes.moreau(), dt=5e-4, time=4.0)
    assert int(traj.status) == 0
    cycle = limit_cycle(lambda u: 1.0 + (LAW["rest"] - 1.0) * np.exp(-((u / LAW["speed"]) ** 2)), BELT)
    block = traj.joint("guide")
    check_cycle(traj.t, block.position, block.rate, BELT, cycle, (2e-3, 3e-3))


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(InputError, match=r"hinge 'a': friction_law = 0\.3 has no function residual; give"):
        mb.hinge("a", "ground", "wheel", friction_law=0.3)
    with pytest.raises(InputError, match="OneWay: sense = 0; give 1"):
        mb.OneWay(0)
    for own, words in (
        (None, "give the bound in fast"),
        ({"rest": 2.0, "speed": 0.0}, "speed = 0.0; it must"),
    ):
        with pytest.raises(InputError, match=f"hinge 'a': .*{words}"):
            mb.hinge("a", "ground", "wheel", friction=1.0, own=own, friction_law=mb.Stribeck())
    arm, ball = (mb.body(name, mass=1.0, inertia=(0.1, 0.1, 0.1)) for name in ("arm", "ball"))
    clutch = mb.hinge("a", "ground", "arm", axis=(1.0, 0.0, 0.0), friction_law=mb.OneWay())
    floor = mb.contact("floor", mb.sphere("ball", radius=0.1), mb.plane(), friction=(0.5, 0.001, 0.01))
    with pytest.raises(InputError, match="friction_law does not work beside torsional and rolling"):
        mb.assemble(arm, ball, clutch, floor, gravity=9.81)
