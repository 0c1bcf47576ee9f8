"""A spinning ball between a rough floor and a rough, inclined wall in space, bent by its spin and by drag;
its event-driven motion.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from scipy.integrate import solve_ivp

from nsjax import State, System
from nsjax.contact import ContactLaw

NAMES = ("rebound", "mu", "drag", "lift", "slope", "z", "u", "w", "sx", "sy", "sz")
VALUES = np.array([0.7, 0.25, 0.3, 0.02, 0.3, 0.5, 1.4, -0.6, 6.0, -9.0, 4.0])
TIME = 0.9
GRAVITY, RADIUS, FAR = 9.81, 0.1, 0.7
"""The wall stands ``FAR`` from the start, and leans back by ``slope``."""

INERTIA = 0.4 * RADIUS**2


def _frames(slope, xp):
    """Normals of floor and wall and two tangents of each (2, 3, 3)."""
    none, one = 0.0 * slope, 1.0 + 0.0 * slope
    s, c = xp.sin(slope), xp.cos(slope)
    floor = [[none, none, one], [one, none, none], [none, one, none]]
    wall = [[-c, none, s], [s, none, c], [none, one, none]]
    return xp.stack([xp.stack([xp.stack(row) for row in plane]) for plane in (floor, wall)])


def _bend(v, spin, p, xp):
    """Acceleration without contact."""
    return p["lift"] * xp.cross(spin, v) - p["drag"] * v - GRAVITY * np.array([0.0, 0.0, 1.0])


def _gap(t, q, p):
    frames = _frames(p["slope"], jnp)
    return jnp.stack([q[2], jnp.sum(frames[1, 0] * (q[:3] - jnp.array([FAR, 0.0, 0.0])))]) - RADIUS


def _slip(t, q, v, p):
    frames = _frames(p["slope"], jnp)
    touch = [v[:3] + jnp.cross(v[3:], -RADIUS * frame[0]) for frame in frames]
    return jnp.stack([frame[1:] @ u for frame, u in zip(frames, touch, strict=True)])


SYSTEM = System(
    nq=6, nv=6, nc=2, nt=2, mass=lambda q, p: jnp.diag(jnp.array([1.0] * 3 + [INERTIA] * 3)),
    force=lambda t, q, v, p: jnp.concatenate([_bend(v[:3], v[3:], p, jnp), jnp.zeros(3)]),
    gap=_gap, slip=_slip, law=lambda p: ContactLaw(restitution=p["rebound"], friction=p["mu"]),
)  # fmt: skip


def build(p):
    """Parameters and start; the last three positions are what the spin adds up to."""
    none = 0.0 * p[0]
    q = jnp.stack([none, none, p[5] + RADIUS, none, none, none])
    v = jnp.stack([p[6], none, p[7], p[8], p[9], p[10]])
    return dict(zip(NAMES, p, strict=True)), State(t=0.0, q=q, v=v)


def motion(p, end: float) -> tuple[np.ndarray, list[tuple[float, str, int]]]:
    """State at the end, and impacts that stick or slip."""
    p = dict(zip(NAMES, map(float, p), strict=True))
    frames = _frames(p["slope"], np)
    at = np.array([np.zeros(3), [FAR, 0.0, 0.0]])
    x = np.array([0.0, 0.0, p["z"] + RADIUS, 0.0, 0.0, 0.0, p["u"], 0.0, p["w"], p["sx"], p["sy"], p["sz"]])
    t = 0.0
    events: list[tuple[float, str, int]] = []

    def slope(s, y):
        return np.concatenate([y[6:], _bend(y[6:9], y[9:], p, np), np.zeros(3)])

    def distance(k):
        def gap(s, y):
            # a plane that the ball leaves is not met by rounding
            far = frames[k, 0] @ (y[:3] - at[k]) - RADIUS
            return max(far, 1e-9) if frames[k, 0] @ y[6:9] > 0.0 else far

        gap.terminal, gap.direction = True, -1
        return gap

    while len(events) < 20:
        run = solve_ivp(slope, (t, end), x, "DOP853", rtol=1e-12, atol=1e-14, max_step=0.01,
                        events=[distance(0), distance(1)])  # fmt: skip
        t, x = run.t[-1], run.y[:, -1].copy()
        if run.status == 0:
            return x, events
        k = 0 if len(run.t_events[0]) else 1
        n = frames[k, 0]
        push = -(1.0 + p["rebound"]) * (n @ x[6:9])
        slip = x[6:9] - n * (n @ x[6:9]) + np.cross(x[9:], -RADIUS * n)
        # a ball that stops slipping takes 2/7 of its mass times the slip
        along = -slip * min(2.0 / 7.0, p["mu"] * push / np.linalg.norm(slip))
        kind = "stick impact" if np.linalg.norm(slip) * 2.0 / 7.0 < p["mu"] * push else "slip impact"
        x[6:9] += push * n + along
        x[9:] += np.cross(-RADIUS * n, along) / INERTIA
        events.append((float(t), kind, k))
    raise AssertionError("too many events")
