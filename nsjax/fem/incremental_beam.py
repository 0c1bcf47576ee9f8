"""Geometrically exact spatial beam with incremental Rodrigues vectors, of two or three nodes.

Within a step a node has the increments ``d = (u, alpha)`` of its position and rotation, zero at the start
of the step; positions and Rodrigues vectors ``alpha`` are interpolated. Every Gauss point (one for two
nodes, two for three: no locking, see `nsjax.fem.objective_beam`) has a history: its axes ``R`` and its
curvature, which `committed` updates at the end of a step. Strains, in section axes::

    eta = R' x' - eta_0,   kappa = kappa_i + R_i' Xi(alpha)' alpha',   R = Q(alpha) R_i

Results depend slightly on the path of steps; the dependence vanishes with the sizes of steps and elements.
`nsjax.fem.objective_beam` does not depend on the path.

Within a mechanism (`nsjax.multibody.beam`) the history is part of the position, and every increment of the
position updates it (`carried`). Strains are those above. `point_forces` are the work per interpolated spin;
the gradient of `incremental_energy` is the work per interpolated Rodrigues vector from the start of the
step. Both are the same where the increments are zero, and differ by the square of an element's relative
rotation within a step.

Source: [GN (84)-(117)]; the update of curvatures is exact for the interpolated increments.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.fem.objective_beam import axes_along, halfway
from nsjax.math import rodrigues, rotations
from nsjax.types import Array, record


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
        >>> from nsjax.fem.incremental_beam import started
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
        >>> from nsjax.fem.incremental_beam import carried
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
    """Gauss points (g, 7) of an element with nodes in given poses (nodes, 7): by one step from the
    reference configuration, rotated as a rigid body to the middle orientation.
    """
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
