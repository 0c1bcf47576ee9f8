"""The printed solver of [R&S] against the package's model, the event-driven motion and the contact laws."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from experiments import common
from experiments.mixed_timestepping import literal, literal_crank, table_literal_solver, table_passes
from experiments.references.slider_crank import Data, event_driven
from nsjax import models
from tests.experiments.results import missed


def test_mechanism_is_that_of_the_package():
    elements = 0
    if elements:
        system, p, _ = models.slider_crank_flexible(elements=elements)
        found = literal_crank.bent(elements)
    else:
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


def test_table(tmp_path, capsys):
    numbers = table_literal_solver.main(quick=True, folder=tmp_path)
    expected = common.load_expected(table_literal_solver.__file__)
    rows = common.compare(numbers, {k: x for k, x in expected.items() if k in numbers})
    assert len(rows) == 5
    assert [row for row in rows if not row.passed] == []
    text = (tmp_path / "table_literal_solver.txt").read_text()
    assert text in capsys.readouterr().out
    assert text.count("never") == 4


@pytest.mark.slow
def test_table_in_full(tmp_path):
    numbers = table_literal_solver.main(quick=False, folder=tmp_path)
    expected = common.load_expected(table_literal_solver.__file__)
    assert [row for row in common.compare(numbers, expected) if not row.passed] == []


def test_passes_of_half_steps(tmp_path):
    numbers = table_passes.main(quick=True, folder=tmp_path)
    assert missed(numbers, common.load_expected(table_passes.__file__)) == []
    halves = numbers["Bathe: passes at the midpoint"] + numbers["Bathe: passes at the end"]
    assert halves == pytest.approx(numbers["Bathe: passes per step"])
