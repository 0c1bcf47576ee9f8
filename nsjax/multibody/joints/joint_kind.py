"""The record of a kind of joint, and motions of bodies on their joints."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.core import InputError, nearest
from nsjax.core.errors import call
from nsjax.forms import forms_of
from nsjax.math import picked, rotations, taken
from nsjax.multibody import numbers
from nsjax.multibody.coordinates import planar_vectors as plane
from nsjax.multibody.coordinates import spatial_vectors as space
from nsjax.multibody.joints.friction_laws import Held, Stribeck
from nsjax.multibody.parts import Part, follow, limits_of, made, number, on_or_off, unit
from nsjax.renamed import old_names
from nsjax.types import Array, Fn, record

if TYPE_CHECKING:
    from nsjax.multibody.coordinates.frames import Scene

# Motion of bodies on the joints of their parents, for many bodies as a batch.
#
# Vectors of ``n`` bodies are arrays (3, n), turns (3, 3, n); (3, 1) is one vector for all bodies; None is
# zero, or no turn.


@record()
class Geometry:
    """Geometry of n joints, from the parents to the bodies.

    Args:
        at, on: joint points (3, n) in the axes of the parents and of the bodies [m].
        axis, second_axis: (3, n) in the axes of the parents, and of the bodies.
        frame: rotations (3, 3, n) of the axes of the bodies in those of the parents at zero coordinates.
        own: numbers of this kind of joint alone, stacked along a last axis.
        turns: ``(T0, T1, T2)`` for each angle: ``T0 + cos T1 + sin T2`` is its rotation, ``frame``
        included.
    """

    at: Any = None
    on: Any = None
    axis: Any = None
    second_axis: Any = None
    frame: Any = None
    own: Any = None
    turns: tuple[Any, ...] = ()


@record()
class FrameMotion:
    """Turns, origins, spins, velocities of bodies, and the rates of the last two at constant velocities."""

    turn: Any = None
    origin: Any = None
    spin: Any = None
    velocity: Any = None
    turning: Any = None
    acceleration: Any = None

    def at(self, arm: Any) -> FrameMotion:
        """The motion of the points of the bodies at ``arm`` from the origins."""
        add, cross = space.add, space.cross
        swing = cross(self.spin, arm)
        change = add(cross(self.turning, arm), cross(self.spin, swing))
        return dataclasses.replace(
            self, origin=add(self.origin, arm), velocity=add(self.velocity, swing),
            acceleration=add(self.acceleration, change),
        )  # fmt: skip

    def of(self, places: np.ndarray | None) -> FrameMotion:
        """The motion of the bodies at ``places``; None: of all bodies."""
        if places is None:
            return self
        places = places[:1] if np.all(places == places[0]) else places  # one vector for all
        return jax.tree.map(lambda x: x if x.shape[-1] == 1 else picked(x, places), self)


@dataclasses.dataclass(frozen=True)
class At:
    """Arguments of a step of the recursion from parents to bodies.

    Args:
        kind: of the joints.
        links: of the bodies.
        base: motion of the parents.
        joint: geometry of the joints.
        q: all coordinates.
        x: scalar coordinates (rows, n) of the joints; turned: their sines and cosines.
        rate: velocities (rows, n) of the joints; None: not needed.
    """

    kind: Any
    links: tuple[Any, ...]
    base: FrameMotion
    joint: Geometry
    q: Array
    x: Array
    turned: Any
    rate: Array | None

    def quaternions(self, first: int) -> Array:
        """Turns (3, 3, n) of quaternions that begin at entry ``first`` of the coordinates of each body."""
        own = [taken(self.q, np.arange(x.q + first, x.q + first + 4)) for x in self.links]
        if len(own) == 1:
            return rotations.matrix(own[0])[:, :, None]
        return jnp.moveaxis(jax.vmap(rotations.matrix)(jnp.stack(own)), 0, -1)

    def joint_point(self) -> FrameMotion:
        """Motion of the joint points of the parents."""
        return self.base.at(space.turned(self.base.turn, self.joint.at))

    def body(self, point: FrameMotion) -> FrameMotion:
        """Motion of the origins of the bodies, from that of their joint points."""
        if self.joint.on is None:
            return point
        return point.at(space.negative(space.turned(point.turn, self.joint.on)))


Screws = list[tuple[Any, Any]]
"""Spin and velocity (3, n) of the screw of each velocity of the joints; None: zero."""


def moved_along(at: At, point: FrameMotion, x: Any, rate: Any) -> tuple[FrameMotion, Screws]:
    """Motion of joint points displaced along ``axis`` by ``x`` with ``rate`` (or None), and its screw."""
    along = space.turned(at.base.turn, at.joint.axis)
    point = point.at(x * along)
    if rate is not None:
        point = dataclasses.replace(
            point, velocity=space.add(point.velocity, rate * along),
            acceleration=space.add(
                point.acceleration, space.scale(2.0 * rate, space.cross(at.base.spin, along))
            ),
        )  # fmt: skip
    return point, [(None, along)]


def spun(point: FrameMotion, own: Array) -> FrameMotion:
    """Motion with the spin of the joint added."""
    spin = space.add(point.spin, own)
    return dataclasses.replace(
        point, spin=spin, turning=space.add(point.turning, space.cross(point.spin, own))
    )


def turned_about(at: At, point: FrameMotion, first: int) -> tuple[FrameMotion, Screws]:
    """Motion turned about one or two axes by the coordinates from ``first`` on, and its screws."""
    screws: Screws = []
    turn = point.turn
    for k, (t0, t1, t2) in enumerate(at.joint.turns):
        s, c = (y[first + k] for y in at.turned)
        before = turn
        turn = space.both(turn, t0 + c * t1 + s * t2)
        axis = space.turned(before if k == 0 else turn, getattr(at.joint, at.kind.turns[k]))
        screws.append((axis, space.cross(point.origin, axis)))
        if at.rate is not None:
            point = spun(point, at.rate[first + k] * axis)
    return dataclasses.replace(point, turn=turn), screws


def stepped(at: At) -> tuple[FrameMotion, Screws]:
    """Motion of bodies on joints with a displacement along an axis, then angles about one or two axes."""
    point = at.joint_point()
    screws: Screws = []
    if at.kind.slides:
        point, screws = moved_along(at, point, at.x[0], None if at.rate is None else at.rate[0])
    if not at.kind.turns:
        return at.body(dataclasses.replace(point, turn=space.both(point.turn, at.joint.frame))), screws
    moved, more = turned_about(at, point, at.kind.slides)
    return at.body(moved), screws + more


# The record of a kind of joint: its constraint rows and its coordinates.


Push = tuple[str, Any, Any, Any]
"""Name of a body, force on it, point of action, and moment; None for each that is absent."""


@dataclasses.dataclass(frozen=True, eq=False)
class JointKind:
    """A kind of joints: an entry of `nsjax.multibody.joints.KINDS` with all that defines it.

    The coordinates of a body that hangs on such a joint are displacements along ``axis`` of the first body,
    then angles; or a quaternion. A joint that closes a loop, and every joint in absolute coordinates, is a
    set of constraint rows.

    Args:
        name: name of the function that makes such a joint.
        rows: names of its rows as a constraint, by dimension; the joint does not exist in a dimension
            without entry. The row ``""`` has the name of the joint.
        residuals: ``(scene, part, numbers) -> list``, the residuals of these rows [m] or without unit.
        sizes: numbers of entries of ``q`` and of ``v`` of a body that hangs on it, by dimension; in a
            dimension without entry the joint is always a constraint.
        slides: number of displacements among the coordinates, 0 or 1; 2 for a free body in the plane.
        turns: names of the numbers that are the axes of its angles, of ``("axis", "second_axis")``. The
            first angle turns about an axis of the first body, the second about an axis of the second.
        step: ``(at) -> (motion, screws)`` of the bodies on it in space, where the motion is not ``slides``
            followed by ``turns``, see `nsjax.multibody.joints.joint_kind.stepped`.
        turn_at: first entry of a quaternion among its coordinates in space; None: no quaternion.
        measure: ``(scene, part, numbers) -> (value, rate)`` of its coordinate, on which springs, motors,
            limits, dry friction and prescribed motions act: of its displacement
            (`nsjax.multibody.joints.slide.displacement`), or of its angle if it has none; None: no
            coordinate. In space, an angle is between -pi and pi, see
            `nsjax.multibody.topology`.
        effort: ``(scene, part, numbers, effort)``, forces and moments on both bodies of an effort on the
            coordinate (`nsjax.multibody.joints.slide.force_along`).
        reads_angle: whether its rows read its own angle, whose full turns then are counted.
        swivels: whether all rotations are free, so that a spring may act on the rotation vector.
        labels: ``(body, joint, dimension)``, names of its coordinates and velocities; None: the names of
            displacements and angles.
        first_axis: default of ``axis``; None: no default.
        framed: whether ``turned`` has a meaning.
        back: ``(axis, second_axis, frame) -> (axis, second_axis)`` for a joint given from its second body
            to its first.
        check: ``(part, dimension)``, raises for numbers that do not fit.
        rigid: whether both bodies move as one.
        rate_rows: names of its rows on velocities alone, by dimension; empty: none.
        rates: ``(scene, part, numbers) -> list``, the residuals of these rows [m/s].
        drawn: ``"dot"``, ``"line"`` between its two points, or ``"wheel"`` with the radius ``own.radius``.

    Raises:
        InputError: for sizes that are not the number of displacements and angles.

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

    def __post_init__(self) -> None:
        """Refuses sizes that its displacements and angles do not add up to."""
        wide = {k: x for k, x in self.sizes.items() if x != (self.numbers, self.numbers)}
        if self.turn_at is None and wide:
            raise InputError(
                f"kind of joint {self.name!r}: sizes = {dict(self.sizes)}, with slides = {self.slides} and "
                f"turns = {self.turns}; give the number of displacements and angles, {self.numbers}"
            )

    @property
    def numbers(self) -> int:
        """Number of scalar coordinates in space, whose increments are added."""
        return 0 if self.turn_at is not None else self.slides + len(self.turns)

    @property
    def winds(self) -> bool:
        """Whether its coordinate is an angle, which poses give up to full turns."""
        return self.measure is not None and bool(self.turns) and not self.slides

    def has_coordinate(self, dimension: int) -> bool:
        """Whether its coordinate is an entry of ``q`` of a tree; planar trees have angles of bodies."""
        return self.measure is not None and not (dimension == 2 and self.turns)

    def constraint(self, scene: Scene, part: Part, numbers: Any) -> list[Any]:
        """Residuals of its rows.

        Raises:
            InputError: for a function that fails, and for a list of another length than `rows`.
        """
        name = f"residuals of {part.kind} {part.name!r}"
        found = call(name, self.residuals, scene, part, numbers, takes="scene, part, numbers")
        rows = self.rows[scene.dimension]
        if not isinstance(found, list | tuple) or len(found) != len(rows):
            what = f"a list of {len(found)}" if isinstance(found, list | tuple) else repr(found)
            raise InputError(f"{name} returns {what}; return a list of {len(rows)}, one for each row")
        return list(found)

    def row_names(self, part: Part, dimension: int) -> list[str]:
        """Names of its rows as a constraint."""
        return [f"{part.name}.{x}" if x else part.name for x in self.rows[dimension]]

    def rate_names(self, part: Part, dimension: int) -> list[str]:
        """Names of its rows on velocities alone."""
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


def joint(
    kind: str, name: str, first: str, second: str, motion: Fn | None, loop: bool, **given: Any
) -> Part:
    """A joint as a part, after checks of its numbers.

    Args:
        kind, name, first, second: name of the kind, of the joint and of its two bodies.
        motion: prescribed coordinate ``(t) -> value``, or None.
        loop: whether this joint closes a loop.
        given: numbers of `nsjax.multibody.numbers.Joint`, ``limits`` in place of ``lower`` and ``upper``;
            ``own``, a dictionary or record of the numbers that only this kind or its friction has;
            ``turns``, whether to count full turns; ``friction_law``, a `nsjax.contact.RateLaw`; ``path``,
            see `fixed`; ``forms``, forms that differ from those of the record; ``active`` and ``locked``,
            see `hinge`.
    """
    limits, turns, own, forms, law, path = (
        given.pop(k, None) for k in ("limits", "turns", "own", "forms", "friction_law", "path")
    )
    if law is not None and not callable(getattr(law, "residual", None)):
        raise InputError(
            f"{kind} {name!r}: friction_law = {law!r} has no function residual; give multibody.OneWay(), "
            "multibody.Stribeck(), or a record as nsjax.contact.RateLaw"
        )
    if isinstance(law, Stribeck):
        law.check(f"{kind} {name!r}", given.get("friction"), own)
    forms = {**forms_of(numbers.Joint), **(forms or {})}
    apart = ("lower", "upper", "own", "motion")
    known = [x.name for x in dataclasses.fields(numbers.Joint) if x.name not in apart]
    for what in sorted(given.keys() - known):
        raise InputError(
            f"{kind} {name!r}: joints have no number {what!r}; give one that only this kind has as "
            f"own={{{what!r}: ...}}; {nearest(what, [*known, 'limits'])}"
        )
    given["lower"], given["upper"] = limits_of(kind, name, limits)
    given = on_or_off(given)
    active, locked = given.get("active"), given.get("locked")
    if active is not None:
        others = {**given, "limits": limits, "motion": motion, "path": path, "friction_law": law}
        _check_switched(kind, name, others)
    if locked is not None:
        law = Held("locked", law)
    if limits is not None:
        given["restitution"] = 0.0 if given.get("restitution") is None else given["restitution"]
    else:
        given.pop("restitution", None)
    for what in ("axis", "second_axis"):
        if given.get(what) is not None:
            given[what] = unit(kind, name, what, given[what], forms[what])
    kept = {k: number(kind, name, k, v, form=forms[k]) for k, v in given.items()}
    if first == second:
        raise InputError(f"{kind} {name!r}: joins {first!r} to itself; name two bodies")
    follows = {"motion": motion, "path": path}
    tables = {k: x for k, x in follows.items() if getattr(x, "kind", None) == "cubic"}
    for what, table in tables.items():
        sizes = ((),) if what == "motion" else ((3,), (6,))
        if np.shape(table.values)[1:] not in sizes:
            wanted = "(n,)" if what == "motion" else "(n, 6), in the plane (n, 3)"
            raise InputError(
                f"{kind} {name!r}: {what} follows a spline through rows of shape {np.shape(table.values)}; "
                f"one row at each time is wanted, {wanted}"
            )
    follows |= {k: follow(x) for k, x in tables.items()}
    record = numbers.Joint(**kept, own=own, motion=next(iter(tables.values()), None))
    switched = active is not None
    return made(
        kind, name, (first, second), record, **follows, loop=loop, turns=turns, friction_law=law,
        switched=switched,
    )  # fmt: skip


def _check_switched(kind: str, name: str, given: Mapping[str, Any]) -> None:
    """Refuses what needs a coordinate in joints that come and go."""
    for what in ("limits", "friction", "friction_law", "locked", "motion", "path", "armature"):
        if given.get(what) is not None:
            raise InputError(
                f"{kind} {name!r}: active = {given['active']:g} and {what}; a joint that comes and goes "
                f"has no coordinate of its own: leave {what} out, or give it to another joint"
            )


def across(axis: Array) -> tuple[Array, Array]:
    """Two unit vectors perpendicular to a unit axis."""
    first, second = space.tangents(axis)
    return first, second


def axis_of(numbers: Any, dimension: int) -> Any:
    """Axis of a joint in the axes of its first body; the x axis by default."""
    if dimension == 2:
        return plane.vector(1.0 if numbers.axis is None else numbers.axis)
    return jnp.asarray([1.0, 0.0, 0.0] if numbers.axis is None else numbers.axis, float)


def separation(scene: Scene, part: Part, numbers: Any) -> Any:
    """Vector from the joint point of the first body to that of the second."""
    first, second = part.bodies
    return scene.algebra.subtract(scene.point(second, numbers.on), scene.point(first, numbers.at))


def components(scene: Scene, vector: Any) -> list[Any]:
    """Components of a vector as residuals."""
    return list(vector) if scene.dimension == 2 else [space.array(vector)[k] for k in range(3)]


def tilts(scene: Scene, part: Part, numbers: Any, still: Any = None, frame: Any = None) -> list[Any]:
    """Residuals of the rotation of a spatial joint: the cosines between the axis of the first body and two
    directions of the second body, both perpendicular to the axis at rest, which vanish where both bodies
    have the axis in common; then the cosine between a direction of each body perpendicular to the axis,
    which vanishes without rotation about the axis.

    Args:
        scene, part, numbers: bodies, joint and its numbers.
        still: direction of the first body perpendicular to the axis, in the axes of the ground, for the
            last row; None: two rows.
        frame: axes of the second body in the first at zero coordinates; None: from ``turned``.
    """
    one, other = (scene.frame(x).turn for x in part.bodies)
    axis = axis_of(numbers, 3)
    frame = space.rotation_of(numbers.turned) if frame is None else frame
    along = space.turned(one, axis)
    b, c = (space.turned(other, space.turned_back(frame, x)) for x in across(axis))
    square = [space.dot(along, b), space.dot(along, c)]
    return square if still is None else [*square, space.dot(still, c)]


def tilt(scene: Scene, part: Part, numbers: Any) -> Any:
    """Angle of the second body relative to the first in the plane, less ``turned``."""
    first, second = (scene.frame(x) for x in part.bodies)
    return plane.plus(plane.plus(second.angle, plane.minus(first.angle)), plane.minus(numbers.turned))


def relative_angle(scene: Scene, part: Part, numbers: Any) -> tuple[Any, Any]:
    """Angle of the second body relative to the first about ``axis`` (space: -pi to pi), and its rate."""
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
    """A moment about ``axis`` on the second body, and the opposite moment on the first."""
    a, (first, second) = scene.algebra, part.bodies
    if scene.dimension == 2:
        yield second, None, None, effort
        yield first, None, None, -effort
        return
    push = a.scale(effort, a.turned(scene.frame(first).turn, axis_of(numbers, 3)))
    yield second, None, None, push
    yield first, None, None, a.negative(push)


__getattr__ = old_names(globals())
