"""Moreau's midpoint rule on point masses with contact, against closed forms."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import System, schemes
from nsjax.contact import ContactLaw
from tests.points import bouncing
from tests.references import slope
from tests.schemes.small_systems import BLOCK, TWICE, G, block, floor_law, run, unit_mass

# ------------------------------------------------------------- a point mass and one obstacle


@pytest.mark.parametrize("factor", [0.0, 0.5, 0.99])
@pytest.mark.parametrize("restitution", [0.0, 0.7])
def test_block_slides_above_the_angle_of_friction(factor, restitution):
    angle = 0.3
    friction = factor * np.tan(angle)
    p = block(slope=angle, friction=friction, restitution=restitution, mass=2.5)
    traj = run(BLOCK, p, [0.0, 0.0], [0.0, 0.0], 1e-3, 1000, every=10)
    a = G * (np.sin(angle) - friction * np.cos(angle))
    np.testing.assert_allclose(traj.v[:, 0], a * traj.t, rtol=0, atol=1e-11)
    np.testing.assert_allclose(traj.q[:, 0], a * traj.t**2 / 2, rtol=0, atol=1e-11)
    assert np.abs(traj.q[:, 1]).max() < 1e-11


def test_sliding_block_stops_where_friction_has_eaten_its_energy():
    v0, mu = 2.0, 0.3
    stop = v0**2 / (2 * mu * G)
    for dt in (1e-2, 3e-3, 1e-3, 1e-4):
        traj = run(
            BLOCK, block(friction=mu), [0.0, 0.0], [v0, 0.0], dt, round(1.2 / dt / 10) * 10, every=10
        )
        assert traj.v[-1, 0] == 0.0
        # Exact up to the step in which it stops, whose mean velocity is at most mu g dt / 2 too large.
        assert 0.0 <= traj.q[-1, 0] - stop + 1e-12 <= mu * G * dt**2 / 2 + 2e-12


def test_block_sticks_to_a_belt_that_swings():
    # Sticking needs less than mu g: v(t_i) is the belt's velocity half a step earlier.
    c, w, dt, m = 0.5, 5.0, 1e-3, 2.0
    p = block(friction=0.5, belt_amplitude=c, belt_frequency=w, mass=m)
    traj = run(BLOCK, p, [0.0, 0.0], [0.0, 0.0], dt, 2000)
    np.testing.assert_allclose(traj.v[1:, 0], c * np.sin(w * (traj.t[1:] - dt / 2)), rtol=0, atol=1e-12)
    path = c / w * (1 - np.cos(w * traj.t))
    np.testing.assert_allclose(traj.q[:, 0], path, rtol=0, atol=c * dt)
    force = m * c * w * np.cos(w * traj.t[1:-1])
    np.testing.assert_allclose(traj.force_tangential[2:, 0, 0], force, rtol=0, atol=m * c * w**3 * dt**2)


def test_block_on_a_belt_held_by_a_spring():
    # Sticks until the spring balances friction at x* = mu m g / k, then swings about x* with the
    # amplitude c / w that its velocity c at x* gives, and meets the belt's velocity once per period.
    c, mu, k, m = 0.3, 0.4, 50.0, 2.0
    w, balance = np.sqrt(k / m), mu * m * G / k
    until = balance / c
    p = block(friction=mu, belt=c, stiffness=k, mass=m)
    duration = until + 1.6 * 2 * np.pi / w
    errors, steps = [], []
    for n in (467, 631, 857, 1151, 1553, 2099, 2837, 3823, 5153, 6947, 9371, 12641):
        dt = duration / n
        traj = run(BLOCK, p, [0.0, 0.0], [c, 0.0], dt, n)
        swing = traj.t > until
        x = np.where(swing, balance + c / w * np.sin(w * (traj.t - until)), c * traj.t)
        errors.append(np.abs(traj.q[:, 0] - x).max())
        steps.append(dt)
        assert traj.v[:, 0].max() <= c + 1e-12
        assert np.abs(traj.v[:, 0] - np.gradient(x, traj.t)).max() < 20 * dt
    # No impact, and the switch from sticking to slipping is smooth in v: the order of smooth motion.
    assert slope(steps, errors) == pytest.approx(2, abs=0.1)


@pytest.mark.parametrize(
    "friction", [2.0, pytest.param(0.0, marks=pytest.mark.slow), pytest.param(0.3, marks=pytest.mark.slow)]
)
def test_the_same_contact_twice_moves_like_once(friction):
    # Delassus matrices of rank 2 with 4 rows: forces are not unique, motion and total force are.
    p = block(slope=0.2, friction=friction, restitution=0.5, belt=-0.4)
    q, v = [0.0, 0.3], [1.0, -0.5]
    once = run(BLOCK, p, q, v, 1e-3, 3000)
    twice = run(TWICE, p, q, v, 1e-3, 3000)
    assert once.impacts.sum() > 3
    np.testing.assert_allclose(twice.q, once.q, rtol=0, atol=1e-9)
    np.testing.assert_allclose(twice.v, once.v, rtol=0, atol=1e-9)
    np.testing.assert_allclose(
        twice.impulse_normal.sum(axis=1), once.impulse_normal[:, 0], rtol=0, atol=1e-9
    )
    total = twice.impulse_tangential.sum(axis=(1, 2))
    np.testing.assert_allclose(total, once.impulse_tangential[:, 0, 0], rtol=0, atol=1e-9)


# ------------------------------------------------------------------ walls and three dimensions


def no_force(t, q, v, p):
    return jnp.zeros_like(q)


def wall_gaps(t, q, p):
    return jnp.stack([q[0] - p["left"] - p["speed"] * t, p["right"] - q[0]])


WALLS = System(nq=1, nv=1, nc=2, mass=unit_mass, force=no_force, gap=wall_gaps, law=bouncing)


@pytest.mark.parametrize("e", [0.6, 1.0, pytest.param(0.0, marks=pytest.mark.slow)])
def test_moving_wall_hits_a_mass_at_rest(e):
    # Relative law: the mass leaves with (1 + e) times the wall's velocity, exactly.
    c = 0.8
    p = {"mass": 3.0, "left": -0.1, "right": 100.0, "speed": c, "restitution": np.array([e, 0.0])}
    traj = run(WALLS, p, [0.0], [0.0], 1e-3, 1000, events=2)
    assert float(traj.events.time[0]) == pytest.approx(0.1 / c, rel=1e-12)  # the instant inside its step
    late = float(traj.t[np.flatnonzero(traj.impacts.any(axis=1))[0]]) - 0.1 / c
    assert 0 < late <= 1.5e-3
    np.testing.assert_allclose(traj.v[-1], (1 + e) * c, rtol=1e-13)
    assert float(traj.events.rate_before[0]) == pytest.approx(-c)
    assert float(traj.events.rate_after[0]) == pytest.approx(e * c, abs=1e-13)
    assert traj.impulse_normal[:, 0].sum() == pytest.approx(3.0 * (1 + e) * c, rel=1e-12)
    # Penetrated by up to one step of approach, the contact stays closed for 1 + 1 / e steps at most.
    closed = traj.closed_time.sum(axis=0)
    assert closed[1] == 0
    assert closed[0] > 0.85 if e == 0 else 0 < closed[0] <= 1e-3 * (2 + 1 / e)


def fall(t, q, v, p):
    return jnp.stack([p["push"][0], p["push"][1], -G * p["mass"]])


def height_gap(t, q, p):
    return q[2:]


def floor_slip(t, q, v, p):
    return v[None, :2]


PUCK = System(
    nq=3, nv=3, nc=1, nt=2, mass=unit_mass, force=fall, gap=height_gap, slip=floor_slip, law=floor_law
)


@pytest.mark.slow
def test_puck_slides_straight_and_stops():
    v0, mu, dt = 2.0, 0.3, 1e-3
    heading = np.array([np.cos(0.7), np.sin(0.7)])
    p = {"mass": 1.3, "friction": mu, "restitution": 0.0, "push": np.zeros(2)}
    # the puck rests in a gap of rounding size, which would leave the contact out for single steps
    touching = schemes.moreau(gap_tolerance=1e-12, contact_tolerance=1e-14)
    traj = run(PUCK, p, [0, 0, 0], [*(v0 * heading), 0], dt, 1000, scheme=touching)
    speed = np.maximum(v0 - mu * G * traj.t, 0.0)
    np.testing.assert_allclose(traj.v[:, :2], speed[:, None] * heading, rtol=0, atol=1e-11)
    slides = speed[1:] > 0.01
    force = np.broadcast_to(-mu * 1.3 * G * heading, (slides.sum(), 2))
    np.testing.assert_allclose(traj.force_tangential[1:, 0][slides], force, rtol=1e-8)  # 1e-11 v0 / (g dt)
    np.testing.assert_allclose(traj.q[-1, :2], v0**2 / (2 * mu * G) * heading, rtol=0, atol=mu * G * dt**2)


@pytest.mark.parametrize("factor", [1.5, pytest.param(0.999, marks=pytest.mark.slow)])
def test_push_on_a_puck_below_and_above_the_friction_disk(factor):
    m, mu = 1.3, 0.3
    heading = np.array([np.cos(2.1), np.sin(2.1)])
    push = factor * mu * m * G * heading
    p = {"mass": m, "friction": mu, "restitution": 0.5, "push": push}
    # Rounding lifts the puck by 1e-22 m in the first step; without a tolerance the contact would be left
    # out of the second one and the puck would fall (by g dt^2) and settle first.
    touching = schemes.moreau(gap_tolerance=1e-12, contact_tolerance=1e-14)
    traj = run(PUCK, p, [0, 0, 0], [0, 0, 0], 1e-3, 1000, scheme=touching)
    a = np.maximum(factor - 1, 0) * mu * G * heading
    np.testing.assert_allclose(traj.v[:, :2], a * traj.t[:, None], rtol=0, atol=1e-11)
    force = -np.minimum(factor, 1) * mu * m * G * heading
    np.testing.assert_allclose(traj.force_tangential[1:, 0], np.broadcast_to(force, (1000, 2)), rtol=1e-8)


# ------------------------------------------------------------- more contacts than have their gaps twice


def points(count: int) -> System:
    """Points over a floor, each with a coordinate of its own, which fall with ``p`` times gravity."""
    return System(
        nq=count, nv=count, nc=count, mass=lambda q, p: jnp.eye(count), gap=lambda t, q, p: q,
        force=lambda t, q, v, p: -G * p * jnp.ones(count), law=lambda p: ContactLaw(restitution=0.5),
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("gradient", [None, "discrete"])
@pytest.mark.parametrize("derivative", [jax.jacfwd, jax.jacrev])
def test_derivatives_of_many_contacts_are_those_of_few(gradient, derivative):
    """Forward and reverse, through an impact with half the speed kept, against the closed form too."""
    dt, steps, h = 1e-3, 130, 0.05

    def last(p, count):
        start = nsjax.State(t=0.0, q=h * jnp.ones(count), v=jnp.zeros(count))
        settings = {"dt": dt, "steps": steps, "every": 10, "gradient": gradient}
        traj = nsjax.simulate(points(count), p, start, schemes.moreau(), **settings)
        return {x: getattr(traj, x)[-1] for x in ("q", "gap", "gap_min")}

    few = jax.jit(derivative(functools.partial(last, count=2)))(1.0)
    many = jax.jit(derivative(functools.partial(last, count=40)))(1.0)
    for name, value in many.items():
        np.testing.assert_allclose(value, np.full(40, few[name][0]), rtol=1e-12, err_msg=name)
    if gradient is None:
        # q = u s (t - s) / 2 - u (t - s)^2 / 2 with u = p G and the instant s = (2 h / u)^(1/2) of impact
        t, s = dt * steps, np.sqrt(2.0 * h / G)
        slope = G * t * (1.5 * s - t) / 2.0
        # first order in the step: 0.37 to 0.95 of G t dt for eight steps between 2 and 0.125 ms
        np.testing.assert_allclose(many["q"], slope, rtol=0, atol=G * t * dt)


# ---------------------------------------------------------------- depth at which contacts close


@pytest.mark.parametrize(
    ("scheme", "share"),
    [
        (schemes.moreau(), lambda e: 1.0 - e / 2),
        pytest.param(schemes.moreau_theta(), lambda e: 1.0 - e / 2, marks=pytest.mark.slow),
        pytest.param(schemes.ggl_unified(), lambda e: 0.5, marks=pytest.mark.slow),
        pytest.param(schemes.ggl_decoupled(), lambda e: 0.0, marks=pytest.mark.slow),
    ],
    ids=["moreau", "moreau_theta", "ggl_unified", "ggl_decoupled"],
)
def test_bodies_penetrate_by_no_more_than_their_scheme_says(scheme, share):
    """A ball without weight meets its floor in twenty phases of a step. The depth is linear in the phase:
    the deepest of twenty lies within a twentieth of a step of the bound."""
    dt, speed = 1e-3, 2.0
    ball = nsjax.models.bouncing_ball(radius=0.0, gravity=0.0)

    @jax.jit
    def deepest(restitution, starts):
        def depth(height):
            start = ball.replace(restitution=restitution, initial_q=[height], initial_v=[-speed])
            return -jnp.min(nsjax.simulate(*start, scheme, dt=dt, steps=20).q[:, 0])

        return jax.lax.map(depth, starts)

    for restitution in (0.0, 0.5, 1.0):
        depths = deepest(restitution, speed * dt * (10.0 + (np.arange(20) + 0.01) / 20)) / (speed * dt)
        assert share(restitution) - 0.05 <= np.max(depths) <= share(restitution) + 1e-9
