"""Sweeps: expected numbers of the experiments, files, and single lanes against event-driven motions."""

from __future__ import annotations

import numpy as np
import pytest

from experiments import common
from experiments.references.slider_crank import Data, event_driven
from experiments.sweeps import fig_clearance_restitution, fig_vibrating_table


def energy(d: Data, x: np.ndarray) -> float:
    """Energy [J] of angles and angular velocities with the slider parallel to its guide."""
    beyond = d.m2 / 2 + d.m3
    m11 = d.j1 + d.l1**2 * (d.m1 / 4 + d.m2 + d.m3)
    m22 = d.j2 + d.l2**2 * (d.m2 / 4 + d.m3)
    coupling = d.l1 * d.l2 * beyond * np.cos(x[0] - x[1])
    kinetic = 0.5 * m11 * x[2] ** 2 + 0.5 * m22 * x[3] ** 2 + coupling * x[2] * x[3]
    height1 = d.l1 * np.sin(x[0]) * (d.m1 / 2 + d.m2 + d.m3)
    return float(kinetic + d.gravity * (height1 + d.l2 * np.sin(x[1]) * beyond))


def test_a_lane_loses_the_energy_of_the_event_driven_motion() -> None:
    data = Data()
    end = event_driven(data, (0.05,)).x[-1]
    loss = energy(data, np.array([0.0, 0.0, 150.0, -75.0])) - energy(data, end)
    expected = common.load_expected(fig_clearance_restitution.__file__)
    entry = expected["Table 1: energy lost [J]"]
    assert loss == pytest.approx(entry["value"], rel=1e-6)  # the digits that are written there


def test_the_motion_with_one_impact_per_period_is_one() -> None:
    """Flight and impact of `period_one` return to it, and `impact_map` stays on it."""
    ratio = np.array([1.2])
    z, v = (float(x[0]) for x in fig_vibrating_table.period_one(ratio))
    g, w, e = fig_vibrating_table.GRAVITY, fig_vibrating_table.FREQUENCY, fig_vibrating_table.RESTITUTION
    amplitude = 1.2 * g / w**2
    phase = np.arccos(fig_vibrating_table.ONSET / 1.2)
    t = phase / w  # of the impact
    assert z + v * t - g / 2 * t**2 == pytest.approx(amplitude * np.sin(phase), abs=1e-15)
    before = v - g * t
    wall = amplitude * w * np.cos(phase)
    after = wall - e * (before - wall)
    left = fig_vibrating_table.PERIOD - t
    assert after - g * left == pytest.approx(v, abs=1e-13)
    section = fig_vibrating_table.impact_map(1.2, 100)
    np.testing.assert_allclose(section, v, atol=1e-9)  # 40 periods contract the start by 2^40
