"""Geometrically exact spatial beam with incremental Rodrigues vectors, of two or three nodes.

Within a step a node has the increments ``d = (u, alpha)`` of its place and rotation, zero at its start;
places, and the Rodrigues vectors ``alpha``, are interpolated. Every Gauss point (one for two nodes, two for
three: no locking, see `nsjax.fem.objective_beam`) keeps a history: its axes ``R`` and its curvature, which
`committed` brings up to date at the end of a step. Strains, in section axes::

    eta = R' x' - eta_0,   kappa = kappa_i + R_i' Xi(alpha)' alpha',   R = Q(alpha) R_i

Results depend slightly on the steps in which they were reached, and vanishingly so with their size and that
of the elements; `nsjax.fem.objective_beam` is free of it.

Within a mechanism (`nsjax.multibody.beam`) the history is part of the position, and every increment of the
position brings it up to date (`carried`). Strains are those above; forces are taken along spins that are
interpolated (`point_forces`), where the gradient of `incremental_energy` takes them along interpolated
Rodrigues vectors from the start of the step: both are the same where the increments are zero, and differ
by the square of an element's relative turn within a step.

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
    """Axes and curvature at the Gauss points of an element, or of many with a further first axis.

    Args:
        axes: ``R`` (g, 3, 3) section axes as columns, in the axes of the ground.
        curvature: ``kappa`` (g, 3) [1/m] against the beam without strain.
        stretch: ``eta_0 = R_0' x'`` (g, 3) of the beam without strain, constant.
        weight: length (g,) [m] that a point stands for, constant.
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
    """History of an element without strain through ``places`` (nodes, 3), ``d1`` next to ``first_axis``.

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
        places: of its nodes at the start of the step (nodes, 3) [m].
        steps: increments ``(u, alpha)`` (nodes, 6).
        history: of its Gauss points at the start of the step.
    """
    return _points(places, steps, history)[0]


def incremental_energy(places: Array, steps: Array, history: History, stiffness: Array) -> Array:
    """Strain energy [J] of an element after its increments; stiffness (6,) as of `objective_energy`."""
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
    """Sums (g, 3) over the nodes of what they have (nodes, 3)."""
    return jnp.sum(table[:, :, None] * x[None], axis=1)


def carried(points: Array, poses: Array, steps: Array) -> Array:
    """Gauss points of an element moved with its nodes, in the order of the paper's step: turned by the
    interpolated Rodrigues vectors of the nodes, their curvature updated.

    Args:
        points: (g, 7) unit quaternion of the section, which is 1 where the beam is drawn, and curvature per
            ``xi`` [rad], in the axes that the quaternion turns: ``kappa = D' curvature / |dx/dxi|``.
        poses: of the nodes before (nodes, 7), places and unit quaternions.
        steps: increments (nodes, 6), displacements and rotation vectors in the axes of the nodes.

    Limits: nodes that turn less than half a turn in a step.

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
    # Xi' change
    factor = 4.0 / (4.0 + jnp.sum(alpha * alpha, axis=1))
    spun = factor[:, None] * (change - 0.5 * jnp.cross(alpha, change))
    before = points[:, :4]
    bend = points[:, 4:] + _back(jax.vmap(rotations.matrix)(before), spun)
    turn = jnp.concatenate([jnp.full((len(values), 1), 2.0), alpha], axis=1)
    after = jax.vmap(rotations.multiply)(turn, before)
    return jnp.concatenate([after / jnp.sqrt(jnp.sum(after * after, axis=1))[:, None], bend], axis=1)


def placed(poses: Array) -> Array:
    """Gauss points (g, 7) of an element whose nodes stand anyhow (nodes, 7): as by one step from where it
    is drawn, moved as a rigid body to its middle.
    """
    n, g = poses.shape[0], len(shapes(poses.shape[0])[0])
    middle = halfway(poses[0, 3:], poses[1, 3:]) if n == 2 else poses[1, 3:]
    turns = jax.vmap(lambda p: rotations.rotation_between(middle, p))(poses[:, 3:])
    rest = jnp.concatenate([middle, jnp.zeros(3)])
    steps = jnp.concatenate([jnp.zeros((n, 3)), turns], axis=1)
    rigid = jnp.concatenate([poses[:, :3], jnp.broadcast_to(middle, (n, 4))], axis=1)
    return carried(jnp.broadcast_to(rest, (g, 7)), rigid, steps)


def _at_points(poses: Array, points: Array, drawn: History) -> tuple[Array, ...]:
    """Strains (g, 6), axes (g, 3, 3), and ``dx/dxi`` (g, 3), its length without strain (g,)."""
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
        poses: of its nodes (nodes, 7).
        points: (g, 7).
        drawn: of the element without strain, from `started`; its curvature is that without moments.
    """
    return _at_points(poses, points, drawn)[0]


def point_forces(
    poses: Array, rates: Array | None, points: Array, drawn: History, stiffness: Array,
    damping: Array | None = None,
) -> Array:  # fmt: skip
    """Generalized forces (nodes, 6) of an element on its nodes: minus the gradient of its energy along
    displacements in the axes of the ground and turns in those of the node, the history carried along, and
    of damping: stresses are ``stiffness (strain + damping d strain/dt)``.

    Args:
        poses, points, drawn: see `point_strains`.
        rates: velocities and angular velocities in the axes of the nodes (nodes, 6); with ``damping`` only.
        stiffness: (6,) [N], [N m^2], as of `nsjax.fem.objective_energy`.
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
