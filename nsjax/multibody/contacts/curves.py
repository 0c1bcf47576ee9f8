"""Closed planar curves (cams), and smooth curves through the nodes of beams."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax.core import InputError
from nsjax.types import Array, is_traced, record

SAMPLES = 128
"""Number of points at which a curve given as a function is evaluated."""


STEPS = 8
"""Newton steps from the nearest knot of the spline: twice as many as quadratic convergence needs."""


def control_points(who: str, curve: Any, samples: int) -> Any:
    """Control points (n, 2) of the spline through a curve, counter-clockwise. ``who``: begins the sentences
    of errors; ``curve``: points (n, 2), or a function of an angle in [0, 2 pi) that returns ``(x, y)``.

    Raises:
        InputError: for curves that are open or cross themselves.
    """
    whole = callable(curve)
    if whole:
        angles = np.linspace(0.0, 2.0 * np.pi, samples + 1)
        taken = [jnp.stack([jnp.asarray(x, float) for x in curve(a)]) for a in angles]
        curve = jnp.stack(taken) if is_traced(taken) else np.array(taken)
    if np.ndim(curve) != 2 or np.shape(curve)[1] != 2 or np.shape(curve)[0] < 4:
        raise InputError(f"{who}: the curve has shape {np.shape(curve)}; give (n, 2), four points or more")
    if is_traced(curve):  # of traced curves, only functions are known to repeat the first point
        return _interpolated(curve[:-1] if whole else curve)
    curve = simple(who, np.asarray(curve, float))
    lengths = np.hypot(*(np.roll(curve, -1, axis=0) - curve).T)
    # ratio of the last chord to the longest other one above which the curve counts as open
    if lengths[-1] > 4.0 * np.max(lengths[:-1]):
        raise InputError(
            f"{who}: it is open: {lengths[-1]:.4g} m from its last point to its first, and "
            f"{np.max(lengths[:-1]):.4g} m at most between others; close it"
        )
    return np.asarray(_interpolated(curve))


def _interpolated(points: Any) -> Any:
    n = np.shape(points)[0]
    rows = (4.0 * np.eye(n) + np.roll(np.eye(n), 1, 1) + np.roll(np.eye(n), -1, 1)) / 6.0
    return np.linalg.inv(rows) @ points


def simple(who: str, points: np.ndarray) -> np.ndarray:
    """Points (n, 2) of a closed curve that does not cross itself, counter-clockwise, none twice."""
    if np.allclose(points[0], points[-1], rtol=0.0, atol=1e-9 * np.ptp(points)):
        points = points[:-1]
    chords = np.roll(points, -1, axis=0) - points
    lengths = np.hypot(*chords.T)
    if not np.all(lengths > 0.0):
        k = int(np.argmin(lengths))
        raise InputError(f"{who}: points {k} and {k + 1} coincide; leave one out")
    crossing = _crossing(points, chords)
    if crossing is not None:
        raise InputError(
            f"{who}: it crosses itself between the points {crossing[0]} and {crossing[1]}; "
            "give points in the order of the curve"
        )
    x, y = points.T
    area = np.sum(x * np.roll(y, -1) - y * np.roll(x, -1))
    return points if area > 0.0 else points[::-1].copy()


def _crossing(points: np.ndarray, chords: np.ndarray) -> tuple[int, int] | None:
    """Numbers of two chords that cross; None without a crossing."""
    n = len(points)

    def side(k: int, x: np.ndarray) -> np.ndarray:
        apart = x - points[k]
        return np.sign(chords[k, 0] * apart[..., 1] - chords[k, 1] * apart[..., 0])

    ends = np.roll(points, -1, axis=0)
    for k in range(n - 2):
        others = np.arange(k + 2, n - (k == 0))
        astride = side(k, points[others]) * side(k, ends[others]) < 0.0
        for m in others[astride]:
            if side(int(m), points[k]) * side(int(m), ends[k]) < 0.0:
                return k, int(m)
    return None


def evaluated(control: Array, s: Array) -> tuple[Array, Array, Array]:
    """Point, first and second derivative (2,) of the spline at a parameter in knots."""
    n = control.shape[0]
    x = jnp.mod(s - np.arange(n) + n / 2.0, n) - n / 2.0
    a = jnp.abs(x)
    near, far = a < 1.0, a < 2.0
    rest = jnp.where(far, 2.0 - a, 0.0)
    sign = jnp.where(x < 0.0, -1.0, 1.0)
    value = jnp.where(near, 2.0 / 3.0 - a * a + a * a * a / 2.0, rest**3 / 6.0)
    slope = sign * jnp.where(near, -2.0 * a + 1.5 * a * a, -rest * rest / 2.0)
    bend = jnp.where(near, -2.0 + 3.0 * a, rest)
    point, first, second = (jnp.sum(w[:, None] * control, axis=0) for w in (value, slope, bend))
    return point, first, second


def condition(point: Array, place: Array, first: Array, second: Array) -> tuple[Array, Array]:
    """Residual of the condition of a closest point, and its derivative; where the derivative belongs to no
    minimum, that of a straight curve replaces it. ``point``: (2,) whose closest point is searched;
    ``place``, ``first``, ``second``: (2,) a point of the curve, and the derivatives of the curve there.
    """
    apart = point - place
    straight = -jnp.sum(first * first)
    slope = jnp.sum(second * apart) + straight
    return jnp.sum(first * apart), jnp.where(slope < 0.1 * straight, slope, straight)


def bounded(step: Array) -> Array:
    """A Newton step limited to one knot."""
    return jnp.where(step > 1.0, 1.0, jnp.where(step < -1.0, -1.0, step))


def _stepped(control: Array, point: Array, s: Array) -> Array:
    residual, slope = condition(point, *evaluated(control, s))
    return s + bounded(-residual / slope)


def searched(control: Array, point: Array) -> Array:
    """Parameter of the closest point, without derivatives, by Newton steps from the nearest knot."""
    control, point = lax.stop_gradient((control, point))
    knots = (jnp.roll(control, 1, axis=0) + 4.0 * control + jnp.roll(control, -1, axis=0)) / 6.0
    apart = jnp.sum((knots - point) ** 2, axis=1)
    start = jnp.argmin(apart).astype(float)
    return lax.fori_loop(0, STEPS, lambda _, s: _stepped(control, point, s), start)


def closest(control: Array, point: Array, near: Array) -> tuple[Array, Array]:
    """Distance of a point (2,) from the curve, negative inside, and the outward normal.

    From a parameter nearby, one Newton step follows without derivatives and one with: the first derivatives
    of the parameter are exact, and those of the distance up to second order.
    """
    still = lax.stop_gradient((control, point, near))
    s = lax.stop_gradient(_stepped(*still))
    residual, slope = condition(point, *evaluated(control, s))
    s = s - residual / lax.stop_gradient(slope)
    place, first, _ = evaluated(control, s)
    size = jnp.sqrt(jnp.sum(first * first))
    normal = jnp.stack([first[1], -first[0]]) / size
    return jnp.sum(normal * (point - place)), normal


def _descended(control: Array, up: Array, s: Array) -> tuple[Array, Array]:
    """First derivative of the height along ``up``, and a second one by which Newton's step descends."""
    _, first, second = evaluated(control, s)
    size = jnp.sqrt(jnp.sum(first * first))
    rate = jnp.sum(second * up)
    # second derivative of the height by the parameter, relative to the length of the tangent, below which
    # the curve is level
    return jnp.sum(first * up), jnp.where(rate > 1e-6 * size, rate, size)


def _lowered(control: Array, up: Array, s: Array) -> Array:
    slope, rate = _descended(control, up, s)
    return s + bounded(-slope / rate)


def lowest_searched(control: Array, up: Array) -> Array:
    """Parameter of the lowest point along ``up`` (2,), without derivatives: Newton from the lowest knot."""
    control, up = lax.stop_gradient((control, up))
    knots = (jnp.roll(control, 1, axis=0) + 4.0 * control + jnp.roll(control, -1, axis=0)) / 6.0
    heights = jnp.sum(knots * up, axis=1)
    start = jnp.argmin(heights).astype(float)
    return lax.fori_loop(0, STEPS, lambda _, s: _lowered(control, up, s), start)


def lowest(control: Array, up: Array, near: Array) -> Array:
    """The lowest point (2,) along ``up``, from a parameter nearby as in `closest`."""
    s = lax.stop_gradient(_lowered(*lax.stop_gradient((control, up, near))))
    slope, rate = _descended(control, up, s)
    return evaluated(control, s - slope / lax.stop_gradient(rate))[0]


# Smooth curve through the nodes of a beam, the axis of its surface: cubic between neighbouring nodes,
# with tangents that turn with the nodes, so that the surface has no corners.


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
        ends = [2.0 * xp.sum(along[k] * inner[k]) * along[k] - inner[k] for k in (0, -1)]
        tangents = xp.concatenate([ends[0][None], inner, ends[1][None]])
    starts, stops = (xp.sum(t * along, axis=1) for t in (tangents[:-1], tangents[1:]))
    none = xp.zeros(1)
    behind = xp.concatenate([2.0 * chords / (1.0 + starts), none])
    before = xp.concatenate([none, 2.0 * chords / (1.0 + stops)])
    return Curve(tangents=tangents, before=before, behind=behind)


def _between(xp: Any, one: Any, length: Any, other: Any, beyond: Any) -> Any:
    made = one * beyond[:, None] + other * length[:, None]
    return made / xp.sqrt(xp.sum(made * made, axis=1))[:, None]


def weights(x: Curve, u: Array) -> tuple[Any, Any]:
    """Weights (n + 1,) of nodes and tangents at ``u`` elements: values, first and second derivatives."""
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


def curve_at(x: Curve, nodes: Array, tangents: Array, u: Array) -> tuple[Array, Array, Array]:
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


def _curve_stepped(x: Curve, nodes: Array, tangents: Array, point: Array, u: Array, closed: bool) -> Array:
    residual, slope = condition(point, *curve_at(x, nodes, tangents, u))
    u, n = u + bounded(-residual / slope), float(nodes.shape[1] - 1)
    return jnp.mod(u, n) if closed else jnp.where(u < 0.0, 0.0, jnp.where(u > n, n, u))


def curve_searched(x: Curve, nodes: Array, tangents: Array, point: Array, closed: bool) -> Array:
    """Parameter of the point of a curve nearest to ``point`` (3,), by Newton steps; no derivatives."""
    still = lax.stop_gradient((x, nodes, tangents, point))
    nearest = jnp.argmin(jnp.sum((still[1] - still[3][:, None]) ** 2, axis=0)).astype(float)
    return lax.fori_loop(0, STEPS, lambda _, u: _curve_stepped(*still, u, closed), nearest)


def closest_on_curve(
    x: Curve, nodes: Array, tangents: Array, point: Array, near: Array, closed: bool
) -> Array:
    """Parameter of the nearest point, by Newton steps; derivatives as in `closest`."""
    u = lax.stop_gradient(_curve_stepped(*lax.stop_gradient((x, nodes, tangents, point, near)), closed))
    residual, slope = condition(point, *curve_at(x, nodes, tangents, u))
    n = nodes.shape[1] - 1
    moved = u - residual / lax.stop_gradient(slope)
    if closed:
        return moved
    inside = (u > 0.0) & (u < n)
    return jnp.where(inside, moved, u)
