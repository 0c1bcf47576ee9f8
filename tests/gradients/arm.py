"""A driven two-link arm with a stop between its links, whose tip lands on a rough floor, slides, sticks,
turns and leaves; and its event-driven motion.

The reference integrates between events with DOP853 in modes of the contacts, finds the events by scipy, and
solves impacts and changes of modes by trying all cases: no code and no formula of the package is used.
"""

from __future__ import annotations

import itertools

import jax.numpy as jnp
import numpy as np
from scipy.integrate import solve_ivp

from nsjax import State, System
from nsjax.contact import ContactLaw
from tests.gradients.hybrid import MOST, secants

NAMES = ("tip", "length", "floor", "stop", "mu", "rebound", "torque", "omega", "stiffness", "a0", "b0")
GRAVITY, DAMPING = 9.81, 0.6
"""Damping acts between the links. The elbow has the mass 1, the first link the length 1."""


def _mass(q, p):
    c = p["tip"] * p["length"] * jnp.cos(q[0] - q[1])
    return jnp.stack([1.0 + p["tip"], c, c, p["tip"] * p["length"] ** 2]).reshape(2, 2)


def _force(t, q, v, p):
    m, length = p["tip"], p["length"]
    s = m * length * jnp.sin(q[0] - q[1])
    drive = p["torque"] * jnp.sin(p["omega"] * t)
    between = -p["stiffness"] * (q[0] - q[1]) - DAMPING * (v[0] - v[1])
    weight = GRAVITY * jnp.stack([(1.0 + m) * jnp.cos(q[0]), m * length * jnp.cos(q[1])])
    return jnp.stack([-s * v[1] ** 2 + drive + between, s * v[0] ** 2 - between]) - weight


def _gap(t, q, p):
    return jnp.stack([p["floor"] + jnp.sin(q[0]) + p["length"] * jnp.sin(q[1]), p["stop"] - q[1] + q[0]])


def _slip(t, q, v, p):
    along = -jnp.sin(q[0]) * v[0] - p["length"] * jnp.sin(q[1]) * v[1]
    return jnp.stack([along, 0.0 * along])[:, None]


def _law(p):
    zero = 0.0 * p["mu"]
    return ContactLaw(friction=jnp.stack([p["mu"], zero]), restitution=jnp.stack([zero, p["rebound"]]))


SYSTEM = System(nq=2, nv=2, nc=2, nt=1, mass=_mass, force=_force, gap=_gap, slip=_slip, law=_law)


def build(p):
    """Parameters and start, at rest, out of a vector in the order of `NAMES`."""
    zero = 0.0 * p[0]
    return dict(zip(NAMES, p, strict=True)), State(t=0.0, q=p[9:11], v=jnp.stack([zero, zero]))


OPEN, STICK = "open", "stick"
STRAIGHT = 1e-7
"""Angle [rad] between the links below which the tip cannot stick: its normal and tangent are one direction.
At its greatest reach on the floor the tip turns, whatever its friction is (seed 8).
"""


class Motion:
    """The motion between events: ``modes`` of both contacts are open, stick, or the sign of sliding."""

    def __init__(self, p) -> None:
        self.p = dict(zip(NAMES, map(float, p), strict=True))
        self.mu = (self.p["mu"], 0.0)
        self.modes: list = [OPEN, OPEN]
        self.events: list[tuple[float, str]] = []

    def rows(self, x):
        """Mass, normals and tangents (2, 2), and drifts of their rates."""
        a, b, u, w = x
        m, n = self.p["tip"], self.p["length"]
        c = m * n * np.cos(a - b)
        mass = np.array([[1.0 + m, c], [c, m * n * n]])
        normal = np.array([[np.cos(a), n * np.cos(b)], [1.0, -1.0]])
        tangent = np.array([[-np.sin(a), -n * np.sin(b)], [0.0, 0.0]])
        drift = np.array([-np.sin(a) * u * u - n * np.sin(b) * w * w, 0.0])
        aside = np.array([-np.cos(a) * u * u - n * np.cos(b) * w * w, 0.0])
        return mass, normal, tangent, drift, aside

    def force(self, t, x):
        """Generalised force."""
        a, b, u, w = x
        p, m, n = self.p, self.p["tip"], self.p["length"]
        s = m * n * np.sin(a - b)
        between = -p["stiffness"] * (a - b) - DAMPING * (u - w)
        first = -s * w * w + p["torque"] * np.sin(p["omega"] * t) + between - GRAVITY * (1 + m) * np.cos(a)
        return np.array([first, s * u * u - between - GRAVITY * m * n * np.cos(b)])

    def solve(self, t, x, modes):
        """Acceleration, normal and tangential forces, and row accelerations in given modes."""
        mass, normal, tangent, drift, aside = self.rows(x)
        push, rows, rest = [], [], []
        for i, mode in enumerate(modes):
            if mode == OPEN:
                continue
            slide = 0.0 if mode == STICK else self.mu[i] * mode
            push.append(normal[i] - slide * tangent[i])
            rows.append(normal[i])
            rest.append(drift[i])
            if mode == STICK:
                push.append(tangent[i])
                rows.append(tangent[i])
                rest.append(aside[i])
        free = np.linalg.solve(mass, self.force(t, x))
        forces = np.zeros((2, 2))
        acc = free
        if push:
            w, r = np.array(push).T, np.array(rows)
            back = np.linalg.solve(mass, w)
            y = np.linalg.solve(r @ back, -(r @ free + np.array(rest)))
            acc, y = free + back @ y, list(y)
            for i, mode in enumerate(modes):
                if mode != OPEN:
                    forces[i, 0] = y.pop(0)
                    forces[i, 1] = y.pop(0) if mode == STICK else -self.mu[i] * mode * forces[i, 0]
        return acc, forces, (normal @ acc + drift, tangent @ acc + aside)

    def gaps(self, x):
        """Gaps of both contacts."""
        p = self.p
        return p["floor"] + np.sin(x[0]) + p["length"] * np.sin(x[1]), p["stop"] - x[1] + x[0]

    def signals(self, t, x):
        """What is positive until modes end, with their contact and kind."""
        out = []
        forces = None
        for i, mode in enumerate(self.modes):
            if mode == OPEN:
                out.append((self.gaps(x)[i], i, "impact"))
                continue
            forces = self.solve(t, x, self.modes)[1] if forces is None else forces
            out.append((forces[i, 0], i, "release"))
            if mode == STICK:
                out.append((self.mu[i] * forces[i, 0] - abs(forces[i, 1]), i, "slip"))
            elif self.mu[i] > 0.0:
                out.append((mode * (self.rows(x)[2][i] @ x[2:]), i, "stop"))
        return out

    def go_on(self, t, x, fixed=None) -> None:
        """Chooses the modes in which closed contacts go on; ``fixed`` are known already."""
        cases = []
        slip = self.rows(x)[2] @ x[2:]
        for i, mode in enumerate(self.modes):
            if mode == OPEN:
                cases.append([OPEN])
            elif fixed and i in fixed:
                cases.append([fixed[i]])
            elif self.mu[i] == 0.0:
                cases.append([1.0, OPEN])
            elif abs(slip[i]) > 1e-8:
                cases.append([float(np.sign(slip[i])), OPEN])
            else:
                cases.append([STICK, 1.0, -1.0, OPEN])
        for modes in itertools.product(*cases):
            if sum({OPEN: 0, STICK: 2}.get(mode, 1) for mode in modes) > 2:
                continue
            if STICK in modes and abs(np.sin(x[0] - x[1])) < STRAIGHT:
                continue
            _, forces, (up, along) = self.solve(t, x, modes)
            good = True
            for i, mode in enumerate(modes):
                if (fixed and i in fixed) or self.modes[i] == OPEN:
                    continue
                if mode == OPEN:
                    good &= up[i] > 0.0
                    continue
                good &= forces[i, 0] > 0.0
                if mode == STICK:
                    good &= abs(forces[i, 1]) <= self.mu[i] * forces[i, 0]
                elif abs(slip[i]) <= 1e-8 and self.mu[i] > 0.0:
                    good &= mode * along[i] > 0.0
            if good:
                self.modes = list(modes)
                return
        raise AssertionError("no modes")

    def strike(self, x, struck: int):
        """Velocity after an impact, and which contacts stay closed: all cases are tried."""
        mass, normal, tangent, _, _ = self.rows(x)
        on = [i for i in range(2) if self.modes[i] != OPEN or i == struck]
        e = (0.0, self.p["rebound"])
        for kinds in itertools.product(
            *[[STICK, 1.0, -1.0, OPEN] if self.mu[i] else [1.0, OPEN] for i in on]
        ):
            push, rows, wanted = [], [], []
            for i, kind in zip(on, kinds, strict=True):
                if kind == OPEN:
                    continue
                push.append(normal[i] - (0.0 if kind == STICK else self.mu[i] * kind) * tangent[i])
                rows.append(normal[i])
                wanted.append(-e[i] * (normal[i] @ x[2:]))
                if kind == STICK:
                    push.append(tangent[i])
                    rows.append(tangent[i])
                    wanted.append(0.0)
            if not 0 < len(push) <= 2:
                continue
            w, r = np.array(push).T, np.array(rows)
            back = np.linalg.solve(mass, w)
            y = np.linalg.solve(r @ back, np.array(wanted) - r @ x[2:])
            v, left, good = x[2:] + back @ y, list(y), True
            for i, kind in zip(on, kinds, strict=True):
                if kind == OPEN:
                    good &= normal[i] @ v + e[i] * (normal[i] @ x[2:]) > 0.0
                    continue
                pn = left.pop(0)
                good &= pn > 0.0
                if kind == STICK:
                    good &= abs(left.pop(0)) <= self.mu[i] * pn
                elif self.mu[i] > 0.0:
                    good &= kind * (tangent[i] @ v) > 0.0
            if good:
                return v, [i for i in on if abs(normal[i] @ v) < 1e-9]
        raise AssertionError("no impact")

    def run(self, end: float) -> np.ndarray:
        """State at ``end``."""
        t, x = 0.0, np.array([self.p["a0"], self.p["b0"], 0.0, 0.0])
        while len(self.events) < MOST:
            marks = [(i, kind) for _, i, kind in self.signals(t, x)]

            def make(k):
                def event(s, y):
                    return self.signals(s, y)[k][0]

                event.terminal, event.direction = True, -1
                return event

            slope = lambda s, y: np.concatenate([y[2:], self.solve(s, y, self.modes)[0]])  # noqa: E731
            found = solve_ivp(slope, (t, end), x, "DOP853", events=[make(k) for k in range(len(marks))],
                              rtol=1e-12, atol=1e-13, max_step=0.02)  # fmt: skip
            if found.status == 0:
                return found.y[:, -1]
            k = next(k for k, times in enumerate(found.t_events) if len(times))
            t, x = float(found.t_events[k][0]), found.y_events[k][0].copy()
            self.through(t, x, *marks[k])
        raise AssertionError("too many events")

    def through(self, t, x, i: int, kind: str) -> None:
        """Through an event; ``x`` is changed in place."""
        if kind == "impact":
            x[2:], closed = self.strike(x, i)
            self.modes = [1.0 if k in closed else OPEN for k in range(2)]
            self.go_on(t, x)
        elif kind == "release":
            self.modes[i] = OPEN
            self.go_on(t, x)
        elif kind == "slip":
            sign = -float(np.sign(self.solve(t, x, self.modes)[1][i, 1]))
            self.go_on(t, x, {i: sign})
        else:
            self.go_on(t, x)
            kind = "stick" if self.modes[i] == STICK else "turn"
        self.events.append((t, f"{kind} {i}"))


def motion(p, end: float) -> tuple[np.ndarray, list[tuple[float, str]]]:
    """Angles and their rates at the end, and the events."""
    run = Motion(p)
    return run.run(end), run.events


def reference(p, end: float, width: float = 1e-5) -> np.ndarray:
    """Sensitivities (4, parameters) by secants of two widths, extrapolated."""
    return secants(lambda x: motion(x, end)[0], p, width=width)


def draw(seed: int) -> tuple[np.ndarray, float, list[tuple[float, str]]]:
    """Numbers, end and events of a motion with four events at least that are 4 ms apart."""
    rng = np.random.default_rng([41, seed])
    while True:
        p = np.array([rng.uniform(0.5, 1.5), rng.uniform(0.6, 0.9), 0.0, rng.uniform(0.2, 0.8),
                      rng.uniform(0.05, 0.35), rng.uniform(0.3, 0.7), rng.uniform(15.0, 45.0),
                      rng.uniform(4.0, 14.0), rng.uniform(2.0, 25.0), rng.uniform(-0.9, -0.4),
                      rng.uniform(-1.3, -0.5)])  # fmt: skip
        p[2] = -np.sin(p[9]) - p[1] * np.sin(p[10]) + rng.uniform(0.01, 0.1)
        end = rng.uniform(0.5, 0.9)
        if p[3] - p[10] + p[9] < 0.02:
            continue
        try:
            events = motion(p, end)[1]
        except (AssertionError, np.linalg.LinAlgError):  # more rows than motion can follow
            continue
        times = np.array([0.0, *[t for t, _ in events], end])
        if len(events) >= 4 and np.min(np.diff(times)) > 4e-3:
            return p, end, events
