"""Everything of JAX beyond its public interface that the package uses, with what replaces it.

No other file imports from `jax._src`, `jax.interpreters`, `jax.extend` or `jax.experimental`: a release of
JAX that changes one of these is followed here.
"""

from __future__ import annotations

import contextlib
from typing import Any, TypeVar

import jax
import numpy as np

# Rules of one operation of our own, in `nsjax.jaxtools.rules`: tables get an entry for it alone. Without
# them `jax.custom_jvp` does it, but for reverse mode of a batch whose lanes take different branches.
from jax._src.interpreters.batching import batch_jaxpr

# Traced functions as data. They go with `jax.extend`; `jax.jit(f).trace(...).jaxpr` has the same fields and
# `jax.core.eval_jaxpr` the same values. Without `dce_jaxpr` a walk from the results to the arguments over
# equations without effects finds what is read.
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal, Primitive, Var, jaxpr_as_fun
from jax.extend.core.primitives import stop_gradient_p
from jax.interpreters import ad, batching, mlir, partial_eval
from jax.interpreters.partial_eval import dce_jaxpr

__all__ = [
    "ClosedJaxpr",
    "Jaxpr",
    "Literal",
    "Primitive",
    "Var",
    "ad",
    "backend_exists",
    "batch_jaxpr",
    "batching",
    "dce_jaxpr",
    "forget_cache_folder",
    "forget_structures",
    "gathered",
    "held_weakly",
    "jaxpr_as_fun",
    "mlir",
    "partial_eval",
    "reverse_mode_alone",
    "reverse_rules",
    "set_log_level",
    "stop_gradient_p",
]

T = TypeVar("T")


def backend_exists() -> bool:
    """Whether JAX has made its first backend, after which XLA reads no options. No public call answers it
    without making one; without it the options would be set in any case, and the user not warned.
    """
    from jax._src import xla_bridge

    return bool(xla_bridge.backends_are_initialized())


def reverse_rules() -> dict[Primitive, Any] | None:
    """Rules of reverse mode of operations; public JAX has `jax.custom_vjp`, without forward mode.
    ``rule(is_vjp, nonzeros, *operands, **params)`` returns results, which of them move, data, and the
    linear map of data and changes. None for a release that was not tested with them.
    """
    if jax.__version__ not in ("0.10.2",):
        return None
    from jax._src.interpreters.ad import primitive_linearizations

    return primitive_linearizations


def reverse_mode_alone(leaves: list[Any]) -> bool:
    """Whether arrays are differentiated by `jax.grad` or `jax.vjp` that stands in no other transformation.
    Public JAX does not tell; without it first derivatives take the programs of all others.
    """
    from jax._src.interpreters.ad import LinearizeTracer

    tracers = [x for x in leaves if isinstance(x, jax.core.Tracer)]
    inner = [x.primal if isinstance(x, LinearizeTracer) else x for x in tracers]
    return bool(tracers) and not any(isinstance(x, jax.core.Tracer) for x in inner)


def forget_structures() -> None:
    """Lets JAX forget the structures of arguments of its latest 4,096 compiled functions, which hold their
    static parts, systems among them. Without it a system whose gradient was taken stays in memory.
    """
    try:
        from jax._src import pjit

        pjit._process_in_axis_resources.cache_clear()
    except (ImportError, AttributeError):
        pass


def set_log_level(level: int) -> None:
    """Sets the least level of messages of the compiler, if this release of jaxlib can. The public setting,
    ``jax_logging_level``, changes Python's loggers too; without this call the compiler's alarm is shown.
    """
    try:
        from jax._src.lib import utils

        utils.absl_set_min_log_level(level)
    except (ImportError, AttributeError):
        pass


def forget_cache_folder() -> None:
    """Lets JAX read the setting ``jax_compilation_cache_dir`` anew: an earlier computation may have fixed
    another folder. Without it the folder must be set before the first computation.
    """
    from jax.experimental.compilation_cache import compilation_cache

    compilation_cache.reset_cache()


def held_weakly(kind: type[T]) -> type[T]:
    """A class whose instances, as parameters of operations, JAX's caches do not keep alive. Without it they
    stay until 2,048 later operations have taken their places.
    """
    with contextlib.suppress(ImportError):
        from jax._src.util import weakref_cache_key_types

        weakref_cache_key_types.add(kind)
    return kind


def gathered(values: np.ndarray) -> Any:
    """The arrays of all processes, one after the other; ``jax.lax.all_gather`` over a mesh of all devices
    does the same.
    """
    from jax.experimental import multihost_utils

    return multihost_utils.process_allgather(values)
