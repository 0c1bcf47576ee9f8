"""Rows that do not follow from others, for preparations outside of loops."""

from __future__ import annotations

import numpy as np

RANK = 1e-8
"""What is left of a dependent row beside the others: rounding of positions that close loops, and of the
rows.
"""


def independent(rows: np.ndarray) -> tuple[int, ...]:
    """The first rows that depend on none before them."""
    kept: list[int] = []
    basis: list[np.ndarray] = []
    for k, row in enumerate(rows):
        rest = row.copy()
        for _ in range(2):  # twice, for rounding
            for one in basis:
                rest = rest - one * (one @ rest)
        if np.linalg.norm(rest) > RANK * (1.0 + float(np.linalg.norm(row))):
            kept.append(k)
            basis.append(rest / np.linalg.norm(rest))
    return tuple(kept)
