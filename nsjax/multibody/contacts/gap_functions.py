"""Gaps and slip velocities of contacts, from the frames of the bodies, and bounds of the gaps."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.multibody.contacts import heightfields
from nsjax.multibody.contacts.all_shapes import PAIRS
from nsjax.multibody.contacts.closest_points import of_segments
from nsjax.multibody.contacts.shape import PairKind, along_of, normal_of, solid_box
from nsjax.multibody.coordinates import planar_vectors as plane
from nsjax.multibody.coordinates import spatial_vectors as space
from nsjax.multibody.coordinates.frames import Scene
from nsjax.multibody.parts import Part
from nsjax.types import Array, record


@dataclasses.dataclass(frozen=True)
class Meeting:
    """Contacts of two bodies at an instant, one or (k,) of them.

    Args:
        gap: [m].
        first, second: names of the bodies; for contacts of several pairs, one name a contact.
        here, there: contact points on the first and on the second body [m].
        normal: unit vector from the second to the first.
        tangents: unit vectors across the normal; where friction depends on the direction, the second one
            times the ratio of the coefficients (`_by_grain`).
        carried: velocity of ``there`` [m/s]; None: it moves with the second body.
        moving: velocity of ``here`` [m/s]; None: it moves with the first body.
    """

    gap: Any
    first: Any
    second: Any
    here: Any
    there: Any
    normal: Any
    tangents: tuple[Any, ...]
    carried: Any = None
    moving: Any = None

    def bodies(self, side: str) -> list[str]:
        """Names of the ``"first"`` or ``"second"`` bodies of all contacts."""
        own = getattr(self, side)
        return [own] * jnp.size(self.gap) if isinstance(own, str) else list(own)

    def slip(self, scene: Scene) -> list[Any]:
        """Slip velocity of the first body relative to the second along the tangents [m/s]."""
        a = scene.algebra
        one = self.moving
        if one is None:
            one = scene.motion(self.first, a.subtract(self.here, scene.frame(self.first).origin))
        other = self.carried
        if other is None:
            other = scene.motion(self.second, a.subtract(self.there, scene.frame(self.second).origin))
        moved = a.subtract(one, other)
        return [a.dot(t, moved) for t in self.tangents]


def kind_of(part: Part) -> PairKind:
    """The kind of pair of a contact."""
    return PAIRS[part.option("shapes")]


def count(part: Part, numbers: Any, dimension: int) -> int:
    """Number of contacts of a part."""
    nodes = part.option("nodes")
    if nodes is not None:  # a contact of every node of a beam
        return int(nodes)
    known = kind_of(part).count
    return known if isinstance(known, int) else known(part, numbers, dimension)


def rigid(part: Part) -> bool:
    """Whether each shape of a contact is fixed to one rigid body, not to the nodes of a beam."""
    return part.option("nodes") is None and kind_of(part).rigid


def names(part: Part, numbers: Any, dimension: int) -> list[str]:
    """Names of the contacts of a part."""
    n = count(part, numbers, dimension)
    return [part.name] if n == 1 else [f"{part.name}.{k}" for k in range(n)]


def gap_screws(scene: Scene, part: Part, numbers: Any, near: Any, body: str, rows: int) -> Array:
    """Derivatives (3 or 6, rows) of the gaps of a part by the motion of one body, see `Scene.moved`."""

    def gap(screw: Array) -> Array:
        return jnp.broadcast_to(meetings(scene.moved(body, screw), part, numbers, near).gap, (rows,))

    return jax.jacfwd(gap)(jnp.zeros(3 * (scene.dimension - 1))).T


def hold(scene: Scene, part: Part, numbers: Any) -> Any:
    """Features of the contacts of a part that a step holds fixed; None: none."""
    find = kind_of(part).hold
    return None if find is None else find(scene, part, numbers)


def meetings(scene: Scene, part: Part, numbers: Any, near: Any = None) -> Meeting:
    """The contacts of a part; ``near`` are its held features, None: they are searched for."""
    a, own = scene.algebra, kind_of(part).meet(scene, part, numbers, near)
    here, there, normal = (
        x if x is None or isinstance(x, tuple) else a.vector(x) for x in (own.here, own.there, own.normal)
    )
    across = a.tangents(normal) if own.tangents is None else own.tangents
    if part.option("grain") is not None:
        across = _by_grain(scene, part.option("grain"), numbers, normal)
    first, second = part.bodies
    return Meeting(own.gap, first, second, here, there, normal, across, own.carried, own.moving)


def _by_grain(scene: Scene, body: str, numbers: Any, normal: Any) -> tuple[Array, Array]:
    """Tangents along the grain of a body and across it, the second one times ``r = mu_2 / mu_1``: with
    slips ``(u_1, r u_2)``, Coulomb's disc ``|x_T| <= mu_1 x_N`` is the ellipse of both coefficients, with
    its dissipation and power. A grain along the normal is seen as the first tangent of the normal.
    """
    grain = space.turned(scene.frame(body).turn, space.vector(numbers.grain))
    along = space.subtract(grain, space.scale(space.dot(grain, normal), space.array(normal)))
    size = space.size(along)
    seen = size > 1e-9 * space.size(grain)  # below, rounding has no direction across the normal
    along = jnp.where(seen, along / jnp.where(seen, size, 1.0), space.array(space.tangents(normal)[0]))
    return along, numbers.friction_across / numbers.friction * space.cross(normal, along)


def flat(rows: list[Any]) -> Array:
    """Scalars, arrays (k,) and None for zero, joined in one array."""
    if len(rows) == 1:
        return jnp.reshape(plane.value(rows[0]), -1)
    if all(x is None or jnp.ndim(x) == 0 for x in rows):
        return jnp.stack([plane.value(x) for x in rows])
    return jnp.concatenate([jnp.reshape(plane.value(x), -1) for x in rows])


def columns(rows: list[list[Any]], counts: list[int]) -> Array:
    """Slips of meetings with ``counts`` contacts as one array (nc, nt)."""
    found = [
        jnp.stack([jnp.broadcast_to(plane.value(x), (n,)) for x in row], axis=1)
        for row, n in zip(rows, counts, strict=True)
    ]
    return found[0] if len(found) == 1 else jnp.concatenate(found)


# Bounding volumes of shapes, and lower bounds of the gaps between them.


SOLIDS = ("sphere", "box", "capsule", "cylinder", "plane")
"""Kinds of shapes that a group of free bodies with a capacity may hold: their numbers stack in arrays."""

BOUNDED = (*SOLIDS, "hull", "heightfield")
"""Kinds of shapes with a bounding volume (`around`), by which a step finds near contacts by name."""

ENDLESS = ("plane", "heightfield")
"""Kinds of bounded shapes whose size says nothing about the motion of others."""

REACH = 0.2
"""Default gap up to which a pair is a candidate, relative to the smallest radius around a shape."""


@record()
class Around:
    """Bounding volume of a shape, which tells whether the shape may be near another.

    Args:
        centre: (d,), of the shape [m].
        radius: of a sphere around the shape [m]; of a plane zero.
        axes: (d, d) of a box, (d, 1) of a capsule or cylinder; (d, 1) normal of a plane; None: a sphere.
        half: half edges (d,) of a box, or half length (1,) of a capsule or cylinder [m].
        thick: radius around the box or segment that axes and half edges span [m].
        terrain: numbers of terrain with blocks, whose axes are ``axes``; else None.
    """

    centre: Array
    radius: Array
    axes: Any = None
    half: Any = None
    thick: Any = 0.0
    terrain: Any = None


ROUND = ("capsule", "cylinder")
"""Kinds of shapes whose bounding volume is a segment with a radius."""


def gap_bound(kinds: tuple[str, str], one: Around, other: Around) -> Array:
    """Lower bound of the gap of two shapes [m]. It is exact between spheres and capsules, and for all
    shapes but cylinders against a plane; else it is the largest gap along an axis of either shape, or
    between one shape and the sphere around the other.
    """
    if kinds[1] == "plane":
        normal = other.axes[:, 0]
        reach = one.radius if one.axes is None else one.thick + _half(one, normal)
        return jnp.sum(normal * (one.centre - other.centre)) - reach
    if kinds[1] == "heightfield":
        centre = jnp.sum(other.axes * (one.centre - other.centre)[:, None], axis=0)
        wide = [one.radius if one.axes is None else one.thick + _half(one, x) for x in other.axes.T]
        return heightfields.above(other.terrain, centre, jnp.stack(wide), one.radius)
    if kinds[0] in ROUND and kinds[1] in ROUND:
        here, there = of_segments(*((x.centre, x.axes[:, 0], x.half[0]) for x in (one, other)))
        return jnp.sqrt(jnp.sum(jnp.square(here - there))) - one.thick - other.thick
    if one.axes is None and other.axes is None:
        return _from(one, other.centre) - other.radius
    bounds = [_from(one, other.centre) - other.radius, _from(other, one.centre) - one.radius]
    if one.axes is not None and other.axes is not None:
        ways = jnp.concatenate([one.axes, other.axes], axis=1).T
        for way in ways:  # where the gap along a direction is positive, a plane across it separates both
            size = one.thick + _half(one, way) + other.thick + _half(other, way)
            bounds.append(jnp.abs(jnp.sum(way * (one.centre - other.centre))) - size)
    return jnp.max(jnp.stack(bounds))


def _half(x: Around, way: Array) -> Array:
    """Half width, along a direction, of the box or segment that axes and half edges span."""
    return jnp.sum(jnp.abs(jnp.sum(x.axes * way[:, None], axis=0)) * x.half)


def _from(x: Around, point: Array) -> Array:
    """Lower bound of the distance of a point from a shape; inside of a box minus its thickness."""
    away = point - x.centre
    if x.axes is not None:
        along = jnp.sum(x.axes * away[:, None], axis=0)
        clipped = jnp.clip(along, -x.half, x.half)
        away = away - jnp.sum(x.axes * clipped, axis=1)
    return jnp.sqrt(jnp.sum(away * away)) - x.thick


def radius_of(kind: str, x: Any, dimension: int) -> Any:
    """Radius of a sphere around a shape [m]; planes and terrain (`ENDLESS`) have none."""
    if kind == "hull":
        return jnp.sqrt(jnp.sum(jnp.square(_middle_and_half(x.vertices)[1])))
    if kind == "box":
        edges = [x.half_length, x.half_height, x.half_depth][:dimension]
        return jnp.sqrt(sum(jnp.square(jnp.asarray(e, float)) for e in edges))
    if kind == "cylinder":
        return jnp.sqrt(jnp.square(x.radius) + jnp.square(x.half_length))
    radius = 0.0 if x.radius is None else x.radius
    return radius if kind == "sphere" else radius + x.half_length


def _middle_and_half(vertices: Any) -> tuple[Array, Array]:
    """Middle and half edges (3,) of the box around vertices (n, 3) whose edges are those of the axes."""
    points = jnp.asarray(vertices, float)
    low, high = jnp.min(points, axis=0), jnp.max(points, axis=0)
    return 0.5 * (low + high), 0.5 * (high - low)


def around(scene: Scene, body: str, kind: str, x: Any) -> Around:
    """Bounding volume of a shape of a body."""
    radius = jnp.asarray(0.0 if kind in ENDLESS else radius_of(kind, x, scene.dimension), float)
    if kind == "hull":
        middle, half = _middle_and_half(x.vertices)
        centre = scene.position(body, middle)
        return Around(centre=centre, radius=radius, axes=scene.rotation(body), half=half)
    centre, a = scene.position(body, x.at), scene.algebra
    if kind == "plane":
        normal = a.array(normal_of(scene, body, x))
        return Around(centre=centre, radius=radius, axes=normal[:, None])
    if kind == "heightfield":
        axes = space.both(scene.frame(body).turn, space.rotation_of(x.turned))
        return Around(centre=centre, radius=radius, axes=np.eye(3) if axes is None else axes, terrain=x)
    if kind == "sphere":
        return Around(centre=centre, radius=radius, thick=radius)
    if kind == "box":
        solid = solid_box(scene, body, x)
        return Around(centre=centre, radius=radius, axes=solid.axes, half=solid.half)
    half = jnp.asarray(x.half_length, float)[None]
    axis = along_of(scene, body, x.axis)[:, None]
    return Around(centre=centre, radius=radius, axes=axis, half=half, thick=jnp.asarray(x.radius, float))
