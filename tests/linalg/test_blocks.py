"""Block-diagonal matrices against the arrays that they stand for."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from nsjax.linalg import (
    BlockDiagonal,
    Blocks,
    every,
    matmul,
    matvec,
    product_diagonal,
    summed,
)

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
    """Copies are coupled as the blocks are."""
    copies = 1
    rng = np.random.default_rng(4)
    one = rng.normal(size=(copies, copies, 3, 2, 2))
    whole = np.zeros((copies, 3, 2, copies, 3, 2))
    for k in range(3):
        whole[:, k, :, :, k] = one[:, :, k].transpose(0, 2, 1, 3)
    whole = whole.reshape(6 * copies, -1) + 5.0 * np.eye(6 * copies)
    structure = BlockDiagonal(2).stacked(copies)
    matrix = structure.tangent(lambda x: whole @ x, jnp.zeros(6 * copies))
    x = rng.normal(size=(6 * copies, 2))
    np.testing.assert_allclose(structure.times(matrix, x[:, 0]), whole @ x[:, 0], **EXACT)
    done, solved = structure.eliminate(matrix, jnp.asarray(x))
    np.testing.assert_allclose(solved, np.linalg.solve(whole, x), rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(done.solve(x[:, 0]), solved[:, 0], **EXACT)
    assert "not a multiple of the block 2 of its block-diagonal" in structure.misfit(7)
