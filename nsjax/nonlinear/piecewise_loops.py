"""Loops of large steps and of their derivatives, which are compiled in pieces."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.extend.core import jaxpr_as_fun

from nsjax.nonlinear.trimmed import code_size, without_unread
from nsjax.types import Array, PyTree

LARGE_WITH_TANGENTS = 42_000
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

LARGE_STEP = 20_000
"""Code size of a step without tangents from which on its time loop is no longer one kernel. The loops
inside the step, of a contact solver or of Newton's method, are kernels in any case.

LLVM forgets what it knows about all loops of a kernel whenever it turns or writes out one of them (half of
the 165 s that it takes for a hopper with nsga_decoupled), so that compile times grow with the square of the
size. Code size, CPU s of the first call and us of a step, each as one kernel and in pieces, and the number
of steps (in thousands) from which on one kernel saves time:

    ===========================  ====  ==========  ===========  ========
    slider-crank, bathe          12.2    6.5, 5.5     0.72, 6.4       180
    ant, moreau                  12.7    8.9, 8.9       10, 19         0
    hopper, ggl_decoupled        14.8   13.5, 9.4      4.3, 21       240
    humanoid, moreau             18.9  17.6, 12.4      35, 142        49
    hopper, half_explicit        21.9  23.0, 11.1     11.9, 24       950
    ant, ggl_decoupled           25.9  22.6, 12.7       26, 37       860
    hopper, generalized_alpha    27.7  30.1, 14.9      7.4, 12      3400
    ===========================  ====  ==========  ===========  ========
"""


def large_in_pieces(step: Callable[[PyTree], PyTree], first: PyTree) -> Callable[[PyTree], PyTree]:
    """The step of a time loop, which is traced once; a large one is not compiled into one kernel.

    Args:
        step: ``x -> x`` of the next step.
        first: an ``x``, only for its structure, shapes and types.

    Returns:
        The step with the same results; `ends_kernel` at its start if its code size is above `LARGE_STEP`.

    Example:
        >>> from nsjax.nonlinear.piecewise_loops import large_in_pieces
        >>> float(large_in_pieces(lambda x: 2.0 * x, 1.0)(3.0))
        6.0
    """
    made, shapes = jax.make_jaxpr(step, return_shape=True)(first)
    large = code_size(without_unread(made)) > LARGE_STEP

    def traced(x: PyTree) -> PyTree:
        x = ends_kernel(x, x) if large else x
        return jax.tree.unflatten(jax.tree.structure(shapes), jaxpr_as_fun(made)(*jax.tree.leaves(x)))

    return traced


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
