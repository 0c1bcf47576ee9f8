"""The record of a kind of load: its forces and its energy."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

from nsjax.core import InputError
from nsjax.multibody.coordinates.frames import Scene
from nsjax.multibody.joints import kind_of
from nsjax.multibody.joints.joint_kind import Push
from nsjax.multibody.parts import Part
from nsjax.shapes import Shape
from nsjax.types import Array

Driven = tuple[Part, Any] | None
"""The joint in which a load acts, and its numbers; None for a load on bodies."""


def _never(part: Part) -> bool:
    """A load that reads no coordinates."""
    return False


def on_a_coordinate(part: Part, joint: Part) -> None:
    """Refuses joints without a coordinate."""
    if kind_of(joint).measure is None:
        raise InputError(
            f"{part.kind} {part.name!r}: {joint.name!r} is a {joint.kind} joint; name a hinge or slide"
        )


@dataclasses.dataclass(frozen=True, eq=False)
class LoadKind:
    """Loads of one kind, springs and motors among them: one entry of `nsjax.multibody.loads.KINDS`, and all
    that is known of them.

    Args:
        name: that of the function that makes one.
        pushes: ``(scene, part, numbers, driven)``: forces and moments on bodies.
        effort: ``(part, numbers, t, coordinate, rate)``, moment or force on the coordinate of its joint; a
            scalar or None. Loads that have one need no pushes where their joint has a coordinate.
        energy: ``(scene, part, numbers, driven)`` [J], a scalar or None.
        fits: ``(part, joint)``, raises for joints in which it cannot act.
        reads_angle: ``(part)``, whether it reads the coordinate of its joint.
        sees_scene: ``(part)``, whether it reads the coordinates of all joints.
        check: ``(scene, part, numbers)``, raises for a start at which it has no direction.
        along: ``(topology, tree, part, t, q, p) -> (n, 6)``: forces on the nodes of beams, of a load along
            one.
        of_beam: ``(part, beams) -> part``, once the beam along which it acts is known by its name.
        line: ``(scene, topology, part, params)``, a length on which its effort and those of actuators
            act, as a `nsjax.multibody.loads.lines.Line`; ``lower``, ``upper``, ``restitution`` and
            ``friction`` of its numbers are stops and dry friction.
        in_line: whether it may act on such a length in place of a joint.
        held: whether the points at which it acts are drawn on its bodies.
        shapes: ``(scene, part, numbers)``, what it looks like.

    Example:
        >>> from nsjax.multibody.loads import KINDS
        >>> KINDS["spring"].energy is not None, KINDS["force"].energy is not None
        (True, False)
    """

    name: str
    pushes: Callable[[Scene, Part, Any, Driven], Iterator[Push]] | None = None
    effort: Callable[[Part, Any, Any, Any, Any], Any] | None = None
    energy: Callable[[Scene, Part, Any, Driven], Any] | None = None
    fits: Callable[[Part, Part], None] = on_a_coordinate
    reads_angle: Callable[[Part], bool] = _never
    sees_scene: Callable[[Part], bool] = _never
    check: Callable[[Scene, Part, Any], None] | None = None
    along: Callable[[Any, Any, Part, Array, Array, Any], Array] | None = None
    of_beam: Callable[[Part, dict[str, Part]], Part] | None = None
    line: Callable[[Scene, Any, Part, Any], Any] | None = None
    in_line: bool = False
    held: bool = False
    shapes: Callable[[Scene, Part, Any], list[Shape]] | None = None


End = Any
"""A body's name for its origin, or a pair of name and point in body axes [m]."""


def end_of(kind: str, name: str, end: End) -> tuple[str, Any]:
    """Body and point of an end.

    Raises:
        InputError: for what is neither a name nor a pair.
    """
    if isinstance(end, str):
        return end, None
    if isinstance(end, tuple) and len(end) == 2 and isinstance(end[0], str):
        return end
    raise InputError(f"{kind} {name!r}: end {end!r}; give a body's name, or a pair ('rod', 0.3)")


def with_law(part: Part) -> bool:
    """Whether a user's function tells the load."""
    return part.option("law") is not None
