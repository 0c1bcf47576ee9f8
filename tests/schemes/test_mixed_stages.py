"""Stage solver of the mixed framework against the papers' iteration, written in numpy."""

from __future__ import annotations

import math

import numpy as np
import pytest

from nsjax import State, models, schemes
from tests.references.slider_crank import START, Data, _Mechanism, event_driven
from tests.schemes.mixed_runs import CRANK_ROWS, run


def fixed_point(start, a0, dt, steps, rho, rows, laws):
    """Generalized-alpha by the nested fixed point of [R&S (55)] on the three angles.

    ``rows(q)`` returns the row directions (rows, 3), ``laws(delassus, free)`` the forces. Everything is
    taken at the current iterate; the contacts do not change.
    """
    mechanism = _Mechanism(Data())
    m, f = (2 * rho - 1) / (rho + 1), rho / (rho + 1)
    gamma, beta = 0.5 - m + f, 0.25 * (1 - m + f) ** 2
    s = (1 - f) / (1 - m)
    q, v = np.array([*start[:2], 0.0]), np.array([*start[2:], 0.0])
    a = old = np.array([*a0, 0.0])
    path = [np.concatenate([q, v])]
    for _ in range(steps):
        bar = (f * a - m * old) / (1 - m)
        q1 = q + dt * v + dt * dt * ((0.5 - beta) * old + beta * bar)
        v1 = v + dt * ((1 - gamma) * old + gamma * bar)
        qk, vk = q + dt * v, v
        for _ in range(60):
            x = (qk[0], qk[1], vk[0], vk[1])
            units = np.array([mechanism.accelerate(x, *e) for e in ((1, 0), (0, 1))])
            inverse = np.zeros((3, 3))
            inverse[:2, :2], inverse[2, 2] = units, 1 / 2.7e-6
            free = np.array([*mechanism.free(x), 0.0])
            w = rows(qk)
            u = w @ (v1 + dt * gamma * s * free)
            a1 = free + inverse @ w.T @ laws(dt * gamma * s * w @ inverse @ w.T, u)
            qk, last = q1 + dt * dt * beta * s * a1, vk
            vk = v1 + dt * gamma * s * a1
            if np.abs(vk - last).max() < 1e-12:
                break
        else:
            raise ArithmeticError("the fixed point does not contract")
        q, v, a, old = qk, vk, a1, s * a1 + bar
        path.append(np.concatenate([q, v]))
    return np.array(path)


def equations(delassus, free):
    return -np.linalg.solve(delassus, free)


def coulomb(delassus, free):
    """Two contacts (normal, tangential rows) by Gauss-Seidel with the prox functions of the papers."""
    x = [0.0] * 4
    g, free = delassus.tolist(), free.tolist()
    for _ in range(5000):
        change = 0.0
        for k in (0, 2, 1, 3):
            u = free[k] + sum(g[k][j] * x[j] for j in range(4))
            new = x[k] - u / g[k][k]
            bound = Data.friction * x[k - 1]
            new = max(new, 0.0) if k % 2 == 0 else min(max(new, -bound), bound)
            change, x[k] = max(change, abs(new - x[k])), new
        if change < 1e-14 * (1 + max(map(abs, x))):
            return np.array(x)
    raise ArithmeticError("Gauss-Seidel does not converge")


def test_stage_solver_meets_the_nested_fixed_point_on_the_guide():
    def guide(q):
        return np.array([[Data.l1 * np.cos(q[0]), Data.l2 * np.cos(q[1]), 0.0]])

    d = Data(clearance=0.0, friction=0.0)
    expected = fixed_point(START, _Mechanism(d).held(START, 1, 0.0)[:2], 1e-4, 300, 0.8, guide, equations)
    for tolerance, apart in ((1e-12, 5e-9), (1e-15, 1e-11)):
        scheme = schemes.generalized_alpha(0.8, stage_tolerance=tolerance)
        traj = run(models.slider_crank_bilateral(), scheme, 1e-4, 300, save=[])
        np.testing.assert_allclose(traj.q, expected[:, :2], rtol=0, atol=apart)
        np.testing.assert_allclose(traj.v, expected[:, 3:5], rtol=0, atol=100 * apart)


@pytest.mark.slow
def test_stage_solver_meets_the_nested_fixed_point_on_a_wall():
    # Closed phase between 9.15 and 15.0 ms at a wall: two corners with friction.
    x = event_driven(Data(), (0.012,)).x[0]
    mechanism = _Mechanism(Data())
    state = tuple(float(entry) for entry in x)
    wall = int(np.sign(mechanism.height(state)))
    half_length, half_height, dt, steps = 0.05, 0.025, 1e-5, 100

    def corners(q):
        y = np.array([Data.l1 * np.cos(q[0]), Data.l2 * np.cos(q[1])])
        along = np.array([-Data.l1 * np.sin(q[0]), -Data.l2 * np.sin(q[1])])
        s, c = np.sin(q[2]), np.cos(q[2])
        rows = []
        for left in (1, -1):  # signs of slider_crank.md section 1
            rows.append([*(-wall * y), wall * left * half_length * c + half_height * s])
            rows.append([*along, left * half_length * s - wall * half_height * c])
        return np.array(rows)

    sign = math.copysign(1.0, mechanism.slip(state))
    a0 = mechanism.held(state, wall, sign)[:2]
    expected = fixed_point(x, a0, dt, steps, 0.8, corners, coulomb)
    start = State(t=0.0, q=np.array([*x[:2], 0.0]), v=np.array([*x[2:], 0.0]))
    # the gap of the start is zero to rounding only
    scheme = schemes.generalized_alpha(0.8, gap_tolerance=1e-8)
    system, params, _ = models.slider_crank()
    traj = run((system, params, start), scheme, dt, steps, save=CRANK_ROWS)
    assert np.all(traj.force_normal[1:].max(axis=1) > 0)
    np.testing.assert_allclose(traj.q, expected[:, :3], rtol=0, atol=1e-11)
    np.testing.assert_allclose(traj.v, expected[:, 3:], rtol=0, atol=1e-8)
