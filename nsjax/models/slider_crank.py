"""Rigid planar slider-crank mechanism, with and without clearance between slider and guide."""

from __future__ import annotations

import dataclasses
from types import MappingProxyType
from typing import Any

import jax.numpy as jnp
import numpy as np

from nsjax import shapes
from nsjax.contact import ContactLaw
from nsjax.core import Labels, Output, Problem, State, System
from nsjax.forms import quantity
from nsjax.math import sin_cos
from nsjax.models.common import constructor, contact_law, vector
from nsjax.types import Array, record


@record()
class SliderCrank:
    """Parameters of `slider_crank`; the field names are its keyword names."""

    crank_length: Array | float = 0.153
    rod_length: Array | float = 0.306
    half_length: Array | float = 0.05
    half_height: Array | float = 0.025
    clearance: Array | float = 0.001
    crank_mass: Array | float = quantity(default=0.038, least=0.0)
    rod_mass: Array | float = quantity(default=0.038, least=0.0)
    slider_mass: Array | float = quantity(default=0.076, least=0.0)
    crank_inertia: Array | float = quantity(default=7.4e-5, least=0.0)
    rod_inertia: Array | float = quantity(default=5.9e-4, least=0.0)
    slider_inertia: Array | float = quantity(default=2.7e-6, least=0.0)
    gravity: Array | float = 9.81
    torque: Array | float = 0.0
    restitution: Array | float = 0.4
    restitution_tangential: Array | float = 0.0
    friction: Array | float = 0.01


def two_bar_mass(q: Array, p: Any) -> tuple[Array, Array, Array]:
    """Entries M11, M12, M22 of crank and rod, with the slider's mass at the end of the rod."""
    l1, l2, m1, m2, m3 = p.crank_length, p.rod_length, p.crank_mass, p.rod_mass, p.slider_mass
    m11 = p.crank_inertia + l1 * l1 * (m1 / 4 + m2 + m3)
    m12 = l1 * l2 * sin_cos(q[0] - q[1])[1] * (m2 / 2 + m3)
    m22 = p.rod_inertia + l2 * l2 * (m2 / 4 + m3)
    return jnp.asarray(m11), m12, jnp.asarray(m22)


def two_bar_force(q: Array, v: Array, p: Any) -> tuple[Array, Array]:
    """Entries h1, h2 of the generalised forces: centrifugal terms, gravity, torque on the crank."""
    l1, l2, g = p.crank_length, p.rod_length, p.gravity
    m1, m2, m3 = p.crank_mass, p.rod_mass, p.slider_mass
    s, c = sin_cos(q)
    s1, s2, c1, c2 = s[0], s[1], c[0], c[1]
    coupling = l1 * l2 * (s1 * c2 - c1 * s2) * (m2 / 2 + m3)
    h1 = -coupling * v[1] ** 2 - g * l1 * c1 * (m1 / 2 + m2 + m3) + p.torque
    h2 = coupling * v[0] ** 2 - g * l2 * c2 * (m2 / 2 + m3)
    return h1, h2


def mass(q: Array, p: SliderCrank) -> Array:
    """Mass matrix of the three bodies (3, 3), [S&U&S (19)]."""
    m11, m12, m22 = two_bar_mass(q, p)
    zero = jnp.zeros_like(m12)
    rows = [m11, m12, zero, m12, m22, zero, zero, zero, jnp.asarray(p.slider_inertia)]
    return jnp.stack(rows).reshape(3, 3)


def force(t: Array, q: Array, v: Array, p: SliderCrank) -> Array:
    """Generalised forces (3,), [S&U&S (20)]; the torque acts on the crank."""
    h1, h2 = two_bar_force(q, v, p)
    return jnp.stack([h1, h2, jnp.zeros_like(h1)])


def potential(t: Array, q: Array, p: Any) -> Array:
    """Potential energy of gravity [J]."""
    m1, m2, m3 = p.crank_mass, p.rod_mass, p.slider_mass
    crank = p.crank_length * jnp.sin(q[0]) * (m1 / 2 + m2 + m3)
    return p.gravity * (crank + p.rod_length * jnp.sin(q[1]) * (m2 / 2 + m3))


def slider_centre(q: Array, p: Any) -> tuple[Array, Array]:
    """Position (x, y) of the slider's centre, the end of the rod [m]."""
    s, c = sin_cos(q)
    return p.crank_length * c[0] + p.rod_length * c[1], p.crank_length * s[0] + p.rod_length * s[1]


_LEFT_RIGHT = np.array([1.0, -1.0, 1.0, -1.0])  # corners: upper left, upper right, lower left, lower right
_UP_DOWN = np.array([-1.0, -1.0, 1.0, 1.0])
CORNERS = ("upper left", "upper right", "lower left", "lower right")


def corner_gaps(y: Array, turn: tuple[Array, Array], p: SliderCrank) -> Array:
    """Distances of the corners from their walls (4,) [m], by height ``y`` and ``turn`` of the slider."""
    s, c = turn
    middle = p.half_height + p.clearance - p.half_height * c
    return jnp.asarray(_UP_DOWN * y - _UP_DOWN * _LEFT_RIGHT * (p.half_length * s) + middle)


def corner_slips(along: Array, turn: tuple[Array, Array], omega: Array, p: SliderCrank) -> Array:
    """Velocities of the corners along the guide (4, 1) [m/s], from that of the slider's centre."""
    s, c = turn
    turning = _LEFT_RIGHT[:, None] * (p.half_length * s * omega)
    return along + turning + _UP_DOWN[:, None] * (p.half_height * c * omega)


def gap(t: Array, q: Array, p: SliderCrank) -> Array:
    """Distances of the four corners from their walls (4,), [R&S (171)-(174)]."""
    s, c = sin_cos(q)
    return corner_gaps(p.crank_length * s[0] + p.rod_length * s[1], (s[2], c[2]), p)


def slip(t: Array, q: Array, v: Array, p: SliderCrank) -> Array:
    """Velocities of the four corners along the guide (4, 1), rates of [R&S (175)-(178)]."""
    s, c = sin_cos(q)
    along = -p.crank_length * s[0] * v[0] - p.rod_length * s[1] * v[1]
    return corner_slips(along, (s[2], c[2]), v[2], p)


def observe(t: Array, q: Array, v: Array, output: Output | None, p: SliderCrank) -> dict[str, Array]:
    """Position of the slider's centre and the bounds of its height."""
    x, y = slider_centre(q, p)
    bound = p.clearance + 0.0 * y
    return {"x": x, "y": y, "y_lower": -bound, "y_upper": bound}


TABLE_2 = MappingProxyType(
    {
        "clearance": 0.0005, "restitution": 0.1, "friction": 0.1, "torque": 1.0,
        "initial_v": (0.0, 0.0, 0.0),
    }
)  # fmt: skip
"""Changes of [R&S Table 2] to the data of `slider_crank` and `slider_crank_flexible`: half the clearance,
driven from rest by 1 N m, more friction.
"""


def drawn_guide(p: SliderCrank) -> tuple[shapes.Shape, ...]:
    """Shapes of the two walls, as long as the stroke of the slider."""
    high = p.half_height + p.clearance
    left = p.rod_length - p.crank_length - p.half_length
    right = p.rod_length + p.crank_length + p.half_length
    lines = (shapes.points((left, y), (right, y)) for y in (-high, high))
    names = ("lower wall", "upper wall")
    return tuple(
        shapes.Shape(points=x, name=name, role="ground") for x, name in zip(lines, names, strict=True)
    )


def drawn_crank(pin: Any, end: Any, rod: Array, slider: Array) -> tuple[shapes.Shape, ...]:
    """Shapes of crank, rod with points (n, 2), slider and joints."""
    return (
        shapes.Shape(points=shapes.points((0.0, 0.0), pin), name="crank"),
        shapes.Shape(points=rod, name="rod"),
        shapes.Shape(points=slider, name="slider", kind="area"),
        shapes.Shape(
            points=shapes.points((0.0, 0.0), pin, end), name="joints", kind="dots", role="joint"
        ),
    )  # fmt: skip


def corner_places(end: Any, angle: Array, p: SliderCrank) -> shapes.Places:
    """Positions, contact normals and tangents of the corners."""
    local = jnp.stack([-_LEFT_RIGHT * p.half_length, -_UP_DOWN * p.half_height], axis=1)
    return shapes.Places(
        points=shapes.placed(local, jnp.stack(end), angle),
        normals=jnp.asarray(np.stack([0.0 * _UP_DOWN, _UP_DOWN], axis=1)),
        tangents=jnp.asarray(np.broadcast_to([1.0, 0.0], (4, 1, 2))),
    )


def picture(t: Array, q: Array, p: SliderCrank) -> shapes.Picture:
    """Picture of crank, rod, slider and guide."""
    pin, end = (p.crank_length * jnp.cos(q[0]), p.crank_length * jnp.sin(q[0])), slider_centre(q, p)
    slider = shapes.placed(shapes.rectangle(p.half_length, p.half_height), jnp.stack(end), q[2])
    moving = drawn_crank(pin, end, shapes.points(pin, end), slider)
    return shapes.Picture(shapes=(*drawn_guide(p), *moving), contacts=corner_places(end, q[2], p))


SYSTEM = System(
    name="slider_crank", nq=3, nv=3, nc=4, nt=1, mass=mass, force=force, potential=potential, gap=gap,
    slip=slip, law=contact_law, observe=observe, shapes=picture,
    labels=Labels(
        q=("theta1 [rad]", "theta2 [rad]", "theta3 [rad]"),
        v=("omega1 [rad/s]", "omega2 [rad/s]", "omega3 [rad/s]"), contacts=CORNERS,
        observables=("x [m]", "y [m]", "y_lower [m]", "y_upper [m]"), path=("x", "y"),
        path_limits=("y_lower", "y_upper"),
    ),
)  # fmt: skip


@constructor(SliderCrank)
def slider_crank(
    params: SliderCrank, *, initial_q: Any = (0.0, 0.0, 0.0), initial_v: Any = (150.0, -75.0, 0.0),
    initial_time: Any = 0.0,
) -> Problem:  # fmt: skip
    """Slider-crank mechanism whose slider has clearance in its guide and hits it with its corners.

    ``q = (theta1, theta2, theta3)``: absolute angles of crank, rod and slider, counter-clockwise from
    the guide's axis [rad]. Four frictional contacts: the slider's corners. The defaults are Table 1 of
    [R&S] (Flores, Leine, Glocker 2010): a free-running mechanism in gravity.

    Args:
        crank_length, rod_length: [m].
        half_length, half_height: of the slider [m].
        clearance: between slider and each wall when centred [m].
        crank_mass, rod_mass, slider_mass: [kg].
        crank_inertia, rod_inertia, slider_inertia: about the centres of mass [kg m^2].
        gravity: along -y [m/s^2].
        torque: on the crank, constant [N m].
        restitution, restitution_tangential, friction: of the corners, scalars or (4,) in the order
            upper left, upper right, lower left, lower right.
        initial_q, initial_v, initial_time: initial state.

    Limits: with the slider parallel to the guide both corners of a wall hit at once; the motion is
    then a discontinuous function of ``theta3(0)``.

    Source: [S&U&S (14)-(20)], [R&S Table 1, (171)-(178)]; data of [FLG].

    Example:
        >>> from nsjax import models
        >>> models.slider_crank(clearance=5e-4).params.clearance
        0.0005
    """
    state = State(t=initial_time, q=vector(initial_q), v=vector(initial_v))
    return Problem(system=SYSTEM, params=params, state=state)


# Rigid planar slider-crank mechanism without clearance: a constraint, or a guide with friction.


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
    name="slider_crank_bilateral", nq=2, nv=2, nb=1, mass=bilateral_mass, force=bilateral_force,
    potential=potential, constraint=guide, observe=bilateral_observe, shapes=bilateral_picture,
    labels=Labels(
        q=("theta1 [rad]", "theta2 [rad]"), v=("omega1 [rad/s]", "omega2 [rad/s]"), constraints=("guide",),
        observables=("x [m]", "y [m]"), path=("x", "y"),
    ),
)  # fmt: skip


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
    BILATERAL, nb=0, nc=2, nt=1, constraint=None, gap=guide_sides, slip=guide_slips, law=guide_law,
    labels=dataclasses.replace(BILATERAL.labels, constraints=(), contacts=("lower side", "upper side")),
    choices=(("rough", True),),
)  # fmt: skip


@constructor(SliderCrankBilateral)
def slider_crank_bilateral(
    params: SliderCrankBilateral, *, rough: bool = False, initial_q: Any = (0.0, 0.0),
    initial_v: Any = (150.0, -75.0), initial_time: Any = 0.0,
) -> Problem:  # fmt: skip
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
