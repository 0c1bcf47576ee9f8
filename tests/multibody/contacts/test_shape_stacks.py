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


def thrown(capacity: int) -> nsjax.Problem:
    """Stones in a row, the first of which is thrown at the others."""
    bodies = [body(x, mass=1.0, inertia=(4e-3, 5e-3, 6e-3)) for x in NAMES]
    shapes = [hull(x, points(n)) for x, n in zip(NAMES, SIZES, strict=True)]
    group = contact_group("all", shapes, friction=0.3, restitution=0.5, capacity=capacity)
    start = {x: (0.22 * k, 0.02 * k, 0.01) for k, x in enumerate(NAMES)}
    start[NAMES[0]] = (start[NAMES[0]], (2.0, 0.1, 0.0, 0.0, 0.0, 3.0))
    return assemble(*bodies, group, gravity=(0.0, 0.0, 0.0), start=start)


def same_motion(few: nsjax.Problem, every: nsjax.Problem, steps: int) -> np.ndarray:
    """Positions after a run of chosen pairs. They, and their derivatives by the first velocity at the
    start, are those of all pairs; the gradient in reverse mode is the one of forward mode.
    """
    assert few.system.chosen is not None
    assert every.system.chosen is None
    (system, _, state), found = few, []
    v, first, asked = jnp.asarray(state.v), np.eye(system.nv)[0], np.linspace(1.0, 2.0, system.nq)

    def end(v: jax.Array, problem: nsjax.Problem) -> tuple[jax.Array, jax.Array]:
        own, params, _ = problem
        start = dataclasses.replace(state, v=v)
        traj = nsjax.simulate(own, params, start, schemes.moreau(), dt=1e-3, steps=steps, every=steps)
        return traj.q[-1], traj.status

    for problem in (few, every):
        forward = jax.jit(lambda v, p=problem: jax.jvp(lambda x: end(x, p), (v,), (first,), has_aux=True))
        place, change, status = forward(v)
        assert int(status) == 0
        found.append((place, change))
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=0.0, atol=1e-9)
    reverse = jax.jit(jax.grad(lambda v: asked @ end(v, few)[0]))(v)
    assert abs(float(asked @ found[0][1] - reverse[0])) < 1e-9
    return np.asarray(found[0][0])


@pytest.mark.slow
def test_motion_and_derivatives_of_chosen_hulls() -> None:
    """Those of all pairs, in forward and in reverse mode."""
    place = same_motion(thrown(2), thrown(99), 100)
    assert abs(place[7] - 0.22) > 1e-2  # the second stone was hit


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


@pytest.mark.slow
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
        own, back = jax.vjp(lambda y: few.gap(zero, y, now), x)
        return (
            system.gap(zero, x, now), one(x.reshape(8, 7)), own, back(jnp.ones_like(own))[0],
            system.chosen.used(now), system.chosen.which(now),
        )  # fmt: skip

    rng, count = np.random.default_rng(8), []
    for height in (0.0, 0.1, 0.2, 0.3, 3.0):
        place = rng.uniform(-1.3, 1.3, size=(8, 3)) * np.array([1.0, 1.0, 0.1]) + np.array([0, 0, height])
        turn = rng.normal(size=(8, 4))
        x = np.concatenate([place, turn / np.linalg.norm(turn, axis=1)[:, None]], axis=1).reshape(-1)
        gap, single, own, reverse, used, which = (np.asarray(y) for y in look(x))
        named = np.concatenate([single[:, :3].reshape(-1), single[:, 3:].reshape(-1)])
        np.testing.assert_allclose(gap, named, rtol=0.0, atol=1e-13)
        np.testing.assert_allclose(own[used], gap[which][used], rtol=0.0, atol=1e-13)
        left = np.setdiff1d(np.flatnonzero(gap < reach), which[used])
        assert left.size == 0
        assert np.isfinite(own).all()
        assert np.isfinite(reverse).all()
        count.append(int(np.sum(used)))
    assert count[-1] == 0
    assert 0 < count[3] < 72
