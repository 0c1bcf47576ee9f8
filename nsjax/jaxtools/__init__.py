"""All that knows how JAX traces and compiles: derivatives of solutions and derivatives written by hand,
branches and loops, small programs, caches, one kernel.

What it uses of JAX beyond the public interface stands in `nsjax.jaxtools.internals`.
"""

from typing import TYPE_CHECKING

from nsjax.lazy import lazily

if TYPE_CHECKING:
    from nsjax.jaxtools.cache import machine_key, use_cache
    from nsjax.jaxtools.compilation import (
        ONE_KERNEL_BYTES,
        ONE_KERNEL_OPTION,
        TESTED_JAXLIB,
        interactive,
        notes_to,
        one_kernel_works,
        watch_compiling,
    )
    from nsjax.jaxtools.implicit import (
        LiveLeaves,
        Quiet,
        event_solution,
        implicit_solution,
        keep_solutions,
        make_live,
        only_tangent,
        value_with_derivative_of,
        with_lanes,
        with_retract_tangent,
        with_tangent,
        without_derivative,
    )

__all__ = [
    "ONE_KERNEL_BYTES",
    "ONE_KERNEL_OPTION",
    "TESTED_JAXLIB",
    "LiveLeaves",
    "Quiet",
    "event_solution",
    "implicit_solution",
    "interactive",
    "keep_solutions",
    "machine_key",
    "make_live",
    "notes_to",
    "one_kernel_works",
    "only_tangent",
    "use_cache",
    "value_with_derivative_of",
    "watch_compiling",
    "with_lanes",
    "with_retract_tangent",
    "with_tangent",
    "without_derivative",
]

lazily(__name__)
