"""Hulls of different sizes as one batch, and terrain below many: only near pairs are searched."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import schemes
from nsjax.core.operators import prepared, refreshed
from nsjax.multibody import (
    assemble,
    body,
    capsule,
    contact,
    contact_group,
    heightfield,
    hull,
    plane,
    sphere,
)
from nsjax.multibody.assemble import RowsWarning

SIZES = (10, 14, 19)
NAMES = tuple(f"h{k}" for k in SIZES)


def points(size: int) -> np.ndarray:
    """Points of a ball of radius 0.1; all of them are vertices of their hull."""
    x = np.random.default_rng(size).normal(size=(size, 3))
    return 0.1 * x / np.linalg.norm(x, axis=1)[:, None]


def stones(*contacts: object) -> nsjax.Problem:
    bodies = [body(x, mass=1.0, inertia=(4e-3, 5e-3, 6e-3)) for x in NAMES]
    start = {x: (0.3 * k, 0.0, 0.0) for k, x in enumerate(NAMES)}
    return assemble(*bodies, *contacts, gravity=9.81, start=start)


def test_hulls_of_different_sizes_are_one_batch() -> None:
    """Gaps of all pairs are those of the contacts by name, each with the faces of its own hulls; the step
    holds the same features for the pairs in use, and finite numbers in the other places.
    """
    shapes = [hull(x, points(n)) for x, n in zip(NAMES, SIZES, strict=True)]
    chosen = stones(contact_group("all", shapes, friction=0.3, capacity=2, reach=0.05))
    pairs = [(0, 1), (0, 2), (1, 2)]
    by_name = stones(*(contact(f"c{i}{j}", shapes[i], shapes[j], friction=0.3) for i, j in pairs))
    system, every = chosen.system, by_name.system
    assert (system.nc, system.chosen.system.nc) == (24, 16)
    p, q = prepared(system, chosen.params), prepared(every, by_name.params)
    few, zero = system.chosen.system, jnp.zeros(())

    @jax.jit
    def look(x: jax.Array) -> tuple[jax.Array, ...]:
        now, then = refreshed(system, zero, x, p), refreshed(every, zero, x, q)
        own = lambda x: few.gap(zero, x, now)  # noqa: E731
        gap, back = jax.vjp(own, x)
        return (
            gap, back(jnp.ones_like(gap))[0], jax.jvp(own, (x,), (jnp.ones_like(x),))[1],
            system.chosen.which(now), system.chosen.used(now), system.gap(zero, x, now),
            every.gap(zero, x, then),
        )  # fmt: skip

    rng, seen = np.random.default_rng(3), set()
    for spread in (0.12, 0.2, 0.3, 0.3, 0.5, 2.0):
        place = np.arange(3)[:, None] * np.array([spread, 0.0, 0.0]) + 0.01 * rng.normal(size=(3, 3))
        turn = rng.normal(size=(3, 4))
        x = np.concatenate([place, turn / np.linalg.norm(turn, axis=1)[:, None]], axis=1).reshape(-1)
        gap, reverse, forward, which, used, whole, named = (np.asarray(y) for y in look(x))
        np.testing.assert_allclose(whole, named, rtol=0.0, atol=1e-14)
        np.testing.assert_allclose(gap[used], whole[which][used], rtol=0.0, atol=1e-14)
        assert all(np.isfinite(y).all() for y in (gap, reverse, forward))
        seen.add(int(np.sum(used)))
    assert seen >= {0, 8, 16}  # no pair, one and two pairs in use


def fallen(capacity: int) -> nsjax.Problem:
    """Stones that fall onto the ground, two of them onto each other."""
    bodies = [body(x, mass=1.0, inertia=(4e-3, 5e-3, 6e-3)) for x in NAMES]
    shapes = [*(hull(x, points(n)) for x, n in zip(NAMES, SIZES, strict=True)), plane()]
    start = {x: (0.5 * (k == 2), 0.01 * k, 0.105 + 0.2 * (k == 1)) for k, x in enumerate(NAMES)}
    group = contact_group("all", shapes, friction=0.3, capacity=capacity)
    return assemble(*bodies, group, gravity=9.81, start=start)


def motion(problem: nsjax.Problem, steps: int, heights: tuple[int, int]) -> tuple[jax.Array, ...]:
    """Positions at the end, their derivatives by the fall of the first body, and the gradient of two
    heights by all velocities at the start.
    """
    system, params, state = problem

    def end(v: jax.Array) -> tuple[jax.Array, jax.Array]:
        start = dataclasses.replace(state, v=v)
        traj = nsjax.simulate(system, params, start, schemes.moreau(), dt=1e-3, steps=steps, every=steps)
        return traj.q[-1], traj.status

    v, fall = jnp.asarray(state.v), np.zeros(system.nv)
    fall[2] = -1.0
    place, status = jax.jit(end)(v)
    assert int(status) == 0
    forward = jax.jit(lambda v, w: jax.jvp(lambda x: end(x)[0], (v,), (w,))[1])(v, fall)
    reverse = jax.jit(jax.grad(lambda x: end(x)[0][heights[0]] + end(x)[0][heights[1]]))(v)
    # both modes: the heights of two bodies by the velocity of the first one
    assert abs(float(forward[heights[0]] + forward[heights[1]] + reverse[2])) < 1e-9
    return place, forward, reverse


@pytest.mark.slow
def test_motion_and_derivatives_of_chosen_hulls() -> None:
    """Those of all pairs, in forward and in reverse mode."""
    few, every = fallen(2), fallen(99)
    assert few.system.chosen is not None
    assert every.system.chosen is None
    for one, other in zip(motion(few, 60, (2, 9)), motion(every, 60, (2, 9)), strict=True):
        np.testing.assert_allclose(one, other, rtol=0.0, atol=1e-9)


@pytest.mark.slow
def test_motion_and_derivatives_on_terrain() -> None:
    """Those of all pairs, in forward and in reverse mode."""
    with pytest.warns(RowsWarning):
        few = over_terrain(0.06)
    every = over_terrain(0.06, capacity=99)
    assert few.system.chosen is not None
    assert every.system.chosen is None
    for one, other in zip(motion(few, 80, (2, 9)), motion(every, 80, (2, 9)), strict=True):
        np.testing.assert_allclose(one, other, rtol=0.0, atol=1e-9)


def over_terrain(radius: float, *, alone: bool = False, capacity: int | None = None) -> nsjax.Problem:
    """Balls and limbs over one terrain, with more contacts than a step evaluates unasked; ``alone``: the
    contacts of the first ball and limb by name.
    """
    x, y = np.linspace(-2.0, 2.0, 41), np.linspace(-1.5, 1.5, 26)
    waves = 0.2 * np.sin(3.0 * x)[:, None] * np.cos(4.0 * y)[None, :]
    terrain = heightfield("ground", waves, 2.0, 1.5, at=(0.1, 0.2, -0.1), turned=(0.05, -0.1, 0.2))
    names = [f"b{k}" for k in range(1 if alone else 8)]
    bodies = [body(n, mass=1.0, inertia=(4e-3, 5e-3, 6e-3)) for n in names]
    limbs = [capsule(n, 0.05, 0.1, at=(0.0, 0.0, -0.1), axis=(0.6, 0.8, 0.0)) for n in names]
    balls = [sphere(n, radius) for n in names]
    if alone:
        parts = [contact("ball", balls[0], terrain), contact("limb", limbs[0], terrain)]
    else:
        parts = [contact_group("all", [*balls, *limbs], [terrain], friction=0.3, capacity=capacity)]
    start = {n: (0.3 * k - 1.0, 0.25 * (k % 3), 0.25) for k, n in enumerate(names)}
    return assemble(*bodies, *parts, gravity=9.81, start=start)


def test_terrain_below_many() -> None:
    """Gaps are those of each ball and limb alone, and no pair nearer than the reach is left out."""
    with pytest.warns(RowsWarning, match=r"72 contacts between bodies, beyond 60: a step solves for the"):
        problem = over_terrain(0.06)
    system, alone = problem.system, over_terrain(0.06, alone=True)
    p, q = prepared(system, problem.params), prepared(alone.system, alone.params)
    reach, zero, few = float(problem.params["all"].reach), jnp.zeros(()), system.chosen.system

    @jax.jit
    def look(x: jax.Array) -> tuple[jax.Array, ...]:
        now = refreshed(system, zero, x, p)
        one = jax.vmap(lambda y: alone.system.gap(zero, y, refreshed(alone.system, zero, y, q)))
        return (
            system.gap(zero, x, now), one(x.reshape(8, 7)), few.gap(zero, x, now), system.chosen.used(now),
            system.chosen.which(now),
        )  # fmt: skip

    rng, count = np.random.default_rng(8), []
    for height in (0.0, 0.1, 0.2, 0.3, 3.0):
        place = rng.uniform(-1.3, 1.3, size=(8, 3)) * np.array([1.0, 1.0, 0.1]) + np.array([0, 0, height])
        turn = rng.normal(size=(8, 4))
        x = np.concatenate([place, turn / np.linalg.norm(turn, axis=1)[:, None]], axis=1).reshape(-1)
        gap, single, own, used, which = (np.asarray(y) for y in look(x))
        named = np.concatenate([single[:, :3].reshape(-1), single[:, 3:].reshape(-1)])
        np.testing.assert_allclose(gap, named, rtol=0.0, atol=1e-13)
        np.testing.assert_allclose(own[used], gap[which][used], rtol=0.0, atol=1e-13)
        left = np.setdiff1d(np.flatnonzero(gap < reach), which[used])
        assert left.size == 0
        assert np.isfinite(own).all()
        count.append(int(np.sum(used)))
    assert count[-1] == 0
    assert 0 < count[3] < 72
