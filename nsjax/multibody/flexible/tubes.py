"""Smooth curve through the nodes of a beam, the axis of its surface: cubic between neighbouring nodes, with
tangents that turn with the nodes, so that the surface has no corners.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax.core.checks import is_traced
from nsjax.multibody.contacts.profiles import STEPS, bounded, condition
from nsjax.types import Array, record


@record()
class Curve:
    """Tangents and speeds of a curve at its nodes, in the reference shape.

    Args:
        tangents: unit vectors (n + 1, 3) in the axes of the nodes, at the reference those of the ground.
        before, behind: lengths (n + 1,) of the derivative of the curve at each node, in the element before
            and behind it, by a parameter from 0 to 1 in each element [m].
    """

    tangents: Array
    before: Array
    behind: Array


def is_closed(points: Any) -> bool:
    """Whether the last node of a curve coincides with its first; a traced curve counts as open."""
    if is_traced(points):
        return False
    lengths = np.linalg.norm(np.diff(points, axis=0), axis=1)
    # distance of the last node from the first, relative to the length, below which the curve is closed
    closed = 1e-9
    return bool(np.linalg.norm(points[-1] - points[0]) <= closed * np.sum(lengths))


def curve_of(points: Any) -> Curve:
    """Curve through nodes (n + 1, 3).

    The tangent at a node is that of the circle through the node and its neighbours. The speeds bring the
    cubic nearest to an arc: ``2 c / (1 + cos a)`` for a chord ``c`` at the angle ``a`` from the tangent.
    """
    xp = jnp if is_traced(points) else np
    points = xp.asarray(points, float)
    gone = points[1:] - points[:-1]
    chords = xp.sqrt(xp.sum(gone * gone, axis=1))
    along = gone / chords[:, None]
    first, second = along[:-1], along[1:]
    # the tangent of a circle divides the angle between two chords in proportion to their arcs
    inner = _between(xp, first, chords[:-1], second, chords[1:])
    if is_closed(points):
        both = _between(xp, along[-1:], chords[-1:], along[:1], chords[:1])
        tangents = xp.concatenate([both, inner, both])
    elif len(along) == 1:
        tangents = xp.concatenate([along, along])
    else:  # the tangent at an end is the neighbour's tangent reflected at the element
        ends = [_reflected(xp, along[k], inner[k]) for k in (0, -1)]
        tangents = xp.concatenate([ends[0][None], inner, ends[1][None]])
    starts, stops = (xp.sum(t * along, axis=1) for t in (tangents[:-1], tangents[1:]))
    none = xp.zeros(1)
    behind = xp.concatenate([2.0 * chords / (1.0 + starts), none])
    before = xp.concatenate([none, 2.0 * chords / (1.0 + stops)])
    return Curve(tangents=tangents, before=before, behind=behind)


def _between(xp: Any, one: Any, length: Any, other: Any, beyond: Any) -> Any:
    made = one * beyond[:, None] + other * length[:, None]
    return made / xp.sqrt(xp.sum(made * made, axis=1))[:, None]


def _reflected(xp: Any, along: Any, tangent: Any) -> Any:
    return 2.0 * xp.sum(along * tangent) * along - tangent


def weights(x: Curve, u: Array) -> tuple[Any, Any]:
    """Weights (n + 1,) of the nodes and of their tangents at a parameter ``u``, counted in elements: the
    values, first and second derivatives.
    """
    k = np.arange(x.before.shape[0])
    element = lax.stop_gradient(jnp.floor(jnp.where(u < k[-1], u, k[-1] - 0.5)))
    starts, stops = k == element, k == element + 1.0
    s = u - element
    rest = 1.0 - s
    later = (s * s * (3.0 - 2.0 * s), 6.0 * s * rest, 6.0 - 12.0 * s)
    earlier = (1.0 - later[0], -later[1], -later[2])
    leaving = (s * rest * rest, rest * (1.0 - 3.0 * s), 6.0 * s - 4.0)
    arriving = (-s * s * rest, s * (3.0 * s - 2.0), 6.0 * s - 2.0)

    def both(one: Any, other: Any) -> Any:
        return jnp.where(starts, one, jnp.where(stops, other, 0.0))

    speed = both(x.behind, x.before)
    places = tuple(both(i, j) for i, j in zip(earlier, later, strict=True))
    return places, tuple(speed * both(i, j) for i, j in zip(leaving, arriving, strict=True))


def evaluated(x: Curve, nodes: Array, tangents: Array, u: Array) -> tuple[Array, Array, Array]:
    """Point, first and second derivative (3,) at a parameter.

    Args:
        x: the curve.
        nodes, tangents: (3, n + 1) positions of the nodes [m], and unit tangents there.
        u: the parameter, counted in elements.
    """
    places, turns = weights(x, u)
    found = [
        jnp.sum(w * nodes, axis=1) + jnp.sum(s * tangents, axis=1)
        for w, s in zip(places, turns, strict=True)
    ]
    return found[0], found[1], found[2]


def _onto_curve(u: Array, n: int, closed: bool) -> Array:
    """A parameter brought back onto the curve: by whole rounds of a closed one, else to the nearer end."""
    if closed:
        return jnp.mod(u, float(n))
    return jnp.where(u < 0.0, 0.0, jnp.where(u > n, float(n), u))


def _stepped(x: Curve, nodes: Array, tangents: Array, point: Array, u: Array, closed: bool) -> Array:
    residual, slope = condition(point, *evaluated(x, nodes, tangents, u))
    return _onto_curve(u + bounded(-residual / slope), nodes.shape[1] - 1, closed)


def searched(x: Curve, nodes: Array, tangents: Array, point: Array, closed: bool) -> Array:
    """Parameter of the point of the curve nearest to ``point`` (3,), by Newton steps from the nearest node;
    without derivatives.
    """
    still = lax.stop_gradient((x, nodes, tangents, point))
    nearest = jnp.argmin(jnp.sum((still[1] - still[3][:, None]) ** 2, axis=0)).astype(float)
    made: Array = lax.fori_loop(0, STEPS, lambda _, u: _stepped(*still, u, closed), nearest)
    return made


def closest(x: Curve, nodes: Array, tangents: Array, point: Array, near: Array, closed: bool) -> Array:
    """Parameter of the nearest point on the curve: a Newton step from a nearby parameter, then a second
    step that carries the derivatives, as in `nsjax.multibody.contacts.profiles.closest`.
    """
    u = lax.stop_gradient(_stepped(*lax.stop_gradient((x, nodes, tangents, point, near)), closed))
    residual, slope = condition(point, *evaluated(x, nodes, tangents, u))
    n = nodes.shape[1] - 1
    moved = u - residual / lax.stop_gradient(slope)
    if closed:
        return moved
    inside = (u > 0.0) & (u < n)
    return jnp.where(inside, moved, u)
