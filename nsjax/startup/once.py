"""Compilation of programs that run once, such as the checks of an initial state, or the start of a run."""

from __future__ import annotations

from collections.abc import Callable
from importlib import metadata
from typing import Any

import jax

from nsjax.startup.one_kernel import TESTED_JAXLIB

OPTIMISATION, EMITTERS = "xla_backend_optimization_level", "xla_cpu_use_fusion_emitters"

WITHOUT_EMITTERS = ("0.10.2",)
"""Tested releases of jaxlib that know the option `EMITTERS`; 0.11.2 always uses the emitters."""


def unoptimised() -> dict[str, int | bool]:
    """Compiler options of programs that run once; empty for a release that was not tested.

    Compiling takes a fourth of the time, an eager call of a robot 4 ms longer. They serve the checks of an
    initial state and the start of a run, whose numbers differ from those of an optimised program by
    rounding at most. (They do not suit runs: without optimisation a step takes ten times as long, and
    without the fusion emitters a reverse gradient does not compile.) Releases refuse to compile with
    unknown options.
    """
    release = metadata.version("jaxlib")
    level = {OPTIMISATION: 0} if release in TESTED_JAXLIB else {}
    return level | ({EMITTERS: False} if release in WITHOUT_EMITTERS else {})


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
    made: Callable[..., Any] = jax.jit(function, compiler_options=unoptimised() or None, **options)
    return made
