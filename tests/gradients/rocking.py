"""A smooth box that rocks in the plane without rebound, from event to event, and its parameters."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from nsjax import models
from tests.gradients.hybrid import Mechanics, Motion, secants

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


class Box(Mechanics):
    """Height and angle of a smooth box on a plane; only the two lower corners touch."""

    mu = e = (0.0, 0.0)

    def __init__(self, x, mass: float = 46.8) -> None:
        self.g, width, length = x[3:6]
        self.x = 0.5 * np.array([[-width, -length], [width, -length]])
        self.m = mass * np.diag([1.0, (width**2 + length**2) / 12.0])

    def mass(self, q):
        return self.m

    def force(self, t, q, v):
        return np.array([-self.g * self.m[0, 0], 0.0])

    def gaps(self, t, q):
        return q[0] + self.x @ [np.sin(q[1]), np.cos(q[1])]

    def rows(self, q):
        aside = self.x @ [np.cos(q[1]), -np.sin(q[1])]
        return np.stack([np.ones(2), aside], axis=1), np.zeros((2, 2))

    def drift(self, t, q, v):
        return np.stack([-(v[1] ** 2) * self.x @ [np.sin(q[1]), np.cos(q[1])], np.zeros(2)])


def end(x) -> np.ndarray:
    """``(z, angle, rates)`` of numbers in the order of `NAMES`."""
    box = Box(x)
    lowest = np.min(box.gaps(0.0, [0.0, x[1]]))
    return Motion(box, [x[0] - lowest, x[1]], [0.0, x[2]]).run(x[6])


def reference(x, time: float) -> tuple[np.ndarray, np.ndarray]:
    """The end, and its derivatives."""
    x = np.append(np.asarray(x, float), time)
    return end(x), secants(end, x)
