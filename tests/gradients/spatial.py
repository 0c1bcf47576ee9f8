"""A particle on an inclined plane in space, with two tangents: sliding that turns, through rest or past.

The reference integrates the smooth turn with an adaptive rule to rounding; in the plane of symmetry it is
the closed form of two phases, whose derivative across the plane vanishes: a velocity ``vy`` across it
shrinks with the power ``mu g_n / (g_t + mu g_n) < 1`` of the speed until both are equal, at a speed in
proportion to ``vy^(1 + mu g_n / g_t)``, and the effects of the turn are of that size.
"""

from __future__ import annotations

import functools
import math

import jax.numpy as jnp
import numpy as np
from scipy.integrate import solve_ivp

from nsjax import State, System
from nsjax.contact import ContactLaw
from nsjax.types import Array, record

NAMES = ("friction", "vx", "vy", "gravity", "slope", "time")
DATA = {"friction": 0.2, "vx": -2.0, "gravity": 9.81, "slope": math.radians(30.0), "time": 0.71}


@record()
class Params:
    """Downhill is +x."""

    friction: Array | float
    gravity: Array | float
    slope: Array | float


def mass(q, p):
    return jnp.eye(3)


def force(t, q, v, p):
    return p.gravity * jnp.stack([jnp.sin(p.slope), 0.0, -jnp.cos(p.slope)])


def gap(t, q, p):
    return q[2:]


def slip(t, q, v, p):
    return v[None, :2]


def law(p):
    return ContactLaw(friction=p.friction)


SYSTEM = System(nq=3, nv=3, nc=1, nt=2, mass=mass, force=force, gap=gap, slip=slip, law=law)


def build(p: Array) -> tuple[Params, State]:
    """Parameters and start from a vector in the order of `NAMES`, the time left out."""
    zero = jnp.zeros(())
    start = State(t=0.0, q=jnp.zeros(3), v=jnp.stack([p[1], p[2], zero]))
    return Params(friction=p[0], gravity=p[3], slope=p[4]), start


def vector(vy: float) -> np.ndarray:
    """Data of the motion that starts across the slope with ``vy`` [m/s]."""
    return np.array([(DATA | {"vy": vy})[name] for name in NAMES])


def _end(x: np.ndarray) -> np.ndarray:
    """Velocity (2,) along the plane at the end, by integration."""
    mu, vx, vy, g, slope, time = x
    pull, grip = g * np.sin(slope), mu * g * np.cos(slope)

    def rate(t, v):
        size = max(float(np.hypot(*v)), 1e-300)
        return [pull - grip * v[0] / size, -grip * v[1] / size]

    found = solve_ivp(rate, (0.0, time), [vx, vy], rtol=1e-13, atol=1e-15, method="DOP853")
    return found.y[:, -1]


@functools.cache
def reference(vy: float) -> tuple[np.ndarray, np.ndarray]:
    """Velocity at the end and its derivatives (2, `NAMES`)."""
    x = vector(vy)
    if vy == 0.0:
        mu, v0, g, a, time = x[[0, 1, 3, 4, 5]]
        up, down = np.sin(a) + mu * np.cos(a), np.sin(a) - mu * np.cos(a)
        end = v0 * down / up + g * down * time  # rest after -v0 / (g up)
        c, s = np.cos(a), np.sin(a)
        dmu = v0 * (-c * up - down * c) / up**2 - g * c * time
        da = v0 * ((c + mu * s) * up - down * (c - mu * s)) / up**2 + g * (c + mu * s) * time
        return np.array([end, 0.0]), np.array([[dmu, down / up, 0.0, down * time, da, g * down], [0.0] * 6])
    columns = []
    for k, name in enumerate(NAMES):
        width = 1e-3 * vy if name == "vy" else 1e-5
        step = width * (np.arange(len(x)) == k)
        one, two = ((_end(x + s * step) - _end(x - s * step)) / (2.0 * s * width) for s in (1.0, 0.5))
        columns.append((4.0 * two - one) / 3.0)
    return _end(x), np.array(columns).T
