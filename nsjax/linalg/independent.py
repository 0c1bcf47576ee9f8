"""Choice of linearly independent rows, for preparations outside of loops."""

from __future__ import annotations

import numpy as np


def independent(rows: np.ndarray) -> tuple[int, ...]:
    """Indices of the rows that are linearly independent of the rows before them."""
    kept: list[int] = []
    basis: list[np.ndarray] = []
    # relative size up to which the part of a row that is orthogonal to the others counts as zero: rounding
    # of positions that close loops, and of the rows
    rank = 1e-8
    for k, row in enumerate(rows):
        rest = row.copy()
        for _ in range(2):  # twice, for rounding
            for one in basis:
                rest = rest - one * (one @ rest)
        if np.linalg.norm(rest) > rank * (1.0 + float(np.linalg.norm(row))):
            kept.append(k)
            basis.append(rest / np.linalg.norm(rest))
    return tuple(kept)
