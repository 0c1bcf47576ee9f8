"""Loops of the derivatives of large steps, which are compiled in pieces."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from nsjax.types import Array, PyTree

LARGE = 42_000
"""Code size of a step with its tangents (`nsjax.nonlinear.trimmed.code_size`) from which on its loops are
no longer one kernel.

The compilation time of one kernel grows with the square of this size, that of pieces in proportion.
Reverse gradients by all numbers of a model and its start on a machine with other work, thousands of
equations, thousands of code size, and CPU s to compile as one kernel: rod with two points 5.8, 14, 5;
slider-crank with moreau 6.8, 15, 8; cart with pole 6.3, 17, 10; slider-crank with generalized_alpha 14, 30,
22, with ed_alpha 18, 40, 38 (in pieces 28); ball on a plane 17, 43, 44 (20); box 19, 50, 65; ball with
friction against spinning and rolling 20, 52, 74. From 20 s on ``2 + 2.4e-8 size^2`` is within a tenth of
these; equations alone take the ball for smaller than the slider-crank with ed_alpha. In space, equations
have more axes, and each axis is a loop of its own.

This size is larger than that of a slider-crank with any scheme. The hopper (25, 76) compiles in 30 s in
pieces and in 171 s as one kernel; a step takes 250 us in pieces and 50 us as one kernel. The slider-crank
with generalized_alpha compiles in 26 s or 37 s and takes 29 us or 3 us. So one kernel saves time after half
a million steps or more. One kernel for each kind of step (flight, contact), as a loop of two passes of
which one does nothing, is no better compromise: 119 s and 165 us for the hopper.

A step in pieces costs a quarter of a microsecond for each of its operations, whatever they do. The
backward step of the hopper's contact course has about a thousand, of which 260 copy results of branches.
With the derivative of the velocity step as a loop of one pass, which is a kernel, the step took 160 to 200
us and the compilation some 8 CPU s more. With the velocity step and its derivative as calls that jaxlib
0.10.2 keeps whole (attributes ``inlineable`` and ``xla_cpu_small_call``) the step took 74 us at the same
compilation time; but the compiler ends the process at some such calls, for an unknown reason, and refuses
large batches and scatters. Parallel steps do not help either. With the carries of all steps known, the
derivatives of 50 steps by all 57 entries of a carry, followed by products of matrices, took 68 us a step
and entry. This is more than the kernel takes for a whole backward step.
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
