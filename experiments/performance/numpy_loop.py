"""The frictional slider-crank under Moreau's midpoint rule, written plainly with numpy.

What a scientist would write from the equations: [S&U&S (8)-(20)] and [R&S (171)-(178)]; the laws of
contact as projections as in [R&S]. It shares no code with `nsjax`.
"""

from __future__ import annotations

import numpy as np

from nsjax.models.slider_crank import SliderCrank

REGULARISATION = 1e-9
TOLERANCE = 1e-11
MAX_ITERATIONS = 50
LEFT = np.array([1.0, -1.0, 1.0, -1.0])
UP = np.array([-1.0, -1.0, 1.0, 1.0])


def _dynamics(q: np.ndarray, v: np.ndarray, p: SliderCrank) -> tuple[np.ndarray, np.ndarray]:
    """Mass matrix and right-hand side."""
    l1, l2, m1, m2, m3 = p.crank_length, p.rod_length, p.crank_mass, p.rod_mass, p.slider_mass
    coupling = l1 * l2 * (m2 / 2 + m3)
    m12 = coupling * np.cos(q[0] - q[1])
    m11 = p.crank_inertia + l1**2 * (m1 / 4 + m2 + m3)
    m22 = p.rod_inertia + l2**2 * (m2 / 4 + m3)
    mass = np.array([[m11, m12, 0.0], [m12, m22, 0.0], [0.0, 0.0, p.slider_inertia]])
    turn = coupling * np.sin(q[0] - q[1])
    h1 = -turn * v[1] ** 2 - p.gravity * l1 * np.cos(q[0]) * (m1 / 2 + m2 + m3) + p.torque
    h2 = turn * v[0] ** 2 - p.gravity * l2 * np.cos(q[1]) * (m2 / 2 + m3)
    return mass, np.array([h1, h2, 0.0])


def _gap(q: np.ndarray, p: SliderCrank) -> np.ndarray:
    y = p.crank_length * np.sin(q[0]) + p.rod_length * np.sin(q[1])
    wall = p.half_height + p.clearance
    return UP * (y - LEFT * p.half_length * np.sin(q[2])) - p.half_height * np.cos(q[2]) + wall


def _directions(q: np.ndarray, p: SliderCrank) -> np.ndarray:
    """``W'`` (8, 3): normal and tangent of every corner, corner by corner."""
    s, c = np.sin(q), np.cos(q)
    w = np.empty((8, 3))
    w[0::2, 0] = UP * p.crank_length * c[0]
    w[0::2, 1] = UP * p.rod_length * c[1]
    w[0::2, 2] = -UP * LEFT * p.half_length * c[2] + p.half_height * s[2]
    w[1::2, 0] = -p.crank_length * s[0]
    w[1::2, 1] = -p.rod_length * s[1]
    w[1::2, 2] = LEFT * p.half_length * s[2] + UP * p.half_height * c[2]
    return w


def _newton_step(g: np.ndarray, x: np.ndarray, u: np.ndarray, r: np.ndarray, mu: float) -> np.ndarray:
    """Increment of one semismooth Newton step on the branches (open, stick, slip) at ``x - r u``."""
    z = x - r * u
    on = z[0::2] > 0.0
    stick = on & (np.abs(z[1::2]) <= mu * z[0::2]) & (mu * z[0::2] > 0.0)
    slope = np.where(on & ~stick, mu * np.sign(z[1::2]), 0.0)
    use = np.column_stack([on, stick]).ravel()
    a, f = np.eye(x.size), x.copy()
    rows = np.arange(1, x.size, 2)
    a[rows, rows - 1] = -slope
    f[1::2] -= slope * x[0::2]
    a[use] = r[use, None] * g[use] + REGULARISATION * np.eye(x.size)[use]
    f[use] = r[use] * u[use]
    return np.linalg.solve(a, f)


def solve_contacts(g: np.ndarray, free: np.ndarray, mu: float) -> np.ndarray:
    """Impulses of the closed contacts, to the relative natural-map residual `TOLERANCE`."""
    r = 1.0 / np.diag(g)
    scale = np.max(np.abs(r * free)[0::2])  # normal rows only, the certificate of `nsjax`
    x, u = np.zeros_like(free), free
    for _ in range(MAX_ITERATIONS):
        x = x - _newton_step(g, x, u, r, mu)
        u = free + g @ x
        z = x - r * u
        radius = mu * np.maximum(x[0::2], 0.0)
        normal = np.abs(x[0::2] - np.maximum(z[0::2], 0.0))
        tangent = np.abs(x[1::2] - np.clip(z[1::2], -radius, radius))
        if max(normal.max(), tangent.max()) <= TOLERANCE * max(np.abs(x).max(), scale):
            break
    return x


def run(p: SliderCrank, q: np.ndarray, v: np.ndarray, dt: float, steps: int, every: int) -> np.ndarray:
    """Rows ``(q, v)`` (steps / every + 1, 6), row 0 the start."""
    rows = [np.concatenate([q, v])]
    restitution = np.tile([p.restitution, p.restitution_tangential], 4)
    for step in range(1, steps + 1):
        middle = q + 0.5 * dt * v
        mass, force = _dynamics(middle, v, p)
        change = np.linalg.solve(mass, dt * force)
        closed = _gap(middle, p) <= 0.0
        if closed.any():
            taking = np.repeat(closed, 2)
            w = _directions(middle, p)[taking]
            response = np.linalg.solve(mass, w.T)
            before = w @ v
            free = before + w @ change + restitution[taking] * before
            change = change + response @ solve_contacts(w @ response, free, float(p.friction))
        q = q + 0.5 * dt * (2.0 * v + change)
        v = v + change
        if step % every == 0:
            rows.append(np.concatenate([q, v]))
    return np.array(rows)
