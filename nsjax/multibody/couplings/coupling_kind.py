"""The record of a kind of coupling between the coordinates of joints."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from nsjax.core import InputError
from nsjax.multibody.joints import KINDS as JOINTS
from nsjax.multibody.loads import has_line
from nsjax.multibody.number_checks import record_of
from nsjax.multibody.numbers import Coupling
from nsjax.multibody.parts import Part, made


@dataclasses.dataclass(frozen=True, eq=False)
class CouplingKind:
    """A kind of couplings: an entry of `nsjax.multibody.couplings.KINDS` with all that defines it.

    A coupling is one constraint row: the coordinate of a joint, or the length of a tendon, is a function of
    the coordinate or length of another one. It acts like motors in both, whose efforts together do no work.

    Args:
        name: name of the function that makes such a coupling.
        value: ``(numbers, x)``, the coordinate of the joint at the coordinate ``x`` of the other one (zero
            without another joint).
        fits: ``(part, joint, of)``, raises for joints that it cannot couple; None: it couples all joints
            with a coordinate.
        drawn: what pictures show in its hinges: ``"gears"``, wheels in both; ``"pinion"``, one in the
            second; empty: nothing.

    Example:
        >>> from nsjax.multibody.couplings import KINDS
        >>> sorted(KINDS)
        ['coupling', 'gear', 'rack_pinion']
    """

    name: str
    value: Callable[[Coupling, Any], Any]
    fits: Callable[[Part, Part, Part], None] | None = None
    drawn: str = ""

    def residual(self, numbers: Coupling, x: list[Any]) -> Any:
        """Residual of the row [rad or m] at the coordinates of its joints."""
        return x[0] - self.value(numbers, x[1] if len(x) > 1 else 0.0)

    def check(self, part: Part, known: dict[str, Part]) -> None:
        """Refuse joints without a single coordinate, and joints that the kind does not fit."""
        joints = [known[name] for name in part.option("joints")]
        for joint in joints:
            if has_line(joint):
                continue
            if JOINTS[joint.kind].measure is None:
                raise InputError(
                    f"{part.kind} {part.name!r}: {joint.name!r} is a {joint.kind} joint, which does not "
                    "have a single coordinate; name a hinge or slide"
                )
            if joint.option("motion") is not None and len(joints) == 1:
                raise InputError(
                    f"{part.kind} {part.name!r}: {joint.name!r} has a prescribed motion; leave one out"
                )
        if self.fits is not None:
            self.fits(part, joints[0], joints[-1])


def coupled(kind: str, name: str, joint: str, of: str | None, **given: Any) -> Part:
    """A coupling as a part, after checks of its numbers."""
    if joint == of:
        raise InputError(f"{kind} {name!r}: couples {joint!r} to itself; name two joints")
    kept = record_of(Coupling, kind, name, **given)
    return made(kind, name, (), kept, joints=(joint,) if of is None else (joint, of))
