"""What inputs, filters, steps, couplings and linear motions refuse, and the remedy that they name."""

from __future__ import annotations

from typing import Any

import numpy as np

import nsjax
from nsjax.multibody import assemble, body, contact, coupling, force, hinge, plane, sphere, spheres


def sledge(**more: Any) -> nsjax.Problem:
    return assemble(
        body("sledge", mass=1.0, inertia=0.1),
        contact("foot", sphere("sledge", 0.1), plane(), friction=0.3),
        force("push", "sledge", (0.0, 0.0)), gravity=9.81, start={"sledge": (0.0, 0.1, 0.0)}, **more,
    )  # fmt: skip


def islands() -> nsjax.Problem:
    return assemble(
        *(y for x in ("left", "right") for y in (
            body(x, mass=1.0, inertia=0.1), contact(f"{x}_foot", sphere(x, 0.1), plane()),
        )),
        force("push", "left", (0.0, 0.0)), gravity=9.81, coordinates="absolute",
    )  # fmt: skip


def prescribed() -> nsjax.Problem:
    return assemble(
        body("a", mass=1.0, inertia=0.1), hinge("A", "ground", "a", motion=lambda t: t),
        coupling("held", "A", polynomial=(0.0,)),
    )  # fmt: skip


def balls() -> nsjax.Problem:
    places = np.array([[0.0, 0.0, 0.2], [0.0, 0.0, 0.5]])
    return spheres(0.1, 1.0, places)
