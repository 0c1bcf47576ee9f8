"""The slider-crank of Table 1 of [R&S] from parts, and its numbers beside those of the hand-written one."""

from __future__ import annotations

from typing import Any

from nsjax import State, models
from nsjax.multibody import Part, assemble, body, contact, corners, hinge, walls
from nsjax.types import Array

PARTS: tuple[Part, ...] = (
    body("crank", mass=0.038, inertia=7.4e-5, com=0.0765),
    body("rod", mass=0.038, inertia=5.9e-4, com=0.153),
    body("slider", mass=0.076, inertia=2.7e-6),
    hinge("bearing", "ground", "crank"),
    hinge("pin", "crank", "rod", at=0.153),
    hinge("wrist", "rod", "slider", at=0.306),
    contact(
        "guide", corners("slider", 0.05, 0.025), walls(-0.026, 0.026), restitution=0.4, friction=0.01
    ),
)  # fmt: skip
START = {"crank": (0.0, 150.0), "rod": (0.0, -75.0)}
FROM_PARTS = assemble(*PARTS, gravity=9.81, start=START)
BY_HAND = models.slider_crank()

VARIED = (0.038, 0.153, 0.001)
"""Mass of the rod, length of the crank, clearance: what `vary` and `vary_by_hand` take."""


def vary(p: Array) -> tuple[Any, State]:
    """The crank of another length is uniform again, both walls move."""
    changed = FROM_PARTS.replace({
        "rod.mass": p[0], "pin.at": p[1], "crank.com": p[1] / 2,
        "guide.second.upper": 0.025 + p[2], "guide.second.lower": -(0.025 + p[2]),
    })  # fmt: skip
    return changed.params, changed.state


def vary_by_hand(p: Array) -> tuple[Any, State]:
    changed = models.slider_crank(rod_mass=p[0], crank_length=p[1], clearance=p[2])
    return changed.params, changed.state
