"""Margins of hits from the gaps that a scheme tests, against parabolas."""

from __future__ import annotations

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest

from nsjax import gradient_notes
from nsjax.core.scheme import Event, Output
from nsjax.recording import WatchLimits, begin_watch, watch_gaps

DT, RATE, BEND = 1e-3, 0.03, 5.0
"""A gap closes with ``RATE`` under the acceleration ``BEND`` that slows it down: six steps of margin."""

STEPS = np.arange(-90, 1)
FREE = -RATE * DT * STEPS + 0.5 * BEND * (DT * STEPS) ** 2
FALL = (-RATE * DT * STEPS - 0.5 * BEND * (DT * STEPS) ** 2)[-12:]
"""A flight from the surface and back, accelerated towards it: twelve steps, twice the margin."""


LIMITS = {"resolved": 2.0, "sequence": 4.0, "flight": 3, "near": 20.0, "locates": False}


def told(gap: float, impact: bool, bits: int) -> Output:
    """Of a step of one contact without friction."""
    hit = jnp.array([impact or bool(bits)])
    one, none = jnp.zeros(1), jnp.zeros((1, 0))
    event = Event(
        gap=jnp.array([gap]), active=hit, impact=jnp.array([impact]),
        rate_before=jnp.where(hit, -RATE, 0.0), rate_after=one, timed=jnp.array([impact]),
    )  # fmt: skip
    return Output(
        event=event, status=jnp.asarray(0), contact=jnp.asarray(-1), impulse_normal=one,
        impulse_tangential=none, notes=jnp.array([bits]),
    )  # fmt: skip


def margins(gaps: np.ndarray, impact: bool, bits: int = 0) -> np.ndarray:
    """Of every step, the last of which closes the contact."""
    watch, found = begin_watch(1, 0, jnp.zeros(1, int)), []
    for k, gap in enumerate(gaps):
        last = k == gaps.size - 1
        output = told(gap, impact and last, bits if last else 0)
        watch, margin, _ = watch_gaps(watch, output, jnp.asarray(DT), WatchLimits(**LIMITS))
        found.append(margin[0])
    return np.array(found)


@pytest.mark.parametrize(
    ("step", "change"),
    [(-1, -0.02), (-3, 0.02)],
    ids=["behind the jump", "corrected three steps before"],
)
def test_the_margin_of_a_hit_is_that_of_its_flight(step: int, change: float) -> None:
    """Whatever the gap tested last or first of four: moved by four times the acceleration of a step."""
    gaps = FREE.copy()
    gaps[step if step == -1 else slice(None, step)] += change * DT
    found = margins(gaps, impact=True)
    assert np.all(np.isinf(found[:-1]))
    np.testing.assert_allclose(found[-1], RATE / (BEND * DT), rtol=1e-9)


def test_a_slow_approach_has_a_margin_where_it_grazes() -> None:
    """Below the gate it is no impact; the chatter of a contact at rest has none."""
    for bits, expected in ((gradient_notes.GRAZING, RATE / (BEND * DT)), (gradient_notes.SETTLING, np.inf)):
        found = margins(FREE, impact=False, bits=bits)
        np.testing.assert_allclose(found[-1], expected, rtol=1e-9)


def test_a_bounce_of_its_own_flight_has_none() -> None:
    """A hit that comes as fast as it left flies for twice its margin: twice that tells them apart."""
    assert np.isinf(margins(FALL, impact=True)[-1])
    for steps, known in ((24, False), (26, True)):
        longer = np.concatenate([np.full(steps - FALL.size, FALL[0]), FALL])
        assert np.isfinite(margins(longer, impact=True)[-1]) == known


def test_what_comes_ever_more_slowly_is_no_bounce() -> None:
    """However short its flight; where it counts as near."""
    assert np.isfinite(margins(FREE[-12:], impact=True)[-1])
    assert last_notes(FREE[-12:]) == gradient_notes.NEAR
    assert last_notes(FREE[-12:], near=5.0) == 0


def test_a_contact_turned_by_an_impact_elsewhere_is_as_far_from_grazing_as_its_gap() -> None:
    """It comes at 0.5 m/s and is sent back as fast: its own acceleration would have needed the gap's."""
    gap, steps = 0.02, np.arange(20.0, -1.0, -1.0)
    gaps = gap + DT * 0.5 * steps + 0.5 * BEND * (DT * steps) ** 2
    gaps = np.append(gaps, gaps[-2])
    assert abs(gaps[-1] - 2.0 * gaps[-2] + gaps[-3]) > 100.0 * BEND * DT**2
    found = margins(gaps, impact=False)
    np.testing.assert_allclose(found[-1], np.sqrt(2.0 * gap / BEND) / DT, rtol=1e-9)


def last_notes(gaps: np.ndarray, bits: int = 0, **limits) -> int:
    """Notes on the last step, whose impact has a time."""
    watch, found = begin_watch(1, 0, jnp.zeros(1, int)), 0
    for k, gap in enumerate(gaps):
        last = k == gaps.size - 1
        output = told(gap, last, bits if last else 0)
        watch, _, note = watch_gaps(watch, output, jnp.asarray(DT), WatchLimits(**(LIMITS | limits)))
        found = int(note[0])
    return found


def test_what_turns_inside_has_grazed() -> None:
    """Closed at the end of a step, without an impulse, and on its way out again; not where it comes."""
    watch = begin_watch(1, 0, jnp.zeros(1, int))
    for gap in FREE[:-1]:
        watch, _, _ = watch_gaps(watch, told(gap, False, 0), jnp.asarray(DT), WatchLimits(**LIMITS))
    for rate, expected in ((RATE, gradient_notes.GRAZING), (-RATE, 0)):
        last = told(-1e-6, False, 0)
        event = dataclasses.replace(last.event, active=jnp.array([True]), rate_before=jnp.array([rate]))
        last = dataclasses.replace(last, event=event)
        assert int(watch_gaps(watch, last, jnp.asarray(DT), WatchLimits(**LIMITS))[2][0]) == expected


@pytest.mark.slow
def test_a_hit_with_a_small_margin_is_noted() -> None:
    """Six steps of margin; not where fewer are asked for, nor with a time found inside the step."""
    assert last_notes(FREE) == gradient_notes.NEAR
    assert last_notes(FREE, near=5.0) == 0
    assert last_notes(FREE, locates=True) == 0
    assert last_notes(FREE, gradient_notes.UNLOCATED, locates=True) == gradient_notes.NEAR
    assert last_notes(FREE, gradient_notes.GRAZING) == 0  # has its own
    assert last_notes(FALL) == 0  # a bounce of its own flight


@pytest.mark.parametrize("since", [50, 0, 1, 2])
def test_a_hit_without_acceleration_is_not_near(since: int) -> None:
    """Nor where another impact has set the contact in motion a moment ago, or the gap was corrected."""
    gaps = -RATE * DT * STEPS
    gaps[: STEPS.size - 1 - since] += 0.9 * RATE * DT * (STEPS[: STEPS.size - 1 - since] + since)
    gaps[-1] += 0.3 * RATE * DT
    assert np.all(np.isinf(margins(gaps, impact=True)))
    assert last_notes(gaps) == 0
