"""An arm of two links that throws a ball, which bounces once: parts, run, and the motion by other means."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

import nsjax
from nsjax import models, schemes
from nsjax.multibody import actuator, assemble, body, hinge

GRAVITY, SHOULDER, RADIUS, RESTITUTION = 9.81, 1.0, 0.03, 0.8
MASS, INERTIA, LENGTH, CENTRE = (1.0, 0.6), (0.02, 0.0125), (0.5, 0.5), (0.25, 0.25)
START = (-2.2, -1.0)
"""Angles of both links at rest [rad]."""

NAMES = ("torque of the shoulder [N m]", "torque of the elbow [N m]", "release [s]", "flight [s]")
SWING, BOUNCE = schemes.half_explicit(), schemes.localized(schemes.half_explicit())
"""Schemes of the arm, which has no contacts, and of the ball."""


def parts() -> tuple[Any, Any]:
    """The arm, and the ball alone."""
    arm = assemble(
        body("upper", mass=MASS[0], inertia=INERTIA[0], com=CENTRE[0]),
        body("lower", mass=MASS[1], inertia=INERTIA[1], com=CENTRE[1]),
        hinge("shoulder", "ground", "upper", at=(0.0, SHOULDER)),
        hinge("elbow", "upper", "lower", at=LENGTH[0]),
        actuator("lift", "shoulder", 0.0),
        actuator("flick", "elbow", 0.0),
        gravity=GRAVITY,
        start={"upper": START[0], "lower": START[1]},
    )
    ball = models.bouncing_ball(restitution=RESTITUTION, radius=RADIUS, gravity=GRAVITY)
    return arm, ball


def hand(angles: Any, rates: Any) -> tuple[jax.Array, jax.Array]:
    """Position and velocity of the tip of the arm."""
    lengths, (a, b), (u, v) = LENGTH, angles, rates
    place = jnp.stack(
        [
            lengths[0] * jnp.cos(a) + lengths[1] * jnp.cos(b),
            SHOULDER + lengths[0] * jnp.sin(a) + lengths[1] * jnp.sin(b),
        ]
    )
    speed = jnp.stack(
        [
            -lengths[0] * jnp.sin(a) * u - lengths[1] * jnp.sin(b) * v,
            lengths[0] * jnp.cos(a) * u + lengths[1] * jnp.cos(b) * v,
        ]
    )
    return place, speed


def swing(numbers: Any, steps: int, every: int) -> nsjax.Trajectory:
    """Run of the arm until the release."""
    arm: Any = parts()[0].replace({"lift.value": numbers[0], "flick.value": numbers[1]})
    return nsjax.simulate(
        arm.system, arm.params, arm.state, SWING, dt=numbers[2] / steps, steps=steps, every=every
    )


def flight(numbers: Any, place: Any, speed: Any, steps: int, every: int) -> nsjax.Trajectory:
    """Run of the ball's height after the release; the floor is frictionless, so the horizontal speed is
    constant.
    """
    ball: Any = parts()[1].replace(initial_q=place[1:], initial_v=speed[1:])
    return nsjax.simulate(
        ball.system, ball.params, ball.state, BOUNCE, dt=numbers[3] / steps, steps=steps, every=every
    )


def end(numbers: Any, steps: int) -> jax.Array:
    """Position of the ball at the end of its flight (2,) [m], for numbers in the order of `NAMES`.

    The arm takes ``steps`` steps, the ball half of them.
    """
    swung = swing(numbers, steps, steps)
    place, speed = hand(swung.q[-1], swung.v[-1])
    flown = flight(numbers, place, speed, steps // 2, steps // 2)
    return jnp.stack([place[0] + speed[0] * numbers[3], flown.q[-1, 0]])


def _rates(state: Any, numbers: Any) -> jax.Array:
    """Both links by equations written out, angles from the horizontal."""
    a, b, u, v = state
    m11 = INERTIA[0] + MASS[0] * CENTRE[0] ** 2 + MASS[1] * LENGTH[0] ** 2
    m22 = INERTIA[1] + MASS[1] * CENTRE[1] ** 2
    arm = MASS[1] * LENGTH[0] * CENTRE[1]
    m12, s = arm * jnp.cos(a - b), arm * jnp.sin(a - b)
    weight = GRAVITY * (MASS[0] * CENTRE[0] + MASS[1] * LENGTH[0])
    f1 = numbers[0] - numbers[1] - weight * jnp.cos(a) - s * v**2
    f2 = numbers[1] - GRAVITY * MASS[1] * CENTRE[1] * jnp.cos(b) + s * u**2
    det = m11 * m22 - m12**2
    return jnp.stack([u, v, (m22 * f1 - m12 * f2) / det, (m11 * f2 - m12 * f1) / det])


def motion_end(numbers: Any, steps: int = 400) -> jax.Array:
    """The end by independent means: Runge and Kutta's method for the arm, closed forms for the ball."""
    dt = numbers[2] / steps

    def step(y: Any, _: None) -> tuple[Any, None]:
        k1 = _rates(y, numbers)
        k2 = _rates(y + dt / 2 * k1, numbers)
        k3 = _rates(y + dt / 2 * k2, numbers)
        k4 = _rates(y + dt * k3, numbers)
        return y + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4), None

    y, _ = jax.lax.scan(step, jnp.array([*START, 0.0, 0.0]), None, length=steps)
    place, speed = hand(y[:2], y[2:])
    down = jnp.sqrt(speed[1] ** 2 + 2 * GRAVITY * (place[1] - RADIUS))
    rest = numbers[3] - (speed[1] + down) / GRAVITY
    height = RADIUS + RESTITUTION * down * rest - GRAVITY * rest**2 / 2
    return jnp.stack([place[0] + speed[0] * numbers[3], height])
