"""Compilation of programs that run once, such as the checks of an initial state, or the start of a run."""

from __future__ import annotations

from collections.abc import Callable
from importlib import metadata
from typing import Any

import jax

from nsjax.startup.one_kernel import TESTED_JAXLIB

UNOPTIMISED = {"xla_backend_optimization_level": 0, "xla_cpu_use_fusion_emitters": False}
"""Compiler options of programs that run once: compiling takes a fourth of the time, an eager call of a
robot 4 ms longer. They serve the checks of an initial state and the start of a run, whose numbers differ
from those of an optimised program by rounding at most. (They do not suit runs: without optimisation a step
takes ten times as long, and without the fusion emitters a reverse gradient does not compile.)"""


def compiled_once(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """`jax.jit` of a function that is called outside transformations, once per run.

    Args:
        function: function to compile.
        options: options of `jax.jit`, static arguments for instance.

    Returns:
        The compiled function. JAX refuses compiler options inside `jax.jit`, `jax.vmap` and the like: call
        ``function`` itself there.

    Example:
        >>> from nsjax.startup.once import compiled_once
        >>> float(compiled_once(lambda x: x + 1.0)(1.0))
        2.0
    """
    # releases refuse to compile with unknown options
    known = UNOPTIMISED if metadata.version("jaxlib") in TESTED_JAXLIB else None
    made: Callable[..., Any] = jax.jit(function, compiler_options=known, **options)
    return made
