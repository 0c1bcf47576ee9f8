"""Geometrically exact spatial beams, without and with memory."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.math import rodrigues, rotations
from nsjax.math.rotations import RELATIVE, SPUN, bilinear
from nsjax.types import Array, record

# Geometrically exact spatial beam of two nodes: strains invariant under rigid motion, without memory.
#
# A node has a position ``x`` and a unit quaternion ``p`` of its section, the identity where the beam is
# without strain. The data of an element are its length and its axes ``D = (d1, d2, d3)`` without strain,
# ``d3`` along it; its strains, in section axes and in the middle of the element, are::
#
#     eta = D' A_m' (x2 - x1) / l - e3,    kappa = D' log(A_1' A_2) / l - kappa_0
#
# with rotations ``A`` of the nodes and the rotation halfway between, ``A_m = A_1 exp(log(A_1' A_2) /
# 2)``: ``eta`` holds two shears and the extension, ``kappa`` two bending curvatures and the twist. One
# quadrature point avoids locking: a cantilever of ``n`` elements has ``1 - 1 / (4 n^2)`` of the exact
# deflection, however slender; a beam bent to a circle is exactly a closed polygon.
#
# Source: [GN (84)-(111)] for the kinematics; the strains of Simo and Reissner's beam along the geodesic
# between two nodes.


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
    """Strains ``(eta, kappa)`` (6,) of an element. Returns two shears and extension [-], two curvatures and
    twist [1/m].

    Args:
        x1, x2: positions of the nodes (3,) [m].
        p1, p2: unit quaternions of the nodes (4,).
        length: length without strain [m].
        axes: ``D`` (3, 3), section axes without strain as columns.
        curvature: ``kappa_0`` (3,) [1/m], of the beam without moments.

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
        moved = (rates[0, :3], _half(places[1], rates[0, 3:]), rates[1, :3], _half(places[3], rates[1, 3:]))
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


# Geometrically exact spatial beam with incremental Rodrigues vectors, of two or three nodes.
#
# Within a step a node has the increments ``d = (u, alpha)`` of its position and rotation, zero at the
# start of the step; positions and Rodrigues vectors ``alpha`` are interpolated. Every Gauss point (one
# for two nodes, two for three: no locking, see `nsjax.fem.spatial_beams`) has a history: its axes ``R``
# and its curvature, which `committed` updates at the end of a step. Strains, in section axes::
#
#     eta = R' x' - eta_0,   kappa = kappa_i + R_i' Xi(alpha)' alpha',   R = Q(alpha) R_i
#
# Results depend slightly on the path of steps; the dependence vanishes with the sizes of steps and
# elements. `nsjax.fem.spatial_beams` does not depend on the path.
#
# Within a mechanism (`nsjax.multibody.beam`) the history is part of the position, and every increment of
# the position updates it (`carried`). Strains are those above. `point_forces` are the work per
# interpolated spin; the gradient of `incremental_energy` is the work per interpolated Rodrigues vector
# from the start of the step. Both are the same where the increments are zero, and differ by the square of
# an element's relative rotation within a step.
#
# Source: [GN (84)-(117)]; the update of curvatures is exact for the interpolated increments.


@record()
class History:
    """Axes and curvature at the Gauss points of an element, or of many elements with a further first axis.

    Args:
        axes: ``R`` (g, 3, 3) section axes as columns, in the axes of the ground.
        curvature: ``kappa`` (g, 3) [1/m] relative to the beam without strain.
        stretch: ``eta_0 = R_0' x'`` (g, 3) of the beam without strain, constant.
        weight: length (g,) [m] of the beam per Gauss point, constant.
    """

    axes: Array
    curvature: Array
    stretch: Array
    weight: Array


def shapes(nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Shape functions and their derivatives (g, nodes) at the Gauss points, along ``xi`` from -1 to 1."""
    if nodes == 2:
        return np.array([[0.5, 0.5]]), np.array([[-0.5, 0.5]])
    x = np.array([-1.0, 1.0]) / np.sqrt(3.0)
    values = np.stack([x * (x - 1) / 2, 1 - x * x, x * (x + 1) / 2], axis=1)
    return values, np.stack([x - 0.5, -2 * x, x + 0.5], axis=1)


AT_NODES = {
    2: np.array([[-0.5, 0.5], [-0.5, 0.5]]),
    3: np.array([[-1.5, 2.0, -0.5], [-0.5, 0.0, 0.5], [0.5, -2.0, 1.5]]),
}
"""Derivatives of the shape functions along ``xi``, at the nodes."""


def node_axes(places: Array, first_axis: Array) -> Array:
    """Axes of the section (nodes, 3, 3) at the nodes of an element without strain."""
    return axes_along(jnp.sum(AT_NODES[places.shape[0]][:, :, None] * places[None], axis=1), first_axis)[1]


def started(places: Array, first_axis: Array) -> History:
    """History of an element without strain through ``places`` (nodes, 3), ``d1`` closest to ``first_axis``.

    Example:
        >>> import jax.numpy as jnp
        >>> from nsjax.fem.spatial_beams import started
        >>> points = jnp.array([[0.0, 0.0, 0.0], [0.0, 0.0, 2.0]])
        >>> started(points, jnp.array([1.0, 0.0, 0.0])).weight.tolist()
        [2.0]
    """
    slopes = shapes(places.shape[0])[1]
    along = jnp.sum(slopes[:, :, None] * places[None], axis=1)
    size, axes = axes_along(along, first_axis)
    weight = size * (2.0 if places.shape[0] == 2 else 1.0)
    stretch = jnp.sum(axes * axes[:, :, 2:], axis=1)
    return History(axes=axes, curvature=jnp.zeros((len(slopes), 3)), stretch=stretch, weight=weight)


def _points(places: Array, steps: Array, history: History) -> tuple[Array, Array, Array]:
    """Strains (g, 6), axes (g, 3, 3) and curvatures (g, 3) after the increments."""
    values, slopes = shapes(places.shape[0])
    full = 2.0 if places.shape[0] == 2 else 1.0  # weights of the Gauss points

    def point(value: Array, slope: Array, axes: Array, kappa: Array, eta0: Array, weight: Array) -> Array:
        rate = slope * (full / weight)  # d/ds
        along = jnp.sum(rate[:, None] * (places + steps[:, :3]), axis=0)
        alpha = jnp.sum(value[:, None] * steps[:, 3:], axis=0)
        change = jnp.sum(rate[:, None] * steps[:, 3:], axis=0)
        turned = jnp.sum(rodrigues.matrix(alpha)[:, :, None] * axes[None], axis=1)
        bend = jnp.sum(rodrigues.spin(alpha) * change[:, None], axis=0)
        now = kappa + jnp.sum(axes * bend[:, None], axis=0)
        eta = jnp.sum(turned * along[:, None], axis=0) - eta0
        return jnp.concatenate([eta, now, turned.reshape(-1)])

    found = jax.vmap(point)(
        jnp.asarray(values), jnp.asarray(slopes), history.axes, history.curvature, history.stretch,
        history.weight,
    )  # fmt: skip
    return found[:, :6], found[:, 6:].reshape(-1, 3, 3), found[:, 3:6]


def incremental_strains(places: Array, steps: Array, history: History) -> Array:
    """Strains ``(eta, kappa)`` (g, 6) of an element.

    Args:
        places: positions of the nodes at the start of the step (nodes, 3) [m].
        steps: increments ``(u, alpha)`` of the nodes (nodes, 6).
        history: history of the Gauss points at the start of the step.
    """
    return _points(places, steps, history)[0]


def incremental_energy(places: Array, steps: Array, history: History, stiffness: Array) -> Array:
    """Strain energy [J] of an element after its increments; stiffness (6,) as for `objective_energy`."""
    strains = incremental_strains(places, steps, history)
    return 0.5 * jnp.sum(history.weight[:, None] * stiffness * strains * strains)


def committed(places: Array, steps: Array, history: History) -> History:
    """History at the end of a step."""
    _, axes, curvature = _points(places, steps, history)
    return History(axes=axes, curvature=curvature, stretch=history.stretch, weight=history.weight)


def _times(matrices: Array, x: Array) -> Array:
    """Products (k, 3) of matrices (k, 3, 3) and vectors (k, 3)."""
    return jnp.sum(matrices * x[:, None, :], axis=2)


def _back(matrices: Array, x: Array) -> Array:
    """Products (k, 3) with the transposed matrices."""
    return jnp.sum(matrices * x[:, :, None], axis=1)


def _along(table: np.ndarray, x: Array) -> Array:
    """Sums (g, 3) over the nodes of their vectors (nodes, 3) times the coefficients of ``table``."""
    return jnp.sum(table[:, :, None] * x[None], axis=1)


def carried(points: Array, poses: Array, steps: Array) -> Array:
    """Gauss points of an element after increments of its nodes, by the update of the paper's step: rotated
    by the interpolated Rodrigues vectors of the nodes, with updated curvature.

    Args:
        points: (g, 7): unit quaternion of the section, the identity in the reference configuration; and
            curvature per ``xi`` [rad] in the axes rotated by the quaternion: ``kappa = D' curvature /
            |dx/dxi|``.
        poses: positions and unit quaternions of the nodes before the increments (nodes, 7).
        steps: increments (nodes, 6), displacements and rotation vectors in the axes of the nodes.

    Limits: rotations of the nodes by less than half a turn in a step.

    Example:
        >>> import jax.numpy as jnp
        >>> from nsjax.fem.spatial_beams import carried
        >>> rest = jnp.array([1.0, 0, 0, 0, 0, 0, 0])
        >>> ends = jnp.array([[0.0, 0, 0, 1, 0, 0, 0], [0, 0, 2.0, 1, 0, 0, 0]])
        >>> twist = jnp.zeros((2, 6)).at[1, 5].set(0.2)
        >>> round(float(carried(rest[None], ends, twist)[0, 6]), 4)  # a twist of 0.2 along xi from -1 to 1
        0.1001
    """
    values, slopes = shapes(poses.shape[0])
    turned = jax.vmap(rotations.exponential)(steps[:, 3:])
    own = 2.0 * turned[:, 1:] / turned[:, :1]
    alphas = _times(jax.vmap(rotations.matrix)(poses[:, 3:]), own)
    alpha, change = _along(values, alphas), _along(slopes, alphas)
    # Xi' alpha'
    factor = 4.0 / (4.0 + jnp.sum(alpha * alpha, axis=1))
    spun = factor[:, None] * (change - 0.5 * jnp.cross(alpha, change))
    before = points[:, :4]
    bend = points[:, 4:] + _back(jax.vmap(rotations.matrix)(before), spun)
    turn = jnp.concatenate([jnp.full((len(values), 1), 2.0), alpha], axis=1)
    after = jax.vmap(rotations.multiply)(turn, before)
    return jnp.concatenate([after / jnp.sqrt(jnp.sum(after * after, axis=1))[:, None], bend], axis=1)


def placed(poses: Array) -> Array:
    """Gauss points (g, 7) of an element with nodes (nodes, 7), by one step from the turned reference."""
    n, g = poses.shape[0], len(shapes(poses.shape[0])[0])
    middle = halfway(poses[0, 3:], poses[1, 3:]) if n == 2 else poses[1, 3:]
    turns = jax.vmap(lambda p: rotations.rotation_between(middle, p))(poses[:, 3:])
    rest = jnp.concatenate([middle, jnp.zeros(3)])
    steps = jnp.concatenate([jnp.zeros((n, 3)), turns], axis=1)
    rigid = jnp.concatenate([poses[:, :3], jnp.broadcast_to(middle, (n, 4))], axis=1)
    return carried(jnp.broadcast_to(rest, (g, 7)), rigid, steps)


def _at_points(poses: Array, points: Array, drawn: History) -> tuple[Array, ...]:
    """Strains (g, 6), axes (g, 3, 3), ``dx/dxi`` (g, 3), and ``|dx/dxi|`` without strain (g,)."""
    size = drawn.weight / (2.0 if poses.shape[0] == 2 else 1.0)
    turn = jax.vmap(rotations.matrix)(points[:, :4])
    axes = jnp.sum(turn[:, :, :, None] * drawn.axes[:, None], axis=2)
    gone = _along(shapes(poses.shape[0])[1], poses[:, :3])
    eta = _back(axes, gone) / size[:, None] - drawn.stretch
    kappa = _back(drawn.axes, points[:, 4:]) / size[:, None] - drawn.curvature
    return jnp.concatenate([eta, kappa], axis=1), axes, gone, size


def point_strains(poses: Array, points: Array, drawn: History) -> Array:
    """Strains ``(eta, kappa)`` (g, 6) of an element with the history ``points``, see `carried`.

    Args:
        poses: positions and unit quaternions of the nodes (nodes, 7).
        points: Gauss points (g, 7).
        drawn: history of the element without strain, from `started`; its curvature is that of the beam
            without moments.
    """
    return _at_points(poses, points, drawn)[0]


def point_forces(
    poses: Array, rates: Array | None, points: Array, drawn: History, stiffness: Array,
    damping: Array | None = None,
) -> Array:  # fmt: skip
    """Generalised forces (nodes, 6) of an element on its nodes, elastic and viscous: stresses are
    ``stiffness (strain + damping d strain/dt)``. Their work is that along displacements in the axes of the
    ground and rotations in those of the node, with the history updated.

    Args:
        poses, points, drawn: see `point_strains`.
        rates: velocities and angular velocities (nodes, 6), the latter in the axes of the nodes; needed
            with ``damping`` only.
        stiffness: (6,) [N], [N m^2], as for `nsjax.fem.objective_energy`.
        damping: time [s].
    """
    values, slopes = shapes(poses.shape[0])
    full = 2.0 if poses.shape[0] == 2 else 1.0
    strains, axes, gone, size = _at_points(poses, points, drawn)
    turns = jax.vmap(rotations.matrix)(poses[:, 3:])
    if damping is not None and rates is not None:
        spins = _times(turns, rates[:, 3:])
        drift = _along(slopes, rates[:, :3]) - jnp.cross(_along(values, spins), gone)
        found = jnp.concatenate([_back(axes, drift), _back(axes, _along(slopes, spins))], axis=1)
        strains = strains + damping * found / size[:, None]
    stress = full * stiffness * strains
    push, moment = _times(axes, stress[:, :3]), _times(axes, stress[:, 3:])
    turning = _along(values.T, jnp.cross(gone, push)) - _along(slopes.T, moment)
    return jnp.concatenate([-_along(slopes.T, push), _back(turns, turning)], axis=1)
