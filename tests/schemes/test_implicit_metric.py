"""Corrections of positions of stiff bodies: which metric takes energy from nowhere."""

from __future__ import annotations

import functools
import itertools

import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import Problem, State, System, schemes
from nsjax.contact import ContactLaw

N, STIFF, DT, WEIGHT = 8, 1e7, 2e-3, 9.81
"""Masses of 1 kg in a column on springs, whose highest frequency makes twelve radians a step."""


def force(t, q, v, p):
    tension, end = p * (q[1:] - q[:-1]), jnp.zeros(1)
    return jnp.concatenate([tension, end]) - jnp.concatenate([end, tension]) - WEIGHT


def potential(t, q, p):
    return 0.5 * p * jnp.sum((q[1:] - q[:-1]) ** 2) + WEIGHT * jnp.sum(q)


def column() -> Problem:
    """Its lowest mass falls onto the ground."""
    system = System(
        nq=N, nv=N, nc=1, mass=lambda q, p: jnp.eye(N), force=force, potential=potential,
        gap=lambda t, q, p: q[:1], law=lambda p: ContactLaw(restitution=jnp.zeros(1)),
    )  # fmt: skip
    return Problem(system=system, params=STIFF, state=State(t=0.0, q=np.full(N, 0.1), v=np.full(N, -1.0)))


@functools.cache
def landed(metric: str) -> nsjax.Trajectory:
    traj = nsjax.simulate(*column(), schemes.ggl_unified(metric=metric), dt=DT, time=0.3)
    traj.raise_for_status()
    return traj


def peer(steps: int) -> np.ndarray:
    """Positions of the linear equations, their two laws by trying all four cases."""
    spring = np.diff(np.eye(N), axis=0)
    K, W, weight = STIFF * spring.T @ spring, np.eye(N)[0], np.full(N, -WEIGHT)
    S = np.eye(N) + 0.25 * DT**2 * K
    push = np.linalg.solve(S, W)  # both w of a force, and x of a correction
    drag = np.linalg.solve(S, -0.5 * DT * K @ push * DT)  # w of a correction
    q, v = np.asarray(column().state.q), np.asarray(column().state.v)
    found = []
    for _ in range(steps):
        free = np.linalg.solve(S, DT * (weight - K @ (q + 0.5 * DT * v)))
        rate, gap = v[0] + free[0], q[0] + DT * (v[0] + 0.5 * free[0])
        matrix = np.array([[push[0], drag[0]], [0.5 * DT * push[0], 0.5 * DT * drag[0] + DT * push[0]]])
        answer = np.zeros(2)
        if q[0] + 0.5 * DT * v[0] <= 1e-12:
            for on in itertools.product((False, True), repeat=2):
                pick, x = np.flatnonzero(on), np.zeros(2)
                x[pick] = np.linalg.solve(matrix[np.ix_(pick, pick)], -np.array([rate, gap])[pick])
                left = np.array([rate, gap]) + matrix @ x
                if np.all(x >= 0.0) and np.all(left >= -1e-13):
                    answer = x
                    break
        w = free + answer[0] * push + answer[1] * drag
        q, v = q + DT * (v + 0.5 * w + answer[1] * push), v + w
        found.append(q)
    return np.array(found)


def test_the_implicit_metric_is_that_of_the_linear_equations() -> None:
    """Through the impact, until the column has left."""
    steps = 60
    found, wanted = np.asarray(landed("implicit").q)[1 : steps + 1], peer(steps)
    assert (
        wanted[:, 0].min() < -1e-4 < 0.01 < wanted[-1, 0]
    )  # one step late, as the limits of the scheme say
    np.testing.assert_allclose(found, wanted, atol=1e-9)


@pytest.mark.slow
def test_corrections_of_stiff_bodies_take_no_energy_from_nowhere() -> None:
    """The correction of the first penetration presses the touching mass against its neighbour: with its own
    inertia alone it gains a quarter of the kinetic energy, against that of the step nothing.
    """
    gains = {}
    for metric in ("kinetic", "implicit"):
        energy = np.asarray(landed(metric)["energy"])
        gains[metric] = np.max(energy - energy[0]) / np.max(np.asarray(landed(metric)["kinetic"]))
    assert gains["kinetic"] > 0.1
    assert gains["implicit"] < 1e-12
