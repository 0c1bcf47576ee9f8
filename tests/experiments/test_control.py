"""Optimal control through a bounce."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.control import (
    cartpole,
    fig_cartpole,
    fig_shooting,
    fig_throw,
    search,
    shooting,
    strike,
    throw,
)


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


def test_motions_by_other_means_of_the_shooting():
    """A hopper that pushes evenly, and a box that is lifted evenly, are uniformly accelerated."""
    shot = shooting.HOP
    forces = np.full(shot.knots, 60.0)
    rise = 0.5 * (60.0 / shooting.TRUNK - shooting.G) * shot.end**2
    np.testing.assert_allclose(
        shooting.hopped(forces)[[0, 2]], 0.4 + rise * np.ones(2) - [0.0, 0.05], atol=1e-9
    )
    lift = np.concatenate([np.full(6, 10.0), np.full(6, 5.0)])
    whole = shooting.HAND + 2.0 * shooting.FINGER + shooting.CRATE
    height, speed = shooting.lifted(lift)
    a = 10.0 / whole - shooting.G
    np.testing.assert_allclose([height, speed], [0.04 + 0.125 * a, 0.5 * a], rtol=1e-6)
    need = shooting.CRATE * 10.0 / whole / (2.0 * shooting.FRICTION)
    np.testing.assert_allclose(fig_shooting.grip_over_need(lift), 5.0 / need, rtol=1e-12)


def test_the_cart_and_pole_are_those_of_mujoco():
    """Also the moment of inertia of a capsule; the reward has its largest value upright and at rest."""
    mujoco = pytest.importorskip("mujoco", reason="the package mujoco is not installed")
    model = mujoco.MjModel.from_xml_string(cartpole.FILE)
    np.testing.assert_allclose(model.body("pole").inertia[:2], cartpole.pole_inertia(), rtol=1e-12)
    assert fig_cartpole.accelerations_apart(10, 1) < 1e-9
    places = [(0.0, 0.0), (0.0, np.pi), (2.0, 0.0), (0.0, 0.0), (0.0, 0.0)]
    rates = [(0.0, 0.0)] * 4 + [(0.0, 5.0)]
    found = cartpole.reward(np.array(places), np.array(rates), np.array([0.0, 0.0, 0.0, 1.0, 0.0]))
    np.testing.assert_allclose(found, [1.0, 0.0, 0.55, 0.8, 0.55], atol=1e-15)
