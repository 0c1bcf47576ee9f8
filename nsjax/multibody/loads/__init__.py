"""Loads of a mechanism: springs, motors, tendons, forces and moments, and their sums on every body.

Each kind of load has a file of its own. A new kind is one more file with a `LoadKind`, and its entry in
`KINDS`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from nsjax.multibody.coordinates import planar_vectors as plane
from nsjax.multibody.coordinates.frames import Scene, still_frames
from nsjax.multibody.joints import kind_of as joint_kind
from nsjax.multibody.joints.joint_kind import Push
from nsjax.multibody.loads.actuator import ACTUATOR, actuator
from nsjax.multibody.loads.ellipsoid_drag import ELLIPSOID_DRAG, ellipsoid_drag
from nsjax.multibody.loads.fluid_drag import FLUID_DRAG, fluid_drag
from nsjax.multibody.loads.force import FORCE, force
from nsjax.multibody.loads.joint_spring import JOINT_SPRING, joint_spring
from nsjax.multibody.loads.joint_tendon import JOINT_TENDON, joint_tendon
from nsjax.multibody.loads.line_load import LINE_LOAD, line_load
from nsjax.multibody.loads.load_kind import Line, LoadKind
from nsjax.multibody.loads.spring import SPRING, spring
from nsjax.multibody.loads.tendon import TENDON, tendon
from nsjax.multibody.loads.thruster import THRUSTER, thruster
from nsjax.multibody.loads.torque import TORQUE, torque
from nsjax.multibody.parts import GROUND, Part, registered, with_surfaces
from nsjax.types import Array, PyTree

KINDS: dict[str, LoadKind] = {
    x.name: x
    for x in (
        SPRING, JOINT_SPRING, ACTUATOR, FORCE, TORQUE, THRUSTER, FLUID_DRAG, LINE_LOAD, TENDON,
        JOINT_TENDON, ELLIPSOID_DRAG,
    )
}  # fmt: skip
"""Kinds of loads by their names (`nsjax.multibody.parts.Part.kind`)."""

__all__ = [
    "KINDS", "Line", "LoadKind", "Push", "actuator", "ellipsoid_drag", "ends_of", "energy_of",
    "fluid_drag", "force", "has_line", "joint_effort", "joint_spring", "joint_tendon", "kind_of",
    "length_of", "line_load", "line_of", "potential", "pushes", "pushes_of", "rubs_on_drum", "spring",
    "surfaces", "tendon", "thruster", "torque", "wrenches",
]  # fmt: skip


def kind_of(part: Part) -> LoadKind:
    """The kind of a load."""
    return registered(KINDS, part.kind)


def has_line(part: Part) -> bool:
    """Whether a part is a tendon: a length on which springs, dampers and actuators act."""
    kind = KINDS.get(part.kind)
    return kind is not None and kind.line is not None


def line_of(scene: Scene, topology: Any, part: Part, p: PyTree) -> Line:
    """Length and rate of a tendon, and the forces that it exerts, as a `Line`."""
    line: Any = kind_of(part).line
    return line(scene, topology, part, p)


def length_of(scene: Scene, topology: Any, part: Part, p: PyTree, moving: bool) -> tuple[Any, Any]:
    """Length of a tendon [m] and its rate [m/s]; None without ``moving``: the scene has no velocities."""
    still = scene if moving else dataclasses.replace(scene, frames=still_frames(scene))
    line = line_of(still, topology, part, p)
    return line.length, line.rate if moving else None


def rubs_on_drum(part: Part) -> bool:
    """Whether a part is a rope with capstan friction."""
    return has_line(part) and part.numbers.capstan_friction is not None


def ends_of(topology: Any, part: Part) -> tuple[str, ...]:
    """Names of the bodies on which a load acts, those of its joints included."""
    joint, joints = part.option("joint"), part.option("joints") or ()
    if joint is not None:
        return ends_of(topology, topology.of[joint])
    return part.bodies + tuple(x for name in joints for x in topology.of[name].bodies)


def _driven(topology: Any, part: Part, p: PyTree) -> tuple[Part, Any] | None:
    name = part.option("joint")
    return None if name is None else (topology.of[name], p[name])


def pushes(scene: Scene, topology: Any, p: PyTree, which: tuple[Part, ...] | None = None) -> Iterator[Push]:
    """Forces and moments on bodies by the loads ``which``; None: by all loads of the mechanism."""
    for part in topology.loads if which is None else which:
        yield from pushes_of(scene, topology, part, p)


def pushes_of(scene: Scene, topology: Any, part: Part, p: PyTree) -> Iterator[Push]:
    """Forces and moments on bodies by one load."""
    kind, numbers, driven = kind_of(part), p[part.name], _driven(topology, part, p)
    tendon = part if driven is None else driven[0]
    if has_line(tendon):
        line, act = line_of(scene, topology, tendon, p), kind.effort
        effort = None if act is None else act(part, numbers, scene.time, line.length, line.rate)
        yield from () if effort is None else line.act(effort)
        return
    if driven is None or joint_kind(driven[0]).measure is None:
        if kind.pushes is not None:
            yield from kind.pushes(scene, part, numbers, driven)
        return
    if kind.effort is not None:
        x, rate = scene.coordinates(driven[0].name)
        yield from joint_effort(scene, *driven, kind.effort(part, numbers, scene.time, x, rate))


def surfaces(scene: Scene, topology: Any, p: PyTree) -> list[Array]:
    """Values of the surfaces on which the laws of loads jump (``switch``), an array (k,) for each law."""
    found: list[Array] = []
    for part in topology.loads:
        if part.option("switch") is not None:
            for _ in pushes_of(scene, topology, with_surfaces(part, found), p):
                pass
    return found


def joint_effort(scene: Scene, joint: Part, numbers: Any, effort: Any) -> Iterator[Push]:
    """Forces and moments of an ``effort`` on the coordinate of a joint: on its second body, and the
    reaction on its first. The effort is a moment [N m] in a hinge, a force [N] in a slide; None: none.
    """
    act = joint_kind(joint).effort
    if effort is not None and act is not None:
        yield from act(scene, joint, numbers, effort)


def wrenches(scene: Scene, found: Iterator[Push]) -> dict[str, tuple[Any, Any]]:
    """Resultant force [N] on each body and moment [N m] about its origin, in the axes of the ground.
    Returns a dict from the body's name to the pair. The ground has no entry.
    """
    a = scene.algebra
    total: dict[str, tuple[Any, Any]] = {}
    add = plane.plus if scene.dimension == 2 else a.add
    for body, push, point, turning in found:
        if body == GROUND:
            continue
        if push is not None:
            turning = add(turning, a.moment(a.subtract(point, scene.frame(body).origin), push))
        old, before = total.get(body, (a.ZERO, None))
        total[body] = (old if push is None else a.add(old, push)), add(before, turning)
    return total


def potential(scene: Scene, topology: Any, p: PyTree) -> Array:
    """Energy stored in all loads, springs and tendons [J]."""
    total = None
    for part in topology.loads:
        total = plane.plus(total, energy_of(scene, topology, part, p))
    return plane.value(total)


def energy_of(scene: Scene, topology: Any, part: Part, p: PyTree) -> Any:
    """Energy stored in a load [J], a scalar; None for a load that stores none."""
    energy = kind_of(part).energy
    return None if energy is None else energy(scene, part, p[part.name], _driven(topology, part, p))
