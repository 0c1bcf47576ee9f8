"""The search of the first event of a motion, its derivatives, and the size of programs that use it."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nsjax.schemes.locating.trial_steps import SAME_INSTANT, FirstEvent, Flight, first_event

GRAVITY = 9.81
HEIGHTS, SPEEDS = jnp.array([0.3, 1.0, 0.31]), jnp.array([-0.1, 0.0, -0.2])
"""Three balls; the third is the first to reach the floor."""


def fall(length: jax.Array, data: tuple[jax.Array, jax.Array], most: int = 60) -> FirstEvent:
    """Balls that fall until the first of them reaches the floor; data: heights and speeds."""

    def at(time: jax.Array, data: tuple[jax.Array, jax.Array]) -> jax.Array:
        return data[0] + data[1] * time - 0.5 * GRAVITY * time**2

    def fly(time: jax.Array, data: tuple[jax.Array, jax.Array]) -> Flight:
        gap = at(time, data)
        return Flight(end=(gap, data[1] - GRAVITY * time, gap < 0.1), values=gap, hit=gap < 0.0)

    like = data[0], data[1], jnp.zeros(3, bool)
    return first_event(fly, lambda data: at(jnp.zeros(()), data), like, most)(length, data)


def arrival(h: jax.Array, v: jax.Array) -> jax.Array:
    """Time at which the third ball reaches the floor."""
    return (v[2] + jnp.sqrt(v[2] ** 2 + 2.0 * GRAVITY * h[2])) / GRAVITY


def state(data: tuple[jax.Array, jax.Array]) -> jax.Array:
    """Time of the event, and heights and speeds there."""
    found = fall(jnp.asarray(0.4), data)
    return jnp.concatenate([found.time[None], *found.flight.end[:2]])


def exact(data: tuple[jax.Array, jax.Array]) -> jax.Array:
    """The same in closed form."""
    h, v = data
    s = arrival(h, v)
    return jnp.concatenate([s[None], h + v * s - 0.5 * GRAVITY * s**2, v - GRAVITY * s])


@pytest.mark.slow
def test_the_first_event_and_its_derivatives() -> None:
    data = HEIGHTS, SPEEDS
    found = fall(jnp.asarray(0.4), data)
    assert found.found
    # the first ball is below the floor at the end of the whole time, too, the second is not
    assert found.flight.hit.tolist() == [True, False, True]
    assert found.flight.end[2].tolist() == [True, False, True]
    # the third ball falls with 2.4 m/s, and its height is zero to 1e-13 m
    np.testing.assert_allclose(state(data), exact(data), atol=2 * SAME_INSTANT)
    for way in (jax.jacfwd, jax.jacrev):
        jax.tree.map(
            lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-11),
            jax.jit(way(state))(data), way(exact)(data),
        )  # fmt: skip
    seconds = [jax.jacfwd(jax.jacrev(f))(data) for f in (state, exact)]
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10), *seconds)


@pytest.mark.parametrize("edge", ["start", "end"])
def test_an_event_at_an_end_is_moved_inside(edge: str) -> None:
    """Both parts of a step keep a length."""
    s = arrival(HEIGHTS, SPEEDS)
    length = s * (1.0 + 1e-11) if edge == "end" else jnp.asarray(0.1)
    late = 1e-11 * length
    low = HEIGHTS if edge == "end" else HEIGHTS.at[2].set(-SPEEDS[2] * late)
    found = fall(length, (low, SPEEDS))
    assert found.found
    np.testing.assert_allclose(found.time, (1.0 - 1e-9 if edge == "end" else 1e-9) * length, rtol=1e-12)
    moved = low + SPEEDS * found.time - 0.5 * GRAVITY * found.time**2
    np.testing.assert_array_equal(found.flight.end[0], moved)


def test_a_search_that_is_too_short_finds_nothing() -> None:
    data, length = (HEIGHTS, SPEEDS), jnp.asarray(0.4)
    assert [bool(fall(length, data, most).found) for most in (1, 60)] == [False, True]


def test_lanes() -> None:
    lengths = jnp.array([0.1, 0.2, 0.4])
    found = jax.vmap(lambda s: fall(s, (HEIGHTS, SPEEDS)))(lengths)
    alone = [fall(s, (HEIGHTS, SPEEDS)).time for s in lengths]
    np.testing.assert_array_equal(found.time, alone)
