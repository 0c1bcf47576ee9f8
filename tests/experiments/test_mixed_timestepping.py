"""Experiments of [R&S]: what they compute and draw against other derivations."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from experiments import common
from experiments.mixed_timestepping import (
    fig40_corner_scenarios,
    literal,
    literal_crank,
    rigid,
    table4_bilateral,
    table6_unilateral,
)
from experiments.references.slider_crank import Data, bilateral, event_driven
from tests.experiments.test_every import missed
from tests.references.bob import largest_energy_of_ed_alpha

# Rigid results of [R&S]: Tables 3, 5, 6, Figures 5, 15 to 18, 21, 24, 25, 27 to 29. Every expected
# number, the files that the commands leave, and what the experiments compute against other derivations.
load_expected = functools.partial(common.load_expected, rigid.__file__)


# ------------------------------------------------------------------------ independent references


@pytest.mark.parametrize("corners", [(1,), (2,), (3,), (4,), (2, 3), (3, 4)])
def test_a_scenario_closes_its_corners_alone_and_none_penetrates_but_by_the_tilt(corners):
    problem = fig40_corner_scenarios.mechanism()
    found = fig40_corner_scenarios.find(problem, corners)
    closed = tuple(int(k) + 1 for k in np.flatnonzero(found.closed))
    assert closed == corners
    # tilted counter-clockwise, corners 2 and 3 stand out; 1 or 4 alone at a wall would push them through
    assert (found.gaps.min() > -1e-12) == (corners not in ((1,), (4,)))


def test_jam_angle_is_that_of_the_closed_form():
    for clearance in (1e-4, 1e-3, 1e-2):
        problem = fig40_corner_scenarios.mechanism(clearance)
        found = fig40_corner_scenarios.find(problem, (2, 3))
        assert found.q[2] == pytest.approx(fig40_corner_scenarios.jam_angle(problem), rel=1e-11)


@pytest.mark.slow
def test_reference_of_table6():
    # The paper's reference is accurate to 4e-7; Bathe at the same step is another 5e-7 away.
    found, _ = table6_unilateral.reference()
    exact = event_driven(Data(), tuple(1e-4 * np.arange(1, 501))).x
    assert np.abs(found[1:, :2] - exact[:, :2]).max() < 5e-7
    assert found[-1, 1] == pytest.approx(0.5254706685, abs=1e-7)


# ------------------------------------------------------------------------------------- the pieces


@pytest.mark.parametrize("omega_dt", [pytest.param(2, marks=pytest.mark.slow), 5])
def test_energies_of_the_printed_formulas(omega_dt: int) -> None:
    """The numbers of ED-alpha in ``fig_bob`` are those of a program without the package."""
    found = largest_energy_of_ed_alpha(omega_dt, 10.0, np.array([1.0, 0.0]), np.array([0.0, 7.0]))
    asked = load_expected("fig_bob")
    name = f"ed-alpha 0: energy [J], omega dt = {omega_dt}"
    assert missed({name: found}, {name: asked[name]}) == set()


# Table 4 and Figure 22 of [R&S]: every expected number, and the files that the commands leave.
def test_reference_agrees_with_another_derivation():
    ours = table4_bilateral.reference(50)
    x, force = bilateral(Data(), tuple(ours.t))
    np.testing.assert_allclose(ours.x, x, rtol=0, atol=1e-10)
    np.testing.assert_allclose(ours.force, force, rtol=0, atol=1e-9)


@pytest.mark.parametrize("scheme", ["gen-alpha", "Bathe", "ED-alpha"])
def test_converges_to_the_event_driven_motion(scheme):
    # First order in dt: the impact at 2.69 ms comes up to one step late, at 2e-5 s with 150 rad/s.
    exact = event_driven(Data(), (0.004,)).x[0]
    setting = literal.Setting(scheme, rho=0.0, dt=2e-5, r=1e3, r_impulse=1e3, tolerance=1e-8)
    found = literal.run(literal_crank.rigid(), setting, 200)
    assert found.impulse.sum() == 1
    assert found.iterations.max() < 10
    np.testing.assert_allclose(found.q[-1, :2], exact[:2], rtol=0, atol=2e-5 * 60)
    assert not found.blown


@pytest.mark.slow
def test_mass_that_the_first_impact_meets():
    # impulse over jump of the rate; friction of 0.01 along the guide is left out
    (event,) = event_driven(Data(), (0.004,)).events
    whole = literal_crank.met_mass(literal_crank.rigid())
    assert whole == pytest.approx(event.impulse / (event.after - event.before), rel=3e-3)
    # the tip of the rod strikes: the slider and, the finer the mesh, the less of the rod
    bent = [literal_crank.met_mass(literal_crank.bent(n)) for n in (1, 4)]
    stiff = literal_crank.met_mass(literal_crank.bent(4, young=1e15))
    assert 0.076 < bent[1] < bent[0] < 0.85 * whole
    assert stiff == bent[1]
