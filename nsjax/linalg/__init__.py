"""Linear algebra that stays inside one compiled kernel for small systems, and structure for large ones."""

from nsjax.linalg.arrow import Arrow, bordered
from nsjax.linalg.blocks import Blocks, every, magnitude, product_diagonal, summed
from nsjax.linalg.dense import INLINE_LIMIT, matmul, matvec, solve, solve_positive, solve_rows
from nsjax.linalg.diagonal import BlockDiagonal, block_jacobian
from nsjax.linalg.interleaved import Interleaved, Interleaving, interleaving
from nsjax.linalg.lattice import Lattice
from nsjax.linalg.sparse import Pattern
from nsjax.linalg.structure import (
    DENSE_LIMIT,
    BlockTridiagonal,
    Dense,
    Elimination,
    Sparse,
    Structure,
    eliminated,
)

__all__ = [
    "DENSE_LIMIT",
    "INLINE_LIMIT",
    "Arrow",
    "BlockDiagonal",
    "BlockTridiagonal",
    "Blocks",
    "Dense",
    "Elimination",
    "Interleaved",
    "Interleaving",
    "Lattice",
    "Pattern",
    "Sparse",
    "Structure",
    "block_jacobian",
    "bordered",
    "eliminated",
    "every",
    "interleaving",
    "magnitude",
    "matmul",
    "matvec",
    "product_diagonal",
    "solve",
    "solve_positive",
    "solve_rows",
    "summed",
]
