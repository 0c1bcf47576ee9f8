"""Positions and velocities that close loops, and their derivatives by the numbers of the parts."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.multibody import assemble, body, hinge

GROUND, CRANK, ROCKER = 0.4, 0.1, 0.3


def four_bar(coupler, angle, rate=5.0):
    """Angles and rates of crank, coupler and rocker."""
    problem = assemble(
        body("crank", mass=0.1, inertia=1e-3),
        body("coupler", mass=0.4, inertia=5e-3),
        body("rocker", mass=0.3, inertia=2e-3),
        hinge("o", "ground", "crank"),
        hinge("a", "crank", "coupler", at=CRANK),
        hinge("c", "ground", "rocker", at=GROUND),
        hinge("b", "coupler", "rocker", at=coupler, on=ROCKER),
        start={"crank": (angle, rate)},
        guess={"rocker": 1.5, "coupler": 0.5},
    )
    return jnp.concatenate([jnp.asarray(problem.state.q), jnp.asarray(problem.state.v)])


def closed_form(coupler, angle, rate=5.0):
    """By the triangle of pin, rocker's bearing and eye (law of cosines)."""
    pin = CRANK * jnp.stack([jnp.cos(angle), jnp.sin(angle)])
    apart = jnp.stack([GROUND, 0.0]) - pin
    d = jnp.sqrt(jnp.sum(apart**2))
    inner = jnp.arccos((coupler**2 + d**2 - ROCKER**2) / (2 * coupler * d))
    phi = jnp.arctan2(apart[1], apart[0]) + inner
    eye = pin + coupler * jnp.stack([jnp.cos(phi), jnp.sin(phi)])
    psi = jnp.arctan2(eye[1], eye[0] - GROUND)
    return jnp.stack([angle, phi, psi])


def exact(coupler, angle):
    place, rates = jax.jvp(lambda a: closed_form(coupler, a), (angle,), (5.0,))
    return jnp.concatenate([place, rates])


def test_a_loop_closes() -> None:
    np.testing.assert_allclose(four_bar(0.4, 0.3), exact(0.4, 0.3), rtol=0, atol=1e-11)


def test_derivatives_of_a_closed_loop() -> None:
    """By a length and by the given angle, forward and reverse, against the law of cosines."""
    wanted = jax.jacfwd(exact, argnums=(0, 1))(0.4, 0.3)
    for transform in (jax.jacfwd, jax.jacrev):
        for found, there in zip(transform(four_bar, argnums=(0, 1))(0.4, 0.3), wanted, strict=True):
            np.testing.assert_allclose(found, there, rtol=0, atol=1e-9)
