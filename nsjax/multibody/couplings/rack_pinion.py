"""Racks and pinions, which keep a displacement proportional to an angle."""

from __future__ import annotations

from typing import Any

from nsjax.core import InputError
from nsjax.multibody.couplings.coupling_kind import CouplingKind, coupled
from nsjax.multibody.joints import KINDS as JOINTS
from nsjax.multibody.loads import has_line
from nsjax.multibody.numbers import Coupling
from nsjax.multibody.parts import Part


def rack_pinion(name: str, rack: str, pinion: str, *, radius: Any, offset: Any = 0.0) -> Part:
    """A pinion that drives a rack: the displacement of the slide ``rack`` is
    ``offset + radius * (angle of pinion)``.

    Args:
        name: of the coupling; its numbers are ``params[name].ratio`` (the radius) and ``offset``.
        rack, pinion: names of a slide and of a hinge.
        radius: of the pitch circle [m]; negative if the rack moves the other way.
        offset: displacement of the rack at the angle zero [m].

    Raises:
        InputError: for joints that are no slide and hinge, and as for `gear`.

    Limits: those of `gear`.

    Example:
        >>> from nsjax.multibody import rack_pinion
        >>> rack_pinion("steering", "rod", "wheel", radius=0.02).numbers.ratio
        0.02
    """
    return coupled("rack_pinion", name, rack, pinion, ratio=radius, offset=offset)


def _value(numbers: Coupling, x: Any) -> Any:
    return numbers.offset + numbers.ratio * x


def _fits(part: Part, rack: Part, pinion: Part) -> None:
    tendons = has_line(rack) or has_line(pinion)
    if tendons or JOINTS[rack.kind].turns or not JOINTS[pinion.kind].turns:
        raise InputError(
            f"rack_pinion {part.name!r}: {rack.name!r} is a {rack.kind} and {pinion.name!r} a "
            f"{pinion.kind}; name a slide and a hinge, in this order"
        )


RACK_PINION = CouplingKind(name="rack_pinion", value=_value, fits=_fits, drawn="pinion")
