"""Located runs: orders of states, of instants of impacts, and of their derivatives."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nsjax import notes, schemes
from nsjax.loop import LoopProgram, begin_run, prepare_run, run_row
from tests.gradients import box, mechanism, sphere, walls
from tests.gradients.hybrid import secants
from tests.gradients.program import floats, off, primes_near, slope
from tests.references.slider_crank import START, Data, event_driven

SCHEME = schemes.localized(schemes.half_explicit(), changes=True)
GRID = primes_near(151, 5, 10)
EXACT = 1e-9
IMPACTS = "impact", "stick impact", "slip impact"


@functools.cache
def program(system, build, impacts: int, derivatives: bool = True):
    """``(p, time, steps) -> (x, times of impacts), their derivatives, notes`` in one compiled program."""
    keep = LoopProgram(system=system, keep=("notes",), events=impacts)

    def final(p, dt, steps):
        params, state = floats(build(p))
        run = begin_run(keep, SCHEME, params, state, dt, None)
        run, row = run_row(prepare_run(keep, SCHEME, params, dt), run, steps)
        found = jnp.concatenate([row["q"], row["v"]]), run.events.time
        return found, (found, run.status, row["notes"])

    one = jax.jacfwd(final, has_aux=True) if derivatives else lambda *x: ((), final(*x)[1])
    compiled = jax.jit(one)

    def run(p, time: float, steps: int):
        slopes, (found, status, bits) = compiled(jnp.asarray(p), time / int(steps), int(steps))
        assert not int(status)
        bits = int(np.bitwise_or.reduce(np.ravel(bits)))
        return jax.tree.map(np.asarray, found), jax.tree.map(np.asarray, slopes), bits

    return run


def instants(found: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """Instants of a list that holds as many impacts as there are."""
    assert np.sum(~np.isnan(found)) == len(exact)
    return found[: len(exact)]


def orders(motion, p, end: float, impacts: int, columns=None) -> tuple[list[float], int]:
    """Orders of the state, of instants of impacts and of the derivatives of both over fifty numbers of
    steps, and the notes. Errors of derivatives scatter with the places of events in their steps: they
    follow how the error of a cut changes as it moves.
    """

    def instants_of(p):
        return np.array([t for t, kind, _ in motion.motion(p, end)[1] if kind in IMPACTS])

    def state_of(p):
        return motion.motion(p, end)[0]

    columns = range(len(p)) if columns is None else columns
    exact = state_of(p), instants_of(p)
    slopes = secants(state_of, p, columns), secants(instants_of, p, columns)
    run, errors, bits = program(motion.SYSTEM, motion.build, impacts), [], 0
    for steps in GRID.ravel():
        (x, times), (dx, dt), noted = run(p, end, steps)
        bits |= noted
        dx, dt = dx[:, list(columns)], dt[: len(exact[1]), list(columns)]
        times = instants(times, exact[1])
        errors.append([off(x, exact[0]), off(times, exact[1]), off(dx, slopes[0]), off(dt, slopes[1])])
    # parabolas are exact, and have no order
    one = lambda e: 2.0 if np.max(e) < EXACT else slope(np.reshape(e, GRID.shape), GRID)  # noqa: E731
    return [one(e) for e in np.transpose(errors)], bits


@pytest.mark.slow
@pytest.mark.parametrize("motion", [walls.Oscillator, walls.Ledge, walls.Rods])
def test_states_instants_and_their_derivatives(motion) -> None:
    found, bits = orders(motion, motion.VALUES, motion.TIME, 8)
    assert not bits & ~notes.KINK
    assert np.all(np.abs(np.array(found[:2]) - 2.0) < 0.1)
    assert np.all(np.abs(np.array(found[2:]) - 2.0) < 0.2)


@pytest.mark.slow
def test_a_spinning_ball_in_space() -> None:
    """Between a floor and a wall, bent by its spin: impacts that stick, slip and stick."""
    kinds = [(kind, k) for _, kind, k in sphere.motion(sphere.VALUES, sphere.TIME)[1]]
    assert kinds == [("stick impact", 0), ("slip impact", 1), ("stick impact", 0)]
    found, bits = orders(sphere, sphere.VALUES, sphere.TIME, 8)
    assert not bits
    assert np.all(np.abs(np.array(found[:2]) - 2.0) < 0.1)
    assert np.all(np.abs(np.array(found[2:]) - 2.0) < 0.2)


ROCKS = np.array([0.1, 0.3, 0.8, 0.0, 0.0, 0.0, 5.0, 0.0, 0.2, 0.0, 0.0, 0.0])
"""A slender box at rest on a corner, in the order of `box.NAMES`."""


@pytest.mark.slow
def test_a_box_rocks_from_corner_to_corner() -> None:
    """It sticks on one corner, strikes with the other, and leaves with the first, twice."""
    assert [(kind, k) for _, kind, k in box.motion(ROCKS, 0.6)[1]] == [("impact", 1), ("impact", 0)]
    found, bits = orders(box, ROCKS, 0.6, 12, box.columns(ROCKS))
    assert not bits
    assert np.all(np.abs(np.array(found) - 2.0) < 0.2)


@pytest.mark.slow
def test_the_slider_crank_through_two_accumulations() -> None:
    """Bounces come to rest, slide, turn and leave. What is faster than the gate is located; the state is of
    second order all the way.
    """
    end, steps = 0.05, (1000, 2500, 5000)
    exact = event_driven(Data(), (end,), start=START)
    fast = np.array([x.time for x in exact.events if x.kind == "impact" and x.before < -1e-3])
    run = program(mechanism.SYSTEM, mechanism.build, 64, derivatives=False)
    errors = []
    for n in steps:
        (x, times), _, _ = run(mechanism.BASE, end, n)
        errors.append(abs(x[1] - exact.x[-1][1]))
    assert 1.9 < -np.polyfit(np.log(steps), np.log(errors), 1)[0] < 2.1
    # both corners of a wall strike together, and nothing chatters: at most a few slow bounces more
    listed = times[~np.isnan(times)]
    np.testing.assert_array_equal(listed[::2], listed[1::2])
    assert len(fast) <= len(listed) // 2 <= len(fast) + 3
    late = np.array([np.min(np.abs(listed - t)) for t in fast]) / (end / n)
    assert np.sort(late)[-2] < 0.02


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_random_boxes_on_a_rough_floor(seed: int) -> None:
    """Thrown on a tilted, shaken floor they strike, slide, turn, stick and slip."""
    p, end, _ = box.draw(seed)
    found, bits = orders(box, p, end, 12, box.columns(p))
    # in coarse steps the corner 0 of seed 6 is within a gate of closing when the other one turns it
    assert not bits & ~(notes.GRAZING if seed == 6 else 0)
    assert np.all(np.abs(np.array(found[:2]) - 2.0) < 0.1)
    assert np.all(np.abs(np.array(found[2:]) - 2.0) < 0.2)


@pytest.mark.slow
def test_a_flat_box_strikes_with_both_corners() -> None:
    """Both corners at one instant, noted: which would come first decides the derivative by angle and spin.
    Those by what keeps the box flat are right.
    """
    p = np.array([0.2, 0.3, 0.3, 0.4, 0.1, 4.0, 15.0, 0.05, 0.0, 0.3, 0.0, 0.0])
    kept = [i for i, name in enumerate(box.NAMES) if name not in ("angle", "spin")]
    assert [k for _, _, k in box.motion(p, 0.2)[1]] == [0, 1, 0, 1]
    found, bits = orders(box, p, 0.2, 12, kept)
    assert bits == notes.TOGETHER
    assert np.all(np.abs(np.array(found[:1] + found[2:3]) - 2.0) < 0.2)
