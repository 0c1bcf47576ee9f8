"""Thrusters and propellers: a force and a moment along axes of a body, in proportion to one effort."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax.numpy as jnp

from nsjax.core import InputError
from nsjax.multibody.coordinates import planar_vectors as plane
from nsjax.multibody.coordinates.frames import Scene
from nsjax.multibody.joints.joint_kind import Push
from nsjax.multibody.loads.load_kind import Driven, End, LoadKind, end_of, refuse_ground
from nsjax.multibody.numbers import Number, Thruster
from nsjax.multibody.parts import GROUND, ONE, Part, made, number, record_of, user_value
from nsjax.types import Array, Fn


def thruster(
    name: str, body: End, effort: Any = None, *, axis: Any = None, moment: Any = None,
    law: Fn | None = None, own: Any = None, follower: bool = True, against: str = GROUND,
    switch: Fn | None = None,
) -> Part:  # fmt: skip
    """A thruster or propeller: force ``effort * axis`` and moment ``effort * moment`` on a body.

    Args:
        name: of the thruster.
        body: point of action: a body's name for its origin, or ``("drone", point)`` in body axes [m].
        effort: constant effort, of any unit that ``axis`` and ``moment`` turn into [N] and [N m].
        axis: force per effort, (2,) or (3,) in the axes of the body; None: no force.
        moment: moment per effort: a number in the plane; in space (3,) in the axes of the body; None: none.
        law: ``(t, length, rate, own) -> effort`` in place of ``effort``, like that of an `actuator`. The
            length is zero, and ``effort * rate`` is the power of the thruster.
        own: numbers for ``law``, any pytree.
        switch: surfaces of ``law``, a function of the same arguments; see `force`.
        follower: whether ``axis`` turns with the body; if not, it is given in the axes of the ground.
        against: body on which the opposite moment acts, as in a ball joint with motors.

    Raises:
        InputError: if effort and law are both given, or neither, without axis and moment, for a thruster on
            the ground, and for an axis together with ``against``.

    Example:
        >>> from nsjax.multibody import thruster
        >>> thruster("rotor", ("drone", (0.1, 0.1, 0.0)), 2.0, axis=(0, 0, 1), moment=(0, 0, 0.02)).bodies
        ('drone',)
    """
    if (effort is None) == (law is None):
        raise InputError(f"thruster {name!r}: give effort or law, one of them")
    if axis is None and moment is None:
        raise InputError(f"thruster {name!r}: neither axis nor moment; give one of them")
    if axis is not None and against != GROUND:
        raise InputError(
            f"thruster {name!r}: axis with against = {against!r}; only a moment has a reaction"
        )
    who, at = end_of("thruster", name, body)
    refuse_ground("thruster", name, who)
    effort = number("thruster", name, "effort", effort, form=ONE)
    kept = record_of(Thruster, "thruster", name, value=effort, at=at, axis=axis, moment=moment, own=own)
    bodies = (who,) if against == GROUND else (who, against)
    return made("thruster", name, bodies, kept, law=law, follower=follower, switch=switch)


def _lines(scene: Scene, part: Part, numbers: Any) -> tuple[Any, Any]:
    """Force and moment per effort in the axes of the ground; None for each that is absent."""
    a, turn = scene.algebra, scene.frame(part.bodies[0]).turn
    along = None if numbers.axis is None else a.vector(numbers.axis)
    if along is not None and part.option("follower"):
        along = a.turned(turn, along)
    about = numbers.moment
    if about is not None and scene.dimension == 3:
        about = a.turned(turn, a.vector(about))
    return along, about


def _rate(scene: Scene, part: Part, along: Any, about: Any, at: Number | None) -> Any:
    """Rate whose product with the effort is the power."""
    a, body, rate = scene.algebra, part.bodies[0], None
    if along is not None:
        rate = a.dot(along, scene.motion(body, scene.arm(body, at)))
    for name, sign in zip(part.bodies if about is not None else (), (1.0, -1.0), strict=False):
        spin = scene.frame(name).spin
        turned = a.dot(about, spin) if scene.dimension == 3 else plane.times(about, spin)
        rate = plane.plus(rate, plane.times(sign, turned))
    return rate


def _pushes(scene: Scene, part: Part, numbers: Any, driven: Driven) -> Iterator[Push]:
    a, body = scene.algebra, part.bodies[0]
    along, about = _lines(scene, part, numbers)
    effort = numbers.value
    if part.option("law") is not None:
        rate = plane.value(_rate(scene, part, along, about, numbers.at))
        given = scene.time, jnp.zeros(()), rate, numbers.own
        effort = user_value(part, "law", "t, length, rate, own", *given, shapes=((),))
    if along is not None:
        yield body, a.scale(effort, along), scene.point(body, numbers.at), None
    if about is not None:
        turning = a.scale(effort, about) if scene.dimension == 3 else plane.times(effort, about)
        for name, sign in zip(part.bodies, (1.0, -1.0), strict=False):
            yield name, None, None, sign * turning


def _exerts(scene: Scene, part: Part, numbers: Any, force: Array, torque: Array) -> Any:
    """Effort, from the force, or the moment on the last body, which is the reaction where there are two."""
    along, about = _lines(scene, part, numbers)
    one, found = (along, force) if along is not None else (about, torque)
    moment = along is None
    unit = plane.value(one) if moment and scene.dimension == 2 else scene.algebra.array(one)
    sign = -1.0 if moment and len(part.bodies) > 1 else 1.0
    return sign * jnp.sum(found * unit) / jnp.sum(unit * unit)


THRUSTER = LoadKind(name="thruster", pushes=_pushes, held=True, exerts=_exerts)
