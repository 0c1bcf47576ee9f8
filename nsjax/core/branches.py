"""Branches and loops that depend on values of a run, in the form that compiles to a small program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.extend.core import jaxpr_as_fun

from nsjax.core.thinned import thinned
from nsjax.nonlinear.trimmed import without_repeats, without_unread
from nsjax.types import Array


def branch(
    condition: Array, yes: Callable[..., Any], no: Callable[..., Any], *operands: Any, again: bool = False
) -> Any:
    """``lax.cond`` whose branches are functions of the program, which calls the one that is taken.

    JAX makes a derivative in several passes (tangents, residuals, values that are computed a second time)
    and copies the branches of ``lax.cond`` in each pass; every branch around them doubles the copies.
    Functions are not copied: tracing a gradient handles half as many operations, and the same operations
    run.

    Args:
        condition: () bool.
        yes, no: functions of ``operands`` with results of the same shapes.
        operands: their arguments; both may use values of their surroundings as well.
        again: whether reverse mode computes the branch that was taken once more inside its transpose. Else
            each branch returns the residuals of its transpose, and zeros for those of the other branch: in
            a large branch hundreds of arrays, at every visit.

    Example:
        >>> import jax.numpy as jnp
        >>> from nsjax.core.branches import branch
        >>> float(branch(jnp.asarray(True), lambda x: 2 * x, lambda x: x, 3.0))
        6.0
    """
    if again:
        yes, no = (jax.checkpoint(f, prevent_cse=False) for f in (yes, no))
    return lax.cond(condition, jax.jit(yes), jax.jit(no), *operands)


def repeat(
    going: Callable[[Any], Array], body: Callable[[Any], Any], start: Any, uneven: bool = False
) -> Any:
    """``lax.while_loop`` whose body holds only the operations that its results need, each of them once.

    JAX removes operations that nobody reads from scans and branches, but not from these loops. Derivatives
    and products with parts of matrices leave many of them: a third of the passes of an implicit step.

    In a batch the condition is there twice, for the loop and for its lanes. XLA may round one operation
    differently in two places, and a lane that the loop waits for and the body holds never ends: conditions
    compare what the loop carries with given numbers, and compute nothing that may round.

    Args:
        going: ``(carry) -> () bool``, whether the body is to run once more.
        body: ``(carry) -> carry``.
        start: carry, a tree of arrays.
        uneven: whether lanes of a batch differ much in their number of passes. On a device that runs them
            side by side, the loop then goes on with the lanes that are left, see `nsjax.core.thinned`; it
            has no derivative.

    Example:
        >>> import jax.numpy as jnp
        >>> from nsjax.core.branches import repeat
        >>> int(repeat(lambda k: k < 3, lambda k: k + 1, jnp.asarray(0)))
        3
    """
    loop, shapes = jax.make_jaxpr(lambda x: lax.while_loop(going, body, x), return_shape=True)(start)
    lines = [_trimmed(line) if line.primitive is lax.while_p else line for line in loop.jaxpr.eqns]
    leaves, made = jax.tree.leaves(start), loop.jaxpr.replace(eqns=lines)
    if uneven and jax.default_backend() != "cpu":
        *others, last = lines
        operands = jaxpr_as_fun(loop.replace(jaxpr=made.replace(eqns=others, outvars=last.invars)))(*leaves)
        found = thinned(last)(*operands)
    else:
        found = jaxpr_as_fun(loop.replace(jaxpr=made))(*leaves)
    return jax.tree.unflatten(jax.tree.structure(shapes), found)


def repeat_for(count: Array, body: Callable[[Array, Any], Any], start: Any) -> Any:
    """``lax.fori_loop`` from 0 to ``count``, with a body as in `repeat`."""
    ahead = lambda both: (both[0] + 1, body(*both))  # noqa: E731
    return repeat(lambda both: both[0] < count, ahead, (jnp.zeros_like(count), start))[1]


def _trimmed(loop: Any) -> Any:
    """The loop with a body without unread and repeated operations; arguments and results stay the same."""
    body = without_repeats(without_unread(loop.params["body_jaxpr"]))
    return loop.replace(params=loop.params | {"body_jaxpr": body})
