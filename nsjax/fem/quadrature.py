"""Gauss quadrature on the unit interval."""

from __future__ import annotations

from typing import Any

import numpy as np


def gauss(points: int) -> tuple[np.ndarray, np.ndarray]:
    """Points and weights on [0, 1], exact for polynomials of degree ``2 points - 1``.

    Args:
        points: number of points, at least 1.

    Returns:
        Points (points,) in increasing order, weights (points,) of sum 1.

    Example:
        >>> from nsjax.fem import gauss
        >>> x, w = gauss(2)
        >>> float(round(sum(w * x**3), 15))
        0.25
    """
    x, w = np.polynomial.legendre.leggauss(points)
    return 0.5 * (x + 1.0), 0.5 * w


def integrate(values: Any, weights: np.ndarray) -> np.ndarray:
    """Integral ``sum_k w_k values_k`` over the first axis."""
    return np.tensordot(weights, values, axes=(0, 0))
