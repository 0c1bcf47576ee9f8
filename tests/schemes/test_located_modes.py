"""Landing, release, sticking, slipping and turning at their own time, against event-driven motions."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nsjax import gradient_notes, schemes
from nsjax.core.operators import prepared
from nsjax.core.step import SystemState
from nsjax.loop import LoopProgram, begin_run, prepare_run, run_row
from nsjax.schemes.locating.modes import modes_at
from tests.gradients import belt, mechanism, particle, table
from tests.gradients.cases import BY_NAME, REVERSAL
from tests.gradients.program import floats, off, primes_near, sensitivity

SCHEME = schemes.localized(schemes.half_explicit(), changes=True)


def order(grid, errors) -> float:
    """Least-squares order of errors at numbers of steps."""
    return -float(np.polyfit(np.log(grid), np.log(errors), 1)[0])


def forward(system, build, p, time: float, impacts: int = 0):
    """``steps -> (q, v), notes, times of impacts`` in one program without derivatives."""
    keep = LoopProgram(system=system, keep=("notes",), events=impacts)

    @jax.jit
    def end(dt, steps):
        params, state = floats(build(jnp.asarray(p)))
        run = begin_run(keep, SCHEME, params, state, dt, None)
        run, row = run_row(prepare_run(keep, SCHEME, params, dt), run, steps)
        times = run.events.time if impacts else ()
        return jnp.concatenate([row["q"], row["v"]]), row["notes"], run.status, times

    def found(steps: int):
        x, notes, status, times = end(time / steps, steps)
        assert not int(status)
        return np.asarray(x), int(np.bitwise_or.reduce(np.ravel(notes))), np.asarray(times)

    return found


@pytest.mark.slow
def test_a_table_that_throws_and_catches() -> None:
    exact, changes = table.motion(table.VALUES, table.TIME)
    assert [kind for _, kind in changes] == ["release", "landing"] * 2 + ["release"]
    run, grid = forward(table.SYSTEM, table.build, table.VALUES, table.TIME, 3), (101, 211, 409, 809)
    errors, late = [], []
    for steps in grid:
        x, notes, times = run(steps)
        assert notes == 0
        errors.append(off(x, exact))
        late.append(off(times[:2], np.array([t for t, kind in changes if kind == "landing"])))
        assert np.isnan(times[2])
    assert order(grid, errors) > 1.8
    assert order(grid, late) > 1.8


def derivatives(motion, p, end: float, steps) -> list:
    """Runs with sensitivities, without notes."""
    runs = [sensitivity(motion.SYSTEM, motion.build, SCHEME, p, end, n) for n in steps]
    assert not any(run.notes for run in runs)
    return runs


@pytest.mark.slow
@pytest.mark.parametrize("seed", [5, 7, 10])
def test_a_swinging_belt(seed: int) -> None:
    """Sticking, slipping and turning: states and derivatives of second order."""
    p, end, _ = belt.draw(seed)
    exact, slopes = belt.motion(p, end)[0], belt.reference(p, end)
    grid = primes_near(499, 4, 3).ravel()
    runs = derivatives(belt, p, end, grid)
    assert 1.8 < order(grid, [off(run.x[belt.ROWS], exact) for run in runs]) < 2.2
    assert 1.8 < order(grid, [off(run.jacobian[belt.ROWS], slopes) for run in runs]) < 2.5


@pytest.mark.slow
@pytest.mark.parametrize("drag", [0.0, 0.7])
def test_bounces_that_end_in_sliding(drag: float) -> None:
    """What is left of an accumulation is one impact without restitution: state and derivative stay of
    second order, exact where acceleration is constant.
    """
    zeno = BY_NAME["Zeno, sliding"]
    case = dataclasses.replace(zeno, values=(*zeno.values, ("drag", drag)))
    exact, slopes = particle.reference(case)
    grid = primes_near(307, 4, 3).ravel()
    runs = [sensitivity(particle.SYSTEM, particle.build, SCHEME, case.vector(), case.time, n) for n in grid]
    assert all(run.notes == gradient_notes.ACCUMULATION for run in runs)
    states = [off(run.x, exact) for run in runs]
    derivatives = [off(run.jacobian[:, case.index()], slopes) for run in runs]
    if drag:
        assert 1.8 < order(grid, states) < 2.2
        assert 1.8 < order(grid, derivatives) < 2.2
    else:
        # the derivative's factors of a contact force are regularised by 1e-9
        assert max(states) < 1e-10
        assert max(derivatives) < 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("ahead", [1e-8, 2e-11, -2e-11])
def test_a_turn_at_the_border_of_two_steps(ahead: float) -> None:
    """Sliding that is slower than any tolerance as a step begins still turns at its own time."""
    x = dict(REVERSAL.values)
    turn = -x["vx"] / (9.81 * (np.sin(x["slope"]) + x["friction"] * np.cos(x["slope"])))
    case = dataclasses.replace(REVERSAL, time=100 * (turn - ahead) / 57)
    run = sensitivity(particle.SYSTEM, particle.build, SCHEME, case.vector(), case.time, 100)
    end, slopes = particle.reference(case)
    assert run.notes == 0
    # parabolas are exact; the turn is located at a speed of 1e-10 m/s
    assert off(run.x, end) < 1e-9
    assert off(run.jacobian[:, case.index()], slopes) < 1e-8


@pytest.mark.parametrize("turned", [pytest.param(0.0, marks=pytest.mark.slow), 1e-9])
def test_no_slider_is_held_in_its_dead_centre(turned: float) -> None:
    """There its rows of friction follow from those of its wall, which cannot stop it: it slides off."""
    params, state = floats(mechanism.build(jnp.asarray(mechanism.BASE)))
    half = float(params.crank_length / params.rod_length)
    q = jnp.array([np.pi - turned, half * turned, 0.0])
    state = dataclasses.replace(state, q=q, v=jnp.array([150.0, 150.0 * half, 0.0]))
    at = SystemState(system=mechanism.SYSTEM, params=prepared(mechanism.SYSTEM, params), state=state)
    lower = jnp.array([False, False, True, True])
    found = modes_at(SCHEME, at, lower, jnp.zeros(4, bool), jnp.zeros(4))
    assert not np.any(found.stuck)
    assert found.slide.tolist() == [0.0, 0.0, 1.0, 1.0]
