"""Linearised dynamics with a border of rows, as all solvers of a step use them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from nsjax.linalg import Elimination, Structure, matmul
from nsjax.types import Array, record


@record()
class StageTangent:
    """Linearised dynamics: eliminated ``J = df/dz``, ``du/dz``, ``J^-1 W``, and ``G = du/dz J^-1 W``."""

    dynamics: Elimination
    speed: Any
    response: Any
    delassus: Any


def linearised(
    structure: Structure, dynamics: Callable[[Array], Array], z: Array, directions: Any, speed: Any,
    stiffer: Array | float = 0.0,
) -> StageTangent:  # fmt: skip
    """`StageTangent` at ``z`` (n,).

    Args:
        structure: of the tangent of the dynamics.
        dynamics: residual (n,) as a function of ``z``.
        directions: ``W`` (n, rows).
        speed: ``du/dz`` (rows, n).
        stiffer: (n, n), added to the tangent of a dense structure.
    """
    matrix: Any = structure.tangent(dynamics, z)
    if structure.dense and np.ndim(stiffer):
        matrix = matrix + stiffer
    return bordered(structure, matrix, speed, directions)


def bordered(structure: Structure, matrix: Any, speed: Any, directions: Any) -> StageTangent:
    """`StageTangent` of a matrix of the structure."""
    done, response = structure.eliminate(matrix, directions)
    delassus = matmul(speed, response) if speed.shape[0] else jnp.zeros((0, 0))
    return StageTangent(dynamics=done, speed=speed, response=response, delassus=delassus)
