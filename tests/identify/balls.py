"""A ball on a table in closed form, its recordings, and one program for most tests of identification."""

from __future__ import annotations

import numpy as np

from nsjax import Recording, models, schemes

RADIUS, HEIGHT, GRAVITY = 0.05, 1.0, 9.81
SCHEME = schemes.localized(schemes.moreau())  # parabolas and isolated impacts are exact in any step
DT = 1e-2
TIMES = np.linspace(0.05, 1.2, 24) - 0.005 * (np.arange(24) % 2)
"""Two bounces for restitutions near 0.8; half of the instants lie between steps of `DT`."""
PROBLEM = models.bouncing_ball(height=HEIGHT, radius=RADIUS, restitution=0.6)


def height(
    t: np.ndarray, restitution: float = 0.8, gravity: float = GRAVITY, drop: float = HEIGHT,
    speed: float = 0.0,
) -> np.ndarray:  # fmt: skip
    """Height of the centre, parabola by parabola."""
    down = (speed + np.sqrt(speed**2 + 2.0 * gravity * drop)) / gravity
    y = np.where(t < down, drop + speed * t - 0.5 * gravity * t**2, 0.0)
    start, up = down, restitution * (gravity * down - speed)
    while start < t[-1]:
        end, s = start + 2.0 * up / gravity, t - start
        y = np.where((t >= start) & (t < end), up * s - 0.5 * gravity * s**2, y)
        start, up = end, restitution * up
    return y + RADIUS


def stepped(t: np.ndarray, **numbers: float) -> np.ndarray:
    """The same, linear between the steps of `DT`, as a run is."""
    grid = DT * np.arange(int(np.ceil(t[-1] / DT - 1e-9)) + 1)
    return np.interp(t, grid, height(grid, **numbers))


def recording(noise: float | None = 1e-3, seed: int | None = None, **numbers: float) -> Recording:
    """Data of the ball, with normal noise if a seed is given."""
    y = stepped(TIMES, **numbers)
    if seed is not None:
        y = y + (noise or 1e-3) * np.random.default_rng(seed).normal(size=y.shape)
    return Recording(times=TIMES, values={"y": y}, noise=noise)
