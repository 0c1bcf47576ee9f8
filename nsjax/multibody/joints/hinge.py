"""Hinges, which leave one rotation about an axis free."""

from __future__ import annotations

from typing import Any

from nsjax.core import InputError
from nsjax.multibody.coordinates.frames import Scene
from nsjax.multibody.joints.joint_kind import (
    JointKind,
    components,
    joint,
    moment_about,
    relative_angle,
    separation,
    tilts,
)
from nsjax.multibody.parts import Part


def hinge(
    name: str, first: str, second: str, *, at: Any = None, on: Any = None, axis: Any = None,
    turned: Any = None, limits: Any = None, restitution: Any = 0.0, friction: Any = None,
    armature: Any = None, motion: Any = None, loop: bool = False, turns: bool = False,
    friction_law: Any = None, own: Any = None, locked: Any = None, active: Any = None,
) -> Part:  # fmt: skip
    """A hinge: one rotation of the second body relative to the first.

    Args:
        name, first, second: names of the joint and of its bodies; a body may be ``"ground"``.
        at, on: joint point in the axes of the first and of the second body [m]; a number lies on the
            x axis, None is the origin.
        axis: unit vector in the axes of the first body; None in the plane.
        turned: in space, rotation vector (3,) of the axes of the second body relative to the first at the
            angle zero.
        limits: lower and upper limit of the angle [rad], None for no limit.
        restitution: coefficient of restitution at the limits.
        friction: bound of the dry friction [N m].
        friction_law: law of the friction in place of its bound: `nsjax.multibody.OneWay`,
            `nsjax.multibody.Stribeck`, or a record of yours, see `nsjax.contact.RateLaw`, which gets the
            numbers of this joint.
        own: further numbers of this law and of the motion, ``params[name].own``: a mapping or record.
        armature: inertia that the angle drives [kg m^2].
        motion: prescribed angle ``(t) -> [rad]``, or ``(t, own) -> [rad]`` with the numbers ``own`` (a
            frequency, an amplitude); or a spline through measured values, `nsjax.signal` with
            ``kind="cubic"``, ``params[name].motion``. The joint exerts the moment of this motion.
        loop: whether this joint closes a loop; if no joint of a loop says so, one of them is chosen.
        turns: whether to count full turns, see Limits.
        locked: whether the angle is kept, True or False; None: never. ``resets`` of `nsjax.simulate` lock
            and release it within a run, ``(function, {"pin.locked": True})``.
        active: whether the joint is there, True or False: a pin that closes or opens within a run,
            ``(function, {"pin.active": False})``. Such a joint holds velocities, and the bodies as they are
            to each other when it closes, with the impulses of a plastic impact; it is no part of the tree,
            and has no limits, friction or motion. None: it is always there.

    Raises:
        InputError: for limits in the wrong order, an axis that is no unit vector, a body joined to itself.

    Limits: spatial hinges that are constraints have angles between -pi and pi. In absolute coordinates full
    turns are counted with ``turns``, or if a spring, limit or law reads the angle; such a hinge must turn
    less than half a turn in a step.

    Example:
        >>> from nsjax.multibody import hinge
        >>> hinge("pin", "crank", "rod", at=0.153)
        hinge('pin', 'crank', 'rod', at=0.153)
    """
    return joint(
        "hinge", name, first, second, motion, loop, at=at, on=on, axis=axis, turned=turned, limits=limits,
        restitution=restitution, friction=friction, armature=armature, turns=turns,
        friction_law=friction_law, own=own, locked=locked, active=active,
    )  # fmt: skip


def pin(name: str, first: str, second: str, **given: Any) -> Part:
    """A `hinge`, by its name in the plane.

    Args:
        name, first, second: see `hinge`.
        given: all other arguments of `hinge`.

    Example:
        >>> from nsjax.multibody import pin
        >>> pin("bearing", "ground", "crank", on=-0.1).kind
        'hinge'
    """
    return hinge(name, first, second, **given)


def _residuals(scene: Scene, part: Part, numbers: Any) -> list[Any]:
    point = components(scene, separation(scene, part, numbers))
    return point if scene.dimension == 2 else [*point, *tilts(scene, part, numbers)]


def _check(part: Part, dimension: int) -> None:
    x = part.numbers
    if dimension == 2 and x.turned is not None:
        raise InputError(
            f"hinge {part.name!r}: turned = {x.turned} in the plane, where angles count from the x "
            "axis of the ground; give start, or rest of a spring"
        )
    if dimension == 3 and x.axis is None:
        raise InputError(
            f"hinge {part.name!r}: the mechanism is spatial; give axis=(0, 0, 1), for instance"
        )


HINGE = JointKind(
    name="hinge", rows={2: ("x", "y"), 3: ("x", "y", "z", "tilt1", "tilt2")}, residuals=_residuals,
    sizes={2: (1, 1), 3: (1, 1)}, turns=("axis",), measure=relative_angle, effort=moment_about,
    check=_check,
)  # fmt: skip
