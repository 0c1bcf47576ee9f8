"""A smooth box that rocks in the plane without rebound, from event to event, and its parameters."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from scipy.integrate import solve_ivp

from nsjax import models

NAMES = ("height", "angle", "spin", "gravity", "width", "length", "time")
SYSTEM = models.block(dimension=2, rough=False).system


def build(x):
    """Parameters and start of `models.block`: lowest corner at a height, tilted, turning."""
    height, angle, spin, gravity, width, length = x
    lowest = 0.5 * (width * jnp.sin(jnp.abs(angle)) + length * jnp.cos(angle))
    problem = models.block(
        dimension=2, rough=False, size=jnp.stack([width, length]), gravity=gravity,
        initial_q=jnp.stack([0.0 * height, height + lowest, angle]),
        initial_v=jnp.stack([0.0 * height, 0.0 * height, spin]),
    )  # fmt: skip
    return problem.params, problem.state


class Box:
    """Height and angle of a smooth box on a plane; only the two lower corners touch."""

    def __init__(self, x, mass: float = 46.8):
        self.height, self.angle, self.spin, self.g, width, length = np.asarray(x, float)
        self.x = 0.5 * np.array([[-width, -length], [width, -length]])
        self.inverse = np.array([1.0 / mass, 12.0 / (mass * (width**2 + length**2))])

    def gaps(self, y):
        return y[0] + self.x @ [np.sin(y[1]), np.cos(y[1])]

    def rows(self, y):
        """Rates of the gaps are ``w v``, their accelerations ``w a + drift``."""
        c, s = np.cos(y[1]), np.sin(y[1])
        return np.stack([np.ones(2), self.x @ [c, -s]], axis=1), -(y[3] ** 2) * self.x @ [s, c]

    def solve(self, w, u):
        """``u + G x`` at least zero, and its complement; the two corners by trying the cases."""
        g = w @ (self.inverse[:, None] * w.T)
        for on in ([], [0], [1], [0, 1]):
            x = np.zeros(2)
            if on:
                x[on] = np.linalg.solve(g[np.ix_(on, on)], -u[on])
            if np.all(x >= -1e-12) and np.all(u + g @ x >= -1e-12):
                return x
        raise AssertionError("no case fits")

    def acceleration(self, y, held):
        w, drift = self.rows(y)
        free = np.array([-self.g, 0.0])
        x = np.zeros(2)
        if np.any(held):
            u = w @ free + drift
            g = w @ (self.inverse[:, None] * w.T)
            x[held] = np.linalg.solve(g[np.ix_(held, held)], -u[held])
        return free + self.inverse * (w.T @ x), x

    def meet(self, y, held):
        """State after the impact of what touches, and the corners at rest under load."""
        closed = held | (np.abs(self.gaps(y)) < 1e-9)
        w, _ = self.rows(y)
        u = np.where(closed, w @ y[2:], 1.0)
        y = np.concatenate([y[:2], y[2:] + self.inverse * (w.T @ self.solve(w, u))])
        rests = closed & (np.abs(w @ y[2:]) < 1e-10)
        push = w @ np.array([-self.g, 0.0]) + self.rows(y)[1]
        return y, rests & (self.solve(w, np.where(rests, push, 1.0)) > 0.0)

    def end(self, time: float) -> np.ndarray:
        """State at the end."""
        y = np.array([0.0, self.angle, 0.0, self.spin])
        y[0] = self.height - np.min(self.x @ [np.sin(y[1]), np.cos(y[1])])
        y, held = self.meet(y, np.zeros(2, bool))
        t = 0.0
        for _ in range(50):
            if np.all(held):
                return y  # flat on the plane
            events = [lambda s, z, k=k: self.gaps(z)[k] for k in np.flatnonzero(~held)]
            events += [
                lambda s, z, k=k, on=held: self.acceleration(z, on)[1][k] for k in np.flatnonzero(held)
            ]
            for event in events:
                event.terminal, event.direction = True, -1
            run = solve_ivp(
                lambda s, z, on=held: np.concatenate([z[2:], self.acceleration(z, on)[0]]),
                (t, time), y, method="DOP853", rtol=1e-12, atol=1e-14, events=events,
            )  # fmt: skip
            t, y = run.t[-1], run.y[:, -1]
            if run.status == 0:
                return y
            y, held = self.meet(y, held)
        raise AssertionError("too many events")


def reference(x, time: float) -> tuple[np.ndarray, np.ndarray]:
    """``(z, angle, rates)`` at the end, and its derivatives by `NAMES` by differences of exact motions;
    no number for the height of a box that starts on the plane.
    """
    x = np.append(np.asarray(x, float), time)

    def column(k: int) -> np.ndarray:
        if x[k] == 0.0 and NAMES[k] == "height":
            return np.full(4, np.nan)
        move = 1e-5 * max(abs(x[k]), 0.1) * np.eye(x.size)[k]
        ends = [Box((x + s * move)[:-1]).end((x + s * move)[-1]) for s in (1.0, -1.0)]
        return (ends[0] - ends[1]) / (2 * move[k])

    return Box(x[:-1]).end(time), np.stack([column(k) for k in range(x.size)], axis=1)
