"""Two-node bars in a row: linear displacements, consistent mass, one unknown per node.

Nodal vectors have ``n + 1`` entries for ``n`` elements in the order of the nodes. All operations here are
differences or sums of neighbours, without index tables, and the matrices are tridiagonal.

Source: linear finite elements, as for the bar of [C section 4.2].
"""

from __future__ import annotations

import jax.numpy as jnp

from nsjax.types import Array


def assembled(left: Array, right: Array) -> Array:
    """Nodal vector (n + 1, ...) from the elements' contributions (n, ...) to their left and right nodes."""
    rest = [(0, 0)] * (left.ndim - 1)
    return jnp.pad(left, [(0, 1), *rest]) + jnp.pad(right, [(1, 0), *rest])


def bar_inertia(w: Array, mass: Array) -> Array:
    """``M w`` (n + 1, ...) with the consistent mass ``m / 6 [[2, 1], [1, 2]]`` of elements ``mass`` (n,
    ...) [kg].

    Example:
        >>> import jax.numpy as jnp
        >>> from nsjax.fem.bar import bar_inertia
        >>> bar_inertia(jnp.ones(3), jnp.full(2, 6.0)).tolist()
        [3.0, 6.0, 3.0]
    """
    left, right = w[:-1], w[1:]
    return assembled(mass / 6.0 * (2.0 * left + right), mass / 6.0 * (left + 2.0 * right))


def bar_weight(acceleration: Array | float, mass: Array) -> Array:
    """Nodal forces (n + 1,) of a uniform acceleration [m/s^2]: half of each element to each node."""
    half = 0.5 * acceleration * mass
    return assembled(half, half)
