"""Motors in hinges and slides."""

from __future__ import annotations

from typing import Any

from nsjax.core import InputError
from nsjax.multibody import numbers
from nsjax.multibody.coordinates import planar_vectors as plane
from nsjax.multibody.loads.load_kind import LoadKind, with_law
from nsjax.multibody.parts import Part, made, number
from nsjax.multibody.user_laws import user_value
from nsjax.types import Fn


def actuator(name: str, joint: str, effort: Any = None, *, law: Fn | None = None, own: Any = None) -> Part:
    """A motor in a hinge [N m] or slide [N]: drives the second body and pushes back on the first. In a
    tendon it drives its length: an effort that is negative pulls.

    Args:
        name, joint: of the motor and of its joint or tendon.
        effort: constant.
        law: ``(t, coordinate, rate, own) -> effort``, a controller for instance.
        own: numbers for ``law``.

    Raises:
        InputError: for effort and law at once, and for neither.

    Example:
        >>> from nsjax.multibody import actuator
        >>> actuator("motor", "bearing", law=lambda t, angle, rate, own: own * (9.0 - rate), own=1e-3).kind
        'actuator'
    """
    if (effort is None) == (law is None):
        raise InputError(f"actuator {name!r}: give effort or law, one of them")
    kept = numbers.Load(value=number("actuator", name, "effort", effort), own=own)
    return made("actuator", name, (), kept, law=law, joint=joint)


def _effort(part: Part, numbers: Any, t: Any, x: Any, rate: Any) -> Any:
    if part.option("law") is None:
        return numbers.value
    given = t, plane.value(x), plane.value(rate), numbers.own
    return user_value(part, "law", "t, coordinate, rate, own", *given, shapes=((),))


ACTUATOR = LoadKind(name="actuator", effort=_effort, reads_angle=with_law, in_line=True)
