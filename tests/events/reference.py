"""Event-driven motions: smooth phases to rounding, every change of the contacts at its own time.

Impacts faster than `SLOW` are bounces; a slower rebound is closed at once, which an accumulation of
bounces changes by the square of the time that it leaves out.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from scipy.integrate import DOP853
from scipy.optimize import brentq

from tests.events.decisions import (
    STILL,
    Mode,
    UndecidedError,
    acceleration,
    choose,
    impact,
    slips,
    solve_linear,
)
from tests.events.mechanisms import Mechanism

SLOW = 1e-6
"""A rebound below this [m/s] is none."""

SAMPLES = 6
"""Places in a step of the integrator at which events are looked for."""

TOUCH = 1e-9
"""A gap below this [m] takes part in the impact of another contact."""

MOST = 600
"""A motion of more events than this is given up."""


@dataclasses.dataclass
class Motion:
    """End of a motion and its events.

    Args:
        q, v: at the end. rate: their rates there.
        events: (time, text) in order; times of impacts with their approach speed in ``speeds``.
        nearest: least gap that an open contact passed without touching, and when.
    """

    q: np.ndarray
    v: np.ndarray
    rate: np.ndarray
    events: list[tuple[float, str]]
    speeds: list[float]
    nearest: tuple[float, float]

    def sequence(self) -> tuple[str, ...]:
        """Events without their times, bounces below 1e-3 m/s left out."""
        return tuple(
            text for (_, text), s in zip(self.events, self.speeds, strict=True) if not 0.0 < s < 1e-3
        )


@dataclasses.dataclass
class _Signal:
    """An event function: which contact, what kind, and from what value on it counts."""

    contact: int
    kind: str
    arm: float
    slack: float


class Run:
    """One motion of a mechanism."""

    def __init__(self, mech: Mechanism, end: float) -> None:
        self.mech, self.end, self.t = mech, end, 0.0
        self.q, self.v = mech.start()
        self.events: list[tuple[float, str]] = []
        self.speeds: list[float] = []
        self.nearest = (math.inf, 0.0)
        self.mode = Mode()

    def log(self, text: str, speed: float = 0.0) -> None:
        """Enter an event."""
        self.events.append((self.t, text))
        self.speeds.append(speed)

    def go(self) -> Motion:
        """Until the end."""
        y = self.mech.contacts(0.0, self.q, self.v)
        rate = y.n @ self.v + y.cn
        touching = [i for i in range(self.mech.nc) if abs(y.gap[i]) < 1e-12 and rate[i] < SLOW]
        self.meet(touching, [i for i in touching if rate[i] < -1e-12])
        while self.t < self.end:
            self.phase()
            if len(self.events) > MOST:
                raise UndecidedError("too many events")
        self.ahead = self.directions(self.v, self.t, self.q)
        a = self.forces(self.t, self.q, self.v)[1].a
        return Motion(self.q, self.v, np.concatenate([self.v, a]), self.events, self.speeds, self.nearest)

    def meet(self, candidates, hits, avoid=()) -> None:
        """Impact if something hits, then the mode in which the motion goes on."""
        mech, t = self.mech, self.t
        closed = sorted(set(candidates) | set(hits))
        if hits:
            y = mech.contacts(t, self.q, self.v)
            before = y.n @ self.v + y.cn
            e = np.full(mech.nc, mech.e)
            blow = impact(mech, t, self.q, self.v, closed, e)
            after = y.n @ blow.v + y.cn
            slow = [i for i in closed if blow.normal[i] > 0.0 and after[i] <= SLOW]
            if any(after[i] > 0.0 for i in slow):
                e[slow] = 0.0
                blow = impact(mech, t, self.q, self.v, closed, e)
                after = y.n @ blow.v + y.cn
            self.v = blow.v
            kinds = " ".join(f"{k}{i}" for i, k in zip(closed, blow.kinds, strict=True))
            ends = " ".join(str(i) for i in closed if after[i] <= 1e-11)
            self.log(f"impact {' '.join(map(str, hits))}: {kinds}; closed {ends}", max(-before[hits]))
            closed = [i for i in closed if after[i] <= SLOW]
        self.mode = choose(mech, t, self.q, self.v, closed, avoid)
        self.settle()
        self.log(self.mode.label())

    def settle(self) -> None:
        """Rounding of the last phase removed: closed contacts and joints hold exactly."""
        mech = self.mech
        y = mech.contacts(self.t, self.q, self.v)
        residual, joints, _ = mech.joints(self.q, self.v)
        closed = list(self.mode.closed)
        if not closed and not mech.nb:
            return
        w = np.concatenate([joints, y.n[closed]])
        both = np.concatenate([residual, y.gap[closed]])
        g = w @ (w / mech.mass).T
        self.q = self.q - (solve_linear(g, both) @ w) / mech.mass
        stuck = [i for i, d in zip(closed, self.mode.slide, strict=True) if d is None]
        rows = np.concatenate([w, *[y.t[i] for i in stuck]])
        offset = np.concatenate([np.zeros(mech.nb), y.cn[closed], *[y.ct[i] for i in stuck]])
        rate = rows @ self.v + offset
        self.v = self.v - (solve_linear(rows @ (rows / mech.mass).T, rate) @ rows) / mech.mass

    def phase(self) -> None:
        """One smooth phase, and the event that ends it."""
        mode = self.mode
        self.ahead = self.directions(self.v, self.t, self.q)
        signals = self.signals()
        first = self.first_step()
        y0 = np.concatenate([self.q, self.v])
        solver = DOP853(
            self.rate, self.t, y0, self.end, rtol=1e-11, atol=1e-13,
            first_step=min(first, self.end - self.t) if first else None, max_step=0.05,
        )  # fmt: skip
        values = self.values(signals, self.t, y0)
        armed = [x > s.arm for x, s in zip(values, signals, strict=True)]
        old_t, old, old_y = self.t, values, y0
        while solver.status == "running":
            self.ahead = self.directions(solver.y[len(self.q) :], solver.t, solver.y[: len(self.q)])
            message = solver.step()
            if solver.status == "failed":
                raise UndecidedError(f"integration: {message}")
            dense = solver.dense_output()
            times = np.linspace(solver.t_old, solver.t, SAMPLES + 1)[1:]
            for time in times:
                y = dense(time) if time < solver.t else solver.y
                new = self.values(signals, time, y)
                fired = self.fired(signals, armed, dense, (old_t, old, old_y), (time, new, y))
                if fired:
                    when, signal = min(fired, key=lambda x: x[0])
                    self.change(when, dense(when), signal)
                    return
                armed = [a or x > s.arm for a, x, s in zip(armed, new, signals, strict=True)]
                old_t, old, old_y = time, new, y
        self.t, (self.q, self.v) = self.end, np.split(solver.y, 2)
        assert mode is self.mode

    def rate(self, t, y):
        """Right-hand side in the present mode."""
        q, v = y[: len(self.q)], y[len(self.q) :]
        return np.concatenate([v, self.forces(t, q, v)[1].a])

    def forces(self, t, q, v):
        """Contacts and forces, the directions of slip being those of the present velocity."""
        y = self.mech.contacts(t, q, v)
        mode = self.mode
        if self.mech.nt == 2 and self.mech.mu > 0.0 and any(d is not None for d in mode.slide):
            mode = Mode(mode.closed, tuple(self.turned(i, d, y, v) for i, d in enumerate(mode.slide)))
        return y, acceleration(self.mech, t, q, v, y, mode)

    def directions(self, v, t, q):
        """Directions of slip at the start of a step, to tell a passage through zero."""
        if self.mech.nt != 2:
            return {}
        slip = slips(self.mech.contacts(t, q, v), v)
        ahead = {}
        for k, i in enumerate(self.mode.closed):
            size = np.linalg.norm(slip[i])
            d = self.mode.slide[k]
            if d is not None:
                ahead[k] = slip[i] / size if size > STILL else np.asarray(d)
        return ahead

    def turned(self, k, d, y, v):
        """Direction of slip of the closed contact ``k``, continued smoothly through zero."""
        if d is None:
            return None
        i = self.mode.closed[k]
        slip = y.t[i] @ v + y.ct[i]
        size = np.linalg.norm(slip)
        if size < 0.1 * STILL:
            return tuple(self.ahead[k])
        return tuple(slip / size * (1.0 if slip @ self.ahead[k] >= 0.0 else -1.0))

    def signals(self) -> list[_Signal]:
        """What can end the phase."""
        mech, mode = self.mech, self.mode
        found = [_Signal(i, "hit", 2e-15, 1e-11) for i in range(mech.nc) if i not in mode.closed]
        for i, d in zip(mode.closed, mode.slide, strict=True):
            found.append(_Signal(i, "closed", 1e-8, 1e-8))
            if mech.mu > 0.0:
                found.append(_Signal(i, "stick" if d is None else "slip", 1e-8, 1e-8))
        return found

    def values(self, signals, t, y) -> list[float]:
        """Event functions: positive while nothing happens."""
        q, v = y[: len(self.q)], y[len(self.q) :]
        c, f = self.forces(t, q, v) if self.mode.closed else (self.mech.contacts(t, q, v), None)
        found: list[float] = []
        for s in signals:
            i = s.contact
            if s.kind == "hit":
                found.append(float(c.gap[i]))
            elif s.kind == "closed":
                found.append(float(f.normal[i]))
            elif s.kind == "stick":
                found.append(float(self.mech.mu * f.normal[i] - np.linalg.norm(f.tangential[i])))
            else:
                k = self.mode.closed.index(i)
                slip = c.t[i] @ v + c.ct[i]
                along = slip @ (self.ahead[k] if self.mech.nt == 2 else np.asarray(self.mode.slide[k]))
                found.append(float(along if self.mech.nt == 1 else min(along, np.linalg.norm(slip) - 1e-9)))
        return found

    def first_step(self) -> float | None:
        """Half of the shortest flight of a contact that has just left."""
        y = self.mech.contacts(self.t, self.q, self.v)
        f = acceleration(self.mech, self.t, self.q, self.v, y, self.mode)
        rate, second = y.n @ self.v + y.cn, y.n @ f.a + y.kn
        flights = [
            -rate[i] / second[i]
            for i in range(self.mech.nc)
            if i not in self.mode.closed and y.gap[i] < 1e-9 and rate[i] > 0.0 and second[i] < 0.0
        ]
        return max(min(flights), 1e-14) if flights else None

    def fired(self, signals, armed, dense, old, new):
        """Events between two samples: (time, signal)."""
        found = []
        for k, s in enumerate(signals):
            low, high = old[1][k], new[1][k]
            if armed[k] and high < 0.0:
                found.append((self.root(signals, k, dense, old[0], new[0], 0.0), s))
            elif not armed[k] and high < -s.slack:
                found.append((self.root(signals, k, dense, old[0], new[0], s.slack), s))
            elif s.kind == "hit" and armed[k] and low > 0.0:
                dip = self.dip(s.contact, dense, old, new)
                if dip is None:
                    continue
                value = self.values(signals, dip, dense(dip))[k]
                if value < 0.0:
                    found.append((self.root(signals, k, dense, old[0], dip, 0.0), s))
                else:
                    self.nearest = min(self.nearest, (value, dip))
        return found

    def gap_rate(self, i, t, y) -> float:
        """Rate of a gap."""
        q, v = y[: len(self.q)], y[len(self.q) :]
        c = self.mech.contacts(t, q, v)
        return float(c.n[i] @ v + c.cn[i])

    def dip(self, i, dense, old, new) -> float | None:
        """Time of a minimum of a gap between two samples."""
        if self.gap_rate(i, old[0], old[2]) >= 0.0 or self.gap_rate(i, new[0], new[2]) <= 0.0:
            return None
        return brentq(lambda t: self.gap_rate(i, t, dense(t)), old[0], new[0], xtol=1e-14)

    def root(self, signals, k, dense, low, high, shift) -> float:
        """Zero of one event function."""

        def value(t):
            return self.values(signals, t, dense(t))[k] + shift

        if value(low) <= 0.0 or value(high) >= 0.0:
            return low if value(low) <= 0.0 else high
        return brentq(value, low, high, xtol=1e-15, rtol=1e-15)

    def change(self, when, y, signal: _Signal) -> None:
        """What an event does."""
        self.t, (self.q, self.v) = when, np.split(y.copy(), 2)
        c = self.mech.contacts(when, self.q, self.v)
        rate = c.n @ self.v + c.cn
        closed = list(self.mode.closed)
        if signal.kind == "hit":
            near = [
                i for i in range(self.mech.nc) if i not in closed and c.gap[i] < TOUCH and rate[i] < -1e-12
            ]
            self.meet(closed, near or [signal.contact])
        elif signal.kind == "slip":
            self.stop(signal.contact, c)
            self.meet(closed, [])
        else:
            self.meet(closed, [], avoid=((signal.contact, signal.kind),))

    def stop(self, i, c) -> None:
        """The last rounding of a slip that has come to zero."""
        slip = c.t[i] @ self.v + c.ct[i]
        g = c.t[i] @ (c.t[i] / self.mech.mass).T
        if self.mech.nt == 1 or np.linalg.norm(slip) < 1e-7:
            self.v = self.v - (solve_linear(g, slip) @ c.t[i]) / self.mech.mass


def motion(mech: type[Mechanism], p, end: float) -> Motion:
    """The motion with numbers ``p`` until ``end``."""
    return Run(mech(p), end).go()
