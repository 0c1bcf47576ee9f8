"""Bounding volumes of shapes, and lower bounds of the gaps between them."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from nsjax.multibody.contacts import terrain_blocks
from nsjax.multibody.contacts.closest_points import of_segments
from nsjax.multibody.contacts.shape_places import along_of, normal_of, solid_box
from nsjax.multibody.coordinates import spatial_vectors as space
from nsjax.multibody.coordinates.frames import Scene
from nsjax.types import Array, record

SOLIDS = ("sphere", "box", "capsule", "cylinder", "plane")
"""Kinds of shapes that a group of free bodies with a capacity may hold: their numbers stack in arrays."""

BOUNDED = (*SOLIDS, "hull", "heightfield")
"""Kinds of shapes with a bounding volume (`around`), by which a step finds the near ones among contacts by
name.
"""

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


def apart(kinds: tuple[str, str], one: Around, other: Around) -> Array:
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
        return terrain_blocks.above(other.terrain, centre, jnp.stack(wide), one.radius)
    if kinds[0] in ROUND and kinds[1] in ROUND:
        here, there = of_segments(*((x.centre, x.axes[:, 0], x.half[0]) for x in (one, other)))
        return jnp.sqrt(jnp.sum(jnp.square(here - there))) - one.thick - other.thick
    if one.axes is None and other.axes is None:
        return _from(one, other.centre) - other.radius
    bounds = [_from(one, other.centre) - other.radius, _from(other, one.centre) - one.radius]
    if one.axes is not None and other.axes is not None:
        ways = jnp.concatenate([one.axes, other.axes], axis=1).T
        bounds += [_along(one, other, way) for way in ways]
    return jnp.max(jnp.stack(bounds))


def _along(one: Around, other: Around, way: Array) -> Array:
    """Gap of two shapes along a direction; where it is positive, a plane across it separates them."""
    size = one.thick + _half(one, way) + other.thick + _half(other, way)
    return jnp.abs(jnp.sum(way * (one.centre - other.centre))) - size


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
