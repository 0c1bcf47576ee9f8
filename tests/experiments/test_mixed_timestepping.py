"""Experiments of [R&S]: what they compute and draw against other derivations."""

from __future__ import annotations

import functools

import jax
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from experiments import common
from experiments.mixed_timestepping import (
    chain,
    fig13_time_grids,
    fig38_total_mass,
    fig40_corner_scenarios,
    fig41_gaps,
    flexible,
    literal,
    literal_crank,
    rigid,
    table4_bilateral,
    table6_unilateral,
    table_literal_solver,
    table_passes,
)
from experiments.references.slider_crank import AT_REST, TABLE_2, Data, bilateral, event_driven
from nsjax import models
from tests.experiments.test_every import missed
from tests.references.bob import largest_energy_of_ed_alpha


# Figures 13, 33, 40 and 41 of [R&S], drawn from schemes and models: what is drawn is what they do.
def test_every_scheme_of_the_paper_has_its_grid():
    expected = common.load_expected(fig13_time_grids.__file__)
    for name in ("generalized_alpha", "bathe", "ed_alpha", "half_explicit", "moreau"):
        assert f"{name}: stages" in expected


@pytest.mark.parametrize("corners", [(1,), (2,), (3,), (4,), (2, 3), (3, 4)])
def test_a_scenario_closes_its_corners_alone_and_none_penetrates_but_by_the_tilt(corners):
    problem = fig40_corner_scenarios.mechanism()
    found = fig40_corner_scenarios.find(problem, corners)
    closed = tuple(int(k) + 1 for k in np.flatnonzero(found.closed))
    assert closed == corners
    # tilted counter-clockwise, corners 2 and 3 stand out; 1 or 4 alone at a wall would push them through
    assert (found.gaps.min() > -1e-12) == (corners not in ((1,), (4,)))
    drawn = fig40_corner_scenarios.drawn_distances(problem, found)
    np.testing.assert_allclose(found.gaps, drawn, rtol=0, atol=1e-15)


def test_jam_angle_is_that_of_the_closed_form():
    for clearance in (1e-4, 1e-3, 1e-2):
        problem = fig40_corner_scenarios.mechanism(clearance)
        found = fig40_corner_scenarios.find(problem, (2, 3))
        assert found.q[2] == pytest.approx(fig40_corner_scenarios.jam_angle(problem), rel=1e-11)


def test_arrows_end_on_walls_and_corners():
    problem = fig40_corner_scenarios.mechanism()
    found = fig40_corner_scenarios.pose(problem, 0.002, -0.05)
    arrows = fig41_gaps.normal_arrows(problem, found)
    wall = fig40_corner_scenarios.wall_height(problem)
    np.testing.assert_allclose(np.abs(arrows[:, 0, 1]), wall, rtol=1e-15)
    np.testing.assert_array_equal(arrows[:, 1], found.corners)
    np.testing.assert_array_equal(arrows[:, 0, 0], arrows[:, 1, 0])
    np.testing.assert_allclose(np.abs(arrows[:, 0, 1] - arrows[:, 1, 1]), found.gaps, rtol=0, atol=1e-15)
    # the rod's end carries the slider: its centre from the chain of crank and rod
    p = problem.params
    chain = p.crank_length * np.exp(1j * found.q[0]) + p.rod_length * np.exp(1j * found.q[1])
    np.testing.assert_allclose(found.centre, [chain.real, chain.imag], rtol=0, atol=1e-15)
    np.testing.assert_allclose(found.centre[1], 0.002, rtol=0, atol=1e-15)


# Figures of the flexible slider-crank of [R&S]: every expected number, and the files that they leave.
def test_bound_of_the_vibrations_of_figure_27() -> None:
    """Energies of approach at the first impact on each wall, rigid and event-driven."""
    found = event_driven(TABLE_2, (0.08,), start=AT_REST).events
    energies = []
    for wall in (-1, 1):
        first = next(e for e in found if e.kind == "impact" and e.wall == wall)
        mass = first.impulse / (1.1 * abs(first.before))
        energies.append(0.5 * mass * first.before**2)
    entry = common.load_expected(flexible.__file__, "fig27_normal_force")[
        "flexible, gen-alpha 0.8: largest elastic energy [J]"
    ]
    assert entry["range"][1] == pytest.approx(sum(energies), rel=3e-3)  # three printed digits
    assert energies == pytest.approx([7.92e-4, 1.295e-3], rel=1e-3)


def test_assembly_by_hand_sees_a_change():
    """The comparison of Figure 38 fails where the model and the assembly have other data."""
    p = models.slider_crank_flexible().params
    heavier = models.slider_crank_flexible(slider_mass=0.08).params
    deformation = np.array([1e-3, 2e-3, 0.1, 0.0, -1e-3, 0.2])
    first, second = (fig38_total_mass.by_hand(data, deformation) for data in (p, heavier))
    assert np.abs(first - second).max() > 1e-3 * np.abs(first).max()


# Rigid results of [R&S]: Tables 3, 5, 6, Figures 5, 15 to 18, 21, 24, 25, 27 to 29. Every expected
# number, the files that the commands leave, and what the experiments compute against other derivations.
load_expected = functools.partial(common.load_expected, rigid.__file__)


# ------------------------------------------------------------------------ independent references


@pytest.mark.slow
def test_reference_of_table6():
    # The paper's reference is accurate to 4e-7; Bathe at the same step is another 5e-7 away.
    found, _ = table6_unilateral.reference()
    exact = event_driven(Data(), tuple(1e-4 * np.arange(1, 501))).x
    assert np.abs(found[1:, :2] - exact[:, :2]).max() < 5e-7
    assert found[-1, 1] == pytest.approx(0.5254706685, abs=1e-7)


@pytest.mark.slow
def test_driven_mechanism():
    # Errors of first order in dt: 1e-5 s times the angular velocity lost by a late impact.
    times = (0.02, 0.04, 0.05, 0.06, 0.08)
    exact = event_driven(TABLE_2, times, start=AT_REST).x
    traj = rigid.run(rigid.table2(), rigid.RIGID["gen-alpha 0.8"], 1e-5, 8000, every=1000)
    rows = [2, 4, 5, 6, 8]
    np.testing.assert_allclose(np.asarray(traj.q)[rows, :2], exact[:, :2], rtol=0, atol=1e-6)
    np.testing.assert_allclose(np.asarray(traj.v)[rows, :2], exact[:, 2:], rtol=0, atol=3e-5)


def test_exact_motion_of_the_model_problem():
    for matrix in (chain.stiffness(10.0, held=True), chain.stiffness(1.0, held=False)):
        n, t = len(matrix), np.array([0.01, 0.03])

        def rate(_, x, matrix=matrix, n=n):
            return np.concatenate([x[n:], chain.GRAVITY - matrix @ x[:n]])

        run = solve_ivp(
            rate, (0.0, t[-1]), np.zeros(2 * n), method="DOP853", t_eval=t, rtol=1e-11, atol=1e-14
        )
        q, v, a = chain.exact(t, matrix)
        np.testing.assert_allclose(np.concatenate([q, v], axis=1), run.y.T, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(a, chain.GRAVITY - q @ matrix, rtol=1e-6, atol=1e-6)


# ------------------------------------------------------------------------------------- the pieces


def test_phases():
    on = np.array([0, 1, 1, 0, 1, 0, 0, 1], bool)
    assert rigid.phases(on).tolist() == [[1, 3], [4, 5], [7, 8]]
    assert rigid.phases(on, bridge=1).tolist() == [[1, 5], [7, 8]]
    assert rigid.phases(on, bridge=2).tolist() == [[1, 8]]
    assert rigid.phases(~on, bridge=0)[0].tolist() == [0, 1]
    assert rigid.phases(np.zeros(3, bool)).shape == (0, 2)


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


# The printed solver of [R&S] against the package's model, the event-driven motion and the contact laws.
def test_mechanism_is_that_of_the_package():
    system, p, _ = models.slider_crank()
    found = literal_crank.rigid()
    random = np.random.default_rng(3)
    q, v = 0.1 * random.normal(size=found.size), random.normal(size=found.size)
    force = found.forces(q, v) - found.stiffness @ q

    @jax.jit
    def of_package(q, v):
        return (
            system.mass(q, p),
            system.force(0.0, q, v, p),
            system.gap(0.0, q, p),
            system.slip(0.0, q, v, p),
        )

    mass, forces, gaps, slips = of_package(q, v)
    np.testing.assert_allclose(found.masses(q), mass, rtol=0, atol=1e-15)
    np.testing.assert_allclose(force, forces, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(found.gaps(q), gaps, rtol=0, atol=1e-15)
    normal, tangent = found.directions(q)
    step = 1e-6 * v
    change = (found.gaps(q + step) - found.gaps(q - step)) / 2e-6  # error of second order in 1e-6
    np.testing.assert_allclose(normal.T @ v, change, rtol=0, atol=1e-9)
    np.testing.assert_allclose(tangent.T @ v, slips[:, 0], rtol=0, atol=1e-12)


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


def test_first_impact_with_both_slopes():
    free, delassus, friction = table_literal_solver.first_impact()
    impulses, count = literal.gauss_newton(free, delassus, 1e-2, friction, 1e-14, 50)
    after = free + delassus @ impulses
    normal, tangential = impulses[:2], impulses[2:]
    assert count < 10
    np.testing.assert_allclose(after[:2], 0.0, atol=1e-12)  # free holds (1 + eps) times the approach
    np.testing.assert_allclose(tangential, -np.sign(after[2:]) * friction * normal, rtol=1e-9)
    # the slope of the paper: no impulse above a tolerance, and no end below
    size = table_literal_solver.misfits(free, delassus, friction, 1e-6, 60)
    assert table_literal_solver.period(size) == 4
    assert size[1:].min() > 0.5 * size[0]
    none, count = literal.gauss_newton(free, delassus, 1e-6, friction, 1.01 * size[0], 50)
    assert count == 0
    assert not none.any()


def test_passes_of_half_steps(tmp_path):
    numbers = table_passes.main(quick=True, folder=tmp_path)
    assert missed(numbers, common.load_expected(table_passes.__file__)) == set()
    halves = numbers["Bathe: passes at the midpoint"] + numbers["Bathe: passes at the end"]
    assert halves == pytest.approx(numbers["Bathe: passes per step"])
