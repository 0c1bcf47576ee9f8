"""Chains whose joints are eliminated with their velocities, against dense linear algebra."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nsjax.linalg import Interleaved


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
