"""Motions from event to event: DOP853 in modes of the contacts, impacts and changes of modes by trying all
cases. No code and no formula of the package is used.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

OPEN, STICK = "open", "stick"
AT_REST = 1e-8
"""Sliding slower than this [m/s] is none: velocities after events are exact to rounding."""

LEAVES = 1e-9
"""The gap [m] of a contact that leaves is this at least."""

MOST = 60
"""A motion with more events is one that bounces for ever."""


class Mechanics:
    """What a planar mechanism with contacts must tell; ``mu`` and ``e`` are those of its contacts.

    Rates of gaps are ``normal v + moving[0]``, sliding velocities ``tangent v + moving[1]``; both change
    by ``normal a + drift[0]`` and ``tangent a + drift[1]``.
    """

    mu: tuple[float, ...]
    e: tuple[float, ...]

    def mass(self, q) -> np.ndarray:
        """Mass matrix (n, n)."""
        raise NotImplementedError

    def force(self, t, q, v) -> np.ndarray:
        """Generalised force (n,)."""
        raise NotImplementedError

    def gaps(self, t, q) -> Any:
        """Gaps (nc,)."""
        raise NotImplementedError

    def rows(self, q) -> tuple[np.ndarray, np.ndarray]:
        """``normal`` and ``tangent``, (nc, n) each."""
        raise NotImplementedError

    def drift(self, t, q, v) -> np.ndarray:
        """(2, nc)."""
        raise NotImplementedError

    def moving(self, t, q) -> np.ndarray:
        """Velocities (2, nc) of walls."""
        return np.zeros((2, len(self.mu)))


class Motion:
    """A motion and its events ``(time, kind, contact)``; modes are open, stick, or the sign of sliding, as
    are the ``kinds`` of its impacts.
    """

    def __init__(self, mechanics: Mechanics, q, v, closed: tuple[int, ...] = ()) -> None:
        self.m, self.t, self.n = mechanics, 0.0, len(q)
        self.x = np.concatenate([np.asarray(q, float), np.asarray(v, float)])
        self.modes: list = [1.0 if i in closed else OPEN for i in range(len(mechanics.mu))]
        self.events: list[tuple[float, str, int]] = []
        self.kinds: list[tuple] = []
        if closed:
            self.go_on()

    def rates(self) -> np.ndarray:
        """Rates of gaps, and sliding velocities (2, nc)."""
        q, v = self.x[: self.n], self.x[self.n :]
        return np.stack([w @ v for w in self.m.rows(q)]) + self.m.moving(self.t, q)

    def _pushes(self, q, kinds) -> tuple[np.ndarray, list[tuple[int, int]]]:
        """Directions of the impulses in the modes ``kinds``, and the rows that they hold."""
        rows = self.m.rows(q)
        push, held = [], []
        for i, kind in enumerate(kinds):
            if kind == OPEN:
                continue
            slide = 0.0 if kind == STICK else self.m.mu[i] * kind
            push.append(rows[0][i] - slide * rows[1][i])
            held.append((0, i))
            if kind == STICK:
                push.append(rows[1][i])
                held.append((1, i))
        return np.array(push).reshape(-1, self.n).T, held

    def _answer(self, q, kinds, free, rates, wanted) -> tuple[np.ndarray, np.ndarray]:
        """``free`` with the impulses that give held rows the ``wanted`` rates, and these (2, nc)."""
        push, held = self._pushes(q, kinds)
        impulses = np.zeros((2, len(kinds)))
        if not held:
            return free, impulses
        rows = self.m.rows(q)
        w = np.array([rows[k][i] for k, i in held])
        back = np.linalg.solve(self.m.mass(q), push)
        y = np.linalg.solve(w @ back, np.array([wanted[k][i] - rates[k][i] for k, i in held]))
        for (k, i), value in zip(held, y, strict=True):
            impulses[k, i] = value
            if k == 0 and kinds[i] != STICK:
                impulses[1, i] = -self.m.mu[i] * kinds[i] * value
        return free + back @ y, impulses

    def solve(self, t, x, modes) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Acceleration, forces (2, nc) and accelerations of the rows (2, nc)."""
        q, v = x[: self.n], x[self.n :]
        free, drift = np.linalg.solve(self.m.mass(q), self.m.force(t, q, v)), self.m.drift(t, q, v)
        rows = self.m.rows(q)
        rates = np.stack([w @ free for w in rows]) + drift
        a, forces = self._answer(q, modes, free, rates, np.zeros_like(rates))
        return a, forces, np.stack([w @ a for w in rows]) + drift

    def signals(self, t, x) -> list[tuple[float, int, str]]:
        """What is positive until modes end, with contact and kind."""
        out, forces = [], None
        q, v = x[: self.n], x[self.n :]
        gaps, rates = self.m.gaps(t, q), self.m.rows(q)[0] @ v + self.m.moving(t, q)[0]
        for i, mode in enumerate(self.modes):
            if mode == OPEN:
                # what has just left is not closed again by rounding
                out.append((max(gaps[i], LEAVES) if rates[i] > 0.0 else gaps[i], i, "impact"))
                continue
            forces = self.solve(t, x, self.modes)[1] if forces is None else forces
            out.append((forces[0, i], i, "release"))
            if mode == STICK:
                out.append((self.m.mu[i] * forces[0, i] - abs(forces[1, i]), i, "slip"))
            elif self.m.mu[i] > 0.0:
                out.append((mode * (self.m.rows(q)[1][i] @ v + self.m.moving(t, q)[1][i]), i, "stop"))
        return out

    def go_on(self, fixed: dict[int, float] | None = None) -> None:
        """Chooses the modes in which closed contacts go on; ``fixed`` are known already."""
        slip, fixed, cases = self.rates()[1], fixed or {}, []
        for i, mode in enumerate(self.modes):
            if mode == OPEN:
                cases.append([OPEN])
            elif i in fixed:
                cases.append([fixed[i]])
            elif self.m.mu[i] == 0.0:
                cases.append([1.0, OPEN])
            elif abs(slip[i]) > AT_REST:
                cases.append([float(np.sign(slip[i])), OPEN])
            else:
                cases.append([STICK, 1.0, -1.0, OPEN])
        for modes in itertools.product(*cases):
            if sum({OPEN: 0, STICK: 2}.get(mode, 1) for mode in modes) <= self.n and self._lasts(
                modes, fixed
            ):
                self.modes = list(modes)
                return
        raise AssertionError("no modes")

    def _lasts(self, modes, fixed) -> bool:
        """Whether laws on acceleration level hold."""
        _, forces, rates = self.solve(self.t, self.x, modes)
        slip = self.rates()[1]
        for i, mode in enumerate(modes):
            if i in fixed or self.modes[i] == OPEN:
                continue
            if mode == OPEN:
                good = rates[0, i] > 0.0
            elif mode == STICK:
                good = forces[0, i] > 0.0 and abs(forces[1, i]) <= self.m.mu[i] * forces[0, i]
            else:
                begins = abs(slip[i]) <= AT_REST and self.m.mu[i] > 0.0
                good = forces[0, i] > 0.0 and (not begins or mode * rates[1, i] > 0.0)
            if not good:
                return False
        return True

    def strike(self, struck: set[int]) -> None:
        """Through an impact: all cases are tried."""
        q, v, before = self.x[: self.n].copy(), self.x[self.n :].copy(), self.rates()
        on = [i for i, mode in enumerate(self.modes) if mode != OPEN or i in struck]
        e = np.array(self.m.e)
        wanted = np.stack([-e * before[0], np.zeros(len(e))])
        kinds_of = lambda i: [STICK, 1.0, -1.0, OPEN] if self.m.mu[i] else [1.0, OPEN]  # noqa: E731
        cases = [kinds_of(i) if i in on else [OPEN] for i in range(len(e))]
        for kinds in itertools.product(*cases):
            if not 0 < sum({OPEN: 0, STICK: 2}.get(kind, 1) for kind in kinds) <= self.n:
                continue
            after, impulses = self._answer(q, kinds, v, before, wanted)
            self.x[self.n :] = after
            rates = self.rates()
            if self._obeys(on, kinds, impulses, rates, wanted):
                self.kinds.append(kinds)
                self.modes = [1.0 if i in on and abs(rates[0, i]) < 1e-9 else OPEN for i in range(len(e))]
                return
            self.x[self.n :] = v
        raise AssertionError("no impact")

    def _obeys(self, on, kinds, impulses, rates, wanted) -> bool:
        """Whether an impact fulfils its laws."""
        for i in on:
            if kinds[i] == OPEN:
                good = rates[0, i] > wanted[0, i]
            elif kinds[i] == STICK:
                good = impulses[0, i] > 0.0 and abs(impulses[1, i]) <= self.m.mu[i] * impulses[0, i]
            else:
                slides = self.m.mu[i] == 0.0 or kinds[i] * rates[1, i] > 0.0
                good = impulses[0, i] > 0.0 and slides
            if not good:
                return False
        return True

    def run(self, end: float) -> np.ndarray:
        """Position and velocity at ``end``."""
        while len(self.events) < MOST:
            marks = [(i, kind) for _, i, kind in self.signals(self.t, self.x)]

            def make(k):
                def event(s, y):
                    return self.signals(s, y)[k][0]

                event.terminal, event.direction = True, -1
                return event

            def slope(s, y):
                return np.concatenate([y[self.n :], self.solve(s, y, self.modes)[0]])

            found = solve_ivp(slope, (self.t, end), self.x, "DOP853", rtol=1e-12, atol=1e-13, max_step=0.01,
                              events=[make(k) for k in range(len(marks))])  # fmt: skip
            if found.status == 0:
                return found.y[:, -1]
            k = next(k for k, times in enumerate(found.t_events) if len(times))
            self.t, self.x = float(found.t_events[k][0]), found.y_events[k][0].copy()
            self._through(*marks[k])
        raise AssertionError("too many events")

    def _through(self, i: int, kind: str) -> None:
        """Through an event; contacts whose gaps close together strike together."""
        struck = {i}
        if kind == "impact":
            near = np.abs(self.m.gaps(self.t, self.x[: self.n])) < 1e-10
            struck = {k for k, mode in enumerate(self.modes) if k == i or (near[k] and mode == OPEN)}
            self.strike(struck)
            self.go_on()
        elif kind == "release":
            self.modes[i] = OPEN
            self.go_on()
        elif kind == "slip":
            self.go_on({i: -float(np.sign(self.solve(self.t, self.x, self.modes)[1][1, i]))})
        else:
            self.go_on()
            kind = "stick" if self.modes[i] == STICK else "turn"
        self.events += [(self.t, kind, k) for k in sorted(struck)]


def secants(end, p, columns=None, width: float = 1e-5) -> np.ndarray:
    """Derivatives (n, columns) of ``end(p)`` by secants of two widths, extrapolated."""
    found = []
    for i in range(len(p)) if columns is None else columns:
        h = width * max(abs(p[i]), 0.1) * (np.arange(len(p)) == i)
        near, far = ((end(p + c * h) - end(p - c * h)) / (2 * c * h[i]) for c in (1, 2))
        found.append((4.0 * near - far) / 3.0)
    return np.array(found).T
