"""Loops of the derivatives of large steps, which are compiled in pieces."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from nsjax.types import Array, PyTree

LARGE = 17_000
"""Number of equations of a step with its tangents from which on its loops are no longer one kernel.

The compilation time grows faster than the kernel. CPU s to compile a reverse gradient and us a step, first
as one kernel, then in pieces: slider-crank with moreau (5,900 equations) 16, 1.5 and 12, 5; with
generalized_alpha (12,400) 37, 3 and 26, 29; hopper with moreau (23,500) 171, 50 and 30, 250, of which the
run alone takes 3.4 and 3.4. Contacts in space take longer: for a ball on a plane with friction against
spinning and rolling (14,200), with derivatives by all numbers of the model, 180 and 39 CPU s on a busy
machine. The number stands above a slider-crank with every scheme (16,400). The kernel pays for itself after
half a million steps or more at all of these sizes; below this number its compilation mostly takes ten
seconds longer, above it minutes. One kernel for each course of a step (flight, contact), as a loop of two
passes of which one does nothing, is no better compromise: 119 and 165 for the hopper.

A step in pieces costs a quarter of a microsecond for each of its operations, whatever they do. The
backward step of the hopper's contact course has about a thousand, of which 260 copy results of branches.
With the derivative of the velocity step as a loop of one pass, which is a kernel, the step took 160 to 200
us and the compilation some 8 CPU s more. With the velocity step and its derivative as calls that jaxlib
0.10.2 keeps whole (attributes ``inlineable`` and ``xla_cpu_small_call``) the step took 74 us at the same
compilation time; but the compiler ends the process at some such calls, for an unknown reason, and refuses
large batches and scatters.
"""


def ends_kernel(tangents: PyTree, data: PyTree) -> PyTree:
    """The same tangents from a program that the compiler cannot put into one kernel, nor its transpose.

    The entries of an array are read, and added to zeros, at indices that the compiler does not know. It
    takes such sums out of kernels; the transpose of the reading is such a sum, too.

    Args:
        tangents: tangents of a step.
        data: arguments of the step, which reverse mode has without computing the step again.

    Example:
        >>> import jax.numpy as jnp
        >>> from nsjax.nonlinear.piecewise_loops import ends_kernel
        >>> ends_kernel([jnp.arange(3.0)], [jnp.ones(3)])[0].tolist()
        [0.0, 1.0, 2.0]
    """
    leaves: Any
    leaves, tree = jax.tree.flatten(tangents)
    moving, known = [k for k, x in enumerate(leaves) if _is_vector(x)], jax.tree.leaves(data)
    at = next((x for x in known if _is_vector(x)), None)
    if moving and at is not None:
        leaves[moving[0]] = _again(leaves[moving[0]], lax.stop_gradient(at))
    return jax.tree.unflatten(tree, leaves)


def _is_vector(x: Any) -> bool:
    """Whether ``x`` is a vector (n,) of several floats."""
    return jnp.ndim(x) == 1 and jnp.issubdtype(jnp.result_type(x), jnp.floating) and x.shape[0] > 1


def _again(x: Array, at: Array) -> Array:
    """``x`` (n,), read and added at its own indices plus a number from ``at`` (m,) that is zero but for
    nan.
    """
    places = jnp.arange(x.shape[0]) + (at[0] != at[0])
    return jnp.zeros_like(x).at[places].add(x.at[places].get(mode="clip"), mode="drop")
