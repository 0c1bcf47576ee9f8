"""A mass on a table that swings: it is thrown off and lands without rebound, in closed form between events.

The table moves as ``b sin(om t)``. The mass lies on it until ``b om^2 sin(om t)`` has grown to gravity,
flies, and lands with the velocity of the table. Changes are found to rounding; derivatives are secants.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from scipy.optimize import brentq

from nsjax import State, System
from nsjax.contact import ContactLaw

NAMES = ("m", "g", "b", "om")
VALUES = np.array([1.3, 9.81, 0.05, 17.0])
TIME = 0.83
SCAN = 1e-3
"""Pieces of time in which a change of sign is looked for [s]."""

SYSTEM = System(
    nq=1, nv=1, nc=1, nt=0, mass=lambda q, p: p["m"] * jnp.eye(1),
    force=lambda t, q, v, p: -(p["m"] * p["g"])[None],
    gap=lambda t, q, p: q - p["b"] * jnp.sin(p["om"] * t), law=lambda p: ContactLaw(),
)  # fmt: skip


def build(p):
    """Parameters and start out of a vector in the order of `NAMES`; the mass lies on the table."""
    return dict(zip(NAMES, p, strict=True)), State(t=0.0, q=0.0 * p[:1], v=(p[2] * p[3])[None])


def _first(signal, begin: float, end: float) -> float:
    """The first time after ``begin`` at which a positive signal has become negative; ``end`` if never."""
    times = np.append(np.arange(begin + 1e-9, end, SCAN), end)
    values = signal(times)
    down = np.flatnonzero((values[:-1] > 0.0) & (values[1:] <= 0.0))
    if not len(down):
        return end
    return brentq(signal, times[down[0]], times[down[0] + 1], xtol=1e-15, rtol=1e-15)


def motion(p, end: float) -> tuple[np.ndarray, list[tuple[float, str]]]:
    """Position and velocity at the end, and the changes on the way."""
    _, g, b, om = (float(x) for x in p)
    t, events = 0.0, []
    while True:
        t = _first(lambda s: g - b * om**2 * np.sin(om * s), t, end)
        if t == end:
            return np.array([b * np.sin(om * t), b * om * np.cos(om * t)]), events
        events.append((t, "release"))
        x, v, begun = b * np.sin(om * t), b * om * np.cos(om * t), t
        fly = lambda s: x + v * (s - begun) - g / 2 * (s - begun) ** 2  # noqa: B023, E731
        t = _first(lambda s: fly(s) - b * np.sin(om * s), t + 1e-3, end)  # noqa: B023
        if t == end:
            return np.array([fly(t), v - g * (t - begun)]), events
        events.append((t, "landing"))
