"""Contacts of the surfaces of beams with each other and with solids.

The section of a beam is circular and perpendicular to its axis. The nearest points of two surfaces thus lie
on the line between the nearest points of the axes: the gap is the distance of the axes less both radii, and
the formulations by axes and by surfaces agree. Both contact forces act at one common point, so that they
change neither momentum nor moment of momentum.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax.multibody.contacts import closest_points as closest
from nsjax.multibody.contacts import curves
from nsjax.multibody.contacts.closest_pairs import axis_of, carried
from nsjax.multibody.contacts.closest_points import MEET, ShapeContacts, dot
from nsjax.multibody.contacts.curves import Curve, bounded
from nsjax.multibody.contacts.shape import PairKind, Solid, across, second_solid
from nsjax.multibody.coordinates.frames import Scene
from nsjax.multibody.coordinates.spatial_vectors import cross
from nsjax.multibody.parts import Part
from nsjax.types import Array

# Points of the axis of a beam that are nearest to another shape: one place around each node of the beam.
#
# Around node ``k`` the parameter is searched in ``[k - 1/2, k + 1/2]``. Straight beams that lie on each
# other therefore meet at all nodes; crossing beams and rings meet at the nearest points of their curves.


SEARCH_STEPS = 12
"""Newton steps, or halvings, of the search: they reduce the error from an element to rounding."""


class Axis(NamedTuple):
    """The axis of a beam at an instant: curve, nodes (3, n + 1), tangents at them, whether it is closed."""

    curve: Curve
    nodes: Array
    tangents: Array
    closed: bool

    def at(self, u: Array) -> tuple[Array, Array, Array]:
        """Point, first and second derivative (3,) at a parameter."""
        u = wrapped(self, u)
        return curves.curve_at(self.curve, self.nodes, self.tangents, u)


def wrapped(axis: Axis, u: Array) -> Array:
    """Parameter of a closed axis reduced to its first round; unchanged for an open axis."""
    n = float(axis.nodes.shape[1] - 1)
    return u - n * lax.stop_gradient(jnp.floor(u / n)) if axis.closed else u


class Places(NamedTuple):
    """Contact places (k,) around the nodes of a beam, found at the start of a step.

    Args:
        at: parameters on the first axis.
        lively: whether each place is a nearest point, which moves with the bodies.
        kept: whether each place makes a contact.
        foot: parameters of the nearest points on a second axis; None without a second axis.
    """

    at: Array
    lively: Array
    kept: Array
    foot: Any = None


Slope = Callable[[Array, Any], tuple[Array, Array, Array, Any]]
"""``(parameter, foot)`` to the slope of the distance, its derivative, length of the tangent, new foot."""


def frozen(axis: Axis) -> Axis:
    """The axis without derivatives."""
    curve, nodes, tangents = lax.stop_gradient(axis[:3])
    return Axis(curve, nodes, tangents, axis.closed)


def bounds(axis: Axis) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Parameters of the nodes, and lower and upper bound of the search around each (k,)."""
    n = axis.nodes.shape[1] - 1
    node = np.arange(n if axis.closed else n + 1, dtype=float)
    low, high = node - 0.5, node + 0.5
    return (node, low, high) if axis.closed else (node, np.maximum(low, 0.0), np.minimum(high, float(n)))


def lowest(
    slope: Slope, foot: Any, node: Array, low: Array, high: Array
) -> tuple[Array, Array, Any, Array]:
    """The place around one node: parameter, whether it is a nearest point, foot, bound (-1, 0, 1)."""

    def pulled(u: Array, foot: Any) -> tuple[Array, Array, Array, Any]:
        rate, bend, size, foot = slope(u, foot)
        # above this second derivative of the distance by the parameter, in element lengths, the nearest
        # point is well determined and moves with the bodies. Below it the whole element is about equally
        # near, and a weak spring to the node decides: the place does not jump along the element from step
        # to step. At the limit the spring shifts it by at most a tenth of half an element
        sound = bend > 1e-3 * size
        pull = jnp.where(sound, 0.0, 1e-4 * size)
        return rate + pull * (u - node), jnp.where(sound | (bend > 0.0), bend, 0.0) + pull, sound, foot

    def step(_: Any, state: tuple[Any, ...]) -> tuple[Any, ...]:
        low, high, u, foot, _ = state
        rate, bend, sound, foot = pulled(u, foot)
        low, high = jnp.where(rate < 0.0, u, low), jnp.where(rate > 0.0, u, high)
        new = u - rate / bend
        inside = (new >= low) & (new <= high)
        return low, high, jnp.where(inside, new, 0.5 * (low + high)), foot, sound

    start = low, high, node, foot, jnp.zeros((), bool)
    _, _, u, found, sound = lax.fori_loop(0, SEARCH_STEPS, step, start)
    ends = jnp.stack([low, high])
    rates, _, _, feet = jax.vmap(pulled, (0, None))(ends, foot)
    side = jnp.where(rates[0] >= 0.0, -1.0, jnp.where(rates[1] <= 0.0, 1.0, 0.0))

    def of_side(first: Array, inner: Array, last: Array) -> Array:
        return jnp.where(side < 0.0, first, jnp.where(side > 0.0, last, inner))

    return of_side(low, u, high), (side == 0.0) & sound, of_side(feet[0], found, feet[1]), side


def searched(axis: Axis, slope: Slope, feet: Any) -> Places:
    """The places around all nodes; ``feet`` (k,) are initial parameters on a second curve."""
    node, low, high = (jnp.asarray(x) for x in bounds(axis))
    u, lively, foot, side = jax.vmap(lambda *x: lowest(slope, *x))(feet, node, low, high)
    n = node.shape[0]
    # beyond a bound the distance still decreases, and the neighbour's place makes the contact there
    # distance between two neighbouring places, in elements. Below it the place that lies at a bound of its
    # interval makes no contact, because its neighbour makes the same one
    beside = 0.05
    near = jnp.abs(jnp.roll(u, -1) - u) < beside
    if axis.closed:
        near = jnp.abs(jnp.roll(u, -1) + n * (np.arange(n) == n - 1) - u) < beside
    else:
        near = near & (np.arange(n) < n - 1)
    back = (near & (side > 0.0)) | jnp.roll(near & (jnp.roll(side, -1) < 0.0) & (side <= 0.0), 1)
    return Places(u, lively, ~back, foot)


def slope_of(axis: Axis, distance: Callable[[Array], Array]) -> Slope:
    """Slope along the axis of a distance that is a function of the point."""

    def slope(u: Array, foot: Any) -> tuple[Array, Array, Array, Any]:
        along = lambda s: distance(axis.at(s)[0])  # noqa: E731
        rate, bend = jax.jvp(lambda s: jax.jvp(along, (s,), (jnp.ones(()),))[1], (u,), (jnp.ones(()),))
        first = axis.at(u)[1]
        return rate, bend, jnp.sqrt(dot(first, first)), foot

    return slope


def followed(axis: Axis, other: Solid, places: Places) -> Array:
    """Parameters (k,) of the places; one Newton step gives nearest points their derivatives."""
    bent = slope_of(frozen(axis), other.still().away)

    def one(u: Array, lively: Array) -> Array:
        bend = lax.stop_gradient(bent(u, None)[1])
        # without a positive second derivative there is no minimum to follow
        moves = lively & (bend > 0.0)
        along = lambda s: other.away(axis.at(s)[0])  # noqa: E731
        rate = jax.jvp(along, (u,), (jnp.ones(()),))[1]
        return jnp.where(moves, u - bounded(rate / jnp.where(moves, bend, 1.0)), u)

    return jax.vmap(one)(lax.stop_gradient(places.at), places.lively)


class Pair(NamedTuple):
    """Derivatives of half the squared distance of two axes by both parameters, guarded.

    Args:
        slopes: first derivatives by the first and by the second parameter.
        first, mixed, second: second derivatives; ``mixed`` is zero where the foot rests at an end.
        apart: vector (3,) from the second to the first point; length: its length, 1 where the points meet.
        speed: length of the tangent of the first axis.
    """

    slopes: tuple[Array, Array]
    first: Array
    mixed: Array
    second: Array
    apart: Array
    length: Array
    speed: Array


def pair(one: Axis, other: Axis, u: Array, w: Array) -> Pair:
    """Derivatives of half the squared distance of two axes at parameters ``u`` and ``w``."""
    (place, a, bow), (foot, b, arc) = one.at(u), other.at(w)
    apart = place - foot
    straight = dot(b, b)
    second = straight - dot(arc, apart)
    held = jnp.zeros((), bool)
    if not other.closed:
        last, outward = float(other.nodes.shape[1] - 1), dot(b, apart)
        held = ((w <= 0.0) & (outward <= 0.0)) | ((w >= last) & (outward >= 0.0))
    square = dot(apart, apart)
    away = square > MEET * MEET
    return Pair(
        slopes=(dot(a, apart), jnp.where(held, 0.0, -dot(b, apart))),
        first=dot(a, a) + dot(bow, apart), mixed=jnp.where(held, 0.0, -dot(a, b)),
        second=jnp.where(second > 0.1 * straight, second, straight), apart=apart,
        length=jnp.where(away, jnp.sqrt(jnp.where(away, square, 1.0)), 1.0), speed=jnp.sqrt(dot(a, a)),
    )  # fmt: skip


def _kept(other: Axis, w: Array) -> Array:
    n = float(other.nodes.shape[1] - 1)
    if other.closed:
        return wrapped(other, w)
    return jnp.where(w < 0.0, 0.0, jnp.where(w > n, n, w))


def _dropped(one: Axis, other: Axis, u: Array, foot: Array) -> Array:
    """Foot on the second axis, of a point of the first one, after a Newton step."""
    found = pair(one, other, u, foot)
    return _kept(other, foot - bounded(found.slopes[1] / found.second))


def slope_between(one: Axis, other: Axis) -> Slope:
    """Slope of the distance of the first axis from the nearest point (foot) of the second."""

    def slope(u: Array, foot: Any) -> tuple[Array, Array, Array, Any]:
        def step(_: Any, foot: Array) -> Array:
            return _dropped(one, other, u, foot)

        # Newton steps of the foot on the second curve for each evaluation on the first one
        foot = lax.fori_loop(0, 3, step, foot)
        found = pair(one, other, u, foot)
        bend = found.first - found.mixed**2 / found.second
        return found.slopes[0] / found.length, bend / found.length, found.speed, foot

    return slope


def feet(one: Axis, other: Axis) -> Array:
    """Parameters (k,), on the second axis, of the node or middle nearest to each node of the first one."""
    node, m = bounds(one)[0], other.nodes.shape[1] - 1
    halves = jnp.asarray(np.arange(2 * m + 1) / 2.0)
    places = jax.vmap(lambda w: other.at(w)[0])(halves)
    apart = one.nodes.T[: len(node), None, :] - places[None]
    return 0.5 * jnp.argmin(jnp.sum(apart * apart, axis=2), axis=1).astype(float)


def between(one: Axis, other: Axis) -> Places:
    """The places around the nodes of the first axis, and their feet on the second."""
    found = searched(one, slope_between(one, other), feet(one, other))

    def down(u: Array, foot: Array) -> Array:
        return lax.fori_loop(0, SEARCH_STEPS, lambda _, w: _dropped(one, other, u, w), foot)

    return found._replace(foot=jax.vmap(down)(found.at, found.foot))


def _solved(found: Pair, lively: Array) -> tuple[Array, Array]:
    """Newton step of both parameters; where the first is a fixed point of the beam, of the foot alone."""
    first, mixed = jnp.where(lively, found.first, 1.0), jnp.where(lively, found.mixed, 0.0)
    first, mixed = lax.stop_gradient((first, mixed))
    second = lax.stop_gradient(found.second)
    g, h = jnp.where(lively, found.slopes[0], 0.0), found.slopes[1]
    bend = first * second - mixed * mixed
    sound = bend > 0.0
    bend, mixed = jnp.where(sound, bend, second), jnp.where(sound, mixed, 0.0)
    first, g = jnp.where(sound, first, 1.0), jnp.where(sound, g, 0.0)
    return -(second * g - mixed * h) / bend, -(first * h - mixed * g) / bend


def both_followed(one: Axis, other: Axis, places: Places) -> tuple[Array, Array]:
    """Parameters (k,) on both axes: a Newton step from the held ones, then one that carries derivatives."""
    last = one.nodes.shape[1] - 1

    def moved(u: Array, w: Array, lively: Array) -> tuple[Array, Array]:
        still = frozen(one), frozen(other)
        step = _solved(pair(*still, u, w), lively)
        u, w = u + bounded(step[0]), _kept(other, w + bounded(step[1]))
        if not one.closed:
            u = jnp.where(u < 0.0, 0.0, jnp.where(u > last, float(last), u))
        u, w = lax.stop_gradient((u, w))
        du, dw = _solved(pair(one, other, u, w), lively)
        return u + du, w + dw

    return jax.vmap(moved)(lax.stop_gradient(places.at), lax.stop_gradient(places.foot), places.lively)


# Contacts of the surfaces of beams with each other and with solids: one around each node of the first.


SOLIDS = ("plane", "box", "capsule", "cylinder", "hole")
"""Solids that the surface of a beam meets, besides other beams."""


def _axis(scene: Scene, part: Part, numbers: Any, which: int) -> Axis:
    shape = (numbers.first, numbers.second)[which]
    closed = bool(part.option(("first_closed", "closed")[which]))
    return Axis(*axis_of(scene, part.bodies[which], shape.curve), closed)


def _moving(scene: Scene, beam: str, axis: Axis, u: Array, arms: Array) -> Array:
    """Velocities (3, k) of points of a beam at ``arms`` (3, k) from its axis at parameters ``u`` (k,)."""
    u = wrapped(axis, u)
    return jax.vmap(lambda s, arm: carried(scene, beam, axis[:3], s, arm), (0, 1), 1)(u, arms)


def _back(axis: Axis, places: Places, more: Any) -> Array:
    """Addition to the gaps (k,) that opens places without a contact: an element plus the radii; else 0."""
    along = axis.nodes[:, 1] - axis.nodes[:, 0]
    return jnp.where(places.kept, 0.0, jnp.sqrt(closest.dot(along, along)) + more)


def _held_solid(scene: Scene, part: Part, numbers: Any) -> Any:
    """Places of a beam, around its nodes, that may meet a solid."""
    axis, other = frozen(_axis(scene, part, numbers, 0)), second_solid(scene, part, numbers).still()
    none = jnp.zeros(len(bounds(axis)[0]))
    return searched(axis, slope_of(axis, other.away), none)._replace(foot=None)


def _tube_solid(scene: Scene, part: Part, numbers: Any, near: Any) -> ShapeContacts:
    axis, other, radius = (
        _axis(scene, part, numbers, 0),
        second_solid(scene, part, numbers),
        numbers.first.radius,
    )
    places: Places = _held_solid(scene, part, numbers) if near is None else near
    u = followed(axis, other, places)
    centres = jax.vmap(lambda s: axis.at(s)[0], out_axes=1)(u)
    distance, unit = jax.vmap(other.at, 1, (0, 1))(centres)
    arms = -0.5 * (radius + distance) * unit
    middle = centres + arms
    return ShapeContacts(
        distance - radius + _back(axis, places, radius), middle, middle, unit,
        moving=_moving(scene, part.bodies[0], axis, u, arms),
    )  # fmt: skip


def _held_tubes(scene: Scene, part: Part, numbers: Any) -> Any:
    """Places of a beam that may meet another beam, and their feet on it."""
    one, other = (frozen(_axis(scene, part, numbers, k)) for k in (0, 1))
    return between(one, other)


def _unit(x: Array) -> Array:
    return x / jnp.sqrt(closest.dot(x, x))


def _between(scene: Scene, one: Array, other: Array) -> Array:
    """Unit normal of two directions (3,), the normal of crossing axes; for parallel axes, of the first."""
    made = cross(one, other)
    square = closest.dot(made, made)
    askew = square > closest.PARALLEL
    return jnp.where(askew, made / jnp.sqrt(jnp.where(askew, square, 1.0)), across(scene, one))


def _tubes(scene: Scene, part: Part, numbers: Any, near: Any) -> ShapeContacts:
    one, other = (_axis(scene, part, numbers, k) for k in (0, 1))
    r, s = numbers.first.radius, numbers.second.radius
    places: Places = _held_tubes(scene, part, numbers) if near is None else near
    u, w = both_followed(one, other, places)
    (here, first, _), (there, second, _) = (
        jax.vmap(axis.at, out_axes=1)(x) for axis, x in ((one, u), (other, w))
    )
    instead = jax.vmap(lambda a, b: _between(scene, a, b), 1, 1)(_unit(first), _unit(second))
    length, unit = closest.lengthened(here - there, instead)
    middle = 0.5 * (here + there + (s - r) * unit)
    return ShapeContacts(
        length - r - s + _back(one, places, r + s), middle, middle, unit,
        moving=_moving(scene, part.bodies[0], one, u, middle - here),
        carried=_moving(scene, part.bodies[1], other, w, middle - there),
    )  # fmt: skip


KINDS = (
    *(PairKind("tube", x, _tube_solid, hold=_held_solid, rigid=False) for x in SOLIDS),
    PairKind("tube", "tube", _tubes, hold=_held_tubes, rigid=False),
)
