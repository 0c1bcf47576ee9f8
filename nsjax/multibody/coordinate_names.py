"""Names of coordinates, and observables of bodies by name."""

from __future__ import annotations

from collections.abc import Sequence

from nsjax.multibody.coordinates.frames import Scene
from nsjax.multibody.coordinates.turn_counts import labels
from nsjax.multibody.flexible.elements import kind_of
from nsjax.multibody.joints import KINDS as JOINTS
from nsjax.multibody.topology import Link, Topology
from nsjax.types import Array, PyTree


def titled(topology: Topology) -> str:
    """The name of a mechanism in reports."""
    bodies = tuple(x.name for x in topology.all_of("body", "beam"))
    most = 4  # largest number of bodies that a title names
    more = f" and {len(bodies) - most} more" if len(bodies) > most else ""
    return f"mechanism of {', '.join(bodies[:most])}{more}"


def coordinate_labels(topology: Topology) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Labels of positions, velocities and observables."""
    q: list[str] = []
    v: list[str] = []
    for link in sorted(topology.links, key=lambda x: x.q):
        one, other = link.kind.coordinate_names(link.body, link.joint or "", topology.dimension)
        q, v = q + one, v + other
    for part in topology.all_of("beam"):
        q = q + kind_of(part).labels(part)
    q = q + labels(topology.counted)
    known = {x.split(" [")[0] for x in q}
    names = [f"{link.body}.{x} [m]" for link in _observed(topology) for x in "xyz"[: topology.dimension]]
    return tuple(q), tuple(v), tuple(x for x in names if x.split(" [")[0] not in known)


def units_of_gaps(contacts: int, limits: Sequence[tuple[str, str]], topology: Topology) -> tuple[str, ...]:
    """Units of the gaps of contacts, then of the limits of joints: of an angle, or of a displacement."""
    angles = {x.name for x in topology.parts if x.kind in JOINTS and JOINTS[x.kind].turns}
    return ("m",) * contacts + tuple("rad" if name in angles else "m" for name, _ in limits)


def _observed(topology: Topology) -> list[Link]:
    # number of bodies up to which their positions are observables; with more, use `Trajectory.body`
    observed = 12
    return sorted(topology.links, key=lambda x: x.q) if len(topology.links) <= observed else []


def observed(scene: Scene, topology: Topology) -> dict[str, Array]:
    """Observables: positions of the origins of the bodies by name [m]."""
    found = {}
    for link in _observed(topology):
        if link.free:
            continue
        place = scene.position(link.body)
        for k, x in enumerate("xyz"[: topology.dimension]):
            found[f"{link.body}.{x}"] = place[k]
    return found


def input_name(name: str, params: PyTree) -> str:
    """Path, in params, of the input of a load: its value, or the target of its law."""
    given = params[name]
    if not hasattr(given, "value"):
        return name
    if given.value is not None:
        return f"{name}.value"
    target = getattr(given.own, "target", None)
    return name if target is None else f"{name}.own.{target}"
