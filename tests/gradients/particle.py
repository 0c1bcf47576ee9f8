"""A particle over a floor and beside a wall, gravity inclined, with linear drag: all planar cases.

The reference is the closed form: parabolas (or their damped form) from event to event. The order of
events is decided on plain numbers; every event time then takes one live Newton step, so that the
differentiation of the whole sequence is exact.
"""

from __future__ import annotations

import dataclasses
import functools
import math

import jax
import jax.numpy as jnp
import numpy as np

from nsjax import State, System
from nsjax.contact import ContactLaw
from nsjax.types import Array, record

NAMES = ("x", "z", "vx", "vz", "restitution", "friction", "gravity", "slope", "wall", "drag")
CLOSING = 1e-10
"""A rebound slower than this [m/s] ends a bounce sequence: an error of the same size."""


@record()
class Params:
    """Floor at z = 0, wall at x = wall; downhill is +x."""

    restitution: Array | float
    friction: Array | float
    gravity: Array | float
    slope: Array | float
    wall: Array | float
    drag: Array | float


def mass(q, p):
    """Unit mass."""
    return jnp.eye(2)


def force(t, q, v, p):
    """Weight and drag."""
    weight = jnp.stack([p.gravity * jnp.sin(p.slope), -p.gravity * jnp.cos(p.slope)])
    return weight - p.drag * v


def gap(t, q, p):
    """Floor, wall."""
    return jnp.stack([q[1], p.wall - q[0]])


def slip(t, q, v, p):
    """Along the floor, along the wall."""
    return v[:, None]


def law(p):
    """Same restitution and friction on both."""
    return ContactLaw(restitution=p.restitution, friction=p.friction)


SYSTEM = System(nq=2, nv=2, nc=2, nt=1, mass=mass, force=force, gap=gap, slip=slip, law=law)


def build(p: Array) -> tuple[Params, State]:
    """Parameters and start out of a vector in the order of `NAMES`."""
    numbers = dict(zip(NAMES[4:], p[4:], strict=True))
    return Params(**numbers), State(t=0.0, q=p[:2], v=p[2:4])


@dataclasses.dataclass(frozen=True)
class Case:
    """A motion: start and parameters by name, end, columns compared, expected order, number of events
    that the reference must find.
    """

    name: str
    values: tuple[tuple[str, float], ...]
    time: float
    events: tuple[str, ...]
    columns: tuple[str, ...] = NAMES[:8]
    order: float = 0.9
    discrete: float | None = 0.1

    def vector(self) -> np.ndarray:
        """All parameters."""
        plain = dict.fromkeys(NAMES, 0.0) | {"gravity": 9.81, "restitution": 0.8, "wall": 100.0, "z": 1.0}
        assert set(dict(self.values)) <= set(NAMES)
        return np.array([(plain | dict(self.values))[name] for name in NAMES])

    def index(self) -> list[int]:
        """Places of the compared columns."""
        return [NAMES.index(name) for name in self.columns]


def _plain(x) -> float:
    return float(jax.lax.stop_gradient(x))


def _travel(x, v, a, c: float, s):
    """Position and velocity after ``s`` with constant acceleration and drag."""
    if c == 0.0:
        return x + v * s + 0.5 * a * s * s, v + a * s
    e = -jnp.expm1(-c * s) / c
    return x + v * e + a * (s - e) / c, v * jnp.exp(-c * s) + a * e


def _reach(x, v, a, c: float, leaving: bool):
    """Time at which the coordinate reaches zero from above, inf if never; ``leaving``: it starts at zero
    and does not count itself. Quadratic without drag, then Newton, the last step live.
    """
    x0, v0, a0 = _plain(x), _plain(v), _plain(a)
    roots = np.roots([0.5 * a0, v0, 0.0 if leaving else x0])
    roots = [r.real for r in roots if abs(r.imag) < 1e-12 and r.real > 0.0]
    roots = [r for r in roots if v0 + a0 * r < 0.0]
    if not roots:
        return math.inf
    s = min(roots)
    for _ in range(60):
        y, rate = _travel(x0, v0, a0, c, s)
        s -= float(y / rate)
    y, rate = _travel(x, v, a, c, s)
    return s - y / jax.lax.stop_gradient(rate)


class _Motion:
    """The motion phase by phase: ``flight``, ``slide`` on the floor, ``stick``."""

    def __init__(self, p) -> None:
        self.q, self.v = [p[0], p[1]], [p[2], p[3]]
        self.e, self.mu, g, slope, self.wall = p[4:9]
        self.c = _plain(p[9])
        self.a = [g * jnp.sin(slope), -g * jnp.cos(slope)]
        self.events: list[str] = []
        self.at = ""
        self.phase = "flight"
        if _plain(self.q[1]) == 0.0 and _plain(self.v[1]) == 0.0:
            self._rest()

    def along(self):
        """Acceleration along the floor."""
        if self.phase == "slide":
            return self.a[0] + self.sign * self.mu * self.a[1]
        return self.a[0] if self.phase == "flight" else 0.0

    def _rest(self) -> None:
        """On the floor: sliding on, turning or sticking."""
        vx, pull, grip = _plain(self.v[0]), _plain(self.a[0]), -_plain(self.mu * self.a[1])
        self.q[1], self.v[1] = 0.0, 0.0
        if vx == 0.0 and abs(pull) <= grip:
            self.phase, self.v[0] = "stick", 0.0
        else:
            self.phase, self.sign = "slide", math.copysign(1.0, vx if vx != 0.0 else pull)

    def _impact(self, normal: int) -> None:
        """Newton and Coulomb; ``normal`` is the coordinate normal to the surface."""
        vn, vt = self.v[normal], self.v[1 - normal]
        impulse = (1 + self.e) * jnp.sign(_plain(vn)) * vn
        stick = _plain(self.mu) > 0.0 and abs(_plain(vt)) <= _plain(self.mu * impulse)
        self.events.append(("stick " if stick else "slip ") + ("floor" if normal else "wall"))
        self.v[1 - normal] = 0.0 * vt if stick else vt - np.sign(_plain(vt)) * self.mu * impulse
        after = -self.e * vn
        self.v[normal] = after
        self.at = "floor" if normal else "wall"
        if normal and _plain(after) < CLOSING:
            self.events.append("rest")
            self._rest()

    def run(self, end: float):
        """State at ``end``."""
        t = 0.0
        while True:
            x, z = self.q
            ax = self.along()
            times = {"wall": _reach(self.wall - x, -self.v[0], -ax, self.c, self.at == "wall")}
            if self.phase == "flight":
                times["floor"] = _reach(z, self.v[1], self.a[1], self.c, self.at == "floor")
            if self.phase == "slide":
                times["turn"] = self._halt(ax)
            hit = min(times, key=lambda k: _plain(times[k]))
            s = times[hit]
            if self.phase == "stick" or _plain(t + s) > end:
                self._move(ax, end - t)
                return jnp.stack([jnp.asarray(y, float) for y in (*self.q, *self.v)])
            self._move(ax, s)
            t = t + s
            if hit == "turn":
                self.v[0] = 0.0
                self._rest()
                self.events.append("turn" if self.phase == "slide" else "stick")
            else:
                self._impact(1 if hit == "floor" else 0)

    def _halt(self, a):
        """Time at which the sliding velocity vanishes."""
        v0, a0 = _plain(self.v[0]), _plain(a)
        if v0 * a0 >= 0.0:
            return math.inf
        return -self.v[0] / a if self.c == 0.0 else jnp.log1p(-self.c * self.v[0] / a) / self.c

    def _move(self, ax, s) -> None:
        self.q[0], self.v[0] = _travel(self.q[0], self.v[0], ax, self.c, s)
        if self.phase == "flight":
            self.q[1], self.v[1] = _travel(self.q[1], self.v[1], self.a[1], self.c, s)


@functools.cache
def reference(case: Case) -> tuple[np.ndarray, np.ndarray]:
    """Final state (4,) and its Jacobian (4, columns)."""
    p = case.vector()
    found: list[list[str]] = []

    def final(y):
        run = _Motion(y)
        x = run.run(case.time)
        found.append(run.events)
        return x, x

    jacobian, x = jax.jacfwd(final, has_aux=True)(jnp.asarray(p))
    events = tuple(found[0])
    rest = events.index("rest") if "rest" in events else len(events)
    short = events if rest <= 6 else ("...", *events[rest:])
    assert short == case.events, f"{case.name}: {short}"
    return np.asarray(x), np.asarray(jacobian)[:, case.index()]
