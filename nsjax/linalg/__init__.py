"""Linear algebra that stays inside one compiled kernel for small systems."""

from nsjax.linalg.dense import INLINE_LIMIT, matmul, matvec, solve, solve_positive
from nsjax.linalg.structure import Dense, Structure

__all__ = ["INLINE_LIMIT", "Dense", "Structure", "matmul", "matvec", "solve", "solve_positive"]
