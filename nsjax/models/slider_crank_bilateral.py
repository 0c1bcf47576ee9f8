"""Rigid planar slider-crank mechanism without clearance: a constraint, or a guide with friction."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax.numpy as jnp

from nsjax import shapes
from nsjax.contact import ContactLaw
from nsjax.core import Labels, Output, Problem, State, System
from nsjax.forms import quantity
from nsjax.math import sin_cos
from nsjax.models.common import constructor, vector
from nsjax.models.slider_crank import (
    drawn_crank,
    potential,
    slider_centre,
    two_bar_force,
    two_bar_mass,
)
from nsjax.types import Array, record


@record()
class SliderCrankBilateral:
    """Parameters of `slider_crank_bilateral`; the field names are its keyword names."""

    crank_length: Array | float = 0.153
    rod_length: Array | float = 0.306
    crank_mass: Array | float = quantity(default=0.038, least=0.0)
    rod_mass: Array | float = quantity(default=0.038, least=0.0)
    slider_mass: Array | float = quantity(default=0.076, least=0.0)
    crank_inertia: Array | float = quantity(default=7.4e-5, least=0.0)
    rod_inertia: Array | float = quantity(default=5.9e-4, least=0.0)
    gravity: Array | float = 9.81
    torque: Array | float = 0.0
    friction: Array | float = 0.01


def bilateral_mass(q: Array, p: SliderCrankBilateral) -> Array:
    """Mass matrix of crank, rod and slider (2, 2)."""
    m11, m12, m22 = two_bar_mass(q, p)
    return jnp.stack([m11, m12, m12, m22]).reshape(2, 2)


def bilateral_force(t: Array, q: Array, v: Array, p: SliderCrankBilateral) -> Array:
    """Generalised forces (2,)."""
    return jnp.stack(two_bar_force(q, v, p))


def guide(t: Array, q: Array, p: SliderCrankBilateral) -> Array:
    """Height of the slider, which the guide keeps at zero (1,), [S&U&S (21)]."""
    return slider_centre(q, p)[1][None]


def bilateral_observe(
    t: Array, q: Array, v: Array, output: Output | None, p: SliderCrankBilateral
) -> dict[str, Array]:
    """Position of the slider's centre."""
    x, y = slider_centre(q, p)
    return {"x": x, "y": y}


def bilateral_picture(t: Array, q: Array, p: SliderCrankBilateral) -> shapes.Picture:
    """Picture of crank and rod; the slider is a point."""
    l1, l2 = p.crank_length, p.rod_length
    pin, end = (l1 * jnp.cos(q[0]), l1 * jnp.sin(q[0])), slider_centre(q, p)
    slider = shapes.placed(shapes.rectangle(0.3 * l1, 0.15 * l1), jnp.stack(end))
    rail = shapes.points((l2 - 1.3 * l1, 0.0), (l2 + 1.3 * l1, 0.0))
    guide = shapes.Shape(points=rail, name="guide", role="ground")
    return shapes.Picture(shapes=(guide, *drawn_crank(pin, end, shapes.points(pin, end), slider)))


BILATERAL = System(
    name="slider_crank_bilateral",
    nq=2,
    nv=2,
    nb=1,
    mass=bilateral_mass,
    force=bilateral_force,
    potential=potential,
    constraint=guide,
    observe=bilateral_observe,
    shapes=bilateral_picture,
    labels=Labels(
        q=("theta1 [rad]", "theta2 [rad]"),
        v=("omega1 [rad/s]", "omega2 [rad/s]"),
        constraints=("guide",),
        observables=("x [m]", "y [m]"),
        path=("x", "y"),
    ),
)


def guide_sides(t: Array, q: Array, p: SliderCrankBilateral) -> Array:
    """Distances of the slider from the two sides of a guide without clearance (2,)."""
    y = slider_centre(q, p)[1]
    return jnp.stack([y, -y])


def guide_slips(t: Array, q: Array, v: Array, p: SliderCrankBilateral) -> Array:
    """Velocity of the slider along the guide (2, 1), the same for both sides."""
    s, _ = sin_cos(q)
    along = -p.crank_length * s[0] * v[0] - p.rod_length * s[1] * v[1]
    return jnp.stack([along, along])[:, None]


def guide_law(p: SliderCrankBilateral) -> ContactLaw:
    """Friction law of both sides; impacts on them are impossible."""
    return ContactLaw(friction=p.friction)


ROUGH = dataclasses.replace(
    BILATERAL,
    nb=0,
    nc=2,
    nt=1,
    constraint=None,
    gap=guide_sides,
    slip=guide_slips,
    law=guide_law,
    labels=dataclasses.replace(BILATERAL.labels, constraints=(), contacts=("lower side", "upper side")),
    choices=(("rough", True),),
)


@constructor(SliderCrankBilateral)
def slider_crank_bilateral(
    params: SliderCrankBilateral,
    *,
    rough: bool = False,
    initial_q: Any = (0.0, 0.0),
    initial_v: Any = (150.0, -75.0),
    initial_time: Any = 0.0,
) -> Problem:
    """Slider-crank mechanism with an ideal guide: one bilateral constraint, no clearance.

    ``q = (theta1, theta2)``, ``g_B = l1 sin(theta1) + l2 sin(theta2) = 0``, no friction. The smooth
    companion of `slider_crank` for orders of convergence and drift.

    Args:
        rough: a guide with Coulomb friction, ``|lambda_T| <= mu |lambda_N|``: instead of the constraint two
            contacts, one per side of the guide. Each carries the force of the guide in one direction; they
            never press at the same time.
        crank_length, rod_length: [m].
        crank_mass, rod_mass, slider_mass: [kg].
        crank_inertia, rod_inertia: about the centres of mass [kg m^2].
        gravity: [m/s^2].
        torque: on the crank [N m].
        friction: coefficient of a rough guide.
        initial_q, initial_v, initial_time: initial state.

    Returns:
        A `Problem`.

    Limits: with a rough guide the drift of schemes on velocity level lets the slider leave the axis; the
    slider crosses the axis for a step or more where the force changes its side.

    Source: [S&U&S (21)-(24)]; the rough guide is that of [R&S section 4] with zero clearance, but without
    tilting.

    Example:
        >>> from nsjax import models
        >>> models.slider_crank_bilateral().system.nb
        1
    """
    state = State(t=initial_time, q=vector(initial_q), v=vector(initial_v))
    return Problem(system=ROUGH if rough else BILATERAL, params=params, state=state)
