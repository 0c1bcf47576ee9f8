"""Rows over two blocks of many, against the same matrix written out."""

import jax.numpy as jnp
import numpy as np

from nsjax.linalg import BlockDiagonal, Blocks, Paired, every, magnitude, matvec, product_diagonal

GROUPS, ROWS, BLOCK, BLOCKS = 5, 3, 2, 4


def paired() -> tuple[Paired, np.ndarray]:
    """Rows, one group with what does not move, and as an array."""
    draw = np.random.default_rng(3)
    values = draw.normal(size=(GROUPS, 2, ROWS, BLOCK))
    of = np.array([[0, 1], [3, 1], [2, BLOCKS], [2, 0], [1, 2]])
    matrix = np.zeros((GROUPS * ROWS, (BLOCKS + 1) * BLOCK))
    for k in range(GROUPS):
        for side in range(2):
            first = of[k, side] * BLOCK
            matrix[k * ROWS : (k + 1) * ROWS, first : first + BLOCK] = values[k, side]
    rows = Paired(values=jnp.asarray(values), of=jnp.asarray(of), blocks=BLOCKS)
    return rows, matrix[:, : BLOCKS * BLOCK]


def test_products() -> None:
    rows, matrix = paired()
    assert rows.shape == matrix.shape
    np.testing.assert_allclose(rows.dense(), matrix, atol=1e-15)
    x, y = np.arange(1.0, 9.0), np.arange(1.0, 16.0)
    np.testing.assert_allclose(matvec(rows, x), matrix @ x, rtol=1e-13)
    np.testing.assert_allclose(matvec(rows.T, y), matrix.T @ y, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(magnitude(rows).dense(), np.abs(matrix), atol=1e-15)
    np.testing.assert_allclose(every(rows, GROUPS * ROWS, ROWS).dense(), matrix[::ROWS], atol=1e-15)


def test_inverse_times_rows() -> None:
    """The response of bodies, and the diagonal of what it makes of the rows; what is fixed has none."""
    rows, matrix = paired()
    mass = np.random.default_rng(4).normal(size=(BLOCKS, BLOCK, BLOCK)) + 3.0 * np.eye(BLOCK)
    done, _ = BlockDiagonal(BLOCK).eliminate(Blocks(values=jnp.asarray(mass)), jnp.zeros((8, 0)))
    response = done.solve(rows.T)
    wanted = np.linalg.solve(np.asarray(Blocks(values=jnp.asarray(mass)).dense()), matrix.T)
    np.testing.assert_allclose(response.dense(), wanted, atol=1e-12)
    np.testing.assert_allclose(product_diagonal(rows, response), np.diag(matrix @ wanted), atol=1e-12)
