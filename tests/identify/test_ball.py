"""Restitution and gravity of a ball from closed-form data."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import least_squares

import nsjax
from nsjax import transforms
from tests.identify.balls import DT, PROBLEM, SCHEME, TIMES, recording, stepped

TRAIN = {"restitution": transforms.interval(0.0, 1.0), "gravity": transforms.positive()}


@pytest.fixture(scope="module")
def noisy() -> nsjax.Estimate:
    return nsjax.identify(PROBLEM, SCHEME, recording(seed=3), TRAIN, dt=DT)


def test_closed_form_is_recovered() -> None:
    start = PROBLEM.replace(gravity=9.0)
    found = nsjax.identify(start, SCHEME, recording(noise=1e-6), TRAIN, dt=DT)
    # The model is exact here but for the root of the impact time (1e-12 m); the search ends when a
    # step promises a relative reduction of the cost below 1e-8.
    np.testing.assert_allclose([found["restitution"], found["params.gravity"]], [0.8, 9.81], rtol=1e-8)
    assert found.success
    np.testing.assert_allclose(found.problem.params.restitution, found["restitution"], rtol=0)


def test_same_minimum_and_covariance_as_scipy(noisy: nsjax.Estimate) -> None:
    data = recording(seed=3)

    def residual(p: np.ndarray) -> np.ndarray:
        return (stepped(TIMES, restitution=p[0], gravity=p[1]) - data.values["y"]) / 1e-3

    other = least_squares(residual, [0.79, 9.8], jac="3-point", x_scale=[0.1, 1.0], xtol=1e-14, ftol=1e-14)
    # both stop at a relative reduction of the cost of about 1e-8 or below: parameters to 1e-4 deviations
    np.testing.assert_allclose(noisy.values, other.x, atol=1e-4 * np.min(noisy.deviation / other.x))
    expected = np.linalg.inv(other.jac.T @ other.jac)
    # three-point differences of an exact model: 1e-5 relative is their own error
    np.testing.assert_allclose(noisy.covariance, expected, rtol=1e-4)
    np.testing.assert_allclose(noisy.runs[0].cost, other.cost, rtol=1e-8)
