"""The elastic bar that hits a wall with the data of the recorded run."""

from __future__ import annotations

import numpy as np

from nsjax import Problem, models

NODES, HEIGHT, SPEED = 100, 5e-5, 0.1
STEEL = {name: models.STEEL_BAR[name] for name in ("young", "density", "area")}


def impacting_bar(time: float = 1e-8) -> Problem:
    """A straight bar of 99 elements that flies towards the wall."""
    return models.elastic_bar(
        elements=NODES - 1, length=0.01 * (NODES - 1), distance=HEIGHT, speed=SPEED, initial_time=time,
        **STEEL,
    )  # fmt: skip


def recorded_side(q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Heights above the wall and their rates, from the struck node to the free one, as in the file."""
    return HEIGHT - q[:, ::-1], -v[:, ::-1]
