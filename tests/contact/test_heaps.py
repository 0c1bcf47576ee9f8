"""Heaps of boxes: all drawn problems are solved, where plain steps fail too."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nsjax.contact import ContactProblem, RowGroups, solve
from tests.contact.heaps import heap
from tests.design import slow_but

TOLERANCE = 1e-11


@jax.jit
def answers(data: tuple[jax.Array, ...]) -> tuple[jax.Array, jax.Array]:
    """Residuals and numbers of ways of stacked problems, one after the other."""

    def one(data: tuple[jax.Array, ...]) -> tuple[jax.Array, jax.Array]:
        g, free, friction, mask = data
        problem = ContactProblem(
            rows=RowGroups.of(friction.shape[0], 2), delassus=g, free=free, friction=friction, mask=mask
        )  # fmt: skip
        answer = solve(problem, tolerance=TOLERANCE)
        return answer.residual, answer.rounds

    return jax.lax.map(one, data)


def check_heaps(seeds: range, bodies: int, most: int, walls: bool, restitution: bool) -> None:
    """All are solved, a part of them by ways."""
    n, m = len(seeds), 3 * most
    g, free = np.tile(np.eye(m), (n, 1, 1)), -np.ones((n, m))
    friction, mask = np.ones((n, most)), np.zeros((n, most), bool)
    for k, seed in enumerate(seeds):
        drawn = heap(seed, bodies, most, walls, restitution)
        rows = drawn.free.shape[0]
        g[k, :rows, :rows], free[k, :rows] = drawn.delassus, drawn.free
        friction[k, : drawn.contacts], mask[k, : drawn.contacts] = drawn.friction, True
    residual, ways = map(np.asarray, answers(tuple(map(jnp.asarray, (g, free, friction, mask)))))
    assert np.all(residual <= TOLERANCE), [seeds[k] for k in np.flatnonzero(residual > TOLERANCE)]
    assert np.any(ways > 0)


KINDS = {"falling": (False, False), "bouncing": (False, True), "wedged": (True, False)}


@pytest.mark.parametrize("kind", slow_but(KINDS, "bouncing", "wedged"))
def test_heaps_are_solved(kind: str) -> None:
    check_heaps(range(60), 3, 12, *KINDS[kind])


SIZES = (2, 8, 1000), (3, 12, 1000), (5, 24, 500), (8, 40, 200)
"""Bodies, contacts at most, problems."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "bodies", "most", "count"), [(x, *SIZES[k % 4]) for k, x in enumerate((*KINDS, *KINDS))]
)
def test_many_heaps_are_solved(bodies: int, most: int, count: int, kind: str) -> None:
    check_heaps(range(10_000, 10_000 + count), bodies, most, *KINDS[kind])
