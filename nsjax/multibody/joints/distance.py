"""Massless rods, which keep the distance of two points."""

from __future__ import annotations

from typing import Any

from nsjax.core import InputError
from nsjax.multibody.coordinates.frames import Scene
from nsjax.multibody.joints.joint_kind import JointKind, joint, separation
from nsjax.multibody.parts import NEEDED, Part, number
from nsjax.types import is_traced


def distance(name: str, first: str, second: str, *, length: Any, at: Any = None, on: Any = None) -> Part:
    """A massless rod: the distance of a point of the first body and one of the second is ``length`` [m].

    Args:
        name, first, second, at, on: see `hinge`.
        length: of the rod [m], above zero.

    Raises:
        InputError: for a length that is not positive.

    Example:
        >>> from nsjax.multibody import distance
        >>> distance("link", "crank", "rocker", at=0.1, on=0.2, length=0.4).numbers.length
        0.4
    """
    length = number("distance", name, "length", length, form=NEEDED)
    if not is_traced(length) and not length > 0.0:
        raise InputError(
            f"distance {name!r}: length = {length!r}; it must be positive, or use a pin or ball"
        )
    return joint("distance", name, first, second, None, True, at=at, on=on, length=length)


def _residuals(scene: Scene, part: Part, numbers: Any) -> list[Any]:
    return [scene.algebra.size(separation(scene, part, numbers)) - numbers.length]


DISTANCE = JointKind(
    name="distance", rows={2: ("",), 3: ("",)}, residuals=_residuals, framed=False, drawn="line"
)
