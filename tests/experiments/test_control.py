"""Optimal control through a bounce."""

from __future__ import annotations

import numpy as np

from experiments.control import fig_throw, search, strike, throw


def test_newton_brings_the_motion_itself_into_the_cup():
    """Closed forms in place of the run: costs, slopes and curvature belong together."""
    aim = fig_throw.aim(200, throw.motion_end)
    found, costs, sizes = search.newton(aim)
    assert sizes[-1] < 1e-8
    assert len(costs) < 60
    assert costs[-1] < 1e-3 * costs[0]
    assert np.linalg.norm(throw.motion_end(found) - np.array(fig_throw.CUP)) < 0.002
    at, along = np.array(fig_throw.GUESS), 1e-4 * np.array(fig_throw.SCALE)
    _, slope, hessian = aim.cost(at, search.curved(at, throw.motion_end, 200))
    ends = [aim.cost(x, search.curved(x, throw.motion_end, 200)) for x in (at + along, at - along)]
    np.testing.assert_allclose(ends[0][0] - ends[1][0], 2 * slope @ along, rtol=1e-5)
    np.testing.assert_allclose(ends[0][1] - ends[1][1], 2 * hessian @ along, rtol=1e-4)


def test_it_strikes_earlier_where_it_is_pulled():
    times = [strike.motion_strike(x)[0] for x in ((0.0, 0.0), (-1.0, 2.0))]
    assert times[1] < times[0]
