"""Slides, which leave one displacement along an axis free."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from nsjax.multibody.coordinates import planar_vectors as plane
from nsjax.multibody.coordinates import spatial_vectors as space
from nsjax.multibody.coordinates.frames import Scene
from nsjax.multibody.joints.joint_kind import (
    JointKind,
    Push,
    across,
    axis_of,
    joint,
    separation,
    tilt,
    tilts,
)
from nsjax.multibody.parts import Part


def slide(
    name: str, first: str, second: str, *, at: Any = None, on: Any = None, axis: Any = None,
    turned: Any = None, limits: Any = None, restitution: Any = 0.0, friction: Any = None,
    armature: Any = None, motion: Any = None, loop: bool = False, friction_law: Any = None,
    own: Any = None, locked: Any = None,
) -> Part:  # fmt: skip
    """A slide: the second body moves along an axis of the first without turning.

    Args:
        name, first, second, at, on, loop: see `hinge`.
        axis: unit vector in the axes of the first body; None: the x axis.
        turned: rotation of the axes of the second body relative to the first: an angle [rad], in space a
            rotation vector (3,).
        limits: lower and upper limit of the displacement [m], None for no limit.
        restitution: coefficient of restitution at the limits.
        friction: bound of the dry friction [N].
        friction_law, own, locked: see `hinge`.
        armature: mass that the displacement drives [kg].
        motion: prescribed displacement ``(t) -> [m]``, see `hinge`; the joint exerts the force of this
            motion.

    Raises:
        InputError: see `hinge`.

    Example:
        >>> from nsjax.multibody import slide
        >>> slide("guide", "ground", "piston", limits=(0.0, 0.3)).numbers.upper
        0.3
    """
    return joint(
        "slide", name, first, second, motion, loop, at=at, on=on, axis=axis, turned=turned, limits=limits,
        restitution=restitution, friction=friction, armature=armature, friction_law=friction_law, own=own,
        locked=locked,
    )  # fmt: skip


def _residuals(scene: Scene, part: Part, numbers: Any) -> list[Any]:
    first, gone = scene.frame(part.bodies[0]), separation(scene, part, numbers)
    if scene.dimension == 2:
        axis = plane.turned(first.turn, axis_of(numbers, 2))
        return [plane.dot(plane.perp(axis), gone), tilt(scene, part, numbers)]
    one, two = (space.turned(first.turn, x) for x in across(axis_of(numbers, 3)))
    return [space.dot(one, gone), space.dot(two, gone), *tilts(scene, part, numbers, one)]


def displacement(scene: Scene, part: Part, numbers: Any) -> tuple[Any, Any]:
    """Displacement of the second body's joint point along ``axis`` of the first [m], and its rate."""
    a, (one, other) = scene.algebra, part.bodies
    first = scene.frame(one)
    axis = a.turned(first.turn, axis_of(numbers, scene.dimension))
    gone = separation(scene, part, numbers)
    arm = a.subtract(scene.point(other, numbers.on), first.origin)
    rate = a.subtract(scene.motion(other, scene.arm(other, numbers.on)), scene.motion(one, arm))
    return a.dot(axis, gone), a.dot(axis, rate)


def force_along(scene: Scene, part: Part, numbers: Any, effort: Any) -> Iterator[Push]:
    """A force along ``axis`` on the second body at its joint point, and the opposite force on the first."""
    a, (first, second) = scene.algebra, part.bodies
    push = a.scale(effort, a.turned(scene.frame(first).turn, axis_of(numbers, scene.dimension)))
    where = scene.point(second, numbers.on)
    yield second, push, where, None
    yield first, a.negative(push), where, None


SLIDE = JointKind(
    name="slide",
    rows={2: ("across", "angle"), 3: ("across1", "across2", "tilt1", "tilt2", "angle")},
    residuals=_residuals, sizes={2: (1, 1), 3: (1, 1)}, slides=1, measure=displacement,
    effort=force_along, first_axis=(1.0, 0.0, 0.0),
)  # fmt: skip
