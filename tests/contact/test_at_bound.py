"""Friction at its bound where something else holds the same motion: derivatives do not hang on rounding."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nsjax.contact import Bounded, ContactProblem, GivenForces, RowGroup, RowGroups, solve

DRAWS = 60
FLOOR, WALL = "floor", "wall"


@functools.cache
def _program(held: str):
    """``(data, change) -> (velocity, those changed by both signs, its derivative, force, its derivative)``
    of a mass that falls on a ``floor`` or is held by a ``wall`` (a bilateral row), with a bounded force
    along the same direction, which asks for a speed.
    """
    floor = held == FLOOR

    def velocity(data):
        free, mass, slope, bound, wanted = data
        # rows: normal and tangent of the floor, the bounded force, the wall
        rows = jnp.stack([1.0, 0.0, slope] if floor else [slope, -1.7])
        here = 2 * floor
        problem = ContactProblem(
            rows=RowGroups.of(floor, 1, 1 - floor, bounded=RowGroup(Bounded(), 1)),
            delassus=rows[:, None] * rows / mass,
            free=rows * free - (np.arange(rows.shape[0]) == here) * wanted,
            friction=jnp.ones(1 + floor), mask=jnp.ones(1 + floor, bool),
            given=GivenForces(normal=jnp.where(np.arange(1 + floor) == floor, bound, 0.0)),
        )  # fmt: skip
        x = solve(problem).x
        return free + jnp.dot(rows, x) / mass, x[here]

    def both(data, change):
        moved = [velocity(tuple(a + s * b for a, b in zip(data, change, strict=True)))[0] for s in (1, -1)]
        (v, force), (dv, dforce) = jax.jvp(velocity, (data,), (change,))
        return v, *moved, dv, force, dforce

    return jax.jit(both)


@pytest.mark.parametrize("held", [WALL, pytest.param(FLOOR, marks=pytest.mark.slow)])
def test_velocity_that_something_else_holds(held: str) -> None:
    """The force is at its bound and the velocity zero whatever it asks for: so is its derivative."""
    rng, sticks = np.random.default_rng(3), 0
    for seed in range(DRAWS):
        mass, slope, push = rng.uniform(0.3, 3.0), rng.normal(), -rng.uniform(0.05, 0.2)
        slope += 0.2 * np.sign(slope)
        least = abs(push) * mass / abs(slope)
        data = push, mass, slope, least * rng.uniform(0.05, 0.9), 0.0
        size = 1e-3 * abs(push)
        change = (
            (size if held == WALL else size * rng.choice([-1.0, 0.5])), 0.0, 0.0, 0.0, size * rng.normal(),
        )  # fmt: skip
        v, more, less, dv, force, dforce = (float(x) for x in _program(held)(data, change))
        assert max(abs(v), abs(more), abs(less)) < 1e-12, seed
        assert abs(dv) < 1e-12, (seed, dv)
        inside = abs(force) < data[3] * (1.0 - 1e-6)
        sticks += inside
        assert inside or abs(dforce) < 1e-12, (seed, dforce)
    assert sticks < DRAWS
