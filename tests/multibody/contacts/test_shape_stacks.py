"""Pairs of hulls of different sizes as one batch, of which only near pairs are searched."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import schemes
from nsjax.core.operators import prepared, refreshed
from nsjax.multibody import assemble, body, contact, contact_group, hull, plane

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


@pytest.mark.slow
def test_motion_and_derivatives_of_chosen_pairs() -> None:
    """Those of all pairs, in forward and in reverse mode."""
    found = []
    for capacity in (2, 99):
        system, params, state = fallen(capacity)
        assert (system.chosen is None) == (capacity == 99)

        def end(v: jax.Array, own: nsjax.Problem = (system, params, state)) -> tuple[jax.Array, jax.Array]:
            start = dataclasses.replace(own[2], v=v)
            traj = nsjax.simulate(own[0], own[1], start, schemes.moreau(), dt=1e-3, steps=60, every=60)
            return traj.q[-1], traj.status

        v, fall = jnp.asarray(state.v), np.zeros(system.nv)
        fall[2] = -1.0
        place, status = jax.jit(end)(v)
        assert int(status) == 0
        forward = jax.jit(lambda v, w, f=end: jax.jvp(lambda x: f(x)[0], (v,), (w,))[1])(v, fall)
        reverse = jax.jit(jax.grad(lambda x, f=end: f(x)[0][2] + f(x)[0][9]))(v)
        found.append((place, forward, reverse))
        # both modes: the heights of two stones by the velocity of the first one
        assert abs(float(forward[2] + forward[9] + reverse[2])) < 1e-9
    for few, every in zip(*found, strict=True):
        np.testing.assert_allclose(few, every, rtol=0.0, atol=1e-9)
