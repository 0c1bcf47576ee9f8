"""Figures of [S&U&S] beyond Moreau's rule, and the tables beside them: every expected number."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import nsjax
from experiments.gear_gupta_leimkuhler import fig06_drift, fig09_unified_gaps, reduced, table_drift
from experiments.references.slider_crank import Data, _Mechanism
from nsjax import models


@pytest.mark.slow
def test_runge_kutta_of_figure_6() -> None:
    """Drift of fourth order on both levels; accelerations of another program, held in the guide."""
    for level in fig06_drift.LEVELS:
        ends = []
        for step in (4e-4, 2e-4, 1e-4):
            time, y = reduced.height(level, step, 0.05)
            assert time[-1] == pytest.approx(0.05)
            ends.append(np.abs(y).max())
        assert np.all(np.array(ends[:-1]) / ends[1:] > 12.0)  # 16, to second order in the step
    params = models.slider_crank_bilateral().params
    mechanism = _Mechanism(dataclasses.replace(Data(), clearance=0.0, friction=0.0))
    rng = np.random.default_rng(38)
    for angle, rate in zip(
        [0.0, *rng.uniform(-3.0, 3.0, 5)], [150.0, *rng.normal(0, 100.0, 5)], strict=True
    ):
        x = mechanism.on_wall(1, angle, rate)
        q, v = np.array(x[:2]), np.array(x[2:])
        found = np.asarray(reduced.accelerations(q, v, params))
        asked = mechanism.held(x, 1, 0.0)[:2]
        np.testing.assert_allclose(found, asked, rtol=1e-9, atol=1e-9 * np.abs(asked).max())
        np.testing.assert_allclose(reduced.projected(q, v, params), v, atol=1e-12 * 150.0)
        off = np.asarray(reduced.projected(q, v + rng.normal(size=2), params))
        assert abs(np.dot(mechanism.height_row(x), off)) < 1e-12


def test_shapes_of_drift() -> None:
    t = np.linspace(0.0, 2.0, 101)
    assert fig06_drift.curvature(t, 3.0 * t) == pytest.approx((1.0, 0.0), abs=1e-12)
    assert fig06_drift.curvature(t, -(t**2)) == pytest.approx((3.0, 0.0), abs=1e-12)
    assert fig06_drift.curvature(t, t**2 + np.sin(20 * t))[1] > 0.1


def test_penetrations_of_a_made_run() -> None:
    # One contact; deep rows 1 (acts at 2 with an impact), 3 (acts at 4 without), 6 (acts no more).
    gap = np.array([[1.0], [-3e-6], [0.0], [-2e-8], [0.0], [1.0], [-1e-7]])
    acts = np.array([[0], [0], [1], [0], [1], [0], [0]]) * 1e-5
    impacts = np.array([[0], [0], [1], [0], [0], [0], [0]])
    traj = nsjax.simulate(*models.bouncing_ball(), nsjax.schemes.moreau(), dt=1e-3, steps=6)
    traj = traj.__class__(
        **{**{name: getattr(traj, name) for name in traj.__dataclass_fields__}, "gap": gap,
           "closed_time": acts, "impacts": impacts}
    )  # fmt: skip
    activating, settled = fig09_unified_gaps.penetrations(traj)
    np.testing.assert_array_equal(activating, [3e-6])
    np.testing.assert_array_equal(settled, [2e-8, 1e-7])


def test_loaded_phase() -> None:
    force = np.array([0, 1, 1, 0, 0] + 20 * [2] + [0, 1.0])
    assert fig09_unified_gaps.loaded_phase(force) == slice(7, 25)


def test_every_level_of_every_family_is_in_the_table() -> None:
    names = table_drift.runs(tuple(table_drift.FAMILIES))
    assert len(names) == 4 * 6 - 1 + 4  # ED-alpha refuses index 3
    assert table_drift.UNSTABLE in names
