"""A pile of five boxes that a jointed arm pushes, for the tests of groups of contacts."""

from __future__ import annotations

from typing import Any

from nsjax import Problem
from nsjax.multibody import assemble, body, box, contact_group, hinge, joint_spring, plane, sphere, torque

HALF = 0.05
"""Half edge of a box [m]."""

BOXES = ("a", "b", "c", "d", "e")


def pile(capacity: int | None, dimension: int = 2, coordinates: str = "joint") -> Problem:
    """Three boxes side by side on the ground, two on them, and an arm of two links that hangs beside: its
    motor presses the ball at its end against the first box.
    """
    flat = dimension == 2
    up = () if flat else (0.0,)
    axis = {} if flat else {"axis": (0.0, -1.0, 0.0)}
    links, weight = ("upper", "fore"), 1.0 / 600.0
    parts: list[Any] = [
        body(x, mass=0.4, inertia=2e-3 if flat else (2e-4, 2e-3, 2e-3), com=0.1) for x in links
    ]
    parts += [body(x, mass=1.0, inertia=weight if flat else (weight,) * 3) for x in BOXES]
    parts += [
        hinge("shoulder", "ground", "upper", at=(-0.348, *up, 0.248), friction=0.02, **axis),
        hinge("elbow", "upper", "fore", at=0.2, limits=(-2.5, 2.5), **axis),
        joint_spring("tendon", "elbow", stiffness=20.0, damping=0.1, rest=1.7),
        torque("motor", "upper", 5.0 if flat else (0.0, -5.0, 0.0)),
    ]
    shapes = [box(x, HALF, HALF, None if flat else HALF) for x in BOXES]
    group = contact_group(
        "touch", [*shapes, sphere("fore", 0.02, at=0.2), plane()], friction=0.3, capacity=capacity
    )
    places = [(-0.1, HALF), (0.005, HALF), (0.11, HALF), (-0.045, 3 * HALF), (0.06, 3 * HALF)]
    start: dict[str, Any] = {
        x: (at[0], *up, at[1], *((0.0,) if flat else ())) for x, at in zip(BOXES, places, strict=True)
    }
    start |= {"upper": -1.7, "fore": 0.0 if flat else 1.7}
    return assemble(*parts, group, gravity=9.81, coordinates=coordinates, start=start)
