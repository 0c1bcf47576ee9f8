"""Distances of points from solids, negative inside, and the directions in which the distances grow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax

from nsjax.multibody.contacts import boxes
from nsjax.multibody.contacts import closest_points as closest
from nsjax.multibody.contacts.shape_places import across, along_of, normal_of, solid_box
from nsjax.multibody.coordinates.frames import Scene
from nsjax.types import Array


class Solid(NamedTuple):
    """A solid at an instant.

    Args:
        distance: function ``(*numbers, x) -> (distance, direction)`` of a point (3,).
        numbers: its position, axes and sizes, in the axes of the ground.
    """

    distance: Callable[..., tuple[Array, Array]]
    numbers: tuple[Any, ...]

    def at(self, x: Array) -> tuple[Array, Array]:
        """Distance of a point (3,) and its direction."""
        return self.distance(*self.numbers, x)

    def away(self, x: Array) -> Array:
        """Distance of a point (3,)."""
        return self.at(x)[0]

    def still(self) -> Solid:
        """The solid without derivatives."""
        return self._replace(numbers=lax.stop_gradient(self.numbers))


def _of_plane(place: Array, normal: Array, x: Array) -> tuple[Array, Array]:
    return closest.dot(normal, x - place), normal


def _of_capsule(
    middle: Array, along: Array, half: Any, radius: Any, instead: Array, x: Array
) -> tuple[Array, Array]:
    length, unit = closest.lengthened(x - closest.on_segment(x, middle, along, half), instead)
    return length - radius, unit


def _of_hole(
    middle: Array, along: Array, half: Any, radius: Any, instead: Array, x: Array
) -> tuple[Array, Array]:
    away, unit = _of_capsule(middle, along, half, radius, instead, x)
    return -away, -unit


def _of_socket(middle: Array, radius: Any, instead: Array, x: Array) -> tuple[Array, Array]:
    length, unit = closest.lengthened(x - middle, instead)
    return radius - length, -unit


def _of_cylinder(
    middle: Array, along: Array, half: Any, radius: Any, instead: Array, x: Array
) -> tuple[Array, Array]:
    height = closest.dot(x - middle, along)
    radial, out = closest.lengthened(x - middle - height * along, instead)
    edges = jnp.stack([jnp.asarray(radius, float), jnp.asarray(half, float)])
    distance, unit = closest.boxed(jnp.stack([radial, height]), edges)
    return distance, unit[0] * out + unit[1] * along


def _of_box(box: boxes.Box, x: Array) -> tuple[Array, Array]:
    distance, unit = closest.boxed(boxes.components(box.axes, x - box.centre), box.half)
    return distance, boxes.to_ground(box.axes, unit)


ROUND = {"capsule": _of_capsule, "cylinder": _of_cylinder, "hole": _of_hole}
"""Distance functions of the solids around an axis, and of the hollow of one."""


def solid(scene: Scene, body: str, kind: str, x: Any) -> Solid:
    """The solid of a shape: `plane`, `box`, `capsule`, `cylinder`, or the material around a `hole`."""
    if kind == "plane":
        normal = scene.algebra.array(normal_of(scene, body, x))
        return Solid(_of_plane, (scene.position(body, x.at), normal))
    if kind == "box":
        return Solid(_of_box, (solid_box(scene, body, x),))
    along = along_of(scene, body, x.axis)
    place, instead = scene.position(body, x.at), across(scene, along)
    if kind == "hole" and x.axis is None:
        return Solid(_of_socket, (place, x.radius, instead))
    return Solid(ROUND[kind], (place, along, x.half_length, x.radius, instead))
