"""Impact tables and contact phases against closed forms and an event-driven integration."""

from __future__ import annotations

import csv
import io
import math
import pathlib

import numpy as np
import pytest

import nsjax
from nsjax import models, schemes
from nsjax.analysis import contact_phases, energy_balance, impact_table
from nsjax.core import InputError
from tests.references.slider_crank import Data, event_driven, wall_force

G = 9.81


def bounces(**options) -> nsjax.Trajectory:
    problem = models.bouncing_ball(restitution=0.5)
    return nsjax.simulate(*problem, schemes.half_explicit(), dt=1e-4, time=1.0, **{"events": 8, **options})


def test_impacts_of_a_bouncing_ball() -> None:
    table = impact_table(bounces())
    fall = math.sqrt(2 / G)
    # flights of 2 fall, half of it, a quarter, ...: impacts at fall (1 + 2 (1 - 2^-k))
    exact = [fall * (1 + 2 * (1 - 0.5**k)) for k in range(2)]
    assert len(table) == 2
    # noticed at the end of the step, and later ones inherit the delay
    np.testing.assert_allclose(table.column("time"), exact, rtol=0, atol=3e-4)
    for k, impact in enumerate(table):
        speed = math.sqrt(2 * G) * 0.5**k
        assert impact.contact == "ball on table"
        assert impact.rate_before == pytest.approx(-speed, rel=1e-3)
        assert impact.rate_after == pytest.approx(-0.5 * impact.rate_before, rel=1e-12)
        assert impact.impulse_normal == pytest.approx(1.5 * abs(impact.rate_before), rel=1e-12)
        assert impact.lost_normal == pytest.approx(0.375 * impact.rate_before**2, rel=1e-12)
        assert (impact.impulse_tangential, impact.lost_tangential) == ((), 0.0)
    assert table.note == ""


def sliding_impact(**options) -> tuple[nsjax.Trajectory, float, float]:
    """A ball with spin that slides throughout its impact; the losses in closed form."""
    e, mu, m, r = 0.5, 0.2, 2.0, 0.05
    problem = models.bouncing_ball(
        dimension=2, restitution=e, friction=mu, mass=m,
        initial_q=(0.0, 0.15, 0.0), initial_v=(3.0, 0.0, 10.0),
    )  # fmt: skip
    traj = nsjax.simulate(*problem, schemes.half_explicit(), dt=1e-4, steps=2000, events=4, **options)
    row = int(np.flatnonzero(traj.impacts.sum(axis=1))[0]) if not options else 0
    speed = math.sqrt(2 * G * (0.15 - traj.q[row, 1])) if row else math.nan
    normal = (1 + e) * m * speed
    before = 3.0 + r * 10.0
    after = before - mu * normal * (1 / m + r**2 / (0.4 * m * r**2))
    return traj, 0.5 * m * speed**2 * (1 - e**2), 0.5 * mu * normal * (before + after)


@pytest.mark.slow
def test_loss_of_a_sliding_impact() -> None:
    traj, by_normal, by_friction = sliding_impact()
    (impact,) = impact_table(traj)
    assert impact.lost_normal == pytest.approx(by_normal, rel=1e-10)
    assert impact.lost_tangential == pytest.approx(by_friction, rel=1e-10)
    assert impact.impulse_tangential[0] == pytest.approx(-0.2 * impact.impulse_normal, rel=1e-12)
    books = energy_balance(traj)
    assert books.lost_normal.sum() == pytest.approx(impact.lost_normal, rel=1e-10)
    whole = books.energy[0] - books.energy[-1]
    assert whole == pytest.approx(by_normal + by_friction, rel=1e-10)


@pytest.mark.slow
def test_tangential_loss_needs_every_step() -> None:
    (impact,) = impact_table(sliding_impact(every=10)[0])
    assert math.isnan(impact.lost_tangential)
    assert impact.lost_normal > 0


@pytest.mark.slow
def test_csv_holds_full_precision(tmp_path: pathlib.Path) -> None:
    table = impact_table(sliding_impact(every=10)[0])
    text = table.csv(tmp_path / "impacts.csv")
    assert (tmp_path / "impacts.csv").read_text() == text
    (row,) = csv.DictReader(io.StringIO(text))
    assert float(row["rate_before"]) == table[0].rate_before
    assert float(row["impulse_tangential"]) == table[0].impulse_tangential[0]
    assert row["contact"] == "ball on table"
    empty = contact_phases(sliding_impact(every=10)[0], shortest=1.0)
    assert empty.csv().splitlines() == ["contact,start,end,closed_time,force,impulse,impacts,stick,slip"]


@pytest.mark.slow
@pytest.mark.parametrize("scheme", [schemes.moreau, pytest.param(schemes.newmark, marks=pytest.mark.slow)])
def test_a_block_slides_then_sticks(scheme) -> None:
    slope, mu, mass, speed, time = 0.2, 0.5, 46.8, 0.3, 0.2
    problem = models.block(dimension=2, slope=slope, friction=mu, initial_v=(speed, 0.0, 0.0))
    traj = nsjax.simulate(*problem, scheme(gap_tolerance=1e-9), dt=time / 400, steps=400)
    stop = speed / (G * (mu * math.cos(slope) - math.sin(slope)))
    phases = contact_phases(traj)
    assert [phase.contact for phase in phases] == ["corner +-", "corner --"]
    for phase in phases:
        assert (phase.start, phase.end, phase.impacts) == (0.0, pytest.approx(time), 0)
        assert phase.closed_time == pytest.approx(time, abs=time / 400)
        # both corners share the way and time of sliding, to one step
        assert phase.slip == pytest.approx(stop / time, abs=2 / 400)
        assert phase.stick + phase.slip == 1.0
    assert 0.3 < stop / time < 0.7
    weight = mass * G * math.cos(slope)
    assert phases.column("force").sum() == pytest.approx(weight, rel=1e-9)
    assert phases.column("impulse").sum() == pytest.approx(weight * time, rel=1e-9)


@pytest.mark.slow
def test_first_contact_phase_of_the_slider() -> None:
    """Closure, release and normal force of the event-driven integration."""
    dt, e = 1e-5, 0.4
    events = event_driven(Data(), (0.02,))
    closure, release = events.first("closure").time, events.first("release").time
    times = np.linspace(closure + 1e-6, release - 1e-6, 201)
    reference = [wall_force(Data(), x, 1) for x in event_driven(Data(), tuple(times)).x]
    traj = nsjax.simulate(*models.slider_crank(), schemes.generalized_alpha(), dt=dt, steps=1700)
    found = contact_phases(traj, shortest=2e-3)
    assert [phase.contact for phase in found] == ["upper left", "upper right"]
    left, right = found
    # the impact whose rebound does not leave the penetration begins the phase, and is listed with it
    assert (left.start, left.end, left.impacts) == (right.start, right.end, 1)
    # A rebound that does not leave the penetration of its own step ends the bounces. That is at speeds
    # below 2 a dt / e^2, 4 dt / (e (1 - e)) before the true end; the force, which falls, doubles it.
    assert 0 <= closure - left.start < 8 * dt / (e * (1 - e))
    # without force the gap opens from rest and its penetration of 4e-9 m with a vanishing acceleration
    assert 0 <= left.end - release < 2e-4
    assert left.slip == right.slip == 1.0
    held = np.trapezoid(reference, times) + reference[0] * (closure - left.start)
    assert (left.force + right.force) * (left.end - left.start) == pytest.approx(held, rel=0.02)


def test_bounces_are_short_phases() -> None:
    phases = contact_phases(bounces())
    assert len(phases) == 2
    for phase, impact in zip(phases, impact_table(bounces()), strict=True):
        assert phase.start < impact.time <= phase.end
        assert phase.impacts == 1
        assert phase.impulse == pytest.approx(impact.impulse_normal, rel=1e-12)
        assert math.isnan(phase.stick)
        assert math.isnan(phase.slip)
    assert len(contact_phases(bounces(), bridge=1.0)) == 1
    assert contact_phases(bounces(), bridge=1.0)[0].impacts == 2
    assert len(contact_phases(bounces(), shortest=0.01)) == 0


@pytest.mark.slow
def test_refusals() -> None:
    with pytest.raises(InputError, match="run simulate with events=100"):
        impact_table(bounces(events=0))
    with pytest.raises(InputError, match="the system has no contacts; pass a run of one that has"):
        contact_phases(nsjax.simulate(*models.slider_crank_bilateral(), schemes.moreau(), dt=1e-4, steps=4))
    with pytest.raises(InputError, match="closed_time, force_normal"):
        contact_phases(bounces(save=()))
