"""Many spheres: candidates, directions, closed forms, and what goes with a pair from slot to slot.

All runs are those of four spheres above one floor with eight slots, so that they share a program.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import Problem, schemes, status
from nsjax.core.operators import contact_rows, refreshed
from nsjax.core.slots import Slots
from nsjax.multibody import pairs_of, spheres

RADIUS, FRICTION = 0.1, 0.3
FLOOR = 4  # as a body
AWAY = [(5.0 * k, 9.0, RADIUS) for k in range(1, 5)]


def four(places: Any, speeds: Any, level: float = 0.0, **given: Any) -> Problem:
    """The given spheres, and others at rest far away."""
    x = [*places, *AWAY][:4]
    v = np.zeros((4, 3))
    v[: len(speeds)] = np.reshape(speeds, (-1, 3))
    given = {"friction": FRICTION, "capacity": 8} | given
    return spheres(RADIUS, 2.0, x, v, walls=[((0.0, 0.0, 1.0), level)], **given)


def run(problem: Problem, dt: float, steps: int, every: int = 1) -> Any:
    traj = nsjax.simulate(*problem, schemes.moreau(), dt=dt, steps=steps, every=every)
    traj.raise_for_status()
    return traj


def bodies(x: Any) -> np.ndarray:
    return np.asarray(x).reshape(4, 6)


@pytest.mark.slow
def test_directions_are_derivatives() -> None:
    problem = four([(0.0, 0.0, 0.1), (0.05, 0.02, 0.31), (0.255, 0.0, 0.33)], [])
    system, params, state = problem
    t = jnp.zeros(())

    @jax.jit
    def derivatives(p: Any, q: Any, v: Any) -> Any:
        p = refreshed(system, t, q, p)
        rows = contact_rows(system, t, q, p).wt.dense().reshape(8, 3, 24)
        gap = jax.jacfwd(lambda q: system.gap(t, q, p))(q)
        return rows, gap, jax.jacfwd(lambda v: system.slip(t, q, v, p))(v)

    rows, gap, slip = derivatives(params, state.q, state.v)
    np.testing.assert_allclose(rows[:, 0], gap, atol=1e-14)
    np.testing.assert_allclose(rows[:, 1:], slip, atol=1e-14)
    frames = rows[: len(pairs_of(problem, state.q)), :, :3]
    assert np.max(np.abs(frames)) > 0.5


@pytest.mark.slow
def test_a_pair_that_changes_its_slot() -> None:
    """A sphere lands and comes before those that rest in the list: theirs are no impacts, and what adds
    up for a pair goes with it.
    """
    problem = four([(0.0, 0.0, 0.3)], [])
    traj = run(problem, 1e-3, 400, 400)
    pairs = pairs_of(problem, traj.q[-1])
    assert pairs_of(problem, traj.q[0]).tolist() == [[k, FLOOR] for k in (1, 2, 3)]
    assert pairs.tolist() == [[k, FLOOR] for k in (0, 1, 2, 3)]
    assert np.asarray(traj.impacts[-1])[:4].tolist() == [1, 0, 0, 0]
    weight = 2.0 * 9.81 * 0.4
    np.testing.assert_allclose(np.asarray(traj.impulse_normal[-1])[:4], weight, rtol=1e-9)
    np.testing.assert_allclose(np.asarray(traj.closed_time[-1])[1:4], 0.4, rtol=1e-9)


def test_impulses_go_with_their_pairs() -> None:
    """Those of the last step begin the next, in the step too in which a pair that comes moves them on."""
    problem = four([(0.0, 0.0, 0.3)], [])
    traj = run(problem, 1e-3, 400)
    height, taken = np.asarray(traj.q)[:, 2], np.asarray(traj.iterations)
    comes = int(np.argmax(height < RADIUS + 0.2 * RADIUS))  # reach
    assert pairs_of(problem, traj.q[comes - 1]).tolist() == [[k, FLOOR] for k in (1, 2, 3)]
    assert pairs_of(problem, traj.q[comes]).tolist() == [[k, FLOOR] for k in (0, 1, 2, 3)]
    # the start knows nothing, an impact something else
    assert taken[1] > 0
    lands = int(np.argmax(np.sum(np.asarray(traj.impacts), axis=1) > 0))
    assert comes + 2 < lands
    assert np.all(taken[2:lands] == 0)
    known = traj.carry.carry.memory
    assert np.asarray(known.pairs)[:4].tolist() == [4, 9, 14, 19]  # first * 5 + second
    np.testing.assert_allclose(np.asarray(known.memory.own)[:4, 0], 2.0 * 9.81e-3, rtol=1e-9)
    assert np.all(np.asarray(known.memory.own)[4:] == 0.0)


def test_symmetric_heap() -> None:
    """One on three that stand apart and stay where they are: of the force ``F`` on one from above the line
    goes through its point on the floor (three forces in balance), so that its normal part is a third of
    the weight.
    """
    apart = 2.3 * RADIUS
    out = apart / np.sqrt(3.0)
    top = RADIUS + np.sqrt(4.0 * RADIUS**2 - out**2)
    turn = 2.0 * np.pi * np.arange(3) / 3.0
    base = np.stack([out * np.cos(turn), out * np.sin(turn), np.full(3, RADIUS)], axis=1)
    problem = four([*base, (0.0, 0.0, top)], [], friction=0.5)
    traj = run(problem, 1e-3, 400)
    assert pairs_of(problem, traj.q[-1]).tolist() == [[0, 3], [0, 4], [1, 3], [1, 4], [2, 3], [2, 4]]
    weight = 2.0 * 9.81
    force = np.asarray(traj.force_normal[-1])[:6].reshape(3, 2)
    np.testing.assert_allclose(force, np.tile([weight / 3.0, 4.0 * weight / 3.0], (3, 1)), rtol=1e-6)
    # gaps at the start are rounding, which opens and closes contacts for a few steps
    np.testing.assert_allclose(traj.q[-1], problem.state.q, atol=1e-4 * RADIUS)


def test_no_contact_at_all() -> None:
    """Spheres that fall past each other, none near: free flight."""
    problem = four([(0.0, 0.0, 3.0), (0.5, 0.0, 3.0)], [(0.1, 0.0, 0.0)], level=-50.0)
    traj = run(problem, 1e-3, 400, 400)
    fallen = 0.5 * 9.81 * 0.4**2
    np.testing.assert_allclose(bodies(traj.q[-1])[0, :3], [0.04, 0.0, 3.0 - fallen], atol=1e-12)
    assert np.sum(np.asarray(traj.impacts)) == 0


def test_contacts_keep_what_is_known_of_their_bodies() -> None:
    old, new = jnp.array([3, 7, 9, 99]), jnp.array([2, 7, 9, 10])
    slots = Slots.matching(old, new)
    assert slots.take(jnp.arange(4.0), -1.0).tolist() == [-1.0, 1.0, 2.0, -1.0]
    assert slots.put(jnp.arange(4.0), -1.0).tolist() == [-1.0, 1.0, 2.0, -1.0]


def test_more_candidates_than_slots() -> None:
    problem = four([(0.0, 0.0, 0.1), (0.3, 0.0, 0.1)], []).replace(reach=30.0)
    traj = nsjax.simulate(*problem, schemes.moreau(), dt=1e-3, steps=1)
    assert traj.status == status.CANDIDATES_LOST
    with pytest.raises(nsjax.RunError, match=r"raise capacity.*capacity = 10 of 'spheres' would have held"):
        traj.raise_for_status()


@pytest.mark.parametrize("what", ["params", "v"])
def test_derivatives_are_refused_with_a_sentence(what: str) -> None:
    """By whatever number, in both modes, before anything is compiled."""
    problem, moreau = four([], []), schemes.moreau()

    def end(x: Any) -> Any:
        p, s = problem.params, problem.state
        if what == "v":
            s = dataclasses.replace(s, v=s.v * x)
        else:
            p = dataclasses.replace(p, friction=p.friction * x)
        return jnp.sum(
            nsjax.simulate(problem.system, p, s, moreau, dt=1e-3, steps=2, gradient="discrete").q
        )

    for derivative in (jax.grad(end), jax.jacfwd(end)):
        with pytest.raises(
            NotImplementedError,
            match=r"between changing bodies have no derivatives; take differences",
        ):
            derivative(1.0)
    if what == "dt":  # without a derivative it is a program like any other
        assert jax.eval_shape(jax.vmap(end), jnp.ones(3)).shape == (3,)
