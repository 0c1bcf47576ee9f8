"""The smooth curve through the nodes of a beam, round which it has its surface: cubic between neighbours,
in the directions that the nodes carry, so that what rolls along it meets no corner.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax.core.checks import is_traced
from nsjax.multibody.contacts.profiles import STEPS, bounded, condition
from nsjax.types import Array, record

CLOSED = 1e-9
"""Distance of the last node from the first, of the beam's length, below which the curve is closed."""


@record()
class Curve:
    """How a curve passes through its nodes as it is drawn.

    Args:
        tangents: unit vectors (n + 1, 3) in the axes of the nodes, which are those of the ground.
        before, behind: speeds (n + 1,) with which it arrives at each node and leaves it, in the elements
            there, each with a parameter from 0 to 1 [m].
    """

    tangents: Array
    before: Array
    behind: Array


def is_closed(points: Any) -> bool:
    """Whether the last node of a curve stands on its first; a traced one is open."""
    if is_traced(points):
        return False
    lengths = np.linalg.norm(np.diff(points, axis=0), axis=1)
    return bool(np.linalg.norm(points[-1] - points[0]) <= CLOSED * np.sum(lengths))


def curve_of(points: Any) -> Curve:
    """Through nodes (n + 1, 3). The tangent at a node is that of the circle through it and its neighbours;
    the speeds are those with which a cubic is nearest to an arc: ``2 c / (1 + cos a)`` for a chord ``c`` at
    the angle ``a`` from the tangent.
    """
    xp = jnp if is_traced(points) else np
    points = xp.asarray(points, float)
    gone = points[1:] - points[:-1]
    chords = xp.sqrt(xp.sum(gone * gone, axis=1))
    along = gone / chords[:, None]
    first, second = along[:-1], along[1:]
    # of a circle's chords, the tangent between divides their angle in proportion to the arcs
    inner = _between(xp, first, chords[:-1], second, chords[1:])
    if is_closed(points):
        both = _between(xp, along[-1:], chords[-1:], along[:1], chords[:1])
        tangents = xp.concatenate([both, inner, both])
    elif len(along) == 1:
        tangents = xp.concatenate([along, along])
    else:  # at an end, the tangent at the neighbour reflected at the element
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
    """Weights of the nodes and of their tangents at a parameter in elements (n + 1,): values, first and
    second derivatives.
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
        nodes, tangents: (3, n + 1), where the nodes are and where their tangents point.
    """
    places, turns = weights(x, u)
    found = [
        jnp.sum(w * nodes, axis=1) + jnp.sum(s * tangents, axis=1)
        for w, s in zip(places, turns, strict=True)
    ]
    return found[0], found[1], found[2]


def _kept(u: Array, n: int, closed: bool) -> Array:
    """A parameter on the curve."""
    if closed:
        return jnp.mod(u, float(n))
    return jnp.where(u < 0.0, 0.0, jnp.where(u > n, float(n), u))


def _stepped(x: Curve, nodes: Array, tangents: Array, point: Array, u: Array, closed: bool) -> Array:
    residual, slope = condition(point, *evaluated(x, nodes, tangents, u))
    return _kept(u + bounded(-residual / slope), nodes.shape[1] - 1, closed)


def searched(x: Curve, nodes: Array, tangents: Array, point: Array, closed: bool) -> Array:
    """Parameter of the curve nearest to a ``point`` (3,), held fixed: from its nearest node by Newton."""
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
