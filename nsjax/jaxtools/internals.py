"""Everything of JAX beyond its public interface that the package uses, with what replaces it.

No other file imports from `jax._src`, `jax.interpreters`, `jax.extend` or `jax.experimental`, nor reads
what tracers hold: a release of JAX that changes one of these is followed here.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

# Traced functions as data. They go with `jax.extend`; `jax.jit(f).trace(...).jaxpr` has the same fields and
# `jax.core.eval_jaxpr` the same values. Without `dce_jaxpr` a walk from the results to the arguments over
# equations without effects finds what is read.
from jax.extend.core import ClosedJaxpr, Jaxpr, Var, jaxpr_as_fun
from jax.interpreters.partial_eval import dce_jaxpr

from nsjax.types import PyTree

__all__ = [
    "ClosedJaxpr",
    "Jaxpr",
    "Var",
    "backend_exists",
    "dce_jaxpr",
    "forget_cache_folder",
    "gathered",
    "jaxpr_as_fun",
    "lanes_around",
    "set_log_level",
]


def lanes_around(tree: PyTree) -> tuple[int, bool]:
    """Number of lanes of all `jax.vmap` around a tree of tracers, and whether the tree is differentiated.
    Transformations outside of a `jax.jit` cannot be seen.

    Where tracers no longer tell, the answer is ``(1, False)``: a run that takes too much memory is then not
    warned of.
    """
    most, differentiated = 1, False
    for leaf in jax.tree.leaves(tree):
        lanes, seen = 1, leaf
        while isinstance(seen, jax.core.Tracer):
            axis = getattr(getattr(seen, "_trace", None), "axis_data", None)
            lanes *= int(getattr(axis, "size", 1) or 1)
            differentiated |= hasattr(seen, "primal")
            seen = getattr(seen, "primal", getattr(seen, "val", None))
        most = max(most, lanes)
    return most, differentiated


def backend_exists() -> bool:
    """Whether JAX has made its first backend, after which XLA reads no options. No public call answers it
    without making one; without it the options would be set in any case, and the user not warned.
    """
    from jax._src import xla_bridge

    return bool(xla_bridge.backends_are_initialized())


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


def gathered(values: np.ndarray) -> Any:
    """The arrays of all processes, one after the other; ``jax.lax.all_gather`` over a mesh of all devices
    does the same.
    """
    from jax.experimental import multihost_utils

    return multihost_utils.process_allgather(values)
