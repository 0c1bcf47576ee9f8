"""`sweep_time_step` on a linear chain with a closed form: errors, orders, failures, files."""

from __future__ import annotations

import csv
import dataclasses

import numpy as np
import pytest

import nsjax
from nsjax import models, schemes, status
from nsjax.sweep.work_precision import COLUMNS, WorkPrecision
from tests.plot.faults import faults

TIME, SAMPLES = 20.0, 10
DTS = [0.1, 0.002, 0.01, 0.005]
STIFF = 1e4
"""Frequency of the last mass 100 rad/s: explicit up to dt = 0.02."""

STIFFNESS = np.array([[2.0, -1.0, 0.0], [-1.0, 2.0, -1.0], [0.0, -1.0, 1.0 + STIFF]])
SQUARES, MODES = np.linalg.eigh(STIFFNESS)
OMEGA, MODES = np.sqrt(SQUARES[:2]), MODES[:, :2]
WEIGHTS = np.array([1.0, -0.5])


def motion(t: float) -> tuple[np.ndarray, np.ndarray]:
    """The two soft modes."""
    return MODES @ (WEIGHTS * np.cos(OMEGA * t)), -MODES @ (WEIGHTS * OMEGA * np.sin(OMEGA * t))


CHAIN = models.mass_spring_chain(
    support="spring", support_stiffness=STIFF, gravity=0.0, initial_q=motion(0.0)[0]
)


@pytest.fixture(scope="module")
def table() -> nsjax.WorkPrecision:
    return nsjax.sweep_time_step(
        CHAIN, {"explicit": schemes.moreau()}, DTS, time=TIME, samples=SAMPLES, reference=motion, repeats=1
    )


def test_rows_are_runs(table) -> None:
    np.testing.assert_array_equal(table.dt, [0.1, 0.01, 0.005, 0.002])  # sorted
    np.testing.assert_array_equal(table.steps, [200, 2000, 4000, 10000])
    traj = nsjax.simulate(*CHAIN, schemes.moreau(), dt=0.005, steps=4000, every=400)
    exact = np.array([motion(t) for t in 2.0 * np.arange(SAMPLES + 1)])
    for error, found, wanted in (
        (table.error_q, traj.q, exact[:, 0]), (table.error_v, traj.v, exact[:, 1]),
    ):  # fmt: skip
        distance = np.abs(found - wanted) / np.abs(wanted).max(axis=0)
        # rounding of another program, over 4000 steps
        assert error[2] == pytest.approx(distance.mean(), rel=1e-6)
    assert np.all(table.impacts == 0)
    assert np.all(table.seconds > 0)


def test_orders(table) -> None:
    # the midpoint rule without damping is of second order; the next term is (omega dt)^2 smaller
    np.testing.assert_allclose(table.order_q[2:], 2.0, atol=1e-2)
    np.testing.assert_allclose(table.order_v[2:], 2.0, atol=1e-2)
    assert np.isnan(table.order_q[:2]).all()  # the first has none before it, the second a failed one
    assert table.slope("explicit") == pytest.approx(2.0, abs=1e-2)
    assert np.isnan(table.slope("explicit", largest=1e-30))


def test_a_failed_step_size_is_told(table) -> None:
    assert np.isinf(table.error_q[0])
    assert table.status[0] != 0
    assert np.all(table.status[1:] == 0)
    assert len(table.failures) == 1
    assert table.failures[0].startswith("explicit, dt = 0.1: step ")
    assert str(table).splitlines()[1].endswith("FAILED")


def test_a_run_that_diverged_without_overflow_is_told() -> None:
    """The stiff mode, not excited but by rounding, grows over 40 steps of 1.25 times the stable size."""
    found = nsjax.sweep_time_step(
        CHAIN, {"explicit": schemes.moreau()}, [0.025, 0.01, 0.005], time=1.0, samples=1, reference=motion,
        repeats=1,
    )  # fmt: skip
    assert np.isfinite(found.error_q[0])
    assert found.error_q[0] > 1e3
    assert found.status.tolist() == [status.DIVERGED, 0, 0]
    assert np.isnan(found.order_q[:2]).all()
    assert found.order_q[2] == pytest.approx(2.0, abs=1e-2)
    lines = str(found).splitlines()
    assert lines[1].endswith("  DIVERGED")
    assert lines[-1] == "explicit fitted slopes: q 2.00, v 2.00"
    assert "it leaves the reference by" in found.failures[0]


def test_files(table, tmp_path) -> None:
    table.save(tmp_path / "table.csv")
    rows = list(csv.DictReader((tmp_path / "table.csv").open()))
    assert list(rows[0]) == list(COLUMNS)
    assert [row["scheme"] for row in rows] == ["explicit"] * 4
    np.testing.assert_allclose([float(row["error_q"]) for row in rows], table.error_q, rtol=1e-8)
    table.save(tmp_path / "table.png")
    assert (tmp_path / "table.png").stat().st_size > 5_000
    # an explicit run far above its limit, just before it overflows
    lost = dataclasses.replace(table, error_q=np.array([1e300, *table.error_q[1:]]))
    lost.save(tmp_path / "lost.png")
    np.testing.assert_array_equal(
        np.isnan(lost.figure().axes[0].lines[0].get_ydata()), [True] + 3 * [False]
    )
    by_step, by_cost = table.figure("error_v").axes
    np.testing.assert_array_equal(by_step.lines[0].get_xdata(), table.dt)
    np.testing.assert_array_equal(by_cost.lines[0].get_xdata(), table.seconds)
    assert by_step.get_xscale() == by_step.get_yscale() == "log"
    assert list(faults(table.figure())) == []  # labels that overlap, a legend over curves


def test_references(table) -> None:
    def errors(reference, **options):
        found = nsjax.sweep_time_step(
            CHAIN, schemes.moreau(), [0.01, 0.005], **{"time": TIME, "samples": SAMPLES, **options},
            reference=reference, repeats=1,
        )  # fmt: skip
        assert set(found.scheme) == {"moreau"}
        return found.error_q

    exact = [np.array(x) for x in zip(*(motion(t) for t in 2.0 * np.arange(SAMPLES + 1)), strict=True)]
    np.testing.assert_array_equal(errors(exact), table.error_q[1:3])
    fine = nsjax.simulate(*CHAIN, schemes.moreau(), dt=0.00125, steps=16000, every=1600)
    # the errors of the reference are (1/4)^2 of the finest
    np.testing.assert_allclose(errors(fine), table.error_q[1:3], rtol=0.07)
    np.testing.assert_allclose(errors(None), table.error_q[1:3], rtol=0.02)  # (1/8)^2
    with pytest.raises(nsjax.InputError, match="the reference has 11 rows until t = 20"):
        errors(fine, samples=5)
    with pytest.raises(nsjax.InputError, match=r"the reference has shapes \(3, 3\)"):
        errors((exact[0][:3], exact[1]))


def test_an_unknown_scheme_is_answered_with_the_nearest(table) -> None:
    with pytest.raises(nsjax.InputError, match="did you mean 'explicit'"):
        table.of("explict")


def test_the_fixed_cost_of_a_call_is_told_from_that_of_a_step() -> None:
    """Times that lie on a line; on one through the origin; and two that fall, which no step costs."""
    steps = np.array([100, 200, 400])

    def table(seconds: np.ndarray) -> WorkPrecision:
        none = np.full(3, np.nan)
        return WorkPrecision(
            scheme=("a",) * 3, dt=1.0 / steps, steps=steps, error_q=none, error_v=none, order_q=none,
            order_v=none, impacts=np.zeros(3, int), iterations=np.zeros(3, int), seconds=seconds,
            status=np.zeros(3, int), failures=(),
        )  # fmt: skip

    one = table(5e-3 + 2e-6 * steps)
    assert one.cost("a") == pytest.approx((5e-3, 2e-6), rel=1e-9)
    assert "5.00e-03 s a call and 2.00e-06 s a step" in str(one)
    assert table(3e-6 * steps).cost("a") == pytest.approx((0.0, 3e-6), abs=1e-12)
    assert table(3e-6 * steps - 1e-5).cost("a")[0] == 0.0
    assert table(5e-3 - 2e-6 * steps).cost("a")[1] == 0.0
