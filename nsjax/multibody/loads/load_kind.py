"""The record of a kind of load: its forces, its energy, and how it is checked and drawn."""

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
"""The joint in which a load acts, and the numbers of that joint; None for a load on bodies."""


def _never(part: Part) -> bool:
    """Answer of a load that reads no coordinates of joints."""
    return False


def on_a_coordinate(part: Part, joint: Part) -> None:
    """Refuses a joint that has no coordinate."""
    if kind_of(joint).measure is None:
        raise InputError(
            f"{part.kind} {part.name!r}: {joint.name!r} is a {joint.kind} joint; name a hinge or slide, or "
            "give a kind of your own its measure and effort"
        )


@dataclasses.dataclass(frozen=True, eq=False)
class LoadKind:
    """A kind of loads: an entry of `nsjax.multibody.loads.KINDS` with all that defines it.

    A load acts on bodies (``pushes``), on the coordinate of a joint (``effort``), along a beam (``along``),
    or is a tendon (``line``).

    Args:
        name: name of the function that makes such a load.
        pushes: ``(scene, part, numbers, driven) -> iterator`` of forces and moments on bodies
            (`nsjax.multibody.joints.joint_kind.Push`).
        effort: ``(part, numbers, t, coordinate, rate) -> scalar or None``, moment [N m] or force [N] on the
            coordinate of its joint. A load with an effort needs ``pushes`` only for joints without a
            coordinate.
        energy: ``(scene, part, numbers, driven) -> scalar or None``, stored energy [J].
        fits: ``(part, joint)``, raises for a joint in which the load cannot act.
        reads_angle: ``(part) -> bool``, whether the load reads the coordinate of its joint.
        sees_scene: ``(part) -> bool``, whether the load reads the coordinates of all joints.
        check: ``(scene, part, numbers)``, raises if the force has no direction at the start.
        along: ``(topology, tree, part, t, q, p) -> (n, 6)``, forces and moments on the nodes of a beam.
        of_beam: ``(part, beams) -> part``, checks and completes a load along one of the ``beams``, a dict
            by name.
        line: ``(scene, topology, part, params) -> nsjax.multibody.loads.lines.Line``, length of a tendon,
            on which its own effort and those of actuators act. Its numbers ``lower``, ``upper``,
            ``restitution`` and ``friction`` are rigid stops and dry friction.
        in_line: whether the load may act on a tendon in place of a joint.
        held: whether pictures mark its points of action on the bodies.
        shapes: ``(scene, part, numbers) -> list``, shapes that pictures show.
        exerts: ``(scene, part, numbers, force, torque) -> scalar``, the number that it exerts, from its
            force and torque on its last body; None: its effort.

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
    exerts: Callable[[Scene, Part, Any, Array, Array], Any] | None = None


End = Any
"""A point of a body: the body's name for its origin, or a pair of name and point in body axes [m]."""


def end_of(kind: str, name: str, end: End) -> tuple[str, Any]:
    """Name of the body, and point in body axes [m] or None for its origin.

    Raises:
        InputError: if the end is neither a name nor such a pair.
    """
    if isinstance(end, str):
        return end, None
    if isinstance(end, tuple) and len(end) == 2 and isinstance(end[0], str):
        return end
    raise InputError(f"{kind} {name!r}: end {end!r}; give a body's name, or a pair ('rod', 0.3)")


def with_law(part: Part) -> bool:
    """Whether a user's function (``law``) gives the load."""
    return part.option("law") is not None
