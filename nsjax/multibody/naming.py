"""Names of coordinates, and quantities of bodies by name."""

from __future__ import annotations

from nsjax.multibody.frames import Scene
from nsjax.multibody.incremental import point_labels
from nsjax.multibody.topology import Link, Topology
from nsjax.multibody.turns import labels
from nsjax.types import Array

OBSERVED = 12
"""Bodies up to which positions are observables of their own; of more, ask `Trajectory.body`."""


def _labels(link: Link, dimension: int) -> tuple[list[str], list[str]]:
    """Of the coordinates and velocities of a body."""
    body, joint = link.body, link.joint
    if link.kind == "hinge":
        name = body if dimension == 2 else joint
        return [f"{name}.angle [rad]"], [f"{name}.omega [rad/s]"]
    slide = [f"{joint}.position [m]"], [f"{joint}.speed [m/s]"]
    turns = [f"{joint}.q{x}" for x in "wxyz"], [f"{joint}.omega{k} [rad/s]" for k in (1, 2, 3)]
    if link.kind == "free":
        names = "xyz"[:dimension]
        places, rates = [f"{body}.{x} [m]" for x in names], [f"{body}.v{x} [m/s]" for x in names]
        if dimension == 2:
            return [*places, f"{body}.angle [rad]"], [*rates, f"{body}.omega [rad/s]"]
        q, v = [f"{body}.q{x}" for x in "wxyz"], [f"{body}.omega{k} [rad/s]" for k in (1, 2, 3)]
        return places + q, rates + v
    both = {
        "slide": slide, "fixed": ([], []), "ball": turns,
        "cylindrical": (
            [*slide[0], f"{joint}.angle [rad]"], [*slide[1], f"{joint}.omega [rad/s]"],
        ),
        "universal": (
            [f"{joint}.angle{k} [rad]" for k in (1, 2)], [f"{joint}.omega{k} [rad/s]" for k in (1, 2)],
        ),
    }  # fmt: skip
    return both[link.kind]


def coordinate_labels(topology: Topology) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Labels of positions, velocities and observables."""
    q: list[str] = []
    v: list[str] = []
    for link in sorted(topology.links, key=lambda x: x.q):
        one, other = _labels(link, topology.dimension)
        q, v = q + one, v + other
    for part in topology.all_of("beam"):
        q = q + (point_labels(part) if part.option("incremental") else [])
    q = q + labels(topology.counted)
    known = {x.split(" [")[0] for x in q}
    names = [f"{link.body}.{x} [m]" for link in _observed(topology) for x in "xyz"[: topology.dimension]]
    return tuple(q), tuple(v), tuple(x for x in names if x.split(" [")[0] not in known)


def _observed(topology: Topology) -> list[Link]:
    return sorted(topology.links, key=lambda x: x.q) if len(topology.links) <= OBSERVED else []


def observed(scene: Scene, topology: Topology) -> dict[str, Array]:
    """Origins of the axes of the bodies."""
    found = {}
    for link in _observed(topology):
        if link.kind == "free":
            continue
        place = scene.position(link.body)
        for k, x in enumerate("xyz"[: topology.dimension]):
            found[f"{link.body}.{x}"] = place[k]
    return found
