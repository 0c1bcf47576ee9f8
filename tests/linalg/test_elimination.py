"""Eliminations and their orders against dense linear algebra, closed forms and scipy."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nsjax.linalg import Interleaved, Paired
from nsjax.linalg.elimination import narrow_order, pair_order, solve_pairs
from tests.design import slow_but

# Orders of small bandwidth, against closed forms and scipy.
ORDER = jax.jit(narrow_order, static_argnums=2)


def bandwidth(place: np.ndarray, pairs: np.ndarray) -> int:
    return int(np.max(np.abs(place[pairs[:, 0]] - place[pairs[:, 1]])))


def order(pairs: np.ndarray, blocks: int, on: np.ndarray | None = None) -> np.ndarray:
    on = np.ones(len(pairs), bool) if on is None else on
    place = np.asarray(ORDER(jnp.asarray(pairs), jnp.asarray(on), blocks))
    assert sorted(place) == list(range(blocks))
    return place


def lattice(*sides: int) -> np.ndarray:
    """Pairs of neighbours of a lattice whose nodes are numbered at random."""
    nodes = np.random.default_rng(0).permutation(int(np.prod(sides))).reshape(sides)
    axes = [np.moveaxis(nodes, k, 0) for k in range(len(sides))]
    return np.concatenate([np.stack([x[:-1].ravel(), x[1:].ravel()], axis=1) for x in axes])


@pytest.mark.slow
def test_chains_and_rings() -> None:
    """A chain, and two chains: one. A ring: two."""
    chain = lattice(40)
    assert bandwidth(order(chain, 40), chain) == 1
    two = np.concatenate([chain, 40 + chain])
    assert bandwidth(order(two, 80), two) == 1
    ring = np.concatenate([chain, [[x for x in range(40) if np.sum(chain == x) == 1]]])
    assert bandwidth(order(ring, 40), ring) == 2


@pytest.mark.parametrize("sides", [(4, 25), (10, 10), (6, 6, 6), (3, 3, 20)])
def test_lattices(sides: tuple[int, ...]) -> None:
    """About as by scipy's own implementation, which breaks ties in another way (12 for 10 in the rod, else
    equal).
    """
    graphs, sparse = pytest.importorskip("scipy.sparse.csgraph"), pytest.importorskip("scipy.sparse")
    pairs, n = lattice(*sides), int(np.prod(sides))
    matrix = sparse.coo_matrix((np.ones(len(pairs)), tuple(pairs.T)), (n, n))
    theirs = np.argsort(graphs.reverse_cuthill_mckee((matrix + matrix.T).tocsr(), True))
    assert bandwidth(order(pairs, n), pairs) <= 1.2 * bandwidth(theirs, pairs)


def test_ground_and_pairs_that_do_not_count() -> None:
    """Pairs with the ground, with itself, and those left out do not shape the order."""
    chain = lattice(30)
    more = np.array([[3, 30], [30, 7], [5, 5], [chain[0, 0], chain[-1, 1]]])
    pairs, on = np.concatenate([chain, more]), np.arange(len(chain) + 4) < len(chain) + 3
    assert bandwidth(order(pairs, 30, on), chain) == 1


def test_nothing_is_coupled() -> None:
    assert list(order(np.array([[0, 6], [6, 6]]), 6)) == [0, 1, 2, 3, 4, 5]


# Elimination of blocks coupled in pairs, against a dense solution.
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


@pytest.mark.slow
@pytest.mark.parametrize("blocks", slow_but([1, 2, 4, 5, 60], 2))
def test_as_the_dense_solution(blocks: int) -> None:
    """From one block to many parts, with pairs that do not count, twice the same ones, and the ground."""
    for seed in range(3):
        checked(chain(blocks, 2 * blocks, np.random.default_rng(seed)), blocks, seed)


def test_without_a_narrow_order() -> None:
    """Every block touches many others, wherever they are."""
    draw = np.random.default_rng(7)
    of = np.array([draw.choice(300, 2, replace=False) for _ in range(3000)])
    assert not jax.jit(pair_order)(rows(of, 300, draw), jnp.ones(3000, bool)).narrow


# Chains whose joints are eliminated with their velocities, against dense linear algebra.
def _saddle(rng, nodes, block, joint, grounded):
    """A random chain as a dense matrix, velocities first, then multipliers."""
    n, m = nodes * block, joint * (nodes - (not grounded))
    mass = np.zeros((n, n))
    for k in range(nodes):
        x = rng.normal(size=(block, block))
        mass[k * block : (k + 1) * block, k * block : (k + 1) * block] = x @ x.T + block * np.eye(block)
    rows = np.zeros((m, n))
    for k in range(nodes):
        row = (k - (not grounded)) * joint
        if row >= 0:
            rows[row : row + joint, max(0, k - 1) * block : (k + 1) * block] = rng.normal(
                size=(joint, (k - max(0, k - 1) + 1) * block)
            )
    return np.block([[mass, -rows.T], [rows, np.zeros((m, m))]])


@pytest.mark.parametrize(
    ("nodes", "block", "joint", "grounded", "copies"),
    [
        (1, 3, 2, True, 1),
        (5, 1, 1, True, 2),
        (2, 3, 2, False, 1),
        pytest.param(7, 6, 5, False, 2, marks=pytest.mark.slow),
    ],
)
def test_the_matrix_is_recovered_and_solved(nodes, block, joint, grounded, copies):
    rng = np.random.default_rng(nodes + 10 * copies)
    one = _saddle(rng, nodes, block, joint, grounded)
    n = nodes * block
    # copies one after the other, velocities first; coupled among themselves by a multiple of the velocities
    part = [one[:n, :n], one[:n, n:], one[n:, :n]]
    wide = [np.kron(np.eye(copies), x) for x in part]
    wide[0] = wide[0] + 0.1 * np.kron(np.ones((copies, copies)) - np.eye(copies), part[0])
    a = np.block([[wide[0], wide[1]], [wide[2], np.zeros((wide[2].shape[0],) * 2)]])
    structure = Interleaved(block, joint=joint, grounded=grounded).stacked(copies).saddle
    b = rng.normal(size=(len(a), 2))

    @jax.jit
    def solve(a, b):
        found = structure.tangent(lambda x: a @ x, jnp.zeros(len(a)))
        done, x = structure.eliminate(found, b)
        return structure.times(found, b[:, 0]), x, done.solve(b[:, 1])

    product, x, again = solve(a, b)
    # rounding: random blocks, condition numbers up to 1e4
    np.testing.assert_allclose(product, a @ b[:, 0], rtol=0, atol=1e-12)
    np.testing.assert_allclose(x, np.linalg.solve(a, b), rtol=0, atol=1e-9)
    np.testing.assert_allclose(again, x[:, 1], rtol=0, atol=1e-13)


def test_solutions_have_derivatives():
    a = jnp.asarray(_saddle(np.random.default_rng(0), 4, 3, 2, True))
    structure = Interleaved(3, joint=2).saddle

    def solved(s):
        matrix = structure.tangent(lambda x: (a + s * jnp.eye(len(a))) @ x, jnp.zeros(len(a)))
        return structure.eliminate(matrix, jnp.zeros((len(a), 0)))[0].solve(jnp.arange(len(a)) + s)

    x = np.linalg.solve(a, np.arange(len(a)))
    expected = np.linalg.solve(a, np.ones(len(a)) - x)  # (A + s) x = b + s
    np.testing.assert_allclose(jax.jit(jax.jacfwd(solved))(0.0), expected, atol=1e-11)
    np.testing.assert_allclose(jax.jit(jax.jacrev(solved))(0.0), expected, atol=1e-11)
