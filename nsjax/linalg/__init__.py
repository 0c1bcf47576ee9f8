"""Linear algebra that stays inside one compiled kernel for small systems, and structure for large ones."""

from nsjax.linalg.arrow import Arrow, bordered
from nsjax.linalg.dense import INLINE_LIMIT, matmul, matvec, solve, solve_positive, solve_rows
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
    "BlockTridiagonal",
    "Dense",
    "Elimination",
    "Interleaved",
    "Interleaving",
    "Lattice",
    "Pattern",
    "Sparse",
    "Structure",
    "bordered",
    "eliminated",
    "interleaving",
    "matmul",
    "matvec",
    "solve",
    "solve_positive",
    "solve_rows",
]
