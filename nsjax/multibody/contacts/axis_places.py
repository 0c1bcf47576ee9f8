"""Where along the axis of a beam it is nearest to something: one place around each of its nodes.

Around node ``k`` the parameter is looked for in ``[k - 1/2, k + 1/2]``, so that straight beams that lie on
each other meet at all nodes, and crossing ones, or rings, at the nearest points of their curves.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax.multibody.contacts.closest_points import MEET, dot
from nsjax.multibody.contacts.profiles import bounded
from nsjax.multibody.contacts.solid_distance import Solid
from nsjax.multibody.flexible import tubes
from nsjax.multibody.flexible.tubes import Curve
from nsjax.types import Array

SOUND = 1e-3
"""Change of the slope of a distance over an element, in its length, above which a nearest point is one: it
moves with the bodies. Below, all of the element is about as near, and a point of the beam is taken.
"""

PULL = 1e-4
"""With what change of the slope such a point is drawn to the node: it then is off by a tenth of half an
element at most where both ways meet, and stays where it is for slopes that are noise.
"""

STEPS = 12
"""Steps of Newton, or halvings of the bracket, from an element to rounding."""

FOOT_STEPS = 3
"""Newton steps of the foot on a second curve for each of them."""

BESIDE = 0.05
"""Distance between two neighbouring places, in elements. Below it the place that lies at a bound of its
interval makes no contact: the other one does.
"""


class Axis(NamedTuple):
    """The axis of a beam at an instant: its curve, nodes and their tangents (3, n + 1), whether closed."""

    curve: Curve
    nodes: Array
    tangents: Array
    closed: bool

    def at(self, u: Array) -> tuple[Array, Array, Array]:
        """Point, first and second derivative (3,) at a parameter."""
        u = wrapped(self, u)
        return tubes.evaluated(self.curve, self.nodes, self.tangents, u)


def wrapped(axis: Axis, u: Array) -> Array:
    """A parameter of a closed axis in its first round."""
    n = float(axis.nodes.shape[1] - 1)
    return u - n * lax.stop_gradient(jnp.floor(u / n)) if axis.closed else u


class Places(NamedTuple):
    """What is held of the places (k,) around the nodes.

    Args:
        at: parameters on the first axis.
        lively: whether they are nearest points, and move with the bodies.
        kept: whether they count.
        foot: parameters on a second axis; None without one.
    """

    at: Array
    lively: Array
    kept: Array
    foot: Any = None


Slope = Callable[[Array, Any], tuple[Array, Array, Array, Any]]
"""Slope of a distance at a parameter and foot, its change, length of the tangent, the foot found."""


def frozen(axis: Axis) -> Axis:
    """Without derivatives."""
    curve, nodes, tangents = lax.stop_gradient(axis[:3])
    return Axis(curve, nodes, tangents, axis.closed)


def bounds(axis: Axis) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Nodes, and between which parameters the place around each is looked for."""
    n = axis.nodes.shape[1] - 1
    node = np.arange(n if axis.closed else n + 1, dtype=float)
    low, high = node - 0.5, node + 0.5
    return (node, low, high) if axis.closed else (node, np.maximum(low, 0.0), np.minimum(high, float(n)))


def lowest(
    slope: Slope, foot: Any, node: Array, low: Array, high: Array
) -> tuple[Array, Array, Any, Array]:
    """The place around one node: parameter, whether it is a nearest point, foot, which bound holds it."""

    def pulled(u: Array, foot: Any) -> tuple[Array, Array, Array, Any]:
        rate, bend, size, foot = slope(u, foot)
        sound = bend > SOUND * size
        pull = jnp.where(sound, 0.0, PULL * size)
        return rate + pull * (u - node), jnp.where(sound | (bend > 0.0), bend, 0.0) + pull, sound, foot

    def step(_: Any, state: tuple[Any, ...]) -> tuple[Any, ...]:
        low, high, u, foot, _ = state
        rate, bend, sound, foot = pulled(u, foot)
        low, high = jnp.where(rate < 0.0, u, low), jnp.where(rate > 0.0, u, high)
        new = u - rate / bend
        inside = (new >= low) & (new <= high)
        return low, high, jnp.where(inside, new, 0.5 * (low + high)), foot, sound

    start = low, high, node, foot, jnp.zeros((), bool)
    _, _, u, found, sound = lax.fori_loop(0, STEPS, step, start)
    ends = jnp.stack([low, high])
    rates, _, _, feet = jax.vmap(pulled, (0, None))(ends, foot)
    side = jnp.where(rates[0] >= 0.0, -1.0, jnp.where(rates[1] <= 0.0, 1.0, 0.0))

    def of_side(first: Array, inner: Array, last: Array) -> Array:
        return jnp.where(side < 0.0, first, jnp.where(side > 0.0, last, inner))

    return of_side(low, u, high), (side == 0.0) & sound, of_side(feet[0], found, feet[1]), side


def searched(axis: Axis, slope: Slope, feet: Any) -> Places:
    """The places around all nodes; ``feet`` are those from which a second curve is looked at (k,)."""
    node, low, high = (jnp.asarray(x) for x in bounds(axis))
    u, lively, foot, side = jax.vmap(lambda *x: lowest(slope, *x))(feet, node, low, high)
    n = node.shape[0]
    # beyond a bound it is nearer still, and a neighbour's place there says so
    near = jnp.abs(jnp.roll(u, -1) - u) < BESIDE
    if axis.closed:
        near = jnp.abs(jnp.roll(u, -1) + n * (np.arange(n) == n - 1) - u) < BESIDE
    else:
        near = near & (np.arange(n) < n - 1)
    back = (near & (side > 0.0)) | jnp.roll(near & (jnp.roll(side, -1) < 0.0) & (side <= 0.0), 1)
    return Places(u, lively, ~back, foot)


def slope_of(axis: Axis, distance: Callable[[Array], Array]) -> Slope:
    """Slope of the distance of the axis from something of one piece."""

    def slope(u: Array, foot: Any) -> tuple[Array, Array, Array, Any]:
        along = lambda s: distance(axis.at(s)[0])  # noqa: E731
        rate, bend = jax.jvp(lambda s: jax.jvp(along, (s,), (jnp.ones(()),))[1], (u,), (jnp.ones(()),))
        first = axis.at(u)[1]
        return rate, bend, jnp.sqrt(dot(first, first)), foot

    return slope


def followed(axis: Axis, other: Solid, places: Places) -> Array:
    """Parameters (k,) with the derivatives of those that are nearest points: one Newton step."""
    bent = slope_of(frozen(axis), other.still().away)

    def one(u: Array, lively: Array) -> Array:
        bend = lax.stop_gradient(bent(u, None)[1])
        # a change of the slope that vanishes, or is none of a minimum, moves nothing
        moves = lively & (bend > 0.0)
        along = lambda s: other.away(axis.at(s)[0])  # noqa: E731
        rate = jax.jvp(along, (u,), (jnp.ones(()),))[1]
        return jnp.where(moves, u - bounded(rate / jnp.where(moves, bend, 1.0)), u)

    return jax.vmap(one)(lax.stop_gradient(places.at), places.lively)


class Pair(NamedTuple):
    """Half the squared distance of two axes at parameters: its derivatives by both, guarded.

    Args:
        slopes: two.
        first, mixed, second: its second derivatives; ``mixed`` zero where an end holds the foot.
        apart: (3,), from the second to the first; length: of it.
        speed: of the first axis.
    """

    slopes: tuple[Array, Array]
    first: Array
    mixed: Array
    second: Array
    apart: Array
    length: Array
    speed: Array


def pair(one: Axis, other: Axis, u: Array, w: Array) -> Pair:
    """Distance of two axes at parameters, and its derivatives."""
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
    """Newton's step of the foot of a point of the first axis."""
    found = pair(one, other, u, foot)
    return _kept(other, foot - bounded(found.slopes[1] / found.second))


def slope_between(one: Axis, other: Axis) -> Slope:
    """Slope of the distance of the first axis from the second, whose foot follows."""

    def slope(u: Array, foot: Any) -> tuple[Array, Array, Array, Any]:
        def step(_: Any, foot: Array) -> Array:
            return _dropped(one, other, u, foot)

        foot = lax.fori_loop(0, FOOT_STEPS, step, foot)
        found = pair(one, other, u, foot)
        bend = found.first - found.mixed**2 / found.second
        return found.slopes[0] / found.length, bend / found.length, found.speed, foot

    return slope


def feet(one: Axis, other: Axis) -> Array:
    """For the nodes of the first axis (k,) the nearest of the nodes and middles of the elements of the
    second.
    """
    node, m = bounds(one)[0], other.nodes.shape[1] - 1
    halves = jnp.asarray(np.arange(2 * m + 1) / 2.0)
    places = jax.vmap(lambda w: other.at(w)[0])(halves)
    apart = one.nodes.T[: len(node), None, :] - places[None]
    made: Array = 0.5 * jnp.argmin(jnp.sum(apart * apart, axis=2), axis=1).astype(float)
    return made


def between(one: Axis, other: Axis) -> Places:
    """The places around the nodes of the first axis, and their feet on the second."""
    found = searched(one, slope_between(one, other), feet(one, other))

    def down(u: Array, foot: Array) -> Array:
        made: Array = lax.fori_loop(0, STEPS, lambda _, w: _dropped(one, other, u, w), foot)
        return made

    return found._replace(foot=jax.vmap(down)(found.at, found.foot))


def _solved(found: Pair, lively: Array) -> tuple[Array, Array]:
    """Newton's step of both parameters; of the foot alone where the first one is a point of the beam."""
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
    """Parameters (k,) on both axes: from those held a Newton step, and one that carries derivatives."""
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
