"""A point mass that bounces obliquely in a round bowl without friction: parabolas between impacts."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from scipy.optimize import brentq

from nsjax import State, System
from nsjax.contact import ContactLaw

NAMES = ("gravity", "radius", "restitution", "x0", "y0", "u0", "w0")
VALUES = np.array([9.81, 1.0, 0.85, 0.2, 0.3, 0.3, 0.1])
ALONG = np.array([1.0, 0.1, 0.1, 0.05, -0.07, 0.2, 0.1])
"""Direction in which all of them change."""

TIME = 1.1
"""Two impacts before it."""


def _gap(t, q, p):
    return (p["radius"] - jnp.sqrt(jnp.sum(q * q)))[None]


def _force(t, q, v, p):
    return jnp.stack([0.0 * p["gravity"], -p["gravity"]])


SYSTEM = System(
    nq=2, nv=2, nc=1, nt=0, mass=lambda q, p: jnp.eye(2), force=_force, gap=_gap,
    law=lambda p: ContactLaw(restitution=p["restitution"]),
)  # fmt: skip


def build(p):
    """Parameters and start out of a vector in the order of `NAMES`."""
    return dict(zip(NAMES[:3], p[:3], strict=True)), State(t=0.0, q=p[3:5], v=p[5:7])


def motion(p, end: float) -> tuple[np.ndarray, int]:
    """State at the end, and the number of impacts."""
    g, r, e = p[:3]
    q, v, t, count = p[3:5].copy(), p[5:7].copy(), 0.0, 0
    fall = lambda s: np.array([0.0 * s, g * s])  # noqa: E731
    while True:
        at = lambda s: np.array([q[0] + v[0] * s, q[1] + v[1] * s - g / 2 * s * s])  # noqa: B023, E731
        far = lambda s: r - np.hypot(*at(s))  # noqa: B023, E731
        times = np.linspace(1e-6, end - t, 4001)
        gaps = far(times)
        down = np.flatnonzero((gaps[:-1] > 0.0) & (gaps[1:] <= 0.0))
        if not len(down):
            return np.concatenate([at(end - t), v - fall(end - t)]), count
        s = brentq(far, times[down[0]], times[down[0] + 1], xtol=1e-16, rtol=8.9e-16)
        q, v = at(s), v - fall(s)
        inward = -q / np.hypot(*q)
        v, t, count = v - (1.0 + e) * (v @ inward) * inward, t + s, count + 1


def second(p, end: float, width: float = 2e-3) -> np.ndarray:
    """Second derivative (4,) of the end along `ALONG`, by second differences of two widths."""

    def wide(h: float) -> np.ndarray:
        ahead, here, back = (motion(p + c * h * ALONG, end)[0] for c in (1.0, 0.0, -1.0))
        return (ahead - 2.0 * here + back) / h**2

    return (4.0 * wide(width) - wide(2.0 * width)) / 3.0
