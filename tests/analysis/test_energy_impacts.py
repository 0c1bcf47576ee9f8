"""What the energy books say of impacts: closed forms, no creation of energy, families of schemes."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from nsjax import models, schemes
from nsjax.analysis import EnergyBooks, energy_books
from nsjax.schemes.mixed import framework as mixed
from tests.analysis.test_energy import G, run
from tests.design import each_family


@each_family("scheme", "half_explicit")
def test_loss_of_a_bounce(scheme: str) -> None:
    """``m v^2 (1 - e^2)/2`` with the speed of free fall: exact in parabolas for the mixed schemes, to
    first order for those whose step contains the impact.
    """
    e = 0.6
    traj = run(models.bouncing_ball(restitution=e), scheme, 1e-3, 600)
    books = energy_books(traj)
    (row,) = np.flatnonzero(books.impact)
    exact = G * (1.0 - (traj.q[row, 0] - 0.05)) * (1 - e**2)
    parabola = isinstance(traj.carry.carry.memory, mixed.Memory)
    assert books.lost_normal.sum() == pytest.approx(exact, rel=1e-11 if parabola else 5e-3)
    assert books.lost_normal.sum() == -books.work["impact_normal"].sum()
    assert books.lost_normal[row, 0] == books.lost_normal.sum()


@pytest.mark.slow
@pytest.mark.parametrize("inside", ["half_explicit", "moreau"])
def test_a_located_bounce_loses_its_energy_at_its_instant(inside: str) -> None:
    """Parabolas are exact, so that the loss is that of the fall from 1 m, whatever the step."""
    scheme = schemes.localized(schemes.REGISTRY[inside].factory())
    for steps in (37, 120):
        problem = models.bouncing_ball(restitution=0.6, height=1.0)
        books = energy_books(run(problem, scheme, 0.6 / steps, steps, events=2))
        # the instant is found to 1e-11 m of the gap
        assert books.lost_normal.sum() == pytest.approx(G * (1.0 - 0.6**2), abs=1e-9)
        assert abs(books.residual).max() < 1e-12
        assert books.impact.sum() == 1


@pytest.mark.slow
def test_books_of_located_impacts_beside_forces_close_to_second_order() -> None:
    """Drag, and a slider-crank, whose force at the end of a step is not that at its impact."""
    scheme = schemes.localized(schemes.half_explicit())

    def worst(problem: tuple, time: float, steps: int) -> float:
        traj = run(problem, scheme, time / steps, steps, events=20)
        books = energy_books(traj)
        assert books.impact.any()
        return float(abs(books.residual)[books.impact].max())

    ball, params, state = models.bouncing_ball(restitution=0.6, height=1.0)
    dragged = dataclasses.replace(ball, force=lambda t, q, v, p: ball.force(t, q, v, p) - 0.3 * v)
    for problem, time, steps in (((dragged, params, state), 0.6, 6), (models.slider_crank(), 4e-3, 40)):
        # the part of the step before the impact differs from run to run: the worst of four counts
        grids = [[n * k for k in (10, 11, 12, 13)] for n in (steps, 2 * steps)]
        coarse, fine = (max(worst(problem, time, n) for n in grid) for grid in grids)
        assert fine < 0.4 * coarse


def test_a_shaken_table_feeds_energy_that_is_no_gain_of_the_impact() -> None:
    amplitude, frequency, e = 0.02, 30.0, 0.6
    problem = models.bouncing_ball(
        restitution=e, height=0.1, table_amplitude=amplitude, table_frequency=frequency
    )
    traj = run(problem, "newmark", 1e-4, 2000)
    books = energy_books(traj)
    row = np.flatnonzero(books.impact)[0]
    table = amplitude * frequency * math.cos(frequency * traj.t[row])
    fall = 0.1 - (traj.q[row, 0] - 0.05)
    speed = -math.sqrt(2 * G * fall) - table
    impulse = -(1 + e) * speed
    assert books.lost_normal[row, 0] == pytest.approx(0.5 * speed**2 * (1 - e**2), rel=1e-10)
    assert books.impact_normal[row, 0] + books.lost_normal[row, 0] == pytest.approx(
        impulse * table, rel=1e-10
    )


TWO = {"balls": 2, "dimension": 2, "initial_q": (0.0, 0.15, 0.0, 0.105, 0.17, 0.0),
       "initial_v": (1.0, 0.0, 3.0, -1.0, 0.0, 0.0)}  # fmt: skip


def impact_books(model: str, scheme: str, e: float, friction: float) -> EnergyBooks:
    law = {"restitution": e, "restitution_tangential": e, "friction": friction}
    if model == "balls":
        return energy_books(run(models.bouncing_ball(**TWO, **law), scheme, 5e-4, 800))
    problem = models.slider_crank(initial_q=(0.0, 0.0, 0.002), **law)
    return energy_books(run(problem, scheme, 1e-5, 1500))


@each_family("scheme", "moreau")
def test_no_scheme_creates_energy_at_an_impact_of_balls(scheme: str) -> None:
    check_no_creation("balls", scheme)


def check_no_creation(model: str, scheme: str) -> None:
    """With a common restitution, friction included; a frictionless one of 1 keeps the energy."""
    # contacts are solved to 1e-11 of impulses and rates, energies of the impacts are 1 J or less; but the
    # law of nonsmooth generalized-alpha refers to the velocity at the start of the step, and its impulse
    # acts at the end: forces and curvature change the rate by up to 1e-3 of itself in between
    rounding = 1e-3 if scheme.startswith("nsga") else 1e-10
    for e, friction in [(0.0, 0.3), (0.5, 0.3), (0.5, 0.0), (1.0, 0.3), (1.0, 0.0)]:
        books = impact_books(model, scheme, e, friction)
        assert books.impact.any()
        lost = books.lost_normal.sum(axis=1) + books.lost_friction.sum(axis=1)
        assert lost.min() > -rounding
        if e < 1.0:
            assert lost.max() > 1e-3
        if e == 1.0 and friction == 0.0:
            assert lost.max() < 10 * rounding


@pytest.mark.parametrize("scheme", [pytest.param("bathe", marks=pytest.mark.slow)])
def test_impulses_of_the_mixed_framework_account_for_the_whole_jump(scheme: str) -> None:
    """Kinetic energies on both sides of the impulse, from momenta alone."""
    traj = run(models.bouncing_ball(**TWO, restitution=0.5, friction=0.3), scheme, 5e-4, 800)
    books = energy_books(traj)
    rows = np.flatnonzero(books.impact)
    # parabolas and constant spin up to the impact: the velocity before it follows from the row before
    free = np.array([0, -G, 0, 0, -G, 0]) * 5e-4
    mass = np.array([1, 1, 0.4 * 0.05**2] * 2)
    first = rows[0]
    before = 0.5 * np.sum(mass * (traj.v[first - 1] + free) ** 2)
    after = 0.5 * np.sum(mass * traj.v[first] ** 2)
    work = books.work["impact_normal"][first] + books.work["impact_friction"][first]
    assert work == pytest.approx(after - before, rel=1e-10)
    assert abs(work) > 0.1
