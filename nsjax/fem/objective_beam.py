"""Geometrically exact spatial beam of two nodes: strains invariant under rigid motion, without memory.

A node has a position ``x`` and a unit quaternion ``p`` of its section, the identity where the beam is
without strain. The data of an element are its length and its axes ``D = (d1, d2, d3)`` without strain,
``d3`` along it; its strains, in section axes and in the middle of the element, are::

    eta = D' A_m' (x2 - x1) / l - e3,    kappa = D' log(A_1' A_2) / l - kappa_0

with rotations ``A`` of the nodes and the rotation halfway between, ``A_m = A_1 exp(log(A_1' A_2) / 2)``:
``eta`` holds two shears and the extension, ``kappa`` two bending curvatures and the twist. One quadrature
point avoids locking: a cantilever of ``n`` elements has ``1 - 1 / (4 n^2)`` of the exact deflection,
however slender; a beam bent to a circle is exactly a closed polygon.

Source: [GN (84)-(111)] for the kinematics; the strains of Simo and Reissner's beam along the geodesic
between two nodes.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.math import rotations
from nsjax.math.rotations import RELATIVE, SPUN, bilinear
from nsjax.types import Array


def relative_rotation(p1: Array, p2: Array) -> Array:
    """Rotation vector ``log(A_1' A_2)`` (3,) of two unit quaternions, the shortest one; smooth at zero.

    Limits: rotations less than half a turn apart.
    """
    d = bilinear(RELATIVE, p1, p2)
    d = jnp.where(d[0] < 0.0, -d, d)
    square = jnp.sum(d[1:] * d[1:])
    # squared sine of half the angle below which a series, exact to rounding there, replaces the logarithm
    small = 1e-8
    near = square < small
    s = jnp.sqrt(jnp.where(near, 1.0, square))
    # 2 asin(s) / s = 2 + s^2 / 3 + 3 s^4 / 20 + ...
    series = 2.0 + square * (1.0 / 3.0 + square * 0.15)
    return jnp.where(near, series, 2.0 * jnp.arctan2(s, jnp.where(near, 1.0, d[0])) / s) * d[1:]


def halfway(p1: Array, p2: Array) -> Array:
    """Unit quaternion (4,) halfway between two, along the shortest rotation: their normalised sum."""
    total = p1 + jnp.where(jnp.sum(p1 * p2) < 0.0, -1.0, 1.0) * p2
    return total / jnp.sqrt(jnp.sum(total * total))


def objective_strains(
    x1: Array, p1: Array, x2: Array, p2: Array, length: Array, axes: Array, curvature: Array
) -> Array:
    """Strains ``(eta, kappa)`` (6,) of an element.

    Args:
        x1, x2: positions of the nodes (3,) [m].
        p1, p2: unit quaternions of the nodes (4,).
        length: length without strain [m].
        axes: ``D`` (3, 3), section axes without strain as columns.
        curvature: ``kappa_0`` (3,) [1/m], of the beam without moments.

    Returns:
        Two shears and extension [-], two curvatures and twist [1/m].

    Example:
        >>> import jax.numpy as jnp
        >>> from nsjax.fem import objective_strains
        >>> x, p = jnp.array([0.0, 0.0, 1.25]), jnp.array([1.0, 0, 0, 0])
        >>> objective_strains(0 * x, p, x, p, 1.0, jnp.eye(3), jnp.zeros(3)).round(12).tolist()
        [0.0, 0.0, 0.25, 0.0, 0.0, 0.0]
    """
    middle = halfway(p1, p2)
    turn = rotations.matrix(middle)
    gone = jnp.sum(turn * (x2 - x1)[:, None], axis=0) / length
    stretch = jnp.sum(axes * gone[:, None], axis=0) - np.array([0.0, 0.0, 1.0])
    bent = jnp.sum(axes * relative_rotation(p1, p2)[:, None], axis=0) / length
    return jnp.concatenate([stretch, bent - curvature])


def objective_energy(strains: Array, stiffness: Array, length: Array) -> Array:
    """Strain energy ``l/2 (strains . stiffness strains)`` [J] of an element, stiffness (6,)."""
    return 0.5 * length * jnp.sum(stiffness * strains * strains)


def _half(p: Array, spin: Array) -> Array:
    """Rate of a quaternion with the angular velocity ``spin`` in the axes of the section."""
    return 0.5 * bilinear(SPUN, p, spin)


def objective_forces(
    nodes: Array, rates: Array | None, length: Array, axes: Array, curvature: Array, stiffness: Array,
    damping: Array | None = None,
) -> Array:  # fmt: skip
    """Generalised forces (2, 6) of an element on its nodes, elastic (minus the gradient of its energy) and
    viscous, along displacements in the axes of the ground and rotations in those of the node.

    Args:
        nodes: positions and unit quaternions (2, 7).
        rates: velocities and angular velocities (2, 6), the latter in the axes of the nodes; needed with
            ``damping`` only.
        length, axes, curvature: see `objective_strains`.
        stiffness: (6,) [N], [N m^2]: two shears, extension, two bendings, twist.
        damping: time [s]; stresses are ``stiffness (strain + damping d strain/dt)``.
    """

    def strains(x1: Array, p1: Array, x2: Array, p2: Array) -> Array:
        return objective_strains(x1, p1, x2, p2, length, axes, curvature)

    places = (nodes[0, :3], nodes[0, 3:], nodes[1, :3], nodes[1, 3:])
    found, back = jax.vjp(strains, *places)
    if damping is not None and rates is not None:
        moved = (
            rates[0, :3], _half(places[1], rates[0, 3:]), rates[1, :3], _half(places[3], rates[1, 3:]),
        )  # fmt: skip
        found = found + damping * jax.jvp(strains, places, moved)[1]
    push1, c1, push2, c2 = back(-length * stiffness * found)
    # c . (p o (0, w) / 2) = (conj(p) o c) . (0, w) / 2
    turn1, turn2 = (0.5 * bilinear(RELATIVE[1:], p, c) for p, c in ((places[1], c1), (places[3], c2)))
    return jnp.concatenate([push1, turn1, push2, turn2]).reshape(2, 6)


def section_axes(points: Array, first_axis: Array) -> tuple[Array, Array]:
    """Lengths (n,) and axes ``D`` (n, 3, 3) of elements through ``points`` (n + 1, 3): ``d3`` along the
    element, ``d1`` normal to it and closest to ``first_axis`` (3,), ``d2 = d3 x d1``.
    """
    return axes_along(points[1:] - points[:-1], first_axis)


def axes_along(vectors: Array, first_axis: Array) -> tuple[Array, Array]:
    """Lengths (k,) of vectors (k, 3), and axes (k, 3, 3) along them, see `section_axes`."""
    lengths = jnp.sqrt(jnp.sum(vectors * vectors, axis=1))
    along = vectors / lengths[:, None]
    across = first_axis[None, :] - jnp.sum(along * first_axis, axis=1)[:, None] * along
    first = across / jnp.sqrt(jnp.sum(across * across, axis=1))[:, None]
    return lengths, jnp.stack([first, jnp.cross(along, first), along], axis=2)
