"""The cube and the woodpecker from parts, beside the hand-written ones."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nsjax import Problem, models
from nsjax.multibody import (
    assemble,
    body,
    contact,
    corners,
    plane,
)

CUBE = assemble(
    body("cube", mass=0.37, inertia=8.1e-4 * np.ones(3)),
    contact("floor", corners("cube", 0.0524, 0.0524, 0.0524), plane(), restitution=0.5, friction=0.18),
    gravity=9.81, start={"cube": (((0.0, 0.0, 0.2), (0.5, 0.3, 0.1)), (1.0, 0.0, 0.0, 2.0, -3.0, 1.0))},
)  # fmt: skip


def block() -> Problem:
    return models.block(
        size=(0.1048, 0.1048, 0.1048), mass=0.37, inertia=8.1e-4 * np.ones(3), restitution=0.5,
        friction=0.18, initial_q=CUBE.state.q, initial_v=CUBE.state.v,
    )  # fmt: skip


@pytest.mark.slow
def test_functions_of_the_cube_at_random_states() -> None:
    """Corners and tangents are the same, in another order."""
    one, other, seeded = CUBE, block(), np.random.default_rng(0)
    rest = one.system.retract(one.state.q, np.zeros(6))
    order = [
        int(np.argmin(np.abs(other.system.gap(0.0, rest, other.params) - g)))
        for g in one.system.gap(0.0, rest, one.params)
    ]
    assert sorted(order) == list(range(8))

    @jax.jit
    def both(xi, v):
        q = one.system.retract(rest, xi)
        found = []
        for s, p, rows in (
            (one.system, one.params, slice(None)),
            (other.system, other.params, np.array(order)),
        ):
            p = s.prepare(p) if s.prepare else p
            force, slip = s.force(0.0, q, v, p), s.slip(0.0, q, v, p)[rows]
            found.append((s.mass(q, p), force, s.gap(0.0, q, p)[rows], jnp.sum(slip**2, axis=1)))
        return found

    for _ in range(100):
        here, there = both(seeded.normal(size=6), seeded.normal(size=6))
        for x, y in zip(here, there, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-12 * float(jnp.max(jnp.abs(y))))
