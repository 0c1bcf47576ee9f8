"""Springs, motors and loads of a run by name, and energies by their source."""

import numpy as np
import pytest

import nsjax
from nsjax import schemes
from nsjax.multibody import actuator, assemble, body, force, hinge, joint_spring, slide, spring, torque


@pytest.fixture(scope="module")
def run():
    problem = assemble(
        body("cart", mass=2.0), body("rod", mass=1.0, inertia=0.1, com=0.4),
        slide("rail", "ground", "cart"), hinge("pin", "cart", "rod"),
        spring("coil", ("ground", (-1.0, 0.0)), ("rod", 0.8), stiffness=20.0, length=0.5, damping=0.3),
        joint_spring("torsion", "pin", stiffness=2.0, rest=0.2),
        actuator("motor", "rail", law=lambda t, x, rate, own: own["k"] * (0.3 - x), own={"k": 5.0}),
        force("push", ("rod", (0.8, 0.0)), (0.0, 1.0), follower=True), torque("twist", "rod", 0.4),
        gravity=9.81, start={"rail": (0.1, 0.5), "rod": (0.7, -1.0)},
    )  # fmt: skip
    return nsjax.simulate(*problem, schemes.half_explicit(), dt=1e-3, steps=400)


def test_energies_add_up(run) -> None:
    bodies = [run.body(x) for x in ("cart", "rod")]
    np.testing.assert_allclose(sum(x.kinetic for x in bodies), run["kinetic"], rtol=1e-12)
    stored = sum(x.potential for x in bodies) + run.load("coil").energy + run.load("torsion").energy
    np.testing.assert_allclose(stored, run["potential"], rtol=1e-12, atol=1e-12)


def test_powers_are_the_change_of_energies(run) -> None:
    """Kinetic energy changes by the work of loads and weight: to the square of the step."""
    power = sum(run.load(x).power for x in ("coil", "torsion", "motor", "push", "twist"))
    weight = -np.diff(sum(run.body(x).potential for x in ("cart", "rod")))
    work = 0.5 * (power[1:] + power[:-1]) * 1e-3 + weight
    assert np.max(np.abs(np.diff(run["kinetic"]) - work)) < 1e-6 * np.max(run["kinetic"])
    assert np.ptp(run["kinetic"]) > 1.0


def test_forces_and_moments(run) -> None:
    rod, coil = run.body("rod"), run.load("coil")
    turn = np.stack([np.cos(rod.rotation), np.sin(rod.rotation)], axis=1)
    apart = rod.position + 0.8 * turn - np.array([-1.0, 0.0])
    length = np.linalg.norm(apart, axis=1)
    tip = rod.velocity + 0.8 * rod.spin[:, None] * np.stack([-turn[:, 1], turn[:, 0]], axis=1)
    pull = 20.0 * (length - 0.5) + 0.3 * np.sum(apart * tip, axis=1) / length
    np.testing.assert_allclose(coil.force, -(pull / length)[:, None] * apart, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(run.load("torsion").torque, -2.0 * (rod.rotation - 0.2), rtol=1e-12)
    np.testing.assert_allclose(
        run.load("motor").force[:, 0], 5.0 * (0.3 - run["rail.position"]), rtol=1e-12
    )
    across = np.stack([-turn[:, 1], turn[:, 0]], axis=1)
    np.testing.assert_allclose(run.load("push").force, across, atol=1e-12)
    np.testing.assert_allclose(run.load("twist").torque, 0.4)


def test_unknown_names(run) -> None:
    with pytest.raises(KeyError, match=r"no load 'coils'; did you mean 'coil'"):
        run.load("coils")
