"""Restitution and gravity of a ball from closed-form data: one program, trained numbers in one order."""

from __future__ import annotations

import dataclasses

import numpy as np
import optax
import pytest
from scipy.optimize import least_squares

import nsjax
from nsjax import transforms
from nsjax.identify.plan import _call
from tests.identify.balls import DT, PROBLEM, SCHEME, TIMES, recording, stepped

TRAIN = {"restitution": transforms.interval(0.0, 1.0), "gravity": transforms.positive()}
TRUTH = np.array([0.8, 9.81])


@pytest.fixture(scope="module")
def noisy() -> nsjax.Estimate:
    return nsjax.identify(PROBLEM, SCHEME, recording(seed=3), TRAIN, dt=DT)


@pytest.mark.slow
def test_closed_form_is_recovered() -> None:
    start = PROBLEM.replace(gravity=9.0)
    found = nsjax.identify(start, SCHEME, recording(noise=1e-6), TRAIN, dt=DT)
    # The model is exact here but for the root of the impact time (1e-12 m); the search ends when a
    # step promises a relative reduction of the cost below 1e-8.
    np.testing.assert_allclose([found["restitution"], found["params.gravity"]], TRUTH, rtol=1e-8)
    assert found.success
    np.testing.assert_allclose(found.problem.params.restitution, found["restitution"], rtol=0)
    assert found.runs[0].costs[0] > 1e6 * found.runs[0].cost
    np.testing.assert_allclose(found.runs[0].path[0], [0.6, 9.0], rtol=1e-12)  # a transform and back


def test_same_minimum_and_covariance_as_scipy(noisy: nsjax.Estimate) -> None:
    data = recording(seed=3)

    def residual(p: np.ndarray) -> np.ndarray:
        return (stepped(TIMES, restitution=p[0], gravity=p[1]) - data.values["y"]) / 1e-3

    other = least_squares(residual, [0.79, 9.8], jac="3-point", x_scale=[0.1, 1.0], xtol=1e-14, ftol=1e-14)
    # both stop at a relative reduction of the cost of 1e-8 or below: within 1e-3 of a deviation
    np.testing.assert_allclose((noisy.values - other.x) / noisy.deviation, 0.0, atol=1e-3)
    expected = np.linalg.inv(other.jac.T @ other.jac)
    # three-point differences of an exact model: their own error is below 1e-5
    np.testing.assert_allclose(noisy.covariance, expected, rtol=1e-4)
    np.testing.assert_allclose(noisy.runs[0].cost, other.cost, rtol=1e-7)


def test_interval_and_correlation(noisy: nsjax.Estimate) -> None:
    z = noisy.values[1] * np.exp(np.array([-1.0, 1.0]) * 1.959964 * noisy.deviation[1] / noisy.values[1])
    np.testing.assert_allclose(noisy.interval[1], z, rtol=1e-9)  # symmetric in the logarithm
    d = np.sqrt(np.diag(noisy.covariance))
    np.testing.assert_allclose(noisy.correlation, noisy.covariance / np.outer(d, d), rtol=1e-12)
    assert np.all((noisy.interval[:, 0] < TRUTH) & (noisy.interval[:, 1] > TRUTH))
    # 1 / singular value is the deviation along its direction of relative changes
    relative = noisy.covariance / np.outer(noisy.values, noisy.values)
    along = [np.sqrt(u @ relative @ u) for u in noisy.directions]
    np.testing.assert_allclose(along, 1.0 / noisy.singular_values, rtol=1e-6)


def test_unknown_noise_is_estimated(noisy: nsjax.Estimate) -> None:
    data = dataclasses.replace(recording(seed=3), noise=None)
    found = nsjax.identify(PROBLEM, SCHEME, data, TRAIN, dt=DT)
    np.testing.assert_allclose((found.values - noisy.values) / noisy.deviation, 0.0, atol=1e-3)
    assert found.noise == pytest.approx(
        1e-3, rel=0.45
    )  # 22 degrees of freedom: deviation 15 %, three of them
    ratio = found.deviation / noisy.deviation
    np.testing.assert_allclose(ratio, found.noise / 1e-3, rtol=1e-3)
    assert any("noise level estimated" in m for m in found.messages)


def test_masked_values_do_not_count(noisy: nsjax.Estimate) -> None:
    data = recording(seed=3)
    y, mask = data.values["y"].copy(), np.ones(len(TIMES), bool)
    mask[[2, 11]] = False
    y[[2, 11]] = [np.nan, 1e6]
    spoiled = nsjax.Recording(times=TIMES, values={"y": y}, noise=1e-3, mask=mask)
    found = nsjax.identify(PROBLEM, SCHEME, spoiled, TRAIN, dt=DT)
    assert found.success
    assert np.all(np.abs(found.values - noisy.values) < 3 * noisy.deviation)
    assert np.isnan(found.fits[0].measured["y"][[2, 11]]).all()
    assert np.all(found.deviation > noisy.deviation)  # fewer values


def test_outliers_pull_squares_and_not_cauchys_loss() -> None:
    data = recording(seed=5)
    y = data.values["y"].copy()
    y[::6] += 0.05  # fifty noise levels
    spoiled = nsjax.Recording(times=TIMES, values={"y": y}, noise=1e-3)
    off = {}
    for loss in ("squares", "cauchy", "huber", "soft_l1"):
        found = nsjax.identify(PROBLEM, SCHEME, spoiled, TRAIN, dt=DT, loss=loss)
        off[loss] = np.max(np.abs(found.values / TRUTH - 1.0))
        assert any("times the noise level" in m for m in found.messages)
        if loss == "cauchy":
            assert np.all((found.interval[:, 0] < TRUTH) & (found.interval[:, 1] > TRUTH))
    # Cauchy's pull of a residual of 50 noise levels is 0.11 of one; Huber's and the soft one are 1.3 and 1
    assert off["cauchy"] < 0.1 * off["squares"]
    assert max(off["huber"], off["soft_l1"]) < 0.5 * off["squares"]


def test_several_searches_find_what_one_misses() -> None:
    found = nsjax.identify(
        PROBLEM.replace(restitution=0.15), SCHEME, recording(seed=3), TRAIN, dt=DT, starts=6, seed=1
    )
    # four deviations of the noise
    np.testing.assert_allclose((found.values - TRUTH) / found.deviation, 0.0, atol=4.0)
    assert len(found.runs) == 6
    assert [run.cost for run in found.runs] == sorted(run.cost for run in found.runs)
    assert "of 6 searches end at this cost" in found.messages[0]


@pytest.mark.parametrize("method", ["gauss_newton", optax.adam(0.02)])
def test_other_methods_reach_the_same(method: object, noisy: nsjax.Estimate) -> None:
    near = PROBLEM.replace(restitution=0.78, gravity=9.7)
    found = nsjax.identify(
        near, SCHEME, recording(seed=3), TRAIN, dt=DT, method=method, max_runs=400, cost_tolerance=1e-6
    )
    # Adam rests when ten costs agree to 1e-6: within a tenth of a deviation
    np.testing.assert_allclose((found.values - noisy.values) / noisy.deviation, 0.0, atol=0.1)


def test_one_program_for_numbers_data_and_steps(noisy: nsjax.Estimate) -> None:
    before = _call._cache_size()
    other = PROBLEM.replace(gravity=9.5, mass=2.0, restitution=0.7)
    nsjax.identify(other, SCHEME, recording(seed=8, restitution=0.75), TRAIN, dt=DT, loss="huber")
    assert _call._cache_size() == before


def test_a_number_at_a_bound_is_said() -> None:
    at_interval = {
        "restitution": transforms.interval(0.0, 0.7, initial=0.5),
        "gravity": transforms.positive(),
    }
    at_wall = {"restitution": transforms.box(0.0, 0.7, initial=0.5), "gravity": transforms.positive()}
    for train in (at_interval, at_wall):
        found = nsjax.identify(PROBLEM, SCHEME, recording(seed=3), train, dt=DT)
        said = [m for m in found.messages if m.startswith("at a bound: restitution")]
        assert len(said) == 1
        assert "0.7" in said[0]
        assert found["restitution"] == pytest.approx(0.7, rel=2e-3)  # the interval ends within 1e-3 of it
        assert any("times the noise level" in m for m in found.messages)
    assert np.isnan(found.deviation[0])  # held at the wall


def test_restitution_without_impacts_is_said() -> None:
    shape = TIMES / 3.0 - TIMES[0] / 3.0 + 0.01  # the same number of values, all before the first impact
    y = 1.05 - 0.5 * 9.81 * shape**2
    data = nsjax.Recording(times=shape, values={"y": y}, noise=1e-4)
    found = nsjax.identify(PROBLEM.replace(gravity=9.0), SCHEME, data, TRAIN, dt=DT)
    assert not found.success
    said = [m for m in found.messages if m.startswith("not identifiable: restitution")]
    assert len(said) == 1
    assert "no impact happens" in said[0]
    assert np.isinf(found.deviation[0])
    assert found["gravity"] == pytest.approx(9.81, rel=2e-3)  # linear between steps of 0.01 s
    assert found.singular_values[1] == 0.0


def test_a_deviation_larger_than_the_value_is_said() -> None:
    data = dataclasses.replace(recording(), noise=20.0)
    found = nsjax.identify(PROBLEM, SCHEME, data, TRAIN, dt=DT)
    said = [m for m in found.messages if m.startswith("hardly identifiable")]
    assert said
    assert np.any(found.deviation > found.values)


def test_held_out_data_are_predicted() -> None:
    held = dataclasses.replace(recording(seed=9), name="other")
    found = nsjax.identify(PROBLEM, SCHEME, recording(seed=3), TRAIN, dt=DT, holdout=held)
    (fit,) = found.held_out
    # the noise itself, 1 mm, within four deviations of its estimate from 24 values
    assert 0.4e-3 < fit.rms()["y"] < 1.6e-3
    assert fit.rms("start")["y"] > 20 * fit.rms()["y"]
    assert "held out other" in str(found)
