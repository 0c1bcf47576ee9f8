"""The slider-crank of Table 1 of [R&S] from parts, and its numbers beside those of the hand-written one."""

from __future__ import annotations

from nsjax import models
from nsjax.multibody import Part, assemble, body, contact, corners, hinge, walls

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
