"""The references of the slider-crank: printed figures, energies, independence of their tolerance."""

from __future__ import annotations

import numpy as np
import pytest

from tests.models.slider_crank_cases import FRICTION, INSTANTS, reference
from tests.references.slider_crank import Data, bilateral, event_driven


@FRICTION
def test_reference_does_not_depend_on_its_closing_speed(friction):
    # The error is of second order in it: 1e-4 and 1e-6 m/s must agree to rounding.
    coarse = event_driven(Data(friction=friction), INSTANTS, 1e-4)
    fine = event_driven(Data(friction=friction), INSTANTS, 1e-6)
    np.testing.assert_allclose(coarse.x, fine.x, rtol=0, atol=1e-10)
    assert coarse.first("closure").time == pytest.approx(fine.first("closure").time, abs=2e-9)
    assert len(coarse.events) < len(fine.events)


@pytest.mark.parametrize(
    ("friction", "closure", "release", "theta2"),
    [(0.0, 9.1304e-3, 15.0203e-3, 0.5252027332), (0.01, 9.1456e-3, 15.0287e-3, 0.5254706685)],
)
def test_reference_figures(friction, closure, release, theta2):
    # Printed figures of another event-driven integration, to their last digit.
    ref = reference(friction)
    assert ref.first("impact").time == pytest.approx(2.6925027520e-3, abs=6e-14)
    assert ref.first("closure").time == pytest.approx(closure, abs=6e-8)
    assert ref.first("release").time == pytest.approx(release, abs=6e-8)
    assert ref.first("closure").wall == ref.first("release").wall == 1
    assert ref.x[-1, 1] == pytest.approx(theta2, abs=6e-11)


def table_1_mass(theta1: float, theta2: float) -> np.ndarray:
    d = Data()
    m12 = d.l1 * d.l2 * np.cos(theta1 - theta2) * (d.m2 / 2 + d.m3)
    m11 = d.j1 + d.l1**2 * (d.m1 / 4 + d.m2 + d.m3)
    return np.array([[m11, m12], [m12, d.j2 + d.l2**2 * (d.m2 / 4 + d.m3)]])


def table_1_energy(x) -> float:
    d = Data()
    heights = d.l1 * np.sin(x[0]) * (d.m1 / 2 + d.m2 + d.m3), d.l2 * np.sin(x[1]) * (d.m2 / 2 + d.m3)
    return x[2:] @ table_1_mass(x[0], x[1]) @ x[2:] / 2 + d.gravity * sum(heights)


def test_reference_loses_energy_at_impacts_and_by_friction_only():
    start = table_1_energy(np.array([0.0, 0.0, 150.0, -75.0]))
    rubbing = [start] + [table_1_energy(x) for x in reference(0.01).x]
    assert np.all(np.diff(rubbing) < 1e-12)
    # Without friction: closed contact and flight between 10 and 25 ms conserve energy, and the impacts
    # before take what Newton's law says, (1 - e^2) (dg/dt)^2 / (2 w' M^-1 w), w = dy/dtheta.
    ref = reference(0.0)
    energies = [table_1_energy(x) for x in ref.x[1:5]]
    assert max(energies) - min(energies) < 1e-11
    impacts = [event for event in ref.events if event.kind == "impact" and event.time < 0.01]
    lost = 0.0
    for impact, x in zip(
        impacts, event_driven(Data(friction=0.0), tuple(e.time for e in impacts)).x, strict=True
    ):
        w = np.array([Data.l1 * np.cos(x[0]), Data.l2 * np.cos(x[1])])
        lost += (1 - 0.4**2) * impact.before**2 / (2 * w @ np.linalg.solve(table_1_mass(x[0], x[1]), w))
    # The impacts after the last one listed take some 1e-11 J (0.07 kg, 2e-5 m/s).
    assert start - energies[0] == pytest.approx(lost, abs=5e-11)


def test_bilateral_reference_figures():
    x, force = bilateral(Data(), INSTANTS)
    np.testing.assert_allclose(x[-1, :2], [4.809238135, 0.520895295], rtol=0, atol=6e-10)
    np.testing.assert_allclose(x[-1, 2:], [68.74950942, -3.832215405], rtol=0, atol=6e-9)
    assert force[-1] == pytest.approx(-0.49204960, abs=6e-9)
