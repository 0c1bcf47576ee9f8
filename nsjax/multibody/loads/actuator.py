"""Motors in hinges, slides and tendons."""

from __future__ import annotations

from typing import Any

from nsjax.core import InputError
from nsjax.multibody import numbers
from nsjax.multibody.coordinates import planar_vectors as plane
from nsjax.multibody.loads.load_kind import LoadKind, with_law
from nsjax.multibody.parts import ONE, Part, made, number, user_value
from nsjax.types import Fn


def actuator(
    name: str, joint: str, effort: Any = None, *, law: Fn | None = None, own: Any = None,
    switch: Fn | None = None,
) -> Part:  # fmt: skip
    """A motor in a hinge, a slide or a tendon.

    Its effort is a moment [N m] in a hinge, a force [N] in a slide or tendon. It acts on the second body of
    the joint, its reaction on the first. A positive effort increases the coordinate of the joint, or the
    length of the tendon: a negative one pulls.

    Args:
        name: of the motor.
        joint: name of its joint or tendon.
        effort: constant effort [N m] or [N].
        law: ``(t, coordinate, rate, own) -> effort``, for instance a controller, in place of ``effort``.
        own: numbers for ``law``, any pytree.
        switch: surfaces of ``law``, a function of the same arguments; see `force`.

    Raises:
        InputError: if effort and law are both given, or neither.

    Example:
        >>> from nsjax.multibody import actuator
        >>> actuator("motor", "bearing", law=lambda t, angle, rate, own: own * (9.0 - rate), own=1e-3).kind
        'actuator'
    """
    if (effort is None) == (law is None):
        raise InputError(f"actuator {name!r}: give effort or law, one of them")
    kept = numbers.Load(value=number("actuator", name, "effort", effort, form=ONE), own=own)
    return made("actuator", name, (), kept, law=law, joint=joint, switch=switch)


def _effort(part: Part, numbers: Any, t: Any, x: Any, rate: Any) -> Any:
    if part.option("law") is None:
        return numbers.value
    given = t, plane.value(x), plane.value(rate), numbers.own
    return user_value(part, "law", "t, coordinate, rate, own", *given, shapes=((),))


ACTUATOR = LoadKind(name="actuator", effort=_effort, reads_angle=with_law, in_line=True)
