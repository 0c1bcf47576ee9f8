"""Records of shapes and of their kinds and pairs, their positions, and distances from solids."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax.multibody.contacts import boxes
from nsjax.multibody.contacts import closest_points as closest
from nsjax.multibody.contacts.closest_points import ShapeContacts
from nsjax.multibody.coordinates.frames import Scene
from nsjax.multibody.coordinates.spatial_vectors import rotation_of
from nsjax.multibody.parts import Part
from nsjax.shapes import Shape as Drawn
from nsjax.types import Array, PyTree


@dataclasses.dataclass(frozen=True)
class PairKind:
    """Contacts of two kinds of shapes: an entry of `nsjax.multibody.contacts.all_shapes.PAIRS` with all
    that defines them.

    Args:
        first, second: kinds of the shapes, see `nsjax.multibody.contacts.shape_parts.Shape`.
        meet: ``(scene, part, numbers, near) -> ShapeContacts``, the contacts, from the frames of both
        bodies;
            ``near`` is the result of ``hold``, None: the features are searched for.
        count: number of contacts of a pair; a function ``(part, numbers, dimension) -> int`` where it
            depends on the numbers or on the dimension.
        hold: ``(scene, part, numbers)``, the features that a step holds fixed: closest points, or corners,
            edges and faces; None: none.
        check: ``(name, first, second)``, name of a contact and numbers of its shapes; raises where these
            shapes cannot meet.
        rigid: whether each shape is fixed to one rigid body; the surface of a beam is not.
        follows: whether ``meet`` finds the closest points of held features anew, so that the rate of a gap
            is the relative velocity of its points along the normal.
        unit_slope: whether a gap changes by the distance that its points move along the normal; not that
            of a function which is no distance.

    Example:
        >>> from nsjax.multibody.contacts.all_shapes import PAIRS as KINDS
        >>> KINDS["capsule", "plane"].count
        2
    """

    first: str
    second: str
    meet: Callable[[Scene, Part, Any, Any], ShapeContacts]
    count: int | Callable[[Part, Any, int], int] = 1
    hold: Callable[[Scene, Part, Any], Any] | None = None
    check: Callable[[str, Any, Any], None] | None = None
    rigid: bool = True
    follows: bool = False
    unit_slope: bool = True

    @property
    def rate_at_points(self) -> bool:
        """Whether the rate of a gap is the relative velocity of its points along the normal."""
        return self.rigid and self.unit_slope and (self.hold is None or self.follows)

    @property
    def kinds(self) -> tuple[str, str]:
        """The kinds of both shapes."""
        return self.first, self.second


# Records of a shape on a body, and of a kind of shapes.


@dataclasses.dataclass(frozen=True)
class Shape:
    """A shape on a body: its kind and its numbers.

    Args:
        kind: name of the function that made it; a `point` is a sphere without a radius.
        body: name of the body that carries it.
        numbers: a record of `nsjax.multibody.numbers`.

    Example:
        >>> from nsjax.multibody import sphere
        >>> shape = sphere("ball", 0.1)
        >>> shape.kind, shape.body, shape.numbers.radius
        ('sphere', 'ball', 0.1)
    """

    kind: str
    body: str
    numbers: PyTree


def _always(numbers: Any) -> bool:
    """Default of `ShapeKind.filled`: the shape fills its body."""
    return True


@dataclasses.dataclass(frozen=True)
class ShapeKind:
    """A kind of shapes: an entry of `nsjax.multibody.contacts.all_shapes.KINDS` with all that defines it.

    Args:
        name: of the kind.
        drawn: ``(scene, name, body, numbers)``, the picture of a shape.
        pairs: pairs with other kinds that this kind registers, besides the list of
            `nsjax.multibody.contacts.all_shapes`.
        instead: ``(dimension, text)`` for a dimension without this kind; the text names a replacement.
        lacks: ``(body, numbers, dimension)``, the missing number and the remedy as text; None: complete.
        filled: whether the picture of a shape with these numbers shows the form of its body.

    Example:
        >>> from nsjax.multibody.contacts.all_shapes import KINDS
        >>> [pair.first for pair in KINDS["heightfield"].pairs]
        ['sphere', 'points', 'corners', 'box', 'capsule']
    """

    name: str
    drawn: Callable[[Scene, str, str, Any], tuple[Drawn, ...]]
    pairs: tuple[PairKind, ...] = ()
    instead: tuple[tuple[int, str], ...] = ()
    lacks: Callable[[str, Any, int], str | None] | None = None
    filled: Callable[[Any], bool] = _always


# Positions of shapes: their points, axes and edges in the axes of the ground.


def turn_of(turned: Any, dimension: int) -> Any:
    """Rotation of the axes of a shape relative to its body, as the algebra of the dimension takes it."""
    if turned is None or dimension == 3:
        return rotation_of(turned)
    return jnp.sin(turned), jnp.cos(turned)


def along_of(scene: Scene, body: str, axis: Any) -> Array:
    """Axis of a shape in the axes of the ground; None: the x axis of its body."""
    a = scene.algebra
    return a.array(a.turned(scene.frame(body).turn, a.vector(1.0 if axis is None else axis)))


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
    return a.array(a.tangents(a.vector(along))[0])


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


# Distances of points from solids, negative inside, and the directions in which the distances grow.


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


def second_solid(scene: Scene, part: Part, numbers: Any) -> Solid:
    """The second shape of a contact, as a solid."""
    return solid(scene, part.bodies[1], part.option("shapes")[1], numbers.second)
