"""A hand of 20 joints that grips a box and lifts it, for the tests of groups of contacts."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from nsjax import Problem
from nsjax.multibody import assemble, body, box, capsule, contact_group, hinge, plane, servo, slide, sphere

LENGTHS = (0.045, 0.03, 0.025)
"""Of the bones of a finger [m]."""

THICK = 0.008
"""Radius of a finger [m]."""

Y, Z = (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
PALM = 0.15
"""Height of the palm over the table at the start [m]."""


def raised(t: Any) -> Any:
    """Height of the palm over where it starts [m]: it rises by 4 cm between 0.4 and 0.9 s."""
    x = jnp.clip((t - 0.4) / 0.5, 0.0, 1.0)
    return 0.04 * x * x * (3.0 - 2.0 * x)


def bone(name: str, length: float) -> Any:
    """Along -z from its joint, 10 to 20 g."""
    mass = 0.4 * length
    across = mass * length**2 / 3.0
    return body(
        name, mass=mass, inertia=(across, across, 0.5 * mass * THICK**2), com=(0.0, 0.0, -0.5 * length)
    )


def finger(
    name: str, at: tuple[float, float, float], inward: float, swing: bool
) -> tuple[list[Any], list[Any]]:
    """Parts and shapes of a finger that bends towards -x (``inward`` 1) or x (-1); with ``swing`` it moves
    sideways, too.
    """
    parts: list[Any] = []
    shapes: list[Any] = []
    last, place, strength = "palm", at, 1.0 if swing else 4.0
    if swing:
        parts.append(body(f"{name}_root", mass=0.01, inertia=(1e-6, 1e-6, 1e-6)))
        parts += joint(f"{name}_swing", last, f"{name}_root", place, (1.0, 0.0, 0.0), (-0.3, 0.3), 0.0, 1.0)
        shapes.append(sphere(f"{name}_root", 0.5 * THICK))
        last, place = f"{name}_root", (0.0, 0.0, 0.0)
    for k, (length, bend) in enumerate(zip(LENGTHS, (0.3, 0.3, 0.1), strict=True)):
        own = f"{name}_{k}"
        parts.append(bone(own, length))
        parts += joint(f"{own}_bend", last, own, place, (0.0, inward, 0.0), (-0.2, 1.6), bend, strength)
        shapes.append(capsule(own, THICK, 0.5 * length - THICK, at=(0.0, 0.0, -0.5 * length), axis=Z))
        last, place = own, (0.0, 0.0, -length)
    shapes.append(sphere(last, 1.2 * THICK, at=place))
    if not swing:
        shapes.append(box(last, THICK, 1.5 * THICK, 0.5 * THICK, at=(0.0, 0.0, -0.5 * LENGTHS[2])))
    return parts, shapes


def joint(
    name: str, first: str, second: str, at: Any, axis: Any, limits: tuple[float, float], wanted: float,
    strength: float,
) -> list[Any]:  # fmt: skip
    """A hinge with limits and dry friction, and its motor."""
    own = hinge(name, first, second, at=at, axis=axis, limits=limits, friction=1e-3, armature=2e-5)
    motor = {"position": wanted, "stiffness": 0.3 * strength, "damping": 4e-3, "limit": 0.05 * strength}
    return [own, servo(f"{name}_motor", name, **motor)]


def hand(
    capacity: int | None = 16, *, own: bool = True, coordinates: str = "joint", friction: float = 0.6
) -> Problem:
    """Four fingers of four joints, a thumb of three, a palm on a slide; 30 shapes.

    Args:
        capacity: of the group of contacts.
        own: whether parts of the hand meet each other.
    """
    parts: list[Any] = [
        body("palm", mass=0.3, inertia=(3e-4, 3e-4, 4e-4)),
        slide("wrist", "ground", "palm", at=(0.0, 0.0, PALM), axis=Z, motion=raised),
        body("crate", mass=0.1, inertia=(1e-4, 8e-5, 1e-4)),
    ]
    shapes: list[Any] = [
        box("palm", 0.055, 0.06, 0.01, at=(0.0, 0.0, 0.02)),
        capsule("palm", 0.02, 0.04, at=(0.0, 0.0, 0.06), axis=Z),
    ]
    for k, y in enumerate((-0.04, -0.014, 0.012, 0.038)):
        made = finger(f"f{k}", (0.05, y, 0.0), 1.0, True)
        parts += made[0]
        shapes += made[1]
    made = finger("thumb", (-0.05, 0.0, 0.0), -1.0, False)
    parts += made[0]
    shapes += [*made[1], sphere("palm", 0.015, at=(0.0, -0.06, 0.02))]
    world = [box("crate", 0.03, 0.05, 0.04), plane()]
    group = (
        contact_group("touch", [*shapes, *world], friction=friction, capacity=capacity)
        if own
        else contact_group("touch", [*shapes, world[0]], world, friction=friction, capacity=capacity)
    )
    start = {"crate": (0.0, 0.003, 0.04)}
    return assemble(*parts, group, gravity=9.81, coordinates=coordinates, start=start)
