"""The spinning block resolved at its impacts: Runge-Kutta steps, bisection, Newton's law at one corner.

Written with numpy and rotation matrices, independently of the library.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

MASS, GRAVITY, RESTITUTION = 46.8, 9.81, 0.8
SIZE = np.array([0.1, 0.2, 0.3])
INERTIA = MASS / 12.0 * (np.sum(SIZE**2) - SIZE**2)
CORNERS = 0.5 * SIZE * np.stack(np.meshgrid(*[[1.0, -1.0]] * 3, indexing="ij"), -1).reshape(8, 3)
WATCHED = 2
"""The corner (+, -, +), which touches first."""


@dataclass(frozen=True)
class Impact:
    """Time [s], corner, gap rates before and after [m/s], impulse [N s]."""

    time: float
    corner: int
    before: float
    after: float
    impulse: float


def _rate(y: np.ndarray) -> np.ndarray:
    """The rate of ``y = (x, R, v, Omega)``, Omega in body axes."""
    turn, spin = y[3:12].reshape(3, 3), y[15:]
    skew = np.array([[0.0, -spin[2], spin[1]], [spin[2], 0.0, -spin[0]], [-spin[1], spin[0], 0.0]])
    change = -np.cross(spin, INERTIA * spin) / INERTIA
    return np.concatenate([y[12:15], (turn @ skew).reshape(-1), [0.0, 0.0, -GRAVITY], change])


def _step(y: np.ndarray, h: float) -> np.ndarray:
    k1 = _rate(y)
    k2 = _rate(y + 0.5 * h * k1)
    k3 = _rate(y + 0.5 * h * k2)
    k4 = _rate(y + h * k3)
    return y + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)


def gaps(y: np.ndarray) -> np.ndarray:
    """Heights of the corners (8,)."""
    return np.asarray(y[2] + CORNERS @ y[3:12].reshape(3, 3)[2])


def _rows(y: np.ndarray) -> np.ndarray:
    """Derivatives of the heights with respect to ``(v, Omega)`` (8, 6)."""
    down = y[3:12].reshape(3, 3)[2]
    return np.concatenate([np.tile([0.0, 0.0, 1.0], (8, 1)), np.cross(CORNERS, down)], axis=1)


def rates(y: np.ndarray) -> np.ndarray:
    """The rates of the heights (8,)."""
    return np.asarray(_rows(y) @ y[12:])


def _strike(y: np.ndarray, k: int, time: float) -> tuple[np.ndarray, Impact]:
    row, weight = _rows(y)[k], np.concatenate([np.full(3, MASS), INERTIA])
    before = row @ y[12:]
    impulse = -(1.0 + RESTITUTION) * before / (row @ (row / weight))
    after = np.concatenate([y[:12], y[12:] + row / weight * impulse])
    return after, Impact(time, k, float(before), float(row @ after[12:]), float(impulse))


def motion(times: np.ndarray, h: float = 2.5e-5) -> tuple[np.ndarray, np.ndarray, list[Impact]]:
    """Height and rate (len(times),) of the watched corner at increasing times, and the impacts.

    Args:
        h: largest step [s]; its error, of fourth order, is about 1e-10.
    """
    start: Any = [np.array([0.0, 0.0, 1.0]), np.eye(3).reshape(-1), [3.0, 0.0, 0.0], [60.0, 60.0, 0.0]]
    y, now, impacts = np.concatenate(start), 0.0, []
    out = []
    for time in times:
        while now < time - 1e-13:
            step = min(h, time - now)
            ahead = _step(y, step)
            if gaps(ahead).min() < 0.0:
                low, high = 0.0, step
                for _ in range(60):
                    middle = 0.5 * (low + high)
                    low, high = (middle, high) if gaps(_step(y, middle)).min() > 0.0 else (low, middle)
                ahead, step = _step(y, low), low
                ahead, impact = _strike(ahead, int(np.argmin(gaps(ahead))), now + step)
                impacts.append(impact)
            y, now = ahead, now + step
        out.append((gaps(y)[WATCHED], rates(y)[WATCHED]))
    z, dz = np.array(out).T
    return z, dz, impacts
