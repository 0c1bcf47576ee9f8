"""Tendons of fixed length, and lengths that follow one another, against closed forms."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import schemes
from nsjax.multibody import (
    assemble,
    body,
    coupling,
    hinge,
    joint_tendon,
    slide,
    tendon,
)

SLOW = pytest.mark.slow
G, MASSES = 9.81, (2.0, 1.5)


def hoist(spatial: bool = False, coordinates: str = "joint", masses: Any = MASSES) -> Any:
    """b hangs on two strands, a on one; the rope is 6 m long."""
    up = (0.0, 0.0, 1.0) if spatial else (0.0, 1.0)

    def point(x: float, y: float) -> Any:
        return (x, 0.0, y) if spatial else (x, y)

    more = {"inertia": (0.1, 0.1, 0.1)} if spatial else {"inertia": 0.1}
    return assemble(
        body("a", mass=masses[0], **more), slide("A", "ground", "a", axis=up),
        body("b", mass=masses[1], **more), slide("B", "ground", "b", at=point(1.0, 0.0), axis=up),
        tendon("rope", ("ground", point(0.0, 2.0)), "a", 0.5, ("ground", point(1.0, 2.0)), "b"),
        coupling("held", "rope", polynomial=(6.0,)), gravity=G, coordinates=coordinates,
        start={"a": (-0.4, 0.3)},
    )  # fmt: skip


def wanted(masses: Any) -> tuple[Any, Any]:
    """Acceleration of a, and the effort on the length: ``y_a + 2 y_b`` is constant."""
    m, n = masses
    acceleration = -G * (m - n / 2.0) / (m + n / 4.0)
    return acceleration, -m * (acceleration + G)  # it pulls


CASES = [
    (False, "joint", schemes.moreau),
    pytest.param(True, "absolute", schemes.generalized_alpha, marks=SLOW),
    pytest.param(False, "absolute", schemes.ggl_decoupled, marks=SLOW),
    pytest.param(True, "joint", schemes.bathe, marks=SLOW),
    pytest.param(True, "joint", schemes.nsga_decoupled, marks=SLOW),
    pytest.param(False, "joint", schemes.half_explicit, marks=SLOW),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("spatial", "coordinates", "scheme"), CASES)
def test_a_rope_of_fixed_length(spatial: bool, coordinates: str, scheme: Any) -> None:
    problem = hoist(spatial, coordinates)
    traj = nsjax.simulate(*problem, scheme(), dt=1e-3, steps=100)
    traj.raise_for_status()
    acceleration, tension = wanted(MASSES)
    rate = traj.joint("A").rate
    np.testing.assert_allclose(rate, 0.3 + acceleration * traj.t, rtol=0, atol=1e-9)
    np.testing.assert_allclose(rate + 2.0 * traj.joint("B").rate, 0.0, rtol=0, atol=1e-10)
    height = traj.joint("A").coordinate + 2.0 * traj.joint("B").coordinate
    np.testing.assert_allclose(height, 0.0, rtol=0, atol=1e-9)  # the start of b follows from the length
    k = problem.system.labels.constraints.index("held")
    found = traj.constraint_impulse[:, k].sum() / traj.t[-1]
    assert float(found) == pytest.approx(tension, abs=1e-8)


def test_derivative_of_a_rope() -> None:
    """By a mass, forward and reverse, against the closed form."""
    made = hoist()

    def speed(m: Any) -> Any:
        problem = made.replace({"a.mass": m})
        return nsjax.simulate(*problem, schemes.moreau(), dt=1e-3, steps=20).v[-1, 0]

    x = jnp.asarray(2.0)
    exact = jax.grad(lambda m: 0.02 * wanted((m, MASSES[1]))[0])(x)
    forward = jax.jit(lambda x: jax.jvp(speed, (x,), (jnp.ones(()),))[1])(x)
    assert abs(float(forward - exact)) < 1e-10
    assert abs(float(jax.jit(jax.grad(speed))(x) - exact)) < 1e-10


@SLOW
def test_lengths_that_follow_one_another() -> None:
    """The sum of two angles is held to twice a third one by a polynomial, at the start and in motion."""
    parts = [y for k, x in enumerate("abc") for y in (
        body(x, mass=1.0, inertia=0.1 * (k + 1), com=0.2), hinge(x.upper(), "ground", x, at=float(k)),
    )]  # fmt: skip
    problem = assemble(
        *parts, joint_tendon("sum", {"A": 1.0, "B": 1.0}), joint_tendon("third", {"C": 1.0}),
        coupling("law", "sum", "third", polynomial=(0.1, 2.0, 0.3)), gravity=G, start={"a": 0.2, "c": 0.1},
    )  # fmt: skip
    assert float(problem.state.q[1]) == pytest.approx(0.1 + 0.2 + 0.003 - 0.2, abs=1e-11)
    traj = nsjax.simulate(*problem, schemes.generalized_alpha(), dt=1e-3, steps=100)
    a, b, c = (traj.joint(x).coordinate for x in "ABC")
    # rows are held on accelerations: positions drift by the scheme's order, 2
    np.testing.assert_allclose(a + b, 0.1 + 2.0 * c + 0.3 * c * c, rtol=0, atol=1e-6)
