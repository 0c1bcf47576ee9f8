"""Damping taken at the end of a step: closed forms, order, impacts and their derivatives, refusals."""

from __future__ import annotations

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import brentq

import nsjax
from nsjax import Problem, State, System, gradient_notes, schemes
from nsjax.analysis import spectral_radius
from tests.points import bouncing, position
from tests.references import slope
from tests.schemes.small_systems import G, run

IMPLICIT = {"joint_damping": "implicit"}
MOREAU = schemes.moreau(**IMPLICIT)

# ------------------------------------------------------------- coupled dampers, to rounding


def mass(q, p):
    return p["mass"]


def force(t, q, v, p):
    return p["push"] - p["stiffness"] * q - p["damping"] @ v


def damping(t, q, v, p):
    return p["damping"]


def diagonal(t, q, v, p):
    return jnp.diagonal(p["damping"])


def shift(q, xi):
    """Addition that the scheme cannot know to be addition: it must assume rotations."""
    return q + xi


def dampers(n, single, seed):
    """A random mass, dampers of ten times its size, forces and a state."""
    rng = np.random.default_rng(seed)
    spread = [rng.normal(size=(n, n)) for _ in range(2)]
    weight, viscous = (x @ x.T + np.eye(n) for x in spread)
    viscous = 1e4 * (np.diag(np.diag(viscous)) if single else viscous)
    params = {"mass": weight, "damping": viscous, "push": rng.normal(size=n), "stiffness": 3.0}
    system = System(nq=n, nv=n, mass=mass, force=force, damping=diagonal if single else damping)
    return system, params, rng.normal(size=n), rng.normal(size=n)


@pytest.mark.parametrize(
    ("single", "make"),
    [(False, "moreau"), (False, "ggl_decoupled"), pytest.param(True, "moreau", marks=pytest.mark.slow)],
)
def test_a_step_is_the_linear_one(single, make) -> None:
    system, p, q, v = dampers(4, single, 7)
    dt, scheme = 0.1, getattr(schemes, make)(**IMPLICIT)
    traj = run(system, p, q, v, dt, 1, scheme=scheme)
    middle = q + dt / 2 * v
    h = p["push"] - p["stiffness"] * middle - p["damping"] @ v
    wanted = v + np.linalg.solve(p["mass"] + dt * p["damping"], dt * h)
    # relative to the speeds, which a strong damper takes away in one step
    np.testing.assert_allclose(traj.v[1], wanted, atol=1e-13)
    np.testing.assert_allclose(traj.q[1], q + dt / 2 * (v + wanted), atol=1e-13)


def test_forces_at_the_forecast_velocity_have_the_same_damping() -> None:
    """``v_1 = v_0 / (1 + c dt / m)`` whatever velocity the other forces are taken at."""
    system, p, q, v = dampers(3, False, 3)
    p = p | {"push": np.zeros(3), "stiffness": 0.0}
    turned, dt = dataclasses.replace(system, retract=shift), 0.1
    wanted = np.linalg.solve(p["mass"] + dt * p["damping"], p["mass"] @ v)
    scheme = schemes.moreau(force_velocity="midpoint", **IMPLICIT)
    for traj in (run(turned, p, q, v, dt, 1, scheme=MOREAU), run(system, p, q, v, dt, 1, scheme=scheme)):
        np.testing.assert_allclose(traj.v[1], wanted, atol=1e-13)


# ------------------------------------------------------------- a ball in a thick fluid above a floor


def ball_mass(q, p):
    return p["mass"] * jnp.eye(1)


def ball_force(t, q, v, p):
    return -p["mass"] * G - p["drag"] * v


def ball_damping(t, q, v, p):
    return p["drag"] * jnp.ones(1)


FALL = System(nq=1, nv=1, mass=ball_mass, force=ball_force, damping=ball_damping)
BALL = dataclasses.replace(FALL, nc=1, gap=position, law=bouncing)
NUMBERS = {"mass": 2.0, "drag": 1.0, "restitution": 0.7}


def flight(p, height, v, s):
    """Height and speed after ``s`` of free flight: ``v' = -g - c v / m``."""
    tau = p["mass"] / p["drag"]
    gone = v + G * tau
    return height + tau * gone * (1 - np.exp(-s / tau)) - G * tau * s, gone * np.exp(-s / tau) - G * tau


def bounced(p, height, time):
    """Height and speed at ``time`` of the ball that falls from ``height``, impact by impact."""
    y, v, left = height, 0.0, time
    while True:
        low = 1e-9 if y == 0.0 else 0.0
        if flight(p, y, v, left)[0] > 0.0:
            return np.array(flight(p, y, v, left))
        hit = brentq(lambda s, y=y, v=v: flight(p, y, v, s)[0], low, left, xtol=1e-15)
        y, v, left = 0.0, -p["restitution"] * flight(p, y, v, hit)[1], left - hit


def test_a_strong_damper_reaches_the_terminal_speed_in_one_step_and_keeps_it() -> None:
    p = NUMBERS | {"drag": 1e8}
    traj = run(FALL, p, [0.0], [5.0], 1e-2, 3, scheme=MOREAU)
    x = 1e-2 * p["drag"] / p["mass"]
    terminal = -p["mass"] * G / p["drag"]
    # what is left of the first speed, then of that
    wanted = [terminal + (5.0 - terminal) / (1.0 + x) ** k for k in range(4)]
    np.testing.assert_allclose(traj.v[:, 0], wanted, rtol=1e-12, atol=1e-15)
    assert int(run_status(FALL, p, 1e-2)) == 0


def run_status(system, p, dt):
    start = State(t=0.0, q=np.zeros(1), v=np.array([5.0]))
    return nsjax.simulate(system, p, start, MOREAU, dt=dt, steps=300).status


def test_order_one_toward_the_exponential() -> None:
    counts = np.array([16, 32, 64, 128])
    errors = []
    for n in counts:
        traj = run(FALL, NUMBERS, [1.0], [2.0], 1.0 / n, n, every=int(n), scheme=MOREAU)
        errors.append(
            np.abs(flight(NUMBERS, 1.0, 2.0, 1.0) - np.array([traj.q[-1, 0], traj.v[-1, 0]])).max()
        )
    # the error is c_1 dt + c_2 dt^2: the fit over an octave misses one by dt
    assert 0.95 < slope(1.0 / counts, errors) < 1.05


@functools.partial(jax.jit, static_argnames=("scheme",))
def end(p, dt, scheme):
    start = State(t=0.0, q=0.5 * jnp.ones(1), v=jnp.zeros(1))
    traj = nsjax.simulate(BALL, p, start, scheme, dt=dt, steps=STEPS, every=STEPS)
    return jnp.concatenate([traj.q[-1], traj.v[-1]])


STEPS, TIME = 1200, 0.9
SECANT = 1e-5  # of numbers of size one: an error of 1e-10


def secants(time):
    """Derivatives of the motion impact by impact."""
    found = {}
    for name in NUMBERS:
        both = [bounced(NUMBERS | {name: NUMBERS[name] + s}, 0.5, time) for s in (-SECANT, SECANT)]
        found[name] = (both[1] - both[0]) / (2 * SECANT)
    return found


def derivative_error(scheme):
    """Largest error of the derivatives after the whole time."""
    found, wanted = jax.jacfwd(end)(NUMBERS, TIME / STEPS, scheme), secants(TIME)
    return max(np.abs(found[name] - wanted[name]).max() for name in NUMBERS)


@pytest.mark.slow
def test_derivatives_through_impacts_are_those_of_the_motion() -> None:
    """Two impacts. Derivatives are up to 8.9, of first order in the step: 0.061 off with half as many
    steps, 0.011 with these, as with explicit damping (0.066 and 0.012).
    """
    assert derivative_error(MOREAU) < 0.02
    back = jax.jacrev(end)(NUMBERS, TIME / STEPS, MOREAU)
    ahead = jax.jacfwd(end)(NUMBERS, TIME / STEPS, MOREAU)
    for name in NUMBERS:
        # the same sums in another order, over 1200 steps
        np.testing.assert_allclose(back[name], ahead[name], rtol=1e-9, atol=1e-10)


@pytest.mark.slow
def test_it_stands_beside_everything_that_a_run_may_ask() -> None:
    """A list of impacts, notes, a stepper, a sweep, a run under `jax.jit`: the same motion everywhere."""
    problem = Problem(system=BALL, params=NUMBERS, state=State(t=0.0, q=np.array([0.5]), v=np.zeros(1)))
    dt, steps = TIME / STEPS, STEPS
    plain = nsjax.simulate(*problem, MOREAU, dt=dt, steps=steps, every=steps)
    told = nsjax.simulate(*problem, MOREAU, dt=dt, steps=steps, every=steps, events=4, notes=True)
    assert told.status == plain.status == 0
    assert int(plain.impacts.sum()) == int(told.impacts.sum()) == 2
    assert np.array_equal(told.q, plain.q)
    assert not np.any(told.notes & gradient_notes.KINK)
    np.testing.assert_allclose(end(NUMBERS, dt, MOREAU)[0], plain.q[-1, 0], rtol=1e-12)
    swept = nsjax.sweep(problem, MOREAU, {"params.drag": [1.0, 1e6]}, dt=dt, steps=steps)
    np.testing.assert_allclose(swept.values["q"][0], plain.q[-1], rtol=1e-12)
    assert swept.status.tolist() == [0, 0]
    step, state = (x := nsjax.stepper(problem, MOREAU, dt=dt)).step, x.reset()
    for _ in range(3):
        state, row = step(state)
    three = nsjax.simulate(*problem, MOREAU, dt=dt, steps=3)
    np.testing.assert_allclose(row.q, three.q[-1], rtol=1e-12)


# ------------------------------------------------------------- stability


@pytest.mark.parametrize(
    ("zeta", "forecast"), [(0.0, "midpoint"), (0.5, "start"), (3.0, "midpoint"), (1e3, "start")]
)
def test_damping_enlarges_the_stable_step(zeta, forecast) -> None:
    """``omega^2 dt^2 <= 4 + 2 c dt`` with ``c = 2 zeta omega``: roots of the matrix with the determinant
    ``1 / (1 + c dt)`` and the trace ``1 + (1 - omega^2 dt^2) / (1 + c dt)``.
    """
    scheme = schemes.moreau(force_velocity=forecast, **IMPLICIT)
    limit = 2.0 * zeta + np.sqrt(4.0 * zeta**2 + 4.0)
    inside = np.array([1e-3, 0.1, 0.5, 0.999]) * limit
    assert np.all(spectral_radius(scheme, inside, zeta) <= 1.0 + 1e-9)
    if forecast == "start":
        assert spectral_radius(scheme, 1.001 * limit, zeta) > 1.0


# ------------------------------------------------------------- refusals


def still(q, w, p):
    return w


def square(t, q, v, p):
    return jnp.zeros((2, 1))
