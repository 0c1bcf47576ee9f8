"""Blocks of matrices and rows over two of them against the arrays that they stand for."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nsjax.linalg import (
    BlockDiagonal,
    Blocks,
    Paired,
    every,
    magnitude,
    matmul,
    matvec,
    product_diagonal,
    summed,
)

# Block-diagonal matrices against the arrays that they stand for.
EXACT = {"rtol": 1e-13, "atol": 1e-13}
"""Sums of some ten products, in another order."""


def blocks(n: int, r: int, c: int, seed: int = 0) -> Blocks:
    return Blocks(values=jnp.asarray(np.random.default_rng(seed).normal(size=(n, r, c))))


def test_products() -> None:
    a, b = blocks(3, 2, 7), blocks(3, 7, 5, seed=1)
    x = jnp.asarray(np.random.default_rng(2).normal(size=(21, 4)))
    np.testing.assert_allclose(matvec(a, x[:, 0]), a.dense() @ x[:, 0], **EXACT)
    np.testing.assert_allclose(matmul(a, x), a.dense() @ x, **EXACT)
    np.testing.assert_allclose(matmul(a, b).dense(), a.dense() @ b.dense(), **EXACT)
    np.testing.assert_allclose(a.T.dense(), a.dense().T)
    np.testing.assert_allclose((0.5 * a).dense(), 0.5 * a.dense())
    assert a.shape == a.dense().shape


def test_parts_of_products() -> None:
    a, b = blocks(3, 6, 4), blocks(3, 4, 6, seed=1)
    np.testing.assert_allclose(product_diagonal(a, b), np.diag(a.dense() @ b.dense()), **EXACT)
    np.testing.assert_allclose(matmul(a, b).diagonal(), np.diag(a.dense() @ b.dense()), **EXACT)
    normals = every(a, 18, 3).dense()
    np.testing.assert_allclose(normals, a.dense()[::3])
    np.testing.assert_allclose(every(b, 18, 3, columns=True).dense(), b.dense()[:, ::3])


@pytest.mark.parametrize("size", [1, 2, 3, 7, 24, 30])
def test_sums(size: int) -> None:
    x = np.random.default_rng(3).normal(size=(4, size))
    np.testing.assert_allclose(summed(jnp.asarray(x)), x.sum(axis=1), **EXACT)


def test_structure() -> None:
    rng = np.random.default_rng(4)
    whole = np.kron(np.eye(3), np.ones((2, 2))) * rng.normal(size=(6, 6)) + 5.0 * np.eye(6)
    structure = BlockDiagonal(2)
    matrix = structure.tangent(lambda x: whole @ x, jnp.zeros(6))
    x = rng.normal(size=(6, 2))
    np.testing.assert_allclose(structure.times(matrix, x[:, 0]), whole @ x[:, 0], **EXACT)
    done, solved = structure.eliminate(matrix, jnp.asarray(x))
    np.testing.assert_allclose(solved, np.linalg.solve(whole, x), rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(done.solve(x[:, 0]), solved[:, 0], **EXACT)
    assert "not a multiple of the block 2 of its block-diagonal" in structure.misfit(7)


# Rows over two blocks of many, against the same matrix written out.
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


def test_products_of_paired() -> None:
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

    @jax.jit
    def solved(mass, rows):
        blocks = Blocks(values=mass)
        done, _ = BlockDiagonal(BLOCK).eliminate(blocks, jnp.zeros((8, 0)))
        response = done.solve(rows.T)
        return blocks.dense(), response.dense(), product_diagonal(rows, response)

    dense, response, diagonal = solved(mass, rows)
    wanted = np.linalg.solve(np.asarray(dense), matrix.T)
    np.testing.assert_allclose(response, wanted, atol=1e-12)
    np.testing.assert_allclose(diagonal, np.diag(matrix @ wanted), atol=1e-12)
