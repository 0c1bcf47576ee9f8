"""Jeffcott rotor with unbalance that rubs against a rigid ring: our own data and equations."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from nsjax import shapes
from nsjax.core import Labels, Output, Problem, State, System
from nsjax.forms import quantity
from nsjax.math import direction, norm
from nsjax.models.common import constructor, contact_law, vector
from nsjax.types import Array, is_traced, record


@record()
class RubbingRotor:
    """Parameters of `rubbing_rotor`; the field names are its keyword names."""

    mass: Array | float = quantity(default=1.0, least=0.0)
    inertia: Array | float = quantity(default=1.25e-3, least=0.0)
    eccentricity: Array | float = 1e-4
    stiffness: Array | float = 4e4
    damping: Array | float = 20.0
    radius: Array | float = quantity(default=0.05, least=0.0)
    clearance: Array | float = 3e-4
    gravity: Array | float = 9.81
    speed: Array | float = 180.0
    drive: Array | float = 0.01
    torque: Array | float = 0.0
    restitution: Array | float = 0.4
    restitution_tangential: Array | float = 0.0
    friction: Array | float = 0.1


def mass(q: Array, p: RubbingRotor) -> Array:
    """Mass matrix (3, 3); the centre of mass is off the centre by the eccentricity, along ``phi``."""
    s, c = jnp.sin(q[2]), jnp.cos(q[2])
    m, e = p.mass + 0.0 * c, p.eccentricity
    zero = jnp.zeros_like(m)
    rows = [m, zero, -m * e * s, zero, m, m * e * c, -m * e * s, m * e * c, p.inertia + m * e * e]
    return jnp.stack(rows).reshape(3, 3)


def force(t: Array, q: Array, v: Array, p: RubbingRotor) -> Array:
    """Generalised forces (3,): unbalance, shaft, weight, motor."""
    s, c = jnp.sin(q[2]), jnp.cos(q[2])
    unbalance = p.mass * p.eccentricity * v[2] ** 2
    motor = p.torque + p.drive * (p.speed - v[2])
    return jnp.stack(
        [
            unbalance * c - p.stiffness * q[0] - p.damping * v[0],
            unbalance * s - p.stiffness * q[1] - p.damping * v[1] - p.mass * p.gravity,
            motor - p.mass * p.gravity * p.eccentricity * c,
        ]
    )


def potential(t: Array, q: Array, p: RubbingRotor) -> Array:
    """Potential energy of the bent shaft and of the weight [J]."""
    height = q[1] + p.eccentricity * jnp.sin(q[2])
    return 0.5 * p.stiffness * (q[0] ** 2 + q[1] ** 2) + p.mass * p.gravity * height


def gap(t: Array, q: Array, p: RubbingRotor) -> Array:
    """Gap between disc and ring (1,)."""
    return (p.clearance - norm(q[:2]))[None]


def slip(t: Array, q: Array, v: Array, p: RubbingRotor) -> Array:
    """Velocity of the disc's surface along the ring, counter-clockwise (1, 1)."""
    n = direction(q[:2])
    return (n[0] * v[1] - n[1] * v[0] + p.radius * v[2])[None, None]


def observe(t: Array, q: Array, v: Array, output: Output | None, p: RubbingRotor) -> dict[str, Array]:
    """Polar coordinates of the whirl; its angular velocity is set to zero in the centre."""
    square = q[0] ** 2 + q[1] ** 2
    centre = square == 0.0
    turn = (q[0] * v[1] - q[1] * v[0]) / jnp.where(centre, 1.0, square)
    return {
        "deflection": norm(q[:2]),
        "whirl": jnp.where(centre, 0.0, turn),
        "rubbing_speed": slip(t, q, v, p)[0, 0],
    }


def picture(t: Array, q: Array, p: RubbingRotor) -> shapes.Picture:
    """Picture with magnified deflection and clearance."""
    seen = 0.3  # clearance in the picture over the radius of the disc
    factor = seen * p.radius / jnp.where(jnp.asarray(p.clearance) > 0.0, p.clearance, 1.0)
    factor = jnp.where(factor > 1.0, factor, 1.0)
    centre, n = factor * q[:2], direction(q[:2])
    ring = shapes.disc(p.radius + factor * p.clearance, spoke=False)
    disc = shapes.placed(shapes.disc(p.radius), centre, q[2])
    return shapes.Picture(
        shapes=(
            shapes.Shape(points=ring, name="ring", role="ground"),
            shapes.Shape(points=disc, name="disc", kind="area"),
            shapes.Shape(points=jnp.zeros((1, 2)), name="bearings", kind="dots", role="ground"),
        ),
        contacts=shapes.Places(
            points=(centre + p.radius * n)[None], normals=-n[None],
            tangents=jnp.stack([-n[1], n[0]])[None, None],
        ),
        magnified=factor, note="deflection and clearance",
    )  # fmt: skip


SYSTEM = System(
    name="rubbing_rotor", nq=3, nv=3, nc=1, nt=1, mass=mass, force=force, potential=potential, gap=gap,
    slip=slip, law=contact_law, observe=observe, shapes=picture,
    labels=Labels(
        q=("x [m]", "y [m]", "phi [rad]"), v=("vx [m/s]", "vy [m/s]", "omega [rad/s]"),
        contacts=("disc on ring",), observables=("deflection [m]", "whirl [rad/s]", "rubbing_speed [m/s]"),
        path=("x", "y"),
    ),
)  # fmt: skip


@constructor(RubbingRotor)
def rubbing_rotor(
    params: RubbingRotor, *, initial_q: Any = (0.0, 0.0, 0.0), initial_v: Any = None,
    initial_time: Any = 0.0,
) -> Problem:  # fmt: skip
    """Jeffcott rotor: an unbalanced disc on a flexible shaft that rubs against a rigid ring.

    ``q = (x, y, phi)``: centre of the disc in the plane of the ring, and angle of rotation. The shaft
    pulls the centre back with ``-k (x, y)``, damping acts from outside with ``-d (vx, vy)``, the centre
    of mass lies at ``(x + e cos phi, y + e sin phi)``, and a motor drives with the torque
    ``torque + drive (speed - omega)``. From ``T = m |v_S|^2 / 2 + J omega^2 / 2``::

        M = [[m, 0, -m e sin phi], [0, m, m e cos phi], [., ., J + m e^2]]
        h = (m e omega^2 cos phi - k x - d vx,
             m e omega^2 sin phi - k y - d vy - m g,
             torque + drive (speed - omega) - m g e cos phi)

    One contact of disc and ring with friction: gap ``clearance - |(x, y)|`` with the normal pointing
    inwards, slip ``t' (vx, vy) + radius omega`` with ``t`` counter-clockwise. Without contact and
    gravity and at constant ``omega`` the centre whirls forward on a circle of radius ``r =
    m e omega^2 / |k - m omega^2 + i d omega|``, and the motor must supply the torque ``d r^2 omega``.

    Args:
        mass: of the disc [kg].
        inertia: about the centre of mass [kg m^2].
        eccentricity: of the centre of mass [m].
        stiffness: of the shaft, the same in all directions [N/m].
        damping: external, the same in all directions [N s/m].
        radius: of the disc [m].
        clearance: between centred disc and ring [m].
        gravity: along -y [m/s^2]; zero for a vertical shaft.
        speed: angular velocity at which the motor idles [rad/s].
        drive: slope of the motor's characteristic [N m s/rad].
        torque: constant part of the motor's torque [N m].
        restitution, restitution_tangential, friction: of disc on ring.
        initial_q, initial_v, initial_time: initial state, by default centred and turning at ``speed``.

    Limits: with the disc in the centre the contact normal is undefined; a disc that touches the ring
    there (no clearance) has no normal. Internal damping of the rotating shaft is left out.

    Source: equations and data are our own. [SRKA] names a rubbing rotor among its examples, without data.

    Example:
        >>> from nsjax import models
        >>> models.rubbing_rotor(speed=100.0).state.v.tolist()
        [0.0, 0.0, 100.0]
    """
    if initial_v is None:
        initial_v = [0.0, 0.0, params.speed]
        initial_v = jnp.stack(initial_v) if is_traced(params.speed) else initial_v
    state = State(t=initial_time, q=vector(initial_q), v=vector(initial_v))
    return Problem(system=SYSTEM, params=params, state=state)
