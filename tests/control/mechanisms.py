"""Mechanisms of the tests of control: a hopper, an arm, a cart with a pole."""

from __future__ import annotations

from typing import Any

import numpy as np

from nsjax import Problem
from nsjax.multibody import actuator, assemble, body, contact, force, hinge, plane, servo, slide, sphere

GRAVITY = 9.81


def hopper(coordinates: str = "joint") -> Problem:
    """A trunk on a vertical guide, a leg that slides in it with a motor and limits, a foot that lands."""
    return assemble(
        body("trunk", mass=3.0, inertia=0.1), slide("guide", "ground", "trunk", axis=(0.0, 1.0)),
        body("leg", mass=0.5, inertia=0.01),
        slide("thigh", "trunk", "leg", axis=(0.0, -1.0), limits=(0.2, 0.8)),
        servo("motor", "thigh", position=0.5, stiffness=800.0, damping=30.0, limit=200.0),
        contact("foot", sphere("leg", 0.05), plane()),
        gravity=GRAVITY, coordinates=coordinates, start={"trunk": 0.75, "thigh": 0.5},
    )  # fmt: skip


def arm(coordinates: str, dimension: int, **end: Any) -> Problem:
    """Two links in hinges with a servo, a motor and a limit, over the ground."""
    flat = dimension == 2
    more: dict[str, Any] = {} if flat else {"axis": (0.0, 0.0, 1.0)}
    still = (0.0,) if flat else (0.0, 0.0)
    inertia = 0.1 if flat else (0.1, 0.1, 0.1)
    gravity = GRAVITY if flat else (0.0, -GRAVITY, 0.0)
    return assemble(
        body("upper", mass=1.0, inertia=inertia, com=0.5), hinge("shoulder", "ground", "upper", **more),
        body("lower", mass=1.0, inertia=inertia, com=0.5),
        hinge("elbow", "upper", "lower", at=1.0, limits=(-1.0, 1.0), **more),
        servo("servo", "elbow", position=0.0, stiffness=30.0, damping=2.0, limit=8.0),
        actuator("motor", "shoulder", 2.0),
        contact(
            "tip", sphere("lower", 0.05, at=(1.0, *still)),
            plane(at=(0.0, -0.6, *still[1:]), normal=(0.0, 1.0, *still[1:])), friction=0.3,
        ),
        gravity=gravity, coordinates=coordinates, start={"upper": 0.3}, **end,
    )  # fmt: skip


CART, POLE, LENGTH = 1.2, 0.3, 0.5


def cart_pole(coordinates: str = "joint", angle: float = np.pi / 2, inertia: float = 0.0) -> Problem:
    """A cart on a rail that carries a pole upright."""
    return assemble(
        body("cart", mass=CART, inertia=1.0), slide("rail", "ground", "cart"),
        body("pole", mass=POLE, inertia=inertia, com=LENGTH), hinge("pin", "cart", "pole"),
        force("push", "cart", (0.0, 0.0)), gravity=GRAVITY, coordinates=coordinates, start={"pole": angle},
    )  # fmt: skip
