"""The elastic bar under generalized-alpha with impulsive correction as a compiled numba loop.

The hand-written peer of `nsjax` on `models.elastic_bar`: the same scheme and the same decisions, the
tridiagonal matrices factorised once, all vectors preallocated, contact by a scalar Schur complement.
It returns the states alone, without outputs, masks or certificates. Importing this module needs numba.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

RESTING = 1e-11
GAP = 1e-12

njit = numba.njit(error_model="numpy")
inline = numba.njit(error_model="numpy", inline="always")


@njit
def factor(diagonal: Any, beside: float, left: Any, inverse: Any) -> None:
    """Elimination of a symmetric tridiagonal matrix with one number beside the diagonal."""
    inverse[0] = 1.0 / diagonal[0]
    for i in range(1, len(diagonal)):
        left[i] = beside * inverse[i - 1]
        inverse[i] = 1.0 / (diagonal[i] - left[i] * beside)


@inline
def substitute(left: Any, inverse: Any, beside: float, x: Any) -> None:
    """Solves in place."""
    n = len(x)
    for i in range(1, n):
        x[i] -= left[i] * x[i - 1]
    x[n - 1] *= inverse[n - 1]
    for i in range(n - 2, -1, -1):
        x[i] = (x[i] - beside * x[i + 1]) * inverse[i]


@inline
def subtract_forces(q: Any, stiffness: float, r: Any) -> None:
    """``r - h(q)`` with the tensions of the elements."""
    for i in range(len(q) - 1):
        tension = stiffness * (q[i + 1] - q[i])
        r[i] -= tension
        r[i + 1] += tension


@inline
def inertia(a: Any, mass: float, r: Any) -> None:
    """``M a`` into ``r``."""
    n = len(a)
    c = mass / 6.0
    r[0] = c * (2.0 * a[0] + a[1])
    for i in range(1, n - 1):
        r[i] = c * (a[i - 1] + 4.0 * a[i] + a[i + 1])
    r[n - 1] = c * (a[n - 2] + 2.0 * a[n - 1])


@njit
def _run(
    q: Any, v: Any, mass: float, stiffness: float, distance: float, numbers: Any, dt: float, steps: int
) -> int:
    """Advances ``q`` and ``v`` in place; returns how often the contact was closed at a step's end."""
    alpha_m, alpha_f, beta, gamma = numbers
    n, tip = len(q), len(q) - 1
    a, old, guess, z, v1 = np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n)
    left_m, inverse_m, left, inverse = np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n)
    response = np.zeros(n)
    ends = np.ones(n)
    ends[0] = ends[tip] = 0.5
    s = (1.0 - alpha_f) / (1.0 - alpha_m)
    cq, ca = dt * beta / gamma, 1.0 / (dt * gamma * s)
    factor(ends * (4.0 / 6.0 * mass), mass / 6.0, left_m, inverse_m)
    # J = dt (ca M + cq K)
    beside = dt * (ca * mass / 6.0 - cq * stiffness)
    factor(ends * (dt * (ca * mass * 4.0 / 6.0 + 2.0 * cq * stiffness)), beside, left, inverse)
    response[tip] = 1.0
    substitute(left, inverse, beside, response)
    heavy = np.zeros(n)
    heavy[tip] = 1.0
    substitute(left_m, inverse_m, mass / 6.0, heavy)
    subtract_forces(q, stiffness, a)
    for i in range(n):
        a[i] = -a[i]
    substitute(left_m, inverse_m, mass / 6.0, a)
    old[:] = a
    closed = distance - q[tip] <= GAP
    resting, count = False, 0
    for _ in range(steps):
        for i in range(n):
            offset = (alpha_f * a[i] - alpha_m * old[i]) / (1.0 - alpha_m)
            guess[i] = s * a[i] + offset
            q[i] += dt * v[i] + dt * dt * ((0.5 - beta) * old[i] + beta * guess[i])
            v1[i] = v[i] + dt * ((1.0 - gamma) * old[i] + gamma * guess[i])
        inertia(a, mass, z)
        subtract_forces(q, stiffness, z)
        for i in range(n):
            z[i] *= -dt
        substitute(left, inverse, beside, z)
        push = 0.0
        if closed:
            push = min(0.0, -(v1[tip] + z[tip])) / response[tip]
        for i in range(n):
            d = z[i] + push * response[i]
            q[i] += cq * d
            v[i] = v1[i] + d
            a[i] += ca * d
            old[i] = guess[i] + s * ca * d
        was, closed = closed, distance - q[tip] <= GAP
        if closed and not was:
            impulse = min(0.0, -v[tip]) / heavy[tip]
            for i in range(n):
                v[i] += impulse * heavy[i]
        count += closed
        rests = False
        if closed:
            size = 0.0
            for i in range(n):
                size = max(size, abs(v[i]))
            rests = abs(v[tip]) <= RESTING * (1.0 + size)
        if (closed and not was) or rests != resting:
            z[:] = 0.0
            subtract_forces(q, stiffness, z)
            for i in range(n):
                z[i] = -z[i]
            substitute(left_m, inverse_m, mass / 6.0, z)
            push = min(0.0, -z[tip]) / heavy[tip] if rests else 0.0
            for i in range(n):
                a[i] = z[i] + push * heavy[i]
                old[i] = a[i]
        resting = rests
    return count


def run(problem: Any, parameters: Any, dt: float, steps: int) -> tuple[np.ndarray, np.ndarray, int]:
    """``q, v`` after so many steps of `models.elastic_bar` with equal elements, and closed steps.

    Args:
        problem: undamped, without weight, restitution 0.
        parameters: ``alpha_m, alpha_f, beta, gamma``.
    """
    p, elements = problem.params, problem.system.nv - 1
    size = p.length / elements
    q, v = np.array(problem.state.q), np.array(problem.state.v)
    numbers = tuple(float(x) for x in parameters)
    count = _run(
        q, v, float(p.density * p.area * size), float(p.young * p.area / size), float(p.distance), numbers,
        dt, steps,
    )  # fmt: skip
    return q, v, count
