"""Bouncing balls against closed forms: flights, accumulation, moving table, spin, columns."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nsjax
from nsjax import models, schemes
from tests.references import slope

G = 9.81
R = 0.05  # default radius

# Steps per second (or period): primes between 1e-2 and 1e-5 s. The step of an impact is quantised, so
# that the error of a single step size is a random fraction of dt; a fit needs many that do not nest.
PRIMES = (101, 139, 191, 257, 347, 467, 631, 857, 1151, 1553, 2099, 2837, 3823, 5153, 6947, 9371, 12641,
          17041, 22973, 30971, 41759, 56299, 75913, 98999)  # fmt: skip


def bounce_times(height: float, e: float, count: int) -> np.ndarray:
    """Impact times of a ball dropped from rest: t1 (1 + 2 e + 2 e^2 + ...), t1 = sqrt(2 h / g)."""
    powers = e ** np.arange(1, count)
    return np.sqrt(2 * height / G) * (1 + 2 * np.concatenate([[0.0], np.cumsum(powers)]))


def bounce(t: float, height: float, e: float) -> tuple[float, float]:
    """Clear height and velocity of a ball dropped from rest."""
    times = bounce_times(height, e, 200)
    n = int(np.searchsorted(times, t))
    if n == 0:
        return height - G * t**2 / 2, -G * t
    if n == len(times):  # past the accumulation point, which 200 impacts reach to rounding
        return 0.0, 0.0
    v, s = e**n * np.sqrt(2 * G * height), t - times[n - 1]
    return v * s - G * s**2 / 2, v - G * s


def run(problem, dt: float, steps: int, **options) -> nsjax.Trajectory:
    traj = nsjax.simulate(*problem, schemes.moreau(), dt=dt, steps=steps, **options)
    traj.raise_for_status()
    return traj


# ---------------------------------------------------------------------- one ball, level table


# Impacts before 1 s: e = 0.5 from 1 m at 0.45, 0.90 s (next 1.13); e = 0.8 from 1 m at 0.45 s (next
# 1.17); e = 0.8 from 0.18 m at 0.19, 0.50, 0.74, 0.94 s (next 1.10): 1 s lies well inside a flight.
@pytest.mark.parametrize(("e", "height", "impacts"), [(0.5, 1.0, 2), (0.8, 1.0, 1), (0.8, 0.18, 4)])
def test_state_at_one_second_converges_with_order_one(e, height, impacts):
    times = bounce_times(height, e, impacts + 1)
    assert times[-2] < 0.95
    assert times[-1] > 1.05
    y, v = bounce(1.0, height, e)
    errors = []
    for n in PRIMES:
        traj = run(models.bouncing_ball(height=height, restitution=e), 1 / n, n, every=n, save=["impacts"])
        assert traj.impacts.sum() == impacts
        errors.append([abs(traj.q[-1, 0] - R - y), abs(traj.v[-1, 0] - v)])
    errors = np.array(errors)
    steps = 1 / np.array(PRIMES)
    assert 0.85 <= slope(steps, np.hypot(errors[:, 0], errors[:, 1])) <= 1.15
    assert 0.85 <= slope(steps, errors[:, 0]) <= 1.15
    # Each impact comes at most 1.5 steps late or early; the next one multiplies what it finds.
    assert np.all(errors[:, 1] <= 1.5 * impacts * (1 + e) * G * steps)


@pytest.mark.parametrize(("e", "height"), [(0.8, 0.04), pytest.param(0.5, 0.4, marks=pytest.mark.slow)])
def test_rest_after_the_accumulation_point(e, height):
    accumulation = bounce_times(height, e, 300)[-1]
    assert 0.8 < accumulation < 0.9
    for n in PRIMES:
        problem = models.bouncing_ball(height=height, restitution=e)
        traj = run(problem, 1 / n, n, every=n, save=["gap_min"])
        # An impact goes unnoticed for at most one step, ...
        assert traj.gap_min[-1, 0] >= -np.sqrt(2 * G * height) / n
        # ... the last bounces are as fast as one step of gravity, so that little remains of that, ...
        assert -2 * G / n**2 <= traj.q[-1, 0] - R <= 0
        # ... and the velocity shrinks by the factor e per step from there on.
        steps = max(1, int((1 - accumulation) * n) - 20)
        assert abs(traj.v[-1, 0]) <= G / n * max(e**steps, 1e-13)
    # A second later nothing has moved.
    traj = run(models.bouncing_ball(height=height, restitution=e), 1e-3, 2000, every=1000)
    assert abs(traj.v[-1, 0]) < 1e-15
    assert traj.q[-1, 0] == pytest.approx(traj.q[-2, 0], abs=1e-12)
    assert traj.impulse_normal[-1, 0] == pytest.approx(G, rel=1e-12)  # weight times one second
    assert traj.closed_time[-1, 0] == pytest.approx(1.0)
    assert traj.impacts[-1, 0] == 0


def test_impact_list_follows_the_closed_form():
    e, height, dt, count = 0.8, 1.0, 1e-5, 12
    times = bounce_times(height, e, count)
    speeds = np.sqrt(2 * G * height) * e ** np.arange(count)
    traj = run(models.bouncing_ball(height=height, restitution=e), dt, 400_000, every=1000, events=count)
    found = traj.events
    # An impact step ends up to 1.5 steps after the impact; each flight inherits the error before it.
    assert np.all(np.abs(found.time - times) <= 1.5 * dt * (1 + np.arange(count)))
    np.testing.assert_allclose(found.rate_before, -speeds, rtol=0, atol=1.5 * G * dt * count)
    np.testing.assert_allclose(found.rate_after, -e * np.asarray(found.rate_before), rtol=1e-13)
    np.testing.assert_allclose(found.impulse_normal, (1 + e) * speeds, rtol=0, atol=3 * G * dt * count)


@pytest.mark.parametrize("dt", [1e-2, 1e-3])
def test_elastic_ball_keeps_its_energy_over_a_thousand_bounces(dt):
    # Between impacts the midpoint rule is exact for constant gravity, and an elastic impact step
    # reverses the velocity and leaves the position: no drift at all, not even in proportion to dt.
    rows = round(950 / dt / 100)
    traj = run(models.bouncing_ball(restitution=1.0), dt, 100 * rows, every=100)
    assert np.abs(traj["energy"] - traj["energy"][0]).max() < 1e-10
    assert traj.q.max() <= 1 + R + 1e-11  # no apex above the first one
    # A period is a whole number of steps: the count is off by less than one step per period.
    period = 2 * np.sqrt(2 / G)
    bounces = int(traj.impacts.sum())
    assert bounces >= 1000
    assert abs(bounces - 950 / period) <= 1 + dt / period * 950 / period


# ------------------------------------------------------------------------------ moving table

# Period-one bounce: flight time T = 2 pi k / w, v+ = g T / 2 = -v-, and v+ - s' = -e (v- - s') with the
# table's velocity s' = A w cos(phi) give cos(phi) = g T (1 - e) / (2 A w (1 + e)). The return map has
# determinant e^2 and trace 1 + e^2 - (1 + e)^2 A w^2 sin(phi) / g; A is chosen for trace zero, so that
# deviations shrink by e per period.
E_TABLE, W_TABLE = 0.5, 10 * np.pi
PERIOD = 2 * np.pi / W_TABLE
RISE = G * PERIOD / 2
S_RATE = RISE * (1 - E_TABLE) / (1 + E_TABLE)
A_TABLE = np.hypot(S_RATE, G * (1 + E_TABLE**2) / (1 + E_TABLE) ** 2 / W_TABLE) / W_TABLE
PHASE = np.arccos(G * PERIOD * (1 - E_TABLE) / (2 * A_TABLE * W_TABLE * (1 + E_TABLE)))
APEX = R + A_TABLE * np.sin(PHASE) + RISE**2 / (2 * G)


def on_table(lift: float = 0.0):
    """Starts at the apex of the periodic orbit, half a period after an impact."""
    return models.bouncing_ball(
        restitution=E_TABLE, table_amplitude=A_TABLE, table_frequency=W_TABLE,
        initial_q=[APEX + lift], initial_v=[0.0], initial_time=PHASE / W_TABLE + PERIOD / 2,
    )  # fmt: skip


@pytest.mark.slow
def test_period_one_bounce_on_a_shaken_table():
    errors = []
    for n in PRIMES[:20]:
        traj = run(on_table(), PERIOD / n, 30 * n, every=n, events=40)
        errors.append(np.hypot(traj.q[1:, 0] - APEX, traj.v[1:, 0]).max())
        assert list(traj.impacts[1:, 0]) == [1] * 30
        late = np.asarray(traj.events.time[:30]) - PHASE / W_TABLE - PERIOD * np.arange(1, 31)
        assert np.abs(late).max() < 2 * PERIOD / n
    steps = PERIOD / np.array(PRIMES[:20])
    assert np.all(errors < 10.0 * steps)
    assert 0.85 <= slope(steps, errors) <= 1.15


def test_shaken_table_draws_the_ball_to_its_orbit():
    # 0.5^20 of a start 2 mm too high is nothing beside the error of the orbit itself, O(dt).
    traj = run(on_table(lift=2e-3), PERIOD / 5003, 40 * 5003, every=5003)
    off = np.hypot(traj.q[:, 0] - APEX, traj.v[:, 0])
    assert off[0] == pytest.approx(2e-3)
    assert off[21:].max() < 10 * PERIOD / 5003


def test_table_observables():
    traj = run(on_table(), PERIOD / 100, 100)
    np.testing.assert_allclose(traj["table"], A_TABLE * np.sin(W_TABLE * traj.t), atol=1e-15)
    np.testing.assert_allclose(
        traj["table_velocity"], A_TABLE * W_TABLE * np.cos(W_TABLE * traj.t), atol=1e-14
    )
    np.testing.assert_allclose(traj.gap[:, 0], traj.q[:, 0] - R - traj["table"], atol=1e-15)


# ---------------------------------------------------------------------------- two dimensions


@pytest.mark.slow
@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    mass=st.floats(0.1, 10),
    radius=st.floats(0.01, 1),
    v=st.tuples(st.floats(-5, 5), st.floats(-5, -0.1), st.floats(-50, 50)),
    friction=st.floats(0, 2),
    e=st.floats(0, 1),
    e_t=st.floats(0, 1),
)
def test_any_impact_of_a_sphere(mass, radius, v, friction, e, e_t):
    # Normal and tangent of a sphere are uncoupled: sticking takes (1 + e_T) 2/7 m (vx + r omega).
    normal = (1 + e) * mass * -v[1]
    stick = -(1 + e_t) * 2 / 7 * mass * (v[0] + radius * v[2])
    tangential = np.clip(stick, -friction * normal, friction * normal)
    after = (
        v[0] + tangential / mass,
        v[1] + normal / mass,
        v[2] + tangential * radius / (0.4 * mass * radius**2),
    )
    problem = models.bouncing_ball(
        dimension=2, mass=mass, radius=radius, friction=friction, restitution=e, restitution_tangential=e_t,
        gravity=0.0, initial_q=[0.0, radius, 0.0], initial_v=v,
    )  # fmt: skip
    traj = run(problem, 1e-3, 1)
    np.testing.assert_allclose(traj.v[-1], after, rtol=0, atol=1e-9)


@pytest.mark.parametrize("angle", [0.3, 0.6])
@pytest.mark.parametrize("factor", [0.0, 0.5, 0.99, 1.01, 3.0])
@pytest.mark.parametrize("restitution", [0.0, 0.8])
def test_sphere_on_a_slope_rolls_or_slides(angle, factor, restitution):
    friction = factor * 2 / 7 * np.tan(angle)  # factor 1: the limit of rolling
    if factor > 1:
        along = 5 / 7 * G * np.sin(angle)
        turn = -along / R
    else:
        along = G * (np.sin(angle) - friction * np.cos(angle))
        turn = -2.5 * friction * G * np.cos(angle) / R
    problem = models.bouncing_ball(
        dimension=2, height=0.0, slope=angle, friction=friction, restitution=restitution
    )
    traj = run(problem, 1e-3, 1000, every=100)
    t = traj.t
    expected = np.stack([along * t, 0 * t, turn * t], axis=1)
    np.testing.assert_allclose(traj.v, expected, rtol=0, atol=1e-11)
    np.testing.assert_allclose(traj.q - [0, R, 0], expected * t[:, None] / 2, rtol=0, atol=1e-11)
    assert traj.impulse_normal.sum() == pytest.approx(G * np.cos(angle), rel=1e-12)
    assert traj.closed_time.sum() == pytest.approx(1.0)


def test_sliding_sphere_begins_to_roll_at_five_sevenths():
    # v = v0 - mu g t until 2 v0 / (7 mu g); momentum about the contact point makes the end exact.
    v0, mu, dt = 2.0, 0.2, 1e-3
    change = 2 * v0 / (7 * mu * G)
    problem = models.bouncing_ball(
        dimension=2, friction=mu, initial_q=[0.0, R, 0.0], initial_v=[v0, 0.0, 0.0]
    )
    traj = run(problem, dt, 500)
    slides = traj.t < change
    np.testing.assert_allclose(traj.v[slides, 0], v0 - mu * G * traj.t[slides], rtol=0, atol=1e-11)
    rolls = traj.t > change + dt
    np.testing.assert_allclose(traj.v[rolls, 0], 5 / 7 * v0, rtol=0, atol=1e-12)
    np.testing.assert_allclose(traj.v[rolls, 2], -5 / 7 * v0 / R, rtol=0, atol=1e-11)


# ---------------------------------------------------------------------------------- columns


@pytest.mark.parametrize(("masses", "e"), [((1.0, 1.0), 0.3), ((1.0, 3.0), 1.0), ((0.7, 0.2), 0.0)])
def test_two_balls_exchange_momentum(e, masses):
    m1, m2 = masses
    v1, v2 = 2.0, -0.5
    mean = (m1 * v1 + m2 * v2) / (m1 + m2)
    expected = mean - m2 * e * (v1 - v2) / (m1 + m2), mean + m1 * e * (v1 - v2) / (m1 + m2)
    problem = models.bouncing_ball(
        balls=2, mass=np.array(masses), gravity=0.0, restitution=e, initial_q=[3.0, 3.5], initial_v=[v1, v2]
    )
    traj = run(problem, 1e-2, 50)
    np.testing.assert_allclose(traj.v[-1], expected, rtol=0, atol=1e-14)
    momentum = traj.v @ np.array(masses)
    np.testing.assert_allclose(momentum, momentum[0], rtol=0, atol=1e-15 * (m1 * v1 + m2))
    assert traj.impulse_normal[:, 1].sum() == pytest.approx(m2 * (expected[1] - v2), rel=1e-12)


def test_resting_column_carries_its_weight():
    # Each contact carries the weight of everything above it.
    masses = np.array([1.0, 0.4, 2.0])
    problem = models.bouncing_ball(balls=3, height=0.0, mass=masses, restitution=0.6)
    traj = run(problem, 1e-3, 1000, every=100)
    np.testing.assert_allclose(traj.force_normal[-1], G * np.array([3.4, 2.4, 2.0]), rtol=1e-10)
    assert np.abs(traj.v).max() < 1e-12
    # A gap of one rounding error (1e-17) leaves a contact out of the first step: half of g dt^2.
    np.testing.assert_allclose(traj.gap, 0.0, atol=2 * G * 1e-6)
