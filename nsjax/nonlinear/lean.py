"""Programs that hold the operations of a derivative only if they are differentiated."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax

from nsjax.nonlinear.implicit import counted_along
from nsjax.nonlinear.piecewise_loops import LARGE, ends_kernel
from nsjax.types import PyTree


def lean(plain: Callable[[PyTree], PyTree], full: Callable[[PyTree], PyTree]) -> Callable[[PyTree], PyTree]:
    """A function with the values of ``plain`` and the derivative of ``full``.

    Operations that only a derivative needs are then left out of programs that are not differentiated. A
    function that is traced for compilation cannot know whether it will be.

    Args:
        plain: a function of one tree.
        full: another function with the same values up to rounding. A derivative evaluates it instead of
            ``plain``, to any order that it has itself; the loops of a large one are compiled in pieces
            (`nsjax.nonlinear.piecewise_loops`).

    Returns:
        A function of that tree.

    Example:
        >>> import jax
        >>> import jax.numpy as jnp
        >>> from nsjax.nonlinear import lean
        >>> root = lean(jnp.sqrt, lambda x: x / jnp.sqrt(x))
        >>> [float(f(4.0)) for f in (root, jax.grad(root))]
        [2.0, 0.25]
    """

    @jax.custom_jvp
    def value(data: PyTree) -> PyTree:
        return plain(data)

    @functools.partial(value.defjvp, symbolic_zeros=True)
    def rule(primals: Any, tangents: Any) -> Any:
        (data,), (change,) = primals, tangents
        value, along, size = counted_along(full, data, change)
        return value, ends_kernel(along, data) if size > LARGE else along

    return value
