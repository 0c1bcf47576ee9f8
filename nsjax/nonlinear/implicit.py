"""The one place where the solution of an equation gets its derivative.

A solver iterates without derivatives. At its answer ``x`` of ``f(x, data) = 0`` the implicit
function theorem gives ``dx = -(df/dx)^-1 df/ddata``: one linear solve, whatever the solver did.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.types import Array


def _no_tangent(x: Array) -> Any:
    """Zero tangent of an auxiliary result."""
    if jnp.issubdtype(x.dtype, jnp.floating):
        return jnp.zeros_like(x)
    return np.zeros(x.shape, jax.dtypes.float0)


def implicit_solution(
    solver: Callable[..., tuple[Array, Any]],
    residual: Callable[..., Callable[..., Array]],
    tangent_solve: Callable[..., Callable[[Array], Array]],
) -> Callable[..., tuple[Array, Any]]:
    """Wraps a solver so that its solution differentiates by the implicit function theorem.

    Args:
        solver: ``data -> (x, aux)``; ``aux`` (iteration counts, residuals) has no derivative.
        residual: ``(x, data) -> f`` with ``f(data)`` the residual at the fixed ``x`` on the branches
            (active, stick, slip, ...) decided at ``(x, data)``.
        tangent_solve: ``(x, data) -> solve`` with ``solve(b) = (df/dx)^-1 b``, linear in ``b``.

    Returns:
        A function of ``data`` with forward and reverse derivatives of first order.
    """

    @jax.custom_jvp
    def solution(data: Any) -> tuple[Array, Any]:
        return solver(data)

    @solution.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        (data,), (change,) = primals, tangents
        x, aux = solution(data)
        _, df = jax.jvp(residual(x, data), (data,), (change,))
        return (x, aux), (-tangent_solve(x, data)(df), jax.tree.map(_no_tangent, aux))

    return solution
