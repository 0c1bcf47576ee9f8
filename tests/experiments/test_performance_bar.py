"""The programs whose cost is compared on the elastic bar compute the same motion. Timings are no tests."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.performance import bar


@pytest.mark.slow
def test_numba_loop_agrees() -> None:
    pytest.importorskip("numba")
    problem, steps = bar.problem(60), 900  # through the contact, which lasts 480 steps, and the rebound
    traj = bar.simulate(bar.SCHEMES["generalized-alpha"], problem, steps)
    traj.raise_for_status()
    q, v, closed = bar.run_numba(problem, steps)
    assert 470 < closed < 490
    assert float(traj["momentum"][-1]) < -95.0
    # rounding, and the resting velocity that decides when the acceleration is computed anew
    np.testing.assert_allclose(traj.q[-1], q, atol=1e-11)
    np.testing.assert_allclose(traj.v[-1], v, atol=1e-8)


def test_slope_is_that_of_the_cost() -> None:
    numbers = {f"x, {n} [us/step]": 0.01 * n for n in (100, 1000, 10_000)}
    assert bar._slope(numbers, "x", (100, 1000, 10_000)) == pytest.approx(1.0)
