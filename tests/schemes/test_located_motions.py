"""Located runs: orders of states, of instants of impacts, and of their derivatives."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import gradient_notes, models, schemes
from nsjax.loop import LoopProgram, begin_run, prepare_run, run_row
from tests.gradients import arm, box, mechanism, walls
from tests.gradients.hybrid import secants
from tests.gradients.program import floats, off, primes_near, slope
from tests.references.slider_crank import START, Data, event_driven

SCHEME = schemes.localized(schemes.half_explicit(), changes=True)
GRID = primes_near(307, 5, 40)
"""Numbers of steps. The error of a derivative, times their square, scatters evenly between zero and a bound
that stays over all octaves: it is that of the places of the events in their steps. Ten numbers an octave
leave 0.1 of scatter in its order (2.21 and 2.23 of boxes 9 and 14, 1.84 of box 10), forty leave half of
that (2.05, 1.92, 1.97).
"""

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
    """Orders of the state, of instants of impacts and of the derivatives of both over all numbers of
    steps, and the notes. Errors of derivatives scatter with the places of events in their steps: they
    follow how the error of a cut changes as it moves.
    """

    def instants_of(p):
        return np.array([t for t, kind, *_ in motion.motion(p, end)[1] if kind.rstrip(" 01") in IMPACTS])

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
    assert not bits & ~gradient_notes.KINK
    assert np.all(np.abs(np.array(found[:2]) - 2.0) < 0.1)
    assert np.all(np.abs(np.array(found[2:]) - 2.0) < 0.2)


@pytest.mark.slow
def test_a_release_just_before_the_end_of_a_step() -> None:
    """The ledge lets go 0.0016 of a step before the end of one of 5641: in the next one it leaves."""
    run = program(walls.Ledge.SYSTEM, walls.Ledge.build, 8, derivatives=False)
    found = [run(walls.Ledge.VALUES, walls.Ledge.TIME, n) for n in (5641, 4507)]
    assert [bits for _, _, bits in found] == [0, 0]
    (x, _), (y, _) = found[0][0], found[1][0]
    # errors of second order, 1e-7 at these numbers of steps
    assert off(x, y) < 3e-7


def _in_full_flight(events, dt: float) -> np.ndarray:
    """Impacts before which both corners have flown for at least a step."""
    times, last = [], {1: -np.inf, -1: -np.inf}
    for x in events:
        if x.kind == "impact":
            if x.time - last[x.wall] > dt:
                times.append(x.time)
            last[x.wall] = x.time
    return np.array(times)


@pytest.mark.slow
def test_the_slider_crank_through_two_accumulations() -> None:
    """Bounces come to rest, slide, turn and leave: state and instants are of second order all the way, of
    every bounce from a flight of at least a step.
    """
    end, steps = 0.05, (1000, 2500, 5000)
    exact = event_driven(Data(), (end,), start=START)
    run = program(mechanism.SYSTEM, mechanism.build, 64, derivatives=False)
    errors, last = [], []
    for n in steps:
        (x, times), _, bits = run(mechanism.BASE, end, n)
        errors.append(abs(x[1] - exact.x[-1][1]))
        # both corners of a wall strike together
        assert bits == gradient_notes.TOGETHER | gradient_notes.ACCUMULATION
        # rounding of a gap (1e-16 m) over the slowest rate that is listed (1e-4 m/s)
        listed = times[~np.isnan(times)]
        np.testing.assert_allclose(listed[::2], listed[1::2], rtol=0.0, atol=1e-11)
        full = _in_full_flight(exact.events, end / n)
        # each of the two accumulations ends with one impact, or with one more in the same step
        assert len(full) <= len(listed) // 2 <= len(full) + 2
        late = np.array([listed[np.argmin(np.abs(listed - t))] - t for t in full]) / (end / n)
        last.append(late[-1] * end / n)
    assert 1.9 < -np.polyfit(np.log(steps), np.log(errors), 1)[0] < 2.1
    assert len(full) == 21
    assert np.max(np.abs(late[:-1])) < 0.02
    # the last one, 5e-7 s late at 9e-3 m/s, is the smooth error of the motion before it, of second order
    assert np.abs(late[-1]) < 0.06
    assert 1.9 < -np.polyfit(np.log(steps), np.log(last), 1)[0] < 2.1
    limit = last[2] + (last[2] - last[1]) / ((steps[2] / steps[1]) ** 2 - 1.0)
    assert abs(limit) < 0.02 * end / n


@pytest.mark.slow
def test_limits_of_the_slider_crank() -> None:
    """What runs of 1e-4 s and of half of that tell of none: 60 times nearer than the first of them."""
    right = event_driven(Data(), (0.05,), start=START).x[-1][1]
    problem = models.slider_crank(initial_v=[*START[2:], 0.0])
    off = []
    for dt in (1e-4, 5e-5):
        check = nsjax.check_accuracy(problem, SCHEME, dt=dt, time=0.05, outputs=["theta2"])
        off.append([abs(check.table[0].value - right), abs(check.limits(2)[0] - right)])
    (one, limit), (half, finer) = off
    # the limits are of third order, by the scatter of slow bounces: 4.0e-7 of 2.6e-5, 3e-8 of 6.6e-6
    assert limit < one / 40.0
    assert finer < half / 100.0
    # that of the run without location in steps of 1e-6 s
    assert finer < 2.5e-7


RANDOM = [("box", seed) for seed in range(6)] + [("arm", seed) for seed in range(3)]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "seed"), RANDOM)
def test_random_motions(name: str, seed: int) -> None:
    """Boxes on a tilted, shaken floor and arms at a stop and a rough floor strike, slide, turn, stick and
    slip. The worst order of all is that of arm 0's derivatives, 2.09.
    """
    motion = {"box": box, "arm": arm}[name]
    p, end, _ = motion.draw(seed)
    found, bits = orders(motion, p, end, 12, box.columns(p) if motion is box else None)
    assert not bits
    assert np.all(np.abs(np.array(found[:2]) - 2.0) < 0.1)
    assert np.all(np.abs(np.array(found[2:]) - 2.0) < 0.2)
