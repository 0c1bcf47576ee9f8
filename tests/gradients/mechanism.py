"""Sensitivities of the rigid slider-crank with clearance and friction, from its event-driven reference."""

from __future__ import annotations

import functools

import numpy as np

from nsjax import State, models
from nsjax.models.slider_crank import SliderCrank
from nsjax.types import Array
from tests.references.slider_crank import START, Data, event_driven

NAMES = ("clearance", "restitution", "friction", "l2", "m3", "omega")
BASE = np.array([0.001, 0.4, 0.01, 0.306, 0.076, START[2]])
SYSTEM = models.slider_crank().system
ANGLES = [0, 1]
"""Rows of theta1 and theta2 in the final state."""


def build(p: Array) -> tuple[SliderCrank, State]:
    """Problem with the parameters in the order of `NAMES`, the last one the crank's speed."""
    clearance, restitution, friction, rod, slider, omega = p
    problem = models.slider_crank(
        clearance=clearance, restitution=restitution, friction=friction, rod_length=rod, slider_mass=slider,
        initial_v=[omega, START[3], 0.0],
    )  # fmt: skip
    return problem.params, problem.state


def _end(values: np.ndarray, time: float) -> np.ndarray:
    numbers = dict(zip(NAMES[:-1], map(float, values), strict=False))
    start = (START[0], START[1], float(values[-1]), START[3])
    return event_driven(Data(**numbers), (time,), start=start).x[-1]


@functools.cache
def reference(time: float) -> tuple[np.ndarray, np.ndarray]:
    """Jacobian of (theta1, theta2) by central differences with the relative widths 1e-4 and 4e-4: the
    finer, and the relative difference of the two (parameters,).
    """
    found = []
    for width in (1e-4, 4e-4):
        columns = []
        for k, size in enumerate(BASE):
            d = np.zeros(len(BASE))
            d[k] = width * size
            columns.append((_end(BASE + d, time) - _end(BASE - d, time))[ANGLES] / (2 * d[k]))
        found.append(np.array(columns).T)
    fine, coarse = found
    return fine, np.linalg.norm(fine - coarse, axis=0) / np.linalg.norm(fine, axis=0)
