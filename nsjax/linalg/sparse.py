"""Sparsity patterns, and elimination plans that are computed from them once, outside of any program."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable
from typing import Any

import numpy as np


@dataclasses.dataclass(frozen=True)
class Pattern:
    """Pattern of coupled unknowns of a model: symmetric, diagonal included, hashed by content.

    Make it with `Pattern.of_matrix` or `Pattern.of_elements`.

    Args:
        size: number of unknowns.
        pairs: coupled pairs ``i < j`` in order.

    Example:
        >>> from nsjax.linalg import Pattern
        >>> Pattern.of_elements(3, [(0, 1), (1, 2)]).pairs
        ((0, 1), (1, 2))
    """

    size: int
    pairs: tuple[tuple[int, int], ...]

    @classmethod
    def _from_indices(cls, size: int, i: np.ndarray, j: np.ndarray) -> Pattern:
        both = np.unique(np.stack([np.minimum(i, j), np.maximum(i, j)], axis=1)[i != j], axis=0)
        return cls(size=size, pairs=tuple(map(tuple, both.tolist())))

    @classmethod
    def of_matrix(cls, matrix: Any) -> Pattern:
        """Pattern of the entries of a square matrix that are not zero (numpy or scipy.sparse).

        Example:
            >>> import numpy as np
            >>> from nsjax.linalg import Pattern
            >>> Pattern.of_matrix(np.eye(3) + np.eye(3, k=2)).pairs
            ((0, 2),)
        """
        i, j = matrix.nonzero()
        return cls._from_indices(matrix.shape[0], np.asarray(i), np.asarray(j))

    @classmethod
    def of_elements(cls, size: int, elements: Iterable[Iterable[int]]) -> Pattern:
        """Pattern of a finite-element matrix: all unknowns of an element are coupled.

        Example:
            >>> from nsjax.linalg import Pattern
            >>> Pattern.of_elements(4, [(0, 1), (1, 3)]).pairs
            ((0, 1), (1, 3))
        """
        grids = [np.meshgrid(list(e), list(e)) for e in elements]
        i, j = (np.concatenate([np.zeros(0, int), *(g[k].ravel() for g in grids)]) for k in (0, 1))
        return cls._from_indices(size, i, j)

    def neighbours(self) -> list[np.ndarray]:
        """For every unknown the indices of the unknowns with which it is coupled."""
        found: list[list[int]] = [[] for _ in range(self.size)]
        for i, j in self.pairs:
            found[i].append(j)
            found[j].append(i)
        return [np.array(x, int) for x in found]


def _ordering(near: list[np.ndarray]) -> np.ndarray:
    """Reverse Cuthill-McKee ordering: breadth first from an end of each part, few neighbours first."""
    degree = np.array([len(x) for x in near])
    order: list[int] = []
    seen = np.zeros(len(near), bool)

    def sweep(start: int) -> list[int]:
        found, mark = [start], {start}
        for node in found:
            fresh = [k for k in near[node].tolist() if k not in mark]
            found += sorted(fresh, key=lambda k: (degree[k], k))
            mark.update(fresh)
        return found

    while not seen.all():
        start = int(np.argmin(np.where(seen, len(near) + 1, degree)))
        for _ in range(2):  # the last node of a sweep is nearly an end
            start = sweep(start)[-1]
        part = sweep(start)
        seen[part] = True
        order += part
    return np.array(order[::-1])


def _colours(near: list[np.ndarray], order: np.ndarray) -> np.ndarray:
    """Colour of every column such that no row has two columns of a colour: greedy, in the given order."""
    colour = np.full(len(near), -1)
    for j in order.tolist():
        rows = [j, *near[j].tolist()]
        taken = {int(colour[k]) for r in rows for k in (r, *near[r].tolist())}
        colour[j] = next(c for c in range(len(near) + 1) if c not in taken)
    return colour


@dataclasses.dataclass(frozen=True)
class EliminationPlan:
    """Plan of an elimination: unknowns ordered to a narrow band, and cut into blocks as wide as the band.

    Args:
        order: (n,) unknown at each place.
        place: (n,) place of each unknown.
        width: unknowns of a block; the last block is filled up.
        colours: (n,) colours of the columns.
        index: (3, N, width, width) place of each entry below, on and above the diagonal in the compressed
            columns (colours * n), and 0 where ``inside`` is false.
        inside: whether the pattern has the entry.
        filled: (N, width) whether a place is beyond the last unknown.
    """

    order: np.ndarray
    place: np.ndarray
    width: int
    colours: np.ndarray
    index: np.ndarray
    inside: np.ndarray
    filled: np.ndarray


@functools.cache
def plan(pattern: Pattern) -> EliminationPlan:
    """`EliminationPlan` of a pattern."""
    near, n = pattern.neighbours(), pattern.size
    order = _ordering(near)
    place = np.argsort(order)
    colours = _colours(near, order)
    pairs = np.array(pattern.pairs, int).reshape(-1, 2)
    width = max(1, int(np.max(np.abs(place[pairs[:, 0]] - place[pairs[:, 1]]), initial=1)))
    blocks = -(-n // width)
    index, inside = (np.zeros((3, blocks, width, width), kind) for kind in (int, bool))
    row = np.concatenate([np.arange(n), pairs[:, 0], pairs[:, 1]])
    column = np.concatenate([np.arange(n), pairs[:, 1], pairs[:, 0]])
    i, a = np.divmod(place[row], width)
    j, b = np.divmod(place[column], width)
    index[j - i + 1, i, a, b] = colours[column] * n + row
    inside[j - i + 1, i, a, b] = True
    filled = (np.arange(blocks * width) >= n).reshape(blocks, width)
    return EliminationPlan(order, place, width, colours, index, inside, filled)
