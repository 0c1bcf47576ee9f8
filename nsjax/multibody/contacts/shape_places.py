"""Positions of shapes: their points, axes and edges in the axes of the ground."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from nsjax.multibody.contacts import boxes
from nsjax.multibody.contacts import closest_points as closest
from nsjax.multibody.coordinates.frames import Scene
from nsjax.multibody.coordinates.spatial_vectors import rotation_of
from nsjax.types import Array


def turn_of(turned: Any, dimension: int) -> Any:
    """Rotation of the axes of a shape relative to its body, as the algebra of the dimension takes it."""
    if turned is None or dimension == 3:
        return rotation_of(turned)
    return jnp.sin(turned), jnp.cos(turned)


def along_of(scene: Scene, body: str, axis: Any) -> Array:
    """Axis of a shape in the axes of the ground; None: the x axis of its body."""
    a = scene.algebra
    made: Array = a.array(a.turned(scene.frame(body).turn, a.vector(1.0 if axis is None else axis)))
    return made


def normal_of(scene: Scene, body: str, shape: Any) -> Any:
    """Outward normal of a plane as a vector of the algebra."""
    a, given = scene.algebra, shape.normal
    if given is None:
        up = (None, 1.0) if scene.dimension == 2 else jnp.asarray([0.0, 0.0, 1.0])
    else:
        up = a.vector(given)
    return a.turned(scene.frame(body).turn, up)


def across(scene: Scene, along: Array) -> Array:
    """A unit vector perpendicular to an axis."""
    a = scene.algebra
    made: Array = a.array(a.tangents(a.vector(along))[0])
    return made


def segment(scene: Scene, body: str, shape: Any) -> tuple[Array, Array, Any]:
    """Middle, direction and half length of the axis of a shape."""
    return scene.position(body, shape.at), along_of(scene, body, shape.axis), shape.half_length


def ends(scene: Scene, body: str, shape: Any) -> Array:
    """Centres (d, 2) of the ends of a capsule."""
    middle, along, half = segment(scene, body, shape)
    return jnp.stack([middle - half * along, middle + half * along], axis=1)


def rim_points(scene: Scene, body: str, shape: Any, normal: Array) -> Array:
    """Points (3, 10) of a cylinder that may meet a plane, see `closest_points.rims`."""
    middle, along, half = segment(scene, body, shape)
    turn = scene.frame(body).turn
    own = scene.algebra.vector(1.0 if shape.axis is None else shape.axis)
    fixed = tuple(scene.algebra.turned(turn, x) for x in scene.algebra.tangents(own))
    return closest.rims(normal, middle, along, half, shape.radius, (fixed[0], fixed[1]))


def solid_box(scene: Scene, body: str, shape: Any) -> boxes.Box:
    """A box in the axes of the ground."""
    a, d = scene.algebra, scene.dimension
    turn, own = scene.frame(body).turn, turn_of(shape.turned, d)
    axes = [a.array(a.turned(turn, a.turned(own, a.vector(jnp.asarray(e))))) for e in np.eye(d)]
    edges = [shape.half_length, shape.half_height, shape.half_depth][:d]
    half = jnp.stack([jnp.asarray(x, float) for x in edges])
    return boxes.Box(scene.position(body, shape.at), jnp.stack(axes, axis=1), half)
