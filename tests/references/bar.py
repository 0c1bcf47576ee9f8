"""A linear elastic bar against a wall, resolved at its events: modes between them, roots at them.

Free flight and rest of the tip at the wall are both linear with constant matrices, so that motion between
events is known in closed form; impacts (Newton's law at the tip node) and releases (the force of the wall
vanishes) are found as roots. A sequence of bounces is cut when they are slower than `SLOW`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import brentq

SLOW = 1e-3
"""Gap rate below which the tip stays at the wall after an impact [m/s]: flights of slower bounces are
shorter than the rounding of the gap resolves."""


class _Modes:
    """Free vibrations of ``M a + K u = 0`` in closed form."""

    def __init__(self, mass: np.ndarray, stiffness: np.ndarray) -> None:
        square, self.shapes = eigh(stiffness, mass)
        self.omega = np.sqrt(np.maximum(square, 0.0))
        self.weights = self.shapes.T @ mass

    def at(self, u: np.ndarray, v: np.ndarray, t: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Displacement, velocity, acceleration after ``t``."""
        a, b, w = self.weights @ u, self.weights @ v, self.omega
        c, s = np.cos(w * t), t * np.sinc(w * t / np.pi)
        x, y = a * c + b * s, b * c - a * w * w * s
        return self.shapes @ x, self.shapes @ y, self.shapes @ (-w * w * x)


@dataclass
class Bar:
    """The bar of `nsjax.models.elastic_bar` with equal elements and unit section."""

    young: float
    density: float
    distance: float
    restitution: float
    elements: int = 4
    length: float = 10.0
    speed: float = 10.0
    events: list[tuple[str, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        n, h = self.elements, self.length / self.elements
        beside = np.eye(n + 1, k=1) + np.eye(n + 1, k=-1)
        ends = np.diag([1.0, *[2.0] * (n - 1), 1.0])
        self.mass = self.density * h / 6.0 * (2.0 * ends + beside)
        self.stiffness = self.young / h * (ends - beside)
        self.free = _Modes(self.mass, self.stiffness)
        self.held = _Modes(self.mass[:-1, :-1], self.stiffness[:-1, :-1])
        self.compliance = np.linalg.inv(self.mass)[-1, -1]

    def momentum(self, time: float) -> float:
        """Of the whole bar after ``time`` [N s]."""
        u, v, now, closed = np.zeros(self.elements + 1), np.full(self.elements + 1, self.speed), 0.0, False
        while now < time:
            u, v, step, event = (self._rest if closed else self._flight)(u, v, time - now)
            now += step
            if event == "impact":
                v, closed = self._strike(v)
            elif event == "release":
                closed = False
            if event:
                self.events.append((event, now))
        return float(np.sum(self.mass @ v))

    def _strike(self, v: np.ndarray) -> tuple[np.ndarray, bool]:
        rebound = self.restitution * v[-1]
        stays = rebound < SLOW
        change = -(v[-1] + (0.0 if stays else rebound))
        v = v + np.linalg.inv(self.mass)[:, -1] / self.compliance * change
        return v, stays

    def _flight(self, u: np.ndarray, v: np.ndarray, left: float) -> tuple:
        def gap(t: float) -> float:
            return self.distance - self.free.at(u, v, t)[0][-1]

        _, _, a = self.free.at(u, v, 0.0)
        # right after an impact the tip returns after about 2 rate / acceleration
        bounces = abs(gap(0.0)) < 1e-9 and v[-1] < -0.1 * SLOW
        fine = min(2e-4, 0.2 * abs(v[-1]) / max(abs(a[-1]), 1e-9)) if bounces else 2e-4
        return self._until(gap, lambda t: self.free.at(u, v, t)[:2], left, fine, "impact")

    def _rest(self, u: np.ndarray, v: np.ndarray, left: float) -> tuple:
        w, rate = u[:-1] - self.distance, v[:-1]

        def force(t: float) -> float:
            x, _, a = self.held.at(w, rate, t)
            return -(self.mass[-1, :-1] @ a + self.stiffness[-1, :-1] @ x)

        def state(t: float) -> tuple[np.ndarray, np.ndarray]:
            x, y, _ = self.held.at(w, rate, t)
            return np.append(x, 0.0) + self.distance, np.append(y, 0.0)

        return self._until(force, state, left, 2e-4, "release")

    @staticmethod
    def _until(f, state, left: float, fine: float, event: str) -> tuple:
        """State where ``f`` falls below zero, at the latest after ``left``."""
        before, step = 0.0, fine
        while before < left:
            after = min(before + step, left)
            if f(after) < 0.0:
                # the function is zero at an event: it has a sign only a little later
                start = before if before > 0.0 else 0.05 * fine
                if f(start) < 0.0:
                    raise RuntimeError(f"{event} right after an event: SLOW is too small")
                root = brentq(f, start, after, xtol=1e-15, rtol=1e-14)
                return *state(root), root, event
            before, step = after, min(1.2 * step, 2e-4)
        return *state(left), left, ""
