"""Programs that run once: what looks at a start before a run."""

from __future__ import annotations

from collections.abc import Callable
from importlib import metadata
from typing import Any

import jax

from nsjax.startup.one_kernel import TESTED_JAXLIB

UNOPTIMISED = {"xla_backend_optimization_level": 0, "xla_cpu_use_fusion_emitters": False}
"""Compiler options of programs that run once: a fourth of the time to compile them; an eager call of a
robot takes 4 ms longer for it. They are those of the checks of a start, whose numbers are compared with
bounds, never handed on to a run. (For runs they are no choice: without optimisation a step takes ten times
as long, and without the emitters of fusions a reverse gradient does not compile.)"""


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
    # a release that does not know an option refuses to compile
    known = UNOPTIMISED if metadata.version("jaxlib") in TESTED_JAXLIB else None
    made: Callable[..., Any] = jax.jit(function, compiler_options=known, **options)
    return made
