"""Driven four-bar linkage with clearance in three of its four pins."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from nsjax import ContactLaw, Labels, Problem, State, System
from nsjax.math import direction, norm
from nsjax.types import Array

HALF_TURN = 3.14159265  # as rounded in the controller of the other program


class FourBar(NamedTuple):
    """Lengths [m], mass of each rod [kg], bearing and pin radius [m], law, gains of the controller."""

    crank: Array | float = 1.0
    coupler: Array | float = 4.0
    rocker: Array | float = 2.5
    base: Array | float = 3.0
    weight: Array | float = 1.0
    gravity: Array | float = 9.81
    bearing: Array | float = 0.06
    pin: Array | float = 0.055
    friction: Array | float = 0.1
    amplitude: Array | float = 6.0
    frequency: Array | float = 0.75 * HALF_TURN
    gain: Array | float = 200.0
    slope: Array | float = 10.0


def inertia(length, p):
    """Slender rod about its centre [kg m^2]."""
    return p.weight * length**2 / 12


def mass(q, p):
    m = 1.0 * jnp.asarray(p.weight)
    crank = inertia(p.crank, p) + m * p.crank**2 / 4
    diagonal = [crank, inertia(p.coupler, p), inertia(p.rocker, p), m, m, m, m]
    return jnp.stack([jnp.asarray(x) for x in diagonal])[:, None] * np.eye(7)


def ideal_angles(a, p):
    """Coupler and rocker angle without clearance."""
    l1, l2, l3, l0 = p.crank, p.coupler, p.rocker, p.base
    k1, k2 = -2 * l1 * l3 * jnp.sin(a), 2 * l3 * (l0 - l1 * jnp.cos(a))
    k3 = l0**2 + l1**2 - l2**2 + l3**2 - 2 * l0 * l1 * jnp.cos(a)
    ph = 2 * (HALF_TURN + jnp.arctan2(-k1 - jnp.sqrt(k1**2 + k2**2 - k3**2), k3 - k2))
    al = jnp.arctan2(
        -l1 * jnp.sin(a) + l3 * jnp.sin(ph), l0 - l1 * jnp.cos(a) + l3 * jnp.cos(ph)
    )  # fmt: skip
    return al, ph


def torque(t, a, da, p):
    """Tracking law of the crank angle ``a`` [N m], as the data were made with."""
    l1, l2, l3, g = p.crank, p.coupler, p.rocker, p.gravity
    j1, j2, j3 = (inertia(length, p) for length in (l1, l2, l3))
    al, ph = ideal_angles(a, p)
    d, cos = jnp.sin(al - ph), jnp.cos(al - ph)
    s1, s2 = l1 * jnp.sin(ph - a) / (l2 * d), l1 * jnp.sin(al - a) / (l3 * d)
    c, t7 = jnp.cos(a - al), jnp.sin(al - a)
    to_ph, to_al = l1 * jnp.sin(ph - a), l1 * jnp.sin(al - a)
    t11 = -l1 * jnp.cos(ph - a) / (l2 * d) + (-s1 * to_ph * cos + s2 * to_al) / (l2 * d**2)
    t13 = -l1 * jnp.cos(al - a) / (l3 * d) + (-s1 * to_ph + s2 * to_al * cos) / (l3 * d**2)
    x1, x2, x3 = (l1**2 / 4 + j1 + l1**2) / 2, (l2**2 / 4 + j2) / 2, (l3**2 / 4 + j3) / 2
    p1 = l1 * l2 / 2
    wave, w = p.frequency * t, p.frequency
    goal, speed = p.amplitude * jnp.sin(wave), p.amplitude * w * jnp.cos(wave)
    error, k, slope = a - goal, p.gain, p.slope
    effective = 2 * (x1 + x2 * s1**2 + x3 * s2**2 + p1 * c * s1)
    change = 2 * x2 * s1 * t11 + 2 * j3 * s2 * t13 + p1 * (c * t11 + s1 * (t7 - s1 * t7))
    weight = 1.5 * l1 * jnp.cos(a) + s1 * l2 / 2 * jnp.cos(al) + s2 * l3 / 2 * jnp.cos(ph)
    return (
        effective * (-p.amplitude * w**2 * jnp.sin(wave) - slope * (da - speed))
        + change * da * (da - slope * error)
        - k * (da - speed)
        - k * slope * error
        + g * weight
    )  # fmt: skip


def force(t, q, v, p):
    crank = torque(t, q[0], v[0], p) - p.weight * p.gravity * p.crank / 2 * jnp.cos(q[0])
    zero, down = jnp.zeros_like(crank), -p.weight * p.gravity * jnp.ones_like(crank)
    return jnp.stack([crank, zero, zero, zero, down, zero, down])


def offsets(q, p):
    """Distance vectors of the three pins in their bearings (3, 2)."""
    l1, l2, l3 = p.crank, p.coupler / 2, p.rocker / 2
    (c1, c2, c3), (s1, s2, s3) = jnp.cos(q[:3]), jnp.sin(q[:3])
    x2, y2, x3, y3 = q[3], q[4], q[5], q[6]
    first = x2 - l2 * c2 - l1 * c1, y2 - l2 * s2 - l1 * s1
    second = p.base + x3 + l3 * c3 - l2 * c2 - x2, y3 + l3 * s3 - l2 * s2 - y2
    third = x3 - l3 * c3, y3 - l3 * s3
    return jnp.stack([*first, *second, *third]).reshape(3, 2)


def gap(t, q, p):
    return p.bearing - p.pin - norm(offsets(q, p))


def slip(t, q, v, p):
    l1, l2, l3 = p.crank, p.coupler / 2, p.rocker / 2
    (c1, c2, c3), (s1, s2, s3) = jnp.cos(q[:3]), jnp.sin(q[:3])
    u1, u2, u3, vx2, vy2, vx3, vy3 = (v[k] for k in range(7))
    first = vx2 + l2 * s2 * u2 + l1 * s1 * u1, vy2 - l2 * c2 * u2 - l1 * c1 * u1
    second = vx3 - l3 * s3 * u3 + l2 * s2 * u2 - vx2, vy3 + l3 * c3 * u3 - l2 * c2 * u2 - vy2
    third = vx3 + l3 * s3 * u3, vy3 - l3 * c3 * u3
    rates = jnp.stack([*first, *second, *third]).reshape(3, 2)
    n = direction(offsets(q, p))
    turning = jnp.stack([p.bearing * u2 - p.pin * u1, p.bearing * u3 - p.pin * u2, -p.pin * u3])
    return (n[:, 1] * rates[:, 0] - n[:, 0] * rates[:, 1] + turning)[:, None]


def law(p):
    return ContactLaw(friction=p.friction)


SYSTEM = System(
    nq=7, nv=7, nc=3, nt=1, mass=mass, force=force, gap=gap, slip=slip, law=law,
    labels=Labels(
        q=("a1 [rad]", "a2 [rad]", "a3 [rad]", "x2 [m]", "y2 [m]", "x3 [m]", "y3 [m]"),
        v=("w1 [rad/s]", "w2 [rad/s]", "w3 [rad/s]", "vx2 [m/s]", "vy2 [m/s]", "vx3 [m/s]", "vy3 [m/s]"),
        contacts=("crank pin", "rocker pin", "ground pin"),
    ),
)  # fmt: skip

START = (1.570823772407980, 0.3532842020624460, 1.264872058968431, 1.876454585097650, 1.691962091335582,
         0.3764686197082958, 1.191962183453451)  # fmt: skip


def four_bar() -> Problem:
    """The start of the file, at rest with all pins 1e-6 m from the centres of their bearings."""
    return Problem(system=SYSTEM, params=FourBar(), state=State(t=0.0, q=np.array(START), v=np.zeros(7)))
