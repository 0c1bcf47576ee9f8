"""Rolling resistance in space is one disc: a ball rolls, stops, stays and turns alike in all directions."""

from __future__ import annotations

import dataclasses
import functools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import System, schemes
from nsjax.contact import Bounded, ContactProblem, GivenForces, RowGroup, RowGroups, natural_residual, solve
from nsjax.core import InputError
from nsjax.multibody import assemble, body, contact, plane, sphere

SLOW = pytest.mark.slow
MASS, RADIUS, G = 0.17, 0.028, 9.81
INERTIA = 0.4 * MASS * RADIUS**2
SLIDING, TORSIONAL, ROLLING = 0.2, 1e-4, 2e-3
BRAKE = ROLLING * G / (1.4 * RADIUS)
"""Deceleration of a ball that rolls [m/s^2]: ``m a = F``, ``2/5 m R^2 a / R = mu_r m g - F R``."""

ANGLES = np.linspace(0.0, 0.5 * np.pi, 20)
SCHEMES = {
    "moreau": schemes.moreau(), "theta": schemes.moreau_theta(), "ggl_decoupled": schemes.ggl_decoupled(),
    "ggl_unified": schemes.ggl_unified(),
}  # fmt: skip
EACH = ["moreau", pytest.param("ggl_unified", marks=SLOW)]


@functools.cache
def ball(coordinates: str = "joint") -> nsjax.Problem:
    return assemble(
        body("ball", mass=MASS, inertia=(INERTIA,) * 3),
        contact("floor", sphere("ball", RADIUS), plane(), friction=(SLIDING, TORSIONAL, ROLLING)),
        gravity=(0.0, 0.0, -G), start={"ball": (0.0, 0.0, RADIUS)}, coordinates=coordinates,
    )  # fmt: skip


def rolled(scheme, dt, steps, coordinates, x):
    """Position (2,) and velocity (6,) after a start by ``x``: coefficient, speed, direction, spin, and a
    slope that goes down by an angle towards a direction.
    """
    arm, speed, angle, spin, slope, down = x
    problem = ball(coordinates)
    c, s = jnp.cos(angle), jnp.sin(angle)
    v = jnp.stack([speed * c, speed * s, 0.0 * c, -speed / RADIUS * s, speed / RADIUS * c, spin])
    p = {**problem.params, "floor": dataclasses.replace(problem.params["floor"], rolling=arm)}
    steep = jnp.stack([jnp.sin(slope) * jnp.cos(down), jnp.sin(slope) * jnp.sin(down), -jnp.cos(slope)])
    p["gravity"] = G * steep
    state = dataclasses.replace(problem.state, v=v)
    traj = nsjax.simulate(problem.system, p, state, SCHEMES[scheme], dt=dt, steps=steps, every=steps)
    return traj.q[-1, :2], traj.v[-1], traj.status


@functools.cache
def runs(scheme, dt, steps, coordinates="joint"):
    """`rolled` of many starts (n, 6), one after the other, in one program."""
    ball(coordinates)  # is not made inside of it
    one = functools.partial(rolled, scheme, dt, steps, coordinates)
    return jax.jit(lambda x: jax.lax.map(one, x))


def starts(speed, angles, spin=0.0, slope=0.0, down=0.0, arm=ROLLING):
    return jnp.stack(jnp.broadcast_arrays(arm, speed, angles, spin, slope, down), axis=1)


@pytest.mark.parametrize("scheme", EACH)
def test_a_ball_stops_alike_in_all_directions(scheme) -> None:
    """After ``v^2 / 2 a`` in its own direction, whatever the direction; and so it does while it spins."""
    dt, speed = 4e-3, 0.3
    way = speed**2 / (2.0 * BRAKE)
    go = runs(scheme, dt, 200)
    q, v, status = go(starts(speed, ANGLES))
    assert not np.any(status)
    along = np.stack([np.cos(ANGLES), np.sin(ANGLES)], axis=1)
    # in one direction every step is exact but the last one, which is cut where it stops
    np.testing.assert_allclose(np.sum(q * along, axis=1), way, atol=0.125 * BRAKE * dt**2 * 1.001)
    np.testing.assert_allclose(q, np.hypot(*q[0]) * along, atol=1e-12)
    np.testing.assert_allclose(v, 0.0, atol=1e-11)
    q, v, status = go(starts(speed, ANGLES, spin=4.0))
    assert not np.any(status)
    # a body that rolls and spins turns by 0.04 in a step, in which its axes are those of the middle; the
    # solver leaves 1e-11 of its impulses. By the unified scheme it goes 3.6e-7 m sideways, of second order
    aside = np.stack([-along[:, 1], along[:, 0]], axis=1)
    np.testing.assert_allclose(q, q[0, 0] * along + q[0, 1] * aside, atol=1e-12)
    np.testing.assert_allclose(q[0, 0], way, atol=2e-6)
    np.testing.assert_allclose(q[0, 1], 0.0, atol=1e-10 if scheme == "moreau" else 5e-7)
    down = 4.0 - TORSIONAL * MASS * G / INERTIA * 0.8
    np.testing.assert_allclose(np.linalg.norm(v, axis=1), down, atol=0.1 * dt)


@pytest.mark.parametrize("scheme", EACH)
def test_it_stays_on_a_slope_up_to_the_same_angle_in_all_directions(scheme) -> None:
    """``tan slope <= mu_r / R``; beyond, it rolls down by ``5/7 g (sin slope - cos slope mu_r / R)``."""
    go, most = runs(scheme, 4e-3, 200), np.arctan(ROLLING / RADIUS)
    q, v, status = go(starts(0.0, 0.0, slope=0.999 * most, down=4.0 * ANGLES))
    assert not np.any(status)
    assert np.max(np.abs(q)) < 1e-12
    assert np.max(np.abs(v)) < 1e-12
    q, v, status = go(starts(0.0, 0.0, slope=1.5 * most, down=4.0 * ANGLES))
    assert not np.any(status)
    drive = G / 1.4 * (np.sin(1.5 * most) - np.cos(1.5 * most) * ROLLING / RADIUS)
    along = np.stack([np.cos(4.0 * ANGLES), np.sin(4.0 * ANGLES)], axis=1)
    np.testing.assert_allclose(v[:, :2], 0.8 * drive * along, atol=1e-10)


def curve(speed, slope, time):
    """A ball that rolls across a slope: ``dv/dt = 5/7 g (sin slope e - cos slope mu_r / R v / |v|)``."""
    integrate = pytest.importorskip("scipy.integrate")

    def rate(t, y):
        push = np.array([0.0, np.sin(slope)]) - np.cos(slope) * ROLLING / RADIUS * y[2:] / np.hypot(*y[2:])
        return [*y[2:], *(G / 1.4 * push)]

    return integrate.solve_ivp(rate, (0.0, time), [0.0, 0.0, speed, 0.0], rtol=1e-12, atol=1e-14).y[:2, -1]


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["theta", pytest.param("ggl_decoupled", marks=SLOW)])
def test_its_path_bends_on_a_slope(scheme) -> None:
    """As its equation of motion says, at every angle to the tangents alike. Of first order in the step by
    all schemes: the moment of a step is against the rate at its end.
    """
    found, wanted = [], curve(0.3, 0.1, 0.4)
    for steps in (50, 100, 200):
        angles = ANGLES[[0, 3, 8, 11]] if steps == 200 else ANGLES[:1]
        down = angles + 0.5 * np.pi
        q, _, status = runs(scheme, 0.4 / steps, steps)(starts(0.3, angles, slope=0.1, down=down))
        assert not np.any(status)
        c, s = np.cos(angles), np.sin(angles)
        own = np.stack([c * q[:, 0] + s * q[:, 1], c * q[:, 1] - s * q[:, 0]], axis=1)
        np.testing.assert_allclose(own, own[:1].repeat(len(own), 0), atol=1e-11)
        found.append(np.max(np.abs(own[0] - wanted)))
    slopes = np.log2(np.array(found[:-1]) / np.array(found[1:]))
    assert np.all(slopes > 0.9), (found, slopes)


@pytest.mark.slow
def test_the_certificate_of_a_disc() -> None:
    """A moment on the square around the disc is no answer; one on the disc against the rate is."""
    problem = ContactProblem(
        rows=RowGroups.of(1, 2, bounded=RowGroup(Bounded(2, (0,)), 1)),
        delassus=jnp.diag(jnp.array([1.0, 2.0, 2.0, 4.0, 4.0])),
        free=jnp.array([-2.0, 0.0, 0.0, 9.0, 12.0]), friction=jnp.array([0.3, 0.1]), mask=jnp.ones(2, bool),
        given=GivenForces(normal=jnp.zeros(2)),
    )  # fmt: skip
    disc = jnp.array([2.0, 0.0, 0.0, -0.12, -0.16])
    answer = jax.jit(solve)(problem)
    np.testing.assert_allclose(answer.x, disc, atol=1e-12)
    assert float(natural_residual(problem, disc)) < 1e-14
    assert float(natural_residual(problem, jnp.array([2.0, 0.0, 0.0, -0.2, -0.2]))) > 1e-2


def none(*_):
    return jnp.zeros(2)


@pytest.mark.parametrize(
    ("discs", "leads"), [((0,), ()), ((0,), (0, 1)), ((1,), (0, 0)), ((0,), (-1, -1)), ((0, 0), (0, 0))]
)
def test_discs_that_are_none(discs, leads) -> None:
    words = (
        f"System: dry_friction_discs = {discs} with dry_friction_contact = {leads}; give the numbers of "
        "the first of two neighbouring rows that follow the same contact, each row once"
    )
    with pytest.raises(InputError, match=re.escape(words)):
        System(
            nq=2, nv=2, nc=2, nd=2, mass=none, force=none, gap=none, law=none,
            dry_friction=none, dry_friction_bound=none, dry_friction_contact=leads,
            dry_friction_discs=discs,
        )  # fmt: skip
