"""The frictional slider-crank under Moreau's midpoint rule as a compiled numba loop.

The hand-written peer of `nsjax`: everything in registers or small preallocated arrays, the mass
matrix inverted by hand, directions written out, angle sums by the addition theorems, the contact
problem assembled only for closed corners (``compact``) or for all four with masks, as `nsjax` does.
Same algorithm, same tolerance. Importing this module needs numba.
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np

REGULARISATION = 1e-9
TOLERANCE = 1e-11
MAX_ITERATIONS = 50

njit = numba.njit(error_model="numpy")
# Calls that pass arrays count references, which would triple the cost of a contact step.
inline = numba.njit(error_model="numpy", inline="always")


@inline
def _assemble(n: int, closed: Any, g: Any, x: Any, u: Any, r: Any, mu: float, a: Any, f: Any) -> None:
    """Newton matrix and residual of ``n`` contacts on the branches at ``x - r u``."""
    for k in range(n):
        i, j = 2 * k, 2 * k + 1
        zn, zt = x[i] - r[i] * u[i], x[j] - r[j] * u[j]
        on = closed[k] and zn > 0.0
        stick = on and abs(zt) <= mu * zn and mu * zn > 0.0
        for c in range(2 * n):
            a[i, c] = r[i] * g[i, c] if on else 0.0
            a[j, c] = r[j] * g[j, c] if stick else 0.0
        a[i, i] += REGULARISATION if on else 1.0
        a[j, j] += REGULARISATION if stick else 1.0
        f[i] = r[i] * u[i] if on else x[i]
        f[j] = r[j] * u[j] if stick else x[j]
        if on and not stick:
            slope = mu * ((zt > 0.0) - (zt < 0.0))
            a[j, i] = -slope
            f[j] -= slope * x[i]


@inline
def _gauss(m: int, a: Any, f: Any) -> None:
    """Solves ``a y = f`` in place, ``y`` in ``f``; skips zeros, of which there are many."""
    for p in range(m):
        pivot = 1.0 / a[p, p]
        for i in range(p + 1, m):
            factor = a[i, p] * pivot
            if factor != 0.0:
                for c in range(p + 1, m):
                    a[i, c] -= factor * a[p, c]
                f[i] -= factor * f[p]
    for p in range(m - 1, -1, -1):
        rest = f[p]
        for c in range(p + 1, m):
            rest -= a[p, c] * f[c]
        f[p] = rest / a[p, p]


@inline
def _error(n: int, closed: Any, x: Any, u: Any, r: Any, mu: float) -> float:
    """Largest natural-map residual of ``n`` contacts."""
    worst = 0.0
    for k in range(n):
        i, j = 2 * k, 2 * k + 1
        normal = max(x[i] - r[i] * u[i], 0.0) if closed[k] else 0.0
        radius = mu * max(x[i], 0.0) if closed[k] else 0.0
        tangent = min(max(x[j] - r[j] * u[j], -radius), radius)
        worst = max(worst, abs(x[i] - normal), abs(x[j] - tangent))
    return worst


@inline
def _solve_contacts(
    n: int, closed: Any, g: Any, free: Any, mu: float, x: Any, u: Any, r: Any, a: Any, f: Any
) -> None:
    """Semismooth Newton from zero; the answer in ``x``."""
    m = 2 * n
    scale = 0.0
    for i in range(m):
        r[i] = 1.0 / g[i, i]
        x[i] = 0.0
        u[i] = free[i]
        if i % 2 == 0 and closed[i // 2]:
            scale = max(scale, abs(r[i] * free[i]))
    for _ in range(MAX_ITERATIONS):
        _assemble(n, closed, g, x, u, r, mu, a, f)
        _gauss(m, a, f)
        size = scale
        for i in range(m):
            x[i] -= f[i]
            size = max(size, abs(x[i]))
        for i in range(m):
            total = free[i]
            for c in range(m):
                total += g[i, c] * x[c]
            u[i] = total
        if _error(n, closed, x, u, r, mu) <= TOLERANCE * size:
            break


@inline
def _direction(k: int, l1s1: float, l1c1: float, l2s2: float, l2c2: float, turn: Any, w: Any) -> None:
    """Normal and tangent of corner ``k`` (2, 3); ``turn = (a sin, a cos, b sin, b cos)(theta3)``."""
    left = 1.0 if k % 2 == 0 else -1.0
    up = -1.0 if k < 2 else 1.0
    w[0, 0], w[0, 1], w[0, 2] = up * l1c1, up * l2c2, turn[2] - up * left * turn[1]
    w[1, 0], w[1, 1], w[1, 2] = -l1s1, -l2s2, left * turn[0] + up * turn[3]


@inline
def _delassus(m: int, w: Any, response: Any, mass: Any, g: Any) -> None:
    """``M^-1 W`` and ``G = W' M^-1 W``; ``mass = (M11, M12, M22, M33, 1 / det)``."""
    m11, m12, m22, m33, inverse = mass
    for i in range(m):
        response[i, 0] = inverse * (m22 * w[i, 0] - m12 * w[i, 1])
        response[i, 1] = inverse * (m11 * w[i, 1] - m12 * w[i, 0])
        response[i, 2] = w[i, 2] / m33
    for i in range(m):
        for j in range(m):
            g[i, j] = w[i, 0] * response[j, 0] + w[i, 1] * response[j, 1] + w[i, 2] * response[j, 2]


@inline
def _touch(gaps: Any, compact: bool, trig: Any, v: Any, d: Any, mass: Any, law: Any, work: Any) -> Any:
    """Velocity change by the contacts; candidates are the closed corners, or all four with masks."""
    g, a, w, response, free, x, u, r, f, closed = work
    l1s1, l1c1, l2s2, l2c2, turn = trig
    e_n, e_t, mu = law
    n = 0
    for k in range(4):
        if gaps[k] <= 0.0 or not compact:
            closed[n] = gaps[k] <= 0.0
            _direction(k, l1s1, l1c1, l2s2, l2c2, turn, w[2 * n : 2 * n + 2])
            n += 1
    m = 2 * n
    _delassus(m, w, response, mass, g)
    for i in range(m):
        before = w[i, 0] * v[0] + w[i, 1] * v[1] + w[i, 2] * v[2]
        free[i] = (1.0 + (e_n if i % 2 == 0 else e_t)) * before + w[i, 0] * d[0] + w[i, 1] * d[1]
    _solve_contacts(n, closed, g, free, mu, x, u, r, a, f)
    d1, d2, d3 = d[0], d[1], 0.0
    for i in range(m):
        d1 += response[i, 0] * x[i]
        d2 += response[i, 1] * x[i]
        d3 += response[i, 2] * x[i]
    return d1, d2, d3


@inline
def _work() -> Any:
    """Arrays of the contact problem, made once per run."""
    square, wide = (np.empty((8, 8)), np.empty((8, 8))), (np.empty((8, 3)), np.empty((8, 3)))
    vectors = (np.empty(8), np.empty(8), np.empty(8), np.empty(8), np.empty(8))
    return square + wide + vectors + (np.empty(4, np.bool_),)


@njit
def run(p: Any, q: Any, v: Any, dt: float, steps: int, every: int, compact: bool) -> Any:
    """Rows ``(q, v)`` (steps / every + 1, 6); ``p`` as a tuple in the order of `SliderCrank`."""
    l1, l2, a, b, clearance, m1, m2, m3, j1, j2, j3, gravity, torque, e_n, e_t, mu = p
    m11, m22 = j1 + l1 * l1 * (m1 / 4 + m2 + m3), j2 + l2 * l2 * (m2 / 4 + m3)
    coupling = l1 * l2 * (m2 / 2 + m3)
    weight1, weight2 = gravity * l1 * (m1 / 2 + m2 + m3), gravity * l2 * (m2 / 2 + m3)
    work = _work()
    rows = np.empty((steps // every + 1, 6))
    q1, q2, q3 = q
    v1, v2, v3 = v
    rows[0] = q1, q2, q3, v1, v2, v3
    half, wall = 0.5 * dt, b + clearance
    for row in range(1, rows.shape[0]):
        for _ in range(every):
            t1, t2, t3 = q1 + half * v1, q2 + half * v2, q3 + half * v3
            s1, c1, s2, c2 = math.sin(t1), math.cos(t1), math.sin(t2), math.cos(t2)
            s3, c3 = math.sin(t3), math.cos(t3)
            m12, turn = coupling * (c1 * c2 + s1 * s2), coupling * (s1 * c2 - c1 * s2)
            h1, h2 = torque - turn * v2 * v2 - weight1 * c1, turn * v1 * v1 - weight2 * c2
            inverse = 1.0 / (m11 * m22 - m12 * m12)
            d1, d2, d3 = dt * inverse * (m22 * h1 - m12 * h2), dt * inverse * (m11 * h2 - m12 * h1), 0.0
            y, room, tilt = l1 * s1 + l2 * s2, wall - b * c3, a * s3
            if room - abs(y) - abs(tilt) <= 0.0:
                d1, d2, d3 = _touch(
                    (room - y + tilt, room - y - tilt, room + y - tilt, room + y + tilt), compact,
                    (l1 * s1, l1 * c1, l2 * s2, l2 * c2, (a * s3, a * c3, b * s3, b * c3)),
                    (v1, v2, v3), (d1, d2), (m11, m12, m22, j3, inverse), (e_n, e_t, mu), work,
                )  # fmt: skip
            q1, q2, q3 = q1 + half * (2 * v1 + d1), q2 + half * (2 * v2 + d2), q3 + half * (2 * v3 + d3)
            v1, v2, v3 = v1 + d1, v2 + d2, v3 + d3
        rows[row] = q1, q2, q3, v1, v2, v3
    return rows
