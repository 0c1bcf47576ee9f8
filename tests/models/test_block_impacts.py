"""A block that tips, rocks, rolls over and strikes, against references."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import nsjax
from nsjax import models, schemes
from tests.models.block_runs import SIZE, cuboid, run
from tests.references import slope
from tests.references.rigid_box import SIGNS, G, Reference, angle_between, standing

# The block that tips, lands and rolls against closed forms and event-driven integration.
ROWS = 10
# Numbers of steps that do not nest: the step of an impact is quantised.
COUNTS = ROWS * np.array(
    [41, 53, 71, 97, 127, 163, 211, 277, 359, 467, 607, 787, 1021, 1327, 1723, 2239, 2909, 3779]
)


def convergence(ref: Reference, q, stuck, time: float):
    """Errors of poses (any row) and of the last velocity for all step sizes, and the true impacts."""
    times, qs, vs, impacts = ref.path(q, np.zeros(ref.nv), stuck, time, ROWS)
    numbers = {"dimension": ref.d, "size": ref.size, "friction": ref.friction, "slope": ref.angle}
    poses, rates = [], []
    for n in COUNTS:
        traj = run(models.block(initial_q=q, **numbers), time / n, int(n), every=int(n) // ROWS)
        np.testing.assert_allclose(traj.t, times, rtol=1e-12)
        move = np.linalg.norm(traj.q[:, : ref.d] - qs[:, : ref.d], axis=1)
        space = ref.d == 3
        turn = angle_between(traj.q[:, 3:], qs[:, 3:]) if space else np.abs(traj.q[:, 2] - qs[:, 2])
        poses.append(np.max(move + np.linalg.norm(ref.size) / 2 * turn))
        rates.append(np.abs(traj.v[-1] - vs[-1]).max())
    return time / COUNTS, np.array(poses), np.array(rates), impacts, (qs, vs)


# An impact is noticed up to d = 1.5 steps late. Rocking, with 0.7 of the speed kept, that prolongs the
# next swing by 2 * 0.7 d, so that the delay of the third impact is d + 2.4 (d + 2.4 d) = 9.2 d;
# rolling is alike. The velocity in the smooth motion that follows is off by the acceleration times that.
LATE = 9.2 * 1.5


@pytest.mark.slow
def test_tall_box_tips_about_its_lower_corner():
    # Steeper than width / height = 1 / 3, and rough. Up to 33 degrees past the start it is a pendulum.
    size, angle, time = np.array([0.2, 0.6]), 0.45, 0.5
    ref = Reference(size, 1.0, angle)
    q = standing(ref, 0.0)
    steps, poses, rates, impacts, (qs, vs) = convergence(ref, q, [1], time)
    # The reference against the textbook's pendulum: psi'' = 3 g / (4 l) sin(psi), psi from the vertical.
    length, start = np.linalg.norm(size) / 2, angle - np.arctan(1 / 3)
    fall = solve_ivp(lambda t, y: [y[1], 0.75 * G / length * np.sin(y[0])], (0, time), [start, 0.0],
                     method="DOP853", rtol=1e-12, atol=1e-13)  # fmt: skip
    np.testing.assert_allclose([-qs[-1, 2], -vs[-1, 2]], [fall.y[0, -1] - start, fall.y[1, -1]], rtol=1e-9)
    assert not impacts
    assert qs[-1, 2] < -0.5
    assert ref.margin > 0.1
    # Smooth motion, but the corner is held on velocity level.
    assert slope(steps, poses) == pytest.approx(1, abs=0.1)
    # The tilt is reached half a step late; centre and far corner are both off by the length times that.
    assert np.all(poses <= 2 * length * np.abs(vs[-1, 2]) * steps / 2)
    # Where drift has lifted the corner off, a step goes without contact and without the torque about it:
    # the angular velocity misses 3 g / (4 l) sin(psi) dt, and as much by the delay.
    assert np.all(rates <= G / length * steps)


def test_box_lands_flat_and_stays():
    # A flat box (height < length / sqrt 2) that lands on its face stops dead: both corners get impulses.
    ref = Reference([0.6, 0.2], 1.5, 0.2)
    q = standing(ref, -0.6)
    stuck = [int(np.argmin(ref.gaps(q)))]
    steps, poses, _, impacts, _ = convergence(ref, q, stuck, 0.6)
    assert [i.active for i in impacts] == [[1, 3]]
    assert ref.margin > 0.2
    for counts in (1234, 6000):
        traj = run(
            models.block(dimension=2, size=ref.size, friction=1.5, slope=0.2, initial_q=q),
            0.6 / counts,
            counts,
        )
        assert np.abs(traj.v[-1]).max() < 1e-12
        held = traj.q[traj.t > impacts[0].time + 0.01]
        assert np.abs(held - held[-1]).max() < 1e-12
    assert 0.85 <= slope(steps, poses) <= 1.15
    # It stops up to a step and a half late, in an attitude off by what it turns in that time.
    far = np.linalg.norm(ref.size) * abs(impacts[0].before[2])
    assert np.all(poses <= 1.5 * far * steps)


@pytest.mark.slow
def test_rocking_box_loses_what_housner_says():
    # A slender box rocks from corner to corner: the corner left gets no impulse, and the angular
    # velocity shrinks by (H^2 / 3 - L^2 / 6) / (H^2 / 3 + L^2 / 3) = 0.7.
    ref = Reference([0.2, 0.4], 1.0)
    q = standing(ref, -0.2)
    steps, poses, rates, impacts, (qs, vs) = convergence(ref, q, [1], 0.63)
    acceleration = np.abs(ref.acceleration(qs[-1], vs[-1], impacts[-1].stuck)[0]).max()
    assert [i.stuck for i in impacts] == [[3], [1], [3]]
    speeds = [abs(i.after[2]) for i in impacts]
    np.testing.assert_allclose(np.divide(speeds[1:], speeds[:-1]), 0.7, rtol=1e-8)
    assert 0.85 <= slope(steps, poses) <= 1.15
    assert np.all(rates <= LATE * acceleration * steps)
    # Impacts become ever more frequent and accumulate at 0.93 s; then the box stands.
    problem = models.block(dimension=2, size=ref.size, friction=1.0, initial_q=q)
    traj = run(problem, 1e-4, 20_000, every=1000)
    late = traj.t >= 1.0
    assert np.abs(traj.v[late]).max() < 1e-12
    assert np.abs(traj.q[late] - traj.q[late][0]).max() < 1e-12
    assert np.abs(traj.q[-1, 2]) < 3e-4  # upright: nothing of the 0.2 rad is left but a few steps' drift


@pytest.mark.slow
def test_box_rolls_over_its_corners_in_space():
    # Released on one corner it falls onto a second, a third and a fourth; each sticks, the one before
    # lifts off, and between the impacts the box is a heavy top about the corner.
    ref = Reference([0.2, 0.25, 0.4], 1.0)
    q = standing(ref, [-0.2, 0.3, 0.1])
    steps, poses, rates, impacts, (qs, vs) = convergence(ref, q, [1], 0.45)
    acceleration = np.abs(ref.acceleration(qs[-1], vs[-1], impacts[-1].stuck)[0]).max()
    assert [i.stuck for i in impacts] == [[3], [7], [5]]
    assert ref.margin > 0.3
    assert 0.85 <= slope(steps, poses) <= 1.15
    assert np.all(rates <= LATE * acceleration * steps)


# The published parallelepiped against event-driven integration, and gradients through an impact.
# ---------------------------------------------------------------------------- parallelepiped

FALL = {
    "restitution": 0.8,
    "friction": 0.0,
    "initial_q": [0, 0, 1, 1, 0, 0, 0],
    "initial_v": [3, 0, 0, 60, 60, 0],
}


@functools.cache
def one_impact():
    """Event-driven: time, corner, gap rates, impulse, state after, state at 0.69 s."""
    ref = Reference(SIZE, 0.0)
    y = np.concatenate([FALL["initial_q"], FALL["initial_v"]]).astype(float)

    def rate(t, y):
        return ref.rate(y, [])

    def touch(t, y):
        return ref.gaps(y[:7]).min()

    touch.terminal = True
    touch.direction = -1  # the flight after the impact may begin a rounding below the ground
    options = {"method": "DOP853", "rtol": 1e-13, "atol": 1e-13}
    flight = solve_ivp(rate, (0, 0.69), y, events=touch, max_step=2e-3, **options)
    q, v = flight.y[:7, -1], flight.y[7:, -1]
    corner = int(np.argmin(ref.gaps(q)))
    row = ref.rows(q, v)[0][corner, -1]
    before = row @ v
    impulse = -1.8 * before / (row / ref.mass @ row)
    after = v + row / ref.mass * impulse
    last = solve_ivp(
        rate, (flight.t[-1], 0.69), np.concatenate([q, after]), events=touch, max_step=2e-3, **options
    )
    assert last.t[-1] == 0.69
    return flight.t[-1], corner, before, impulse, after, last.y[:7, -1], last.y[7:, -1]


@pytest.mark.slow
def test_event_driven_reference_of_the_parallelepiped():
    # Two programs: the numbers of the specification and the integration of this file.
    time, corner, before, impulse, after, q, v = one_impact()
    assert time == pytest.approx(0.41528560, abs=5e-9)
    np.testing.assert_array_equal(SIGNS[3][corner], [1, -1, 1])
    assert before == pytest.approx(-13.061164, abs=5e-7)
    assert -0.8 * before == pytest.approx(10.448931, abs=5e-7)
    assert impulse == pytest.approx(500.757659, abs=5e-7)
    np.testing.assert_allclose(after[3:], [-20.279995, -25.405483, -30.626666], rtol=0, atol=5e-7)
    assert after[2] == pytest.approx(6.625998, abs=5e-7)
    np.testing.assert_allclose(q[:3], [2.07, 0, 1.6041598], rtol=0, atol=5e-8)
    np.testing.assert_allclose(v[3:], [2.480049, 38.575949, -17.492675], rtol=0, atol=5e-7)
    assert Reference(SIZE, 0.0).gaps(q)[corner] == pytest.approx(1.5154841, abs=5e-8)


# Published to four digits for these step sizes.
@pytest.mark.parametrize(
    ("dt", "published"),
    [
        (2.5e-4, 503.1),
        (1e-4, 502.4),
        (2.5e-5, 500.8),
        pytest.param(1e-3, 506.6, marks=pytest.mark.slow),
        pytest.param(5e-4, 512.9, marks=pytest.mark.slow),
    ],
)
def test_impulse_of_the_parallelepiped(dt, published):
    steps = round(0.69 / dt)
    traj = run(cuboid(**FALL), dt, steps, every=steps)
    assert int(traj.events.count) == 1
    assert float(traj.events.impulse_normal[0]) == pytest.approx(published, abs=0.051)
    assert int(traj.events.contact[0]) == 2  # (+,-,+)


@pytest.mark.slow
def test_parallelepiped_converges_with_order_one():
    time, corner, before, impulse, _, q, v = one_impact()
    counts = np.array([449, 547, 659, 797, 967, 1409, 2063, 3001, 4397, 6421, 9377, 13697, 20011])
    steps = 0.69 / counts
    errors = []
    for n in counts:
        traj = run(cuboid(**FALL), 0.69 / n, int(n), every=int(n))
        dt, events = 0.69 / n, traj.events
        assert int(events.count) == 1
        assert int(events.contact[0]) == corner
        # Noticed at the first midpoint below the plane, so within a step and a half.
        assert -0.1 * dt <= float(events.time[0]) - time <= 1.6 * dt
        # Newton's law is exact at that midpoint; the rate itself changes with the curvature of the path.
        rate = float(events.rate_before[0])
        assert float(events.rate_after[0]) == pytest.approx(-0.8 * rate, rel=1e-10)
        # 60 sqrt(2) rad/s at half a diagonal.
        assert abs(rate - before) <= 1.6 * dt * (7200 * np.linalg.norm(SIZE) / 2 + G)
        errors.append([
            abs(float(events.impulse_normal[0]) - impulse), abs(rate - before),
            np.abs(traj.v[-1, 3:] - v[3:]).max(), abs(traj.q[-1, 2] - q[2]),
            float(angle_between(traj.q[-1, 3:], q[3:])), abs(traj.v[-1, 2] - v[2]),
        ])  # fmt: skip
        np.testing.assert_allclose(traj.q[-1, :2], [2.07, 0], rtol=0, atol=1e-12)
        assert traj.gap_min.min() > -1.6 * dt * 13.1
    errors = np.array(errors)
    # Impulse, gap rate, height and its rate: all of them follow the time of the impact.
    for k in (0, 1, 3, 5):
        assert 0.85 <= slope(steps, errors[:, k]) <= 1.15
    # Attitude and angular velocity see the flight's error of second order (0.1 rad a step) as well.
    for k in (2, 4):
        assert 0.85 <= slope(steps, errors[:, k]) <= 1.25


# ---------------------------------------------------------------------------------- gradients


def toss(dimension: int, x):
    """A box that hits the plane once; x: initial angular velocity, friction."""
    if dimension == 3:
        start = jnp.concatenate([jnp.array([3.0, 0.0, 0.0]), x[:3]])
        return cuboid(**{**FALL, "initial_v": start, "friction": x[3]})
    start = jnp.concatenate([jnp.array([1.0, -3.0]), x[:1]])
    return models.block(
        dimension=2, initial_q=[0, 0.4, 0.5], initial_v=start, restitution=0.6, friction=x[1]
    )


@pytest.mark.slow
@pytest.mark.parametrize("dimension", [2, 3])
def test_derivatives_of_a_toss(dimension):
    # Forward and reverse through an impact with friction: finite, and the same.
    def height(x):
        # Thrown at 3 m/s from 0.4 m the planar box hits after 0.1 s, the other after 0.415 s.
        problem, dt = toss(dimension, x), {2: 1e-3, 3: 2e-3}[dimension]
        traj = nsjax.simulate(*problem, schemes.moreau(), dt=dt, steps=240, every=240, save=["impacts"])
        return traj.q[-1, dimension - 1], traj.impacts.sum()

    @jax.jit
    def both(x):
        gradient, impacts = jax.grad(height, has_aux=True)(x)
        return gradient, jax.jacfwd(lambda x: height(x)[0])(x), impacts

    x = jnp.array([60.0, 60.0, 0.0, 0.1] if dimension == 3 else [5.0, 0.02])  # it slides
    gradient, forward, impacts = both(x)
    assert impacts == 1
    assert np.all(np.isfinite(gradient))
    assert np.all(gradient != 0)
    np.testing.assert_allclose(forward, gradient, rtol=1e-9)
