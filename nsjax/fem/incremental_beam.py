"""Geometrically exact spatial beam with incremental Rodrigues vectors, of two or three nodes.

Within a step a node has the increments ``d = (u, alpha)`` of its place and rotation, zero at its start;
places, and the Rodrigues vectors ``alpha``, are interpolated. Every Gauss point (one for two nodes, two for
three: no locking) keeps a history: its axes ``R`` and its curvature, which `committed` brings up to
date at the end of a step. Strains, in section axes::

    eta = R' x' - eta_0,   kappa = kappa_i + R_i' Xi(alpha)' alpha',   R = Q(alpha) R_i

Results depend slightly on the steps in which they were reached, and vanishingly so with their size and that
of the elements; `nsjax.fem.objective_beam` is free of it.

Source: [GN (84)-(117)]; the update of curvatures is exact for the interpolated increments.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.math import rodrigues
from nsjax.types import Array, record


@record()
class History:
    """Of the Gauss points of an element, or of many with a further first axis.

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
    size = jnp.sqrt(jnp.sum(along * along, axis=1))
    third = along / size[:, None]
    across = first_axis[None] - jnp.sum(third * first_axis, axis=1)[:, None] * third
    first = across / jnp.sqrt(jnp.sum(across * across, axis=1))[:, None]
    axes = jnp.stack([first, jnp.cross(third, first), third], axis=2)
    weight = size * (2.0 if places.shape[0] == 2 else 1.0)
    stretch = jnp.sum(axes * third[:, :, None], axis=1)
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
