"""Mixed framework on the slider-crank against minimal coordinates and event-driven runs."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from nsjax import models
from tests.references import slope
from tests.references.slider_crank import Data, bilateral
from tests.schemes.mixed_runs import MAKE, run

# ---------------------------------------------------------------------- slider-crank, ideal guide

DURATION = 0.05


@functools.cache
def bilateral_errors(name: str, steps: int, samples: int = 500) -> dict[str, float]:
    t = DURATION / samples * np.arange(1, samples + 1)
    x, force = bilateral(Data(), tuple(t))
    traj = run(
        models.slider_crank_bilateral(), MAKE[name](), DURATION / steps, steps,
        every=steps // samples, save=["constraint_force"],
    )  # fmt: skip
    q, v = traj.q[1:], traj.v[1:]
    off = np.abs(traj.constraint_force[1:, 0] - force)[t > 1.999e-3].max()
    relative = q[:, 1] / x[:, 1] - 1
    return {
        "500": float(np.linalg.norm(relative)),
        "50": float(np.linalg.norm(relative[samples // 50 - 1 :: samples // 50])),
        "theta2": float(np.abs(q[:, 1] - x[:, 1]).max()),
        "v": float(np.abs(v - x[:, 2:]).max()),
        "force": float(off / np.abs(force).max()),
        "g": float(np.abs(Data.l1 * np.sin(q[:, 0]) + Data.l2 * np.sin(q[:, 1])).max()),
    }


@pytest.mark.parametrize(
    ("name", "drift"),
    [("half_explicit", 2.3e-6), ("generalized_alpha 0.8", 1.2e-6), ("bathe", 6e-7), ("ed_alpha 0", 1e-6)],
)
def test_drift_of_the_guide(name, drift):
    assert bilateral_errors(name, 500)["g"] == pytest.approx(drift, rel=0.05)


@pytest.mark.parametrize(
    ("name", "order"),
    [("half_explicit", 1), ("generalized_alpha 0.8", 2), ("generalized_alpha 0", 2),
     ("bathe", 2), ("ed_alpha 0", 1)],
)  # fmt: skip
def test_orders_on_the_bilateral_slider_crank(name, order):
    # All errors are over 50 instants; 150 rad/s ask for small steps before the asymptotic range.
    per_instant = (40, 57, 79, 113, 159, 227, 317, 453)
    errors = [bilateral_errors(name, 50 * n, 50) for n in per_instant]
    orders = {key: slope(1 / np.array(per_instant), [e[key] for e in errors]) for key in errors[0]}
    assert orders["theta2"] == pytest.approx(2, abs=0.05)
    assert orders["v"] == pytest.approx(2, abs=0.05)
    assert orders["force"] == pytest.approx(order, abs=0.05)


# ---------------------------------------------------- slider-crank with clearance, friction, impacts
