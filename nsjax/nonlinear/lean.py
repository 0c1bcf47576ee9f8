"""Programs that hold the operations of a derivative only if they are differentiated."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core.primitives import stop_gradient_p
from jax.interpreters import ad

from nsjax.nonlinear.implicit import counted_along
from nsjax.nonlinear.piecewise_loops import LARGE_WITH_TANGENTS, ends_kernel
from nsjax.types import PyTree


def lean(plain: Callable[[PyTree], PyTree], full: Callable[[PyTree], PyTree]) -> Callable[[PyTree], PyTree]:
    """A function with the values of ``plain`` and the derivative of ``full``.

    Operations that only a derivative needs are then left out of programs that are not differentiated. A
    function that is traced for compilation cannot know whether it will be. In a batch, constants among the
    results of ``plain`` need the lanes that ``full`` gives them (`nsjax.nonlinear.with_lanes`).

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
        _transpose_branches_of_batches()
        value, along, size = counted_along(full, data, change)
        return value, ends_kernel(along, data) if size > LARGE_WITH_TANGENTS else along

    return value


@functools.cache
def _transpose_branches_of_batches() -> None:
    """Lets JAX reverse the derivative of a batch in which lanes take different branches.

    A batch evaluates both branches, with ``stop_gradient`` of the operands in lanes that do not take the
    branch: what reverse mode finds there, often no number, ends at it. The rule above is differentiated
    before it is batched, so that operands are tangents, too. For these JAX has no transpose of
    ``stop_gradient``, and raises an error; it is the same end, zero.
    """
    ad.primitive_transposes.setdefault(stop_gradient_p, lambda change, _: [jnp.zeros_like(change)])
