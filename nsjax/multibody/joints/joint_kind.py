"""The record of a kind of joint: its constraint rows and its coordinates."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jax.numpy as jnp

from nsjax.core import InputError
from nsjax.multibody import numbers
from nsjax.multibody.coordinates import planar_vectors as plane
from nsjax.multibody.coordinates import spatial_vectors as space
from nsjax.multibody.coordinates.frames import Scene
from nsjax.multibody.joints.motion import At, FrameMotion, Screws, stepped
from nsjax.multibody.number_checks import limits_of, number
from nsjax.multibody.parts import Part, made, unit
from nsjax.types import Array, Fn

Push = tuple[str, Any, Any, Any]
"""A body, a force on it, the point where it acts, and a moment; None for what is absent."""


@dataclasses.dataclass(frozen=True, eq=False)
class JointKind:
    """Joints of one kind: one entry of `nsjax.multibody.joints.KINDS`, and all that is known of them.

    The coordinates of a body that hangs on such a joint are displacements along ``axis`` of the first body,
    then angles; or a quaternion. A joint that closes a loop, or any in absolute coordinates, is rows.

    Args:
        name: that of the function that makes one.
        rows: names of its rows as a constraint, by dimension; a dimension that is not in it does not know
            the joint. The name ``""`` is the joint's own.
        residuals: ``(scene, part, numbers) -> list``, the residuals of these rows [m] or without unit.
        sizes: entries of ``q`` and of ``v`` of a body that hangs on it, by dimension; in a dimension
            that is not in it the joint is a constraint.
        slides: displacements among the coordinates, 0 or 1; those of a free body of the plane are 2.
        turns: the numbers that are the axes of its angles: of ``("axis", "second_axis")``. The first angle
            turns about an axis of the first body, the second about one of the second.
        step: ``(at) -> (motion, screws)`` of the bodies on it in space, where that is not ``slides``
            followed by ``turns``, see `nsjax.multibody.joints.motion.stepped`.
        turn_at: first entry of a quaternion among its coordinates in space.
        measure: ``(scene, part, numbers) -> (value, rate)`` of its coordinate, if it has one; springs,
            motors, limits, dry friction and prescribed motions act on it. The angle of a joint of space
            is found between -pi and pi, see `nsjax.multibody.coordinates.turn_counts`.
        effort: ``(scene, part, numbers, effort)``, what a moment or force on the coordinate does to both
            bodies.
        reads_angle: whether its rows read its own angle, whose turns therefore count.
        swivels: whether it leaves all turns free, so that a spring may act on the rotation vector.
        labels: ``(body, joint, dimension)``, names of its coordinates and velocities; None: those of
            displacements and angles.
        first_axis: that of a joint without ``axis``; None: there is none.
        framed: whether ``turned`` means something.
        back: ``(axis, second_axis, frame) -> (axis, second_axis)`` of the joint given from its second body
            to its first.
        check: ``(part, dimension)``, raises for numbers that do not fit.
        rigid: whether both bodies move as one.
        rate_rows: names of its rows that velocities alone fulfil, by dimension; empty: there are none.
        rates: ``(scene, part, numbers) -> list``, these rates [m/s].
        drawn: as a ``"dot"``, or as the ``"line"`` between its points that a link is.

    Example:
        >>> from nsjax.multibody.joints import KINDS
        >>> KINDS["universal"].rows[3], KINDS["universal"].sizes[3]
        (('x', 'y', 'z', 'tilt'), (2, 2))
    """

    name: str
    rows: Mapping[int, tuple[str, ...]]
    residuals: Callable[[Scene, Part, Any], list[Any]]
    sizes: Mapping[int, tuple[int, int]] = dataclasses.field(default_factory=dict)
    slides: int = 0
    turns: tuple[str, ...] = ()
    step: Callable[[At], tuple[FrameMotion, Screws]] = stepped
    turn_at: int | None = None
    measure: Callable[[Scene, Part, Any], tuple[Any, Any]] | None = None
    effort: Callable[[Scene, Part, Any, Any], Iterator[Push]] | None = None
    reads_angle: bool = False
    swivels: bool = False
    labels: Callable[[str, str, int], tuple[list[str], list[str]]] | None = None
    first_axis: tuple[float, ...] | None = None
    framed: bool = True
    back: Callable[[Any, Any, Any], tuple[Any, Any]] | None = None
    check: Callable[[Part, int], None] | None = None
    rigid: bool = False
    rate_rows: Mapping[int, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    rates: Callable[[Scene, Part, Any], list[Any]] | None = None
    drawn: str = "dot"

    @property
    def numbers(self) -> int:
        """Coordinates in space that are numbers, which are added."""
        return 0 if self.turn_at is not None else self.slides + len(self.turns)

    @property
    def winds(self) -> bool:
        """Whether its coordinate is an angle, which poses tell but for full turns."""
        return self.measure is not None and bool(self.turns)

    def has_coordinate(self, dimension: int) -> bool:
        """Whether its coordinate stands in ``q`` of a tree; in the plane angles are those of bodies."""
        return self.measure is not None and not (dimension == 2 and self.turns)

    def row_names(self, part: Part, dimension: int) -> list[str]:
        """Names of its rows as a constraint."""
        return [f"{part.name}.{x}" if x else part.name for x in self.rows[dimension]]

    def rate_names(self, part: Part, dimension: int) -> list[str]:
        """Names of its rows that velocities alone fulfil."""
        return [f"{part.name}.{x}" for x in self.rate_rows.get(dimension, ())]

    def coordinate_names(self, body: str, joint: str, dimension: int) -> tuple[list[str], list[str]]:
        """Labels of the coordinates and of the velocities of a body that hangs on it."""
        if self.labels is not None:
            return self.labels(body, joint, dimension)
        turning, several = body if dimension == 2 else joint, len(self.turns) > 1
        counts = [str(k + 1) * several for k in range(len(self.turns))]
        q = [f"{joint}.position [m]"] * self.slides + [f"{turning}.angle{k} [rad]" for k in counts]
        v = [f"{joint}.speed [m/s]"] * self.slides + [f"{turning}.omega{k} [rad/s]" for k in counts]
        return q, v


LEAST = {"friction": 0.0, "armature": 0.0, "length": 0.0, "restitution": 0.0}
"""Numbers of joints that are not negative."""


def joint(
    kind: str, name: str, first: str, second: str, motion: Fn | None, loop: bool, **given: Any
) -> Part:
    """A part that is a joint, whose numbers are checked; ``forms`` of those that have their own."""
    limits, turns, own, forms = (given.pop(k, None) for k in ("limits", "turns", "own", "forms"))
    given["lower"], given["upper"] = limits_of(kind, name, limits)
    if limits is not None:
        given.setdefault("restitution", 0.0)
    else:
        given.pop("restitution", None)
    for what in ("axis", "second_axis"):
        if given.get(what) is not None:
            given[what] = unit(kind, name, what, given[what], (forms or {}).get(what))
    forms = forms or {}
    kept = {k: number(kind, name, k, v, LEAST.get(k, -math.inf), forms.get(k)) for k, v in given.items()}
    if first == second:
        raise InputError(f"{kind} {name!r}: joins {first!r} to itself; name two bodies")
    record = numbers.Joint(**kept, own=own)
    return made(kind, name, (first, second), record, motion=motion, loop=loop, turns=turns)


def across(axis: Array) -> tuple[Array, Array]:
    """Two unit vectors across a unit axis, in its own axes."""
    first, second = space.tangents(axis)
    return first, second


def axis_of(numbers: Any, dimension: int) -> Any:
    """Axis of a joint in the axes of its first body; the x axis where none is given."""
    if dimension == 2:
        return plane.vector(1.0 if numbers.axis is None else numbers.axis)
    return jnp.asarray([1.0, 0.0, 0.0] if numbers.axis is None else numbers.axis, float)


def apart(scene: Scene, part: Part, numbers: Any) -> Any:
    """Vector from the joint point of the first body to that of the second."""
    first, second = part.bodies
    return scene.algebra.subtract(scene.point(second, numbers.on), scene.point(first, numbers.at))


def components(scene: Scene, vector: Any) -> list[Any]:
    """A vector as residuals."""
    return list(vector) if scene.dimension == 2 else [space.array(vector)[k] for k in range(3)]


def tilts(scene: Scene, part: Part, numbers: Any, still: Any = None, frame: Any = None) -> list[Any]:
    """Residuals of the turns of a joint of space: cosines of the axis of the first body with two directions
    across it of the second, which vanish where both have the axis in common; then the cosine of two
    directions across the axis, one of each body, which vanishes where nothing turns about it.

    Args:
        still: direction of the first body across the axis, for the last row; None: two rows.
        frame: axes of the second body in those of the first where the coordinates are zero; None: as
            ``turned`` says.
    """
    one, other = (scene.frame(x).turn for x in part.bodies)
    axis = axis_of(numbers, 3)
    frame = space.rotation_of(numbers.turned) if frame is None else frame
    along = space.turned(one, axis)
    b, c = (space.turned(other, space.turned_back(frame, x)) for x in across(axis))
    square = [space.dot(along, b), space.dot(along, c)]
    return square if still is None else [*square, space.dot(still, c)]


def tilt(scene: Scene, part: Part, numbers: Any) -> Any:
    """Angle of the second body against the first in the plane, less ``turned``."""
    first, second = (scene.frame(x) for x in part.bodies)
    return plane.plus(plane.plus(second.angle, plane.minus(first.angle)), plane.minus(numbers.turned))


def relative_angle(scene: Scene, part: Part, numbers: Any) -> tuple[Any, Any]:
    """Angle about ``axis`` by which the second body is turned against the first, between -pi and pi in
    space, and its rate.
    """
    first, second = (scene.frame(x) for x in part.bodies)
    if scene.dimension == 2:
        return (
            plane.plus(second.angle, plane.minus(first.angle)),
            plane.plus(second.spin, plane.minus(first.spin)),
        )
    axis = axis_of(numbers, 3)
    one, _ = across(axis)
    frame = space.rotation_of(numbers.turned)
    here = space.turned(second.turn, space.turned_back(frame, one))
    there, along = space.turned(first.turn, one), space.turned(first.turn, axis)
    angle = jnp.arctan2(space.dot(along, space.cross(there, here)), space.dot(there, here))
    return angle, space.dot(along, space.subtract(second.spin, first.spin))


def moment_about(scene: Scene, part: Part, numbers: Any, effort: Any) -> Iterator[Push]:
    """A moment about ``axis`` on the second body, and back on the first."""
    a, (first, second) = scene.algebra, part.bodies
    if scene.dimension == 2:
        yield second, None, None, effort
        yield first, None, None, -effort
        return
    push = a.scale(effort, a.turned(scene.frame(first).turn, axis_of(numbers, 3)))
    yield second, None, None, push
    yield first, None, None, a.negative(push)
