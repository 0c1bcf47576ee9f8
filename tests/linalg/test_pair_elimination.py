"""Elimination of blocks coupled in pairs, against a dense solution."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nsjax.linalg import Paired
from nsjax.linalg.elimination import HUBS, pair_order, solve_pairs
from tests.design import slow_but

ROWS, BLOCK = 3, 6


def rows(of: np.ndarray, blocks: int, draw: np.random.Generator) -> Paired:
    values = draw.normal(size=(len(of), 2, ROWS, BLOCK))
    return Paired(values=jnp.asarray(values), of=jnp.asarray(of), blocks=blocks)


def chain(blocks: int, pairs: int, draw: np.random.Generator) -> np.ndarray:
    """Pairs of blocks that are less than four places apart in a hidden order, and some with the ground."""
    first = draw.integers(0, blocks, pairs)
    places = np.minimum(np.stack([first, first + draw.integers(1, 4, pairs)], axis=1), blocks)
    hidden = np.append(draw.permutation(blocks), blocks)
    return hidden[places]


def checked(of: np.ndarray, blocks: int, seed: int) -> None:
    draw = np.random.default_rng(seed)
    wt, response = rows(of, blocks, draw), rows(of, blocks, draw).T
    on = draw.uniform(size=len(of)) < 0.8
    inner = jnp.asarray(draw.normal(size=(len(of), ROWS, ROWS)))
    whole = np.zeros((len(of) * ROWS, len(of) * ROWS))
    for k in np.flatnonzero(on):
        whole[k * ROWS : (k + 1) * ROWS, k * ROWS : (k + 1) * ROWS] = inner[k]
    a, b = np.asarray(wt.dense()), np.asarray(response.dense())
    matrix, known = np.eye(blocks * BLOCK) + b @ whole @ a, draw.normal(size=blocks * BLOCK)
    order = jax.jit(pair_order)(wt, jnp.asarray(on))
    assert order.narrow
    found = jax.jit(solve_pairs)(wt, response, inner, jnp.asarray(on), jnp.asarray(known), order)
    wanted = np.linalg.solve(matrix, known)
    # rows are exchanged within parts alone: some digits more than the condition takes may be lost
    allowed = 1e-13 * np.linalg.cond(matrix) * np.max(np.abs(wanted))
    np.testing.assert_allclose(found, wanted, rtol=0.0, atol=allowed)


@pytest.mark.parametrize("blocks", slow_but([1, 2, HUBS, HUBS + 1, 60], HUBS + 1))
def test_as_the_dense_solution(blocks: int) -> None:
    """From one block to many parts, with pairs that do not count, twice the same ones, and the ground."""
    for seed in range(3):
        checked(chain(blocks, 2 * blocks, np.random.default_rng(seed)), blocks, seed)


def test_without_a_narrow_order() -> None:
    """Every block touches many others, wherever they are."""
    draw = np.random.default_rng(7)
    of = np.array([draw.choice(300, 2, replace=False) for _ in range(3000)])
    assert not jax.jit(pair_order)(rows(of, 300, draw), jnp.ones(3000, bool)).narrow
