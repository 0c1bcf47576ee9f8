"""A mass on a spring and on a belt that swings: it sticks, slips and turns, in closed form between events.

The mass ``m`` on the spring ``k`` slides with ``mu`` over a belt of the velocity ``b0 + b1 sin(om t)``.
While it slides it swings about ``-s mu m g / k``; while it sticks it goes with the belt. The reference
finds every change of that to rounding, and differentiates by secants of the whole motion.
"""

from __future__ import annotations

import dataclasses

import jax.numpy as jnp
import numpy as np
from scipy.optimize import brentq

from nsjax import State, System
from nsjax.contact import ContactLaw
from tests.gradients.hybrid import secants

NAMES = ("m", "k", "mu", "b0", "b1", "om", "x0", "v0")
GRAVITY = 9.81
SCAN = 4e-4
"""Pieces of time in which a change of sign is looked for [s]."""


def _mass(q, p):
    return jnp.diag(jnp.stack([p["m"], p["m"]]))


def _force(t, q, v, p):
    return jnp.stack([-p["k"] * q[0], -GRAVITY * p["m"]])


def _gap(t, q, p):
    return q[1:]


def _wall(t, q, p):
    """The belt, and a wall that is never met."""
    return jnp.stack([q[1], 50.0 + q[0]])


def _slip(t, q, v, p):
    return (v[0] - p["b0"] - p["b1"] * jnp.sin(p["om"] * t))[None, None]


def _slip2(t, q, v, p):
    return jnp.stack([_slip(t, q, v, p)[0], v[1:]])


def _law(p):
    return ContactLaw(friction=p["mu"])


def _system(gap, slip, nc: int) -> System:
    return System(nq=2, nv=2, nc=nc, nt=1, mass=_mass, force=_force, gap=gap, slip=slip, law=_law)


SYSTEM = _system(_gap, _slip, 1)
BESIDE = _system(_wall, _slip2, 2)
"""The same beside another contact."""

ROWS = [0, 2]
"""Position and velocity along the belt among ``(q, v)``."""


def build(p):
    """Parameters and start out of a vector in the order of `NAMES`; the mass lies on the belt."""
    numbers = dict(zip(NAMES, p, strict=True))
    zero = 0.0 * p[6]
    return numbers, State(t=0.0, q=jnp.stack([p[6], zero]), v=jnp.stack([p[7], zero]))


@dataclasses.dataclass
class _Motion:
    """Along the belt: position, velocity, and the sign of the slip, zero while the mass sticks."""

    p: tuple[float, ...]
    t: float = 0.0
    sign: float = 0.0

    def __post_init__(self) -> None:
        m, k, mu, self.b0, self.b1, self.om, self.x, self.v = self.p
        self.w2, self.grip = k / m, mu * GRAVITY
        self.w = np.sqrt(self.w2)
        self.events: list[tuple[float, str]] = []
        slip = self.v - self.belt(0.0)
        self.sign = float(np.sign(slip)) if slip != 0.0 else self.next(0.0, self.x)

    def belt(self, t):
        """Its velocity."""
        return self.b0 + self.b1 * np.sin(self.om * t)

    def way(self, t):
        """Its way from zero."""
        return self.b0 * t + self.b1 / self.om * (1.0 - np.cos(self.om * t))

    def need(self, t, x):
        """Acceleration that friction must give the mass for it to stick."""
        return self.b1 * self.om * np.cos(self.om * t) + self.w2 * x

    def next(self, t, x) -> float:
        """The sign of the slip after rest on the belt."""
        need = self.need(t, x)
        return 0.0 if abs(need) <= self.grip else -float(np.sign(need))

    def at(self, t):
        """Position and velocity in the present phase."""
        s = t - self.t
        if self.sign == 0.0:
            return self.x + self.way(t) - self.way(self.t), self.belt(t)
        middle = -self.sign * self.grip / self.w2
        c, d, y = np.cos(self.w * s), np.sin(self.w * s), self.x - middle
        return middle + y * c + self.v / self.w * d, self.v * c - y * self.w * d

    def signal(self, t):
        """Positive until the phase ends."""
        x, v = self.at(t)
        if self.sign == 0.0:
            return self.grip - np.abs(self.need(t, x))
        return self.sign * (v - self.belt(t))

    def run(self, end: float) -> np.ndarray:
        """Position and velocity at ``end``."""
        while True:
            times = np.append(np.arange(self.t + 1e-9, end, SCAN), end)
            values = self.signal(times)
            down = np.flatnonzero((values[:-1] > 0.0) & (values[1:] <= 0.0))
            if not len(down):
                return np.array(self.at(end))
            i = down[0]
            hit = brentq(self.signal, times[i], times[i + 1], xtol=1e-15, rtol=1e-15)
            x, _ = self.at(hit)
            stuck = self.sign == 0.0
            sign = -float(np.sign(self.need(hit, x))) if stuck else self.next(hit, x)
            self.t, self.x, self.v, self.sign = hit, x, self.belt(hit), sign
            self.events.append((hit, "slip" if stuck else "turn" if sign else "stick"))


def motion(p, end: float) -> tuple[np.ndarray, list[tuple[float, str]]]:
    """Position and velocity at the end, and the changes on the way."""
    run = _Motion(tuple(float(x) for x in p))
    return run.run(end), run.events


def reference(p, end: float, width: float = 1e-6) -> np.ndarray:
    """Sensitivities (2, 8) by secants of two widths, extrapolated."""
    return secants(lambda x: motion(x, end)[0], p, width=width)


def draw(seed: int) -> tuple[np.ndarray, float, list[str]]:
    """Numbers, end and changes of a motion with five changes at least, all of them 2 ms apart and as far
    from the end: closer ones are not told apart by the coarsest steps.
    """
    rng = np.random.default_rng([20, seed])
    while True:
        p = np.array([rng.uniform(0.5, 1.5), rng.uniform(60.0, 250.0), rng.uniform(0.15, 0.45),
                      rng.uniform(-0.3, 0.3), rng.uniform(0.1, 0.5), rng.uniform(8.0, 25.0),
                      rng.uniform(-0.05, 0.05), rng.uniform(-0.5, 0.5)])  # fmt: skip
        end = rng.uniform(0.7, 1.3)
        events = motion(p, end)[1]
        times = np.array([0.0, *[t for t, _ in events], end])
        if len(events) >= 5 and np.min(np.diff(times)) > 2e-3:
            return p, end, [kind for _, kind in events]
