"""Which contacts take part in `moreau_theta`, in closed form and on a pendulum on a slider."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import nsjax
from nsjax import ContactLaw, State, System, schemes

POINT = System(
    nq=1, nv=1, nc=1, mass=lambda q, p: np.eye(1), force=lambda t, q, v, p: 0.0 * q,
    gap=lambda t, q, p: q, law=lambda p: ContactLaw(restitution=0.0),
)  # fmt: skip


@pytest.mark.parametrize(
    ("theta", "gamma", "least", "most"),
    [
        (0.5, 0.5, -1.0, 0.0),
        (0.5, 1.0, -0.5, 0.5),
        (1.0, 1.0, 0.0, 1.0),
        pytest.param(0.5, None, -1.0, 0.0, marks=pytest.mark.slow),
    ],
)
def test_gap_that_a_plastic_impact_leaves(theta, gamma, least, most):
    """At constant speed one the step ``k`` of the impact is the first with ``g_0 <= (k + gamma) dt``, and
    ``(1 - theta) dt`` of its way is still gone.
    """
    dt, left = 0.01, []
    scheme = schemes.moreau_theta(theta, gamma=gamma, gap_tolerance=0.0)
    for start in (0.0431, 0.0449, 0.0457, 0.0474, 0.0486):
        state = State(t=0.0, q=np.array([start]), v=np.array([-1.0]))
        traj = nsjax.simulate(POINT, (), state, scheme, dt=dt, steps=10)
        k = np.ceil(start / dt - (0.5 if gamma is None else gamma))
        left.append(start - (k + 1 - theta) * dt)
        assert traj.q[-1, 0] == pytest.approx(left[-1], abs=1e-15)  # rounding of ten sums
    assert np.all(np.array(left) >= least * dt)
    assert np.all(np.array(left) <= most * dt)


SLIDER, BOB, LENGTH, G, WALL, RESTITUTION, TIME = 1.0, 0.5, 1.0, 9.81, 0.05, 0.7, 1.6


def mass(q, p):
    side = BOB * LENGTH * jnp.cos(q[1])
    rows = [side * 0.0 + SLIDER + BOB, side, side, side * 0.0 + BOB * LENGTH**2]
    return jnp.stack(rows).reshape(2, 2)


def force(t, q, v, p):
    turn = jnp.sin(q[1])
    return jnp.stack([BOB * LENGTH * turn * v[1] ** 2, -BOB * G * LENGTH * turn])


CART = System(
    nq=2, nv=2, nc=1, mass=mass, force=force,
    gap=lambda t, q, p: (WALL - q[0] - LENGTH * jnp.sin(q[1]))[None],
    law=lambda p: ContactLaw(restitution=RESTITUTION),
)  # fmt: skip
START = State(t=0.0, q=np.array([0.0, -0.7]), v=np.array([0.0, 0.0]))


def event_driven():
    """State at the end and times of impacts: Dormand and Prince between them, Newton's law at them."""

    def rate(t, x):
        side, turn = BOB * LENGTH * np.cos(x[1]), np.sin(x[1])
        matrix = np.array([[SLIDER + BOB, side], [side, BOB * LENGTH**2]])
        right = np.array([BOB * LENGTH * turn * x[3] ** 2, -BOB * G * LENGTH * turn])
        return np.concatenate([x[2:], np.linalg.solve(matrix, right)])

    def gap(t, x):
        return WALL - x[0] - LENGTH * np.sin(x[1])

    gap.terminal, gap.direction = True, -1
    t, x, times = 0.0, np.concatenate([START.q, START.v]), []
    while True:
        run = solve_ivp(rate, (t, TIME), x, "DOP853", events=gap, rtol=1e-11, atol=1e-12)
        t, x = float(run.t[-1]), run.y[:, -1]
        if run.status != 1:
            return x, times
        times.append(t)
        w = -np.array([1.0, LENGTH * np.cos(x[1])])
        side = BOB * LENGTH * np.cos(x[1])
        back = np.linalg.solve(np.array([[SLIDER + BOB, side], [side, BOB * LENGTH**2]]), w)
        x[2:] -= back * (1 + RESTITUTION) * (w @ x[2:]) / (w @ back)


@pytest.mark.parametrize(
    "gamma", [1.0, pytest.param(None, marks=pytest.mark.slow), pytest.param(0.5, marks=pytest.mark.slow)]
)
def test_pendulum_on_a_slider(gamma):
    """First order for every rule; jumps act half a step late on average with 1/2, on time with 1."""
    exact, times = event_driven()
    assert len(times) == 1
    scheme, late, errors = schemes.moreau_theta(gamma=gamma), [], []
    steps = (331, 487, 719, 1051, 1549, 2281)
    for n in steps:
        traj = nsjax.simulate(CART, (), START, scheme, dt=TIME / n, steps=n)
        traj.raise_for_status()
        hits = np.flatnonzero(np.asarray(traj.impacts)[:, 0])
        assert len(hits) == len(times)
        # a jump acts on positions in the middle of the step that ends with it
        late.append((hits[0] - 0.5) - times[0] * n / TIME)
        errors.append(np.abs(np.concatenate([traj.q[-1], traj.v[-1]]) - exact).max())
    low, high = (-0.5, 0.5) if gamma == 1.0 else (0.0, 1.0)
    # the first flight is of second order: its error moves the impact by less than a twentieth of a step
    assert np.all((np.array(late) > low - 0.05) & (np.array(late) < high + 0.05))
    # first order: lateness times what a late jump changes, and little more
    shift, found = np.abs(late), np.array(errors) * steps
    change = shift @ found / (shift @ shift)
    assert change > 5.0
    np.testing.assert_allclose(found, change * shift, atol=0.9)
