"""Branches on values of a run, as functions of its program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
from jax import lax

from nsjax.types import Array


def branch(condition: Array, yes: Callable[..., Any], no: Callable[..., Any], *operands: Any) -> Any:
    """``lax.cond``; each branch is a function of the program, which is called where it is taken.

    A derivative is made in several passes (tangents, what is kept, what is computed a second time), and
    JAX writes the branches of ``lax.cond`` anew in each, twice as often with every branch around them.
    Functions are passed on whole: half the operations are handled while a gradient is traced, and the
    same ones run.

    Args:
        condition: () bool.
        yes, no: functions of ``operands`` with results of the same shapes.
        operands: their arguments; both may use what stands around them as well.

    Example:
        >>> import jax.numpy as jnp
        >>> from nsjax.core.branches import branch
        >>> float(branch(jnp.asarray(True), lambda x: 2 * x, lambda x: x, 3.0))
        6.0
    """
    return lax.cond(condition, jax.jit(yes), jax.jit(no), *operands)
