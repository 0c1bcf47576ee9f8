"""Newton's restitution beside friction may add energy; one restitution in all directions never does."""

from __future__ import annotations

import numpy as np
import pytest

import nsjax
from nsjax import multibody as mb
from nsjax import schemes

ANGLES = np.array([-np.radians(70.0), -np.radians(60.0)])
RATES = np.array([0.161, -0.5855])
E = MU = 0.7


def energy(v: np.ndarray, mass: np.ndarray) -> float:
    return float(0.5 * v @ mass @ v)


def by_hand(tangential: float) -> tuple[float, float]:
    """Energies before and after the impact of two rods of length and mass one, which sticks: the friction
    impulse is inside its cone.
    """
    turned = 0.5 * np.cos(ANGLES[0] - ANGLES[1])
    mass = np.array([[4.0 / 3.0, turned], [turned, 1.0 / 3.0]])
    rows = np.stack([np.cos(ANGLES), -np.sin(ANGLES)])  # vertical and horizontal velocity of the tip
    before = rows @ RATES
    wanted = -(1.0 + np.array([E, tangential])) * before
    impulse = np.linalg.solve(rows @ np.linalg.solve(mass, rows.T), wanted)
    assert impulse[0] > 0.0
    assert abs(impulse[1]) < MU * impulse[0]
    return energy(RATES, mass), energy(RATES + np.linalg.solve(mass, rows.T @ impulse), mass)


@pytest.mark.parametrize(
    ("tangential", "gains"), [(E, False), pytest.param(0.0, True, marks=pytest.mark.slow)]
)
def test_a_double_pendulum_strikes_a_floor(tangential: float, gains: bool) -> None:
    before, after = by_hand(tangential)
    assert (after > before) == gains
    height = -np.sum(np.sin(ANGLES))
    contact = mb.contact(
        "floor", mb.point("b", at=1.0), mb.plane(), restitution=E, friction=MU,
        restitution_tangential=tangential,
    )  # fmt: skip
    problem = mb.assemble(
        mb.body("a", mass=1.0, inertia=1.0 / 12.0, com=0.5),
        mb.body("b", mass=1.0, inertia=1.0 / 12.0, com=0.5),
        mb.hinge("top", "ground", "a", at=(0.0, height)), mb.hinge("knee", "a", "b", at=1.0), contact,
        start={"a": (ANGLES[0] + 1e-7, RATES[0]), "b": (ANGLES[1], RATES[1])},
    )  # fmt: skip
    run = nsjax.simulate(*problem, schemes.moreau(), dt=1e-7, steps=20)
    found = np.asarray(run["energy"])
    # the rods turn by 1e-6 until the impact
    np.testing.assert_allclose(found[[0, -1]], [before, after], rtol=1e-4)
