"""Programs that run once: what looks at a start before a run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax

UNOPTIMISED = {"xla_backend_optimization_level": 0}
"""Compiler options of programs that run once: half the time to compile them. They are those of the checks
of a start, whose numbers are compared with bounds, never handed on to a run."""


def compiled_once(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """`jax.jit` of a function that is called outside transformations, once a run.

    Args:
        function: to compile.
        options: of `jax.jit`, static arguments for instance.

    Returns:
        The compiled function. JAX refuses it inside `jax.jit`, `jax.vmap` and the like, as it refuses all
        compiler options there; call ``function`` itself.

    Example:
        >>> from nsjax.startup.once import compiled_once
        >>> float(compiled_once(lambda x: x + 1.0)(1.0))
        2.0
    """
    made: Callable[..., Any] = jax.jit(function, compiler_options=UNOPTIMISED, **options)
    return made
