"""Convex solids in numpy: points, with a ball or a disc about each, and their distance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import nnls

HEAVY = 1e3
"""Weight of the row in which the weights of points sum to one."""


@dataclass(frozen=True)
class Solid:
    """Convex hull of points (n, d) of a body, widened by a ball, or by discs about an axis."""

    points: Any
    ball: float = 0.0
    disc: float = 0.0
    axis: Any = None

    def farthest(self, place: np.ndarray, turn: np.ndarray, way: np.ndarray) -> np.ndarray:
        """Point of the hull and its discs, without the ball, that is farthest along ``way``."""
        own = way @ turn
        point = np.asarray(self.points)[np.argmax(np.asarray(self.points) @ own)]
        if self.axis is not None:
            across = own - (own @ self.axis) * np.asarray(self.axis)
            point = point + self.disc * across / max(np.linalg.norm(across), 1e-300)
        return np.asarray(place + turn @ point)


def _least(differences: list[np.ndarray]) -> np.ndarray:
    """Point nearest to the origin of the hull of points: of the face whose weights are not negative."""
    rows = np.array(differences).T
    weights = nnls(np.vstack([rows, np.full(rows.shape[1], HEAVY)]), np.append(0.0 * rows[:, 0], HEAVY))[0]
    face = rows[:, weights > 1e-12]
    span = face[:, 1:] - face[:, :1]
    return np.asarray(face[:, 0] - span @ np.linalg.lstsq(span, face[:, 0], rcond=None)[0])


def distance(one: Solid, other: Solid, poses: Any) -> float:
    """Of two solids at ``(place, turn)`` each; at most zero where they meet.

    Among differences of farthest points, which are found until none is farther, that nearest to the origin.
    """
    (a, b), found = poses, []
    v = np.asarray(a[0] - b[0], float)
    for _ in range(300):
        found.append(one.farthest(*a, -v) - other.farthest(*b, v))
        if len(found) > 1 and v @ v - v @ found[-1] <= 1e-12 * v @ v:
            break
        v = _least(found)
        if v @ v < 1e-18:
            break
    return float(np.linalg.norm(v)) - one.ball - other.ball
