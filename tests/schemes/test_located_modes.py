"""Landing, release, sticking, slipping and turning at their own time, against closed forms."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nsjax import schemes
from nsjax.loop import LoopProgram, begin_run, prepare_run, run_row
from tests.gradients import belt, table
from tests.gradients.program import floats, off, primes_near, sensitivity

SCHEME = schemes.localized(schemes.half_explicit(), changes=True)


def order(grid, errors) -> float:
    """Least-squares order of errors at numbers of steps."""
    return -float(np.polyfit(np.log(grid), np.log(errors), 1)[0])


def forward(system, build, p, time: float):
    """``steps -> (q, v), notes`` in one program without derivatives."""
    keep = LoopProgram(system=system, keep=("notes",), events=0)

    @jax.jit
    def end(dt, steps):
        params, state = floats(build(jnp.asarray(p)))
        run = begin_run(keep, SCHEME, params, state, dt, None)
        run, row = run_row(prepare_run(keep, SCHEME, params, dt), run, steps)
        return jnp.concatenate([row["q"], row["v"]]), row["notes"], run.status

    def found(steps: int):
        x, notes, status = end(time / steps, steps)
        assert not int(status)
        return np.asarray(x), int(np.bitwise_or.reduce(np.ravel(notes)))

    return found


def test_a_table_that_throws_and_catches() -> None:
    exact, changes = table.motion(table.VALUES, table.TIME)
    assert [kind for _, kind in changes] == ["release", "landing"] * 2 + ["release"]
    run, grid = forward(table.SYSTEM, table.build, table.VALUES, table.TIME), (101, 211, 409, 809)
    errors = []
    for steps in grid:
        x, notes = run(steps)
        assert notes == 0
        errors.append(off(x, exact))
    assert order(grid, errors) > 1.8


@pytest.mark.slow
@pytest.mark.parametrize("seed", [5, 7, 10])
def test_states_on_a_swinging_belt(seed: int) -> None:
    p, end, _ = belt.draw(seed)
    exact = belt.motion(p, end)[0]
    run, grid = forward(belt.SYSTEM, belt.build, p, end), primes_near(499, 3, 3).ravel()
    errors = []
    for steps in grid:
        x, notes = run(int(steps))
        assert notes == 0
        errors.append(off(x[belt.ROWS], exact))
    assert order(grid, errors) > 1.8


@pytest.mark.slow
def test_derivatives_of_a_table_that_throws_and_catches() -> None:
    grid, exact = primes_near(101, 5, 2).ravel(), table.reference(table.VALUES, table.TIME)
    runs = [sensitivity(table.SYSTEM, table.build, SCHEME, table.VALUES, table.TIME, n) for n in grid]
    assert not any(run.notes for run in runs)
    assert order(grid, [off(run.jacobian, exact) for run in runs]) > 1.8
