"""All rows of many contacts, of which more are active than there are places, from factors."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nsjax.contact import (
    Bounded,
    ContactProblem,
    DelassusFactors,
    GivenForces,
    RowGroup,
    RowGroups,
    natural_residual,
    solve,
)
from nsjax.contact.active_set import capacities, fits
from nsjax.contact.branches import has_rows
from nsjax.linalg import LOOP_LIMIT, ROW_LIMIT


def drawn(
    seed: int, nt: int, rough: int, frictionless: int = 0, bounded: int = 0, nb: int = 0
) -> ContactProblem:
    """Rows of nine velocities; a fifth of the contacts have no friction, a third are away."""
    rng = np.random.default_rng(seed)
    nc, m = rough + frictionless + bounded, rough * (1 + nt) + frictionless + bounded + nb
    wt = rng.normal(size=(m, 9))
    last = np.arange(nc) >= rough + frictionless
    return ContactProblem(
        rows=RowGroups.of(rough + frictionless, nt, nb, frictionless, RowGroup(Bounded(), bounded)),
        free=jnp.asarray(rng.normal(size=m)),
        delassus=DelassusFactors(wt=jnp.asarray(wt),
            response=jnp.asarray((wt / rng.uniform(1.0, 3.0, 9)).T)),
        friction=jnp.asarray(rng.uniform(size=nc) * (rng.uniform(size=nc) > 0.2)),
        mask=jnp.asarray(rng.uniform(size=nc) > 0.3),
        given=GivenForces(normal=jnp.where(last, 0.7, 0.0)) if bounded else None,
    )  # fmt: skip


def test_who_has_such_rows() -> None:
    few, many = drawn(0, 2, LOOP_LIMIT // 3), drawn(0, 2, ROW_LIMIT // 3 + 1)
    fitting = drawn(0, 2, ROW_LIMIT // 3)
    assert [has_rows(x) for x in (few, fitting, many)] == [False, True, False]
    assert not has_rows(fitting.dense())
    assert not has_rows(drawn(0, 2, 40, nb=LOOP_LIMIT + 1))  # all of which act


def plate(seed: int, count: int) -> ContactProblem:
    """A plate that slides, turns and lands flat on ``count`` of its points: six velocities."""
    rng = np.random.default_rng(seed)
    at = np.concatenate([rng.uniform(-1.0, 1.0, (count, 2)), np.full((count, 1), -0.1)], axis=1)
    arms = np.zeros((count, 3, 3))  # d (velocity of the point) / d (spin)
    arms[:, 0, 1], arms[:, 0, 2], arms[:, 1, 0] = at[:, 2], -at[:, 1], -at[:, 2]
    arms[:, 1, 2], arms[:, 2, 0], arms[:, 2, 1] = at[:, 0], at[:, 1], -at[:, 0]
    rows = np.concatenate([np.broadcast_to(np.eye(3), (count, 3, 3)), arms], axis=2)[:, [2, 0, 1]]
    wt = rows.reshape(3 * count, 6)
    inverse = np.diag([0.5, 0.5, 0.5, 1.3, 1.1, 0.7])
    v = np.concatenate([rng.normal(size=2), [-1.0], rng.normal(size=3) * 0.2])
    return ContactProblem(
        rows=RowGroups.of(count, 2),
        delassus=DelassusFactors(wt=jnp.asarray(wt),
            response=jnp.asarray(inverse @ wt.T)),
        free=jnp.asarray(wt @ v), friction=jnp.full(count, 0.3), mask=jnp.ones(count, bool),
    )  # fmt: skip


def velocity(problem: ContactProblem, x: np.ndarray) -> np.ndarray:
    """Change of the velocities (6,) by the impulses ``x``."""
    return np.asarray(problem.delassus.response) @ np.asarray(x)


@pytest.mark.slow
def test_more_contacts_than_places_have_an_answer() -> None:
    """Forty points that depend on each other: the laws hold, as with the matrix and a factorisation."""
    seed = 0
    problem = plate(seed, 40)
    assert has_rows(problem)
    assert not any(fits(problem, x) for x in capacities(problem))
    one, other = jax.jit(solve)(problem), solve(problem.dense())
    for answer in (one, other):
        assert float(natural_residual(problem, answer.x)) < 1e-11
    # how dependent points share the load, and which way their friction then points, is decided by rounding
    # over the regularisation, 1e-7
    np.testing.assert_allclose(velocity(problem, one.x), velocity(problem, other.x), rtol=0, atol=1e-6)
    # by hand: normal velocities do not approach, and no contact of a sliding plate pulls
    u, x = np.asarray(problem.velocity(one.x)).reshape(-1, 3), np.asarray(one.x).reshape(-1, 3)
    assert np.min(u[:, 0]) > -1e-10
    assert np.min(x[:, 0]) > -1e-10
    assert np.max(np.hypot(x[:, 1], x[:, 2]) - 0.3 * x[:, 0]) < 1e-10


@pytest.mark.slow
def test_its_derivative_is_that_of_the_matrix() -> None:
    """Velocities after the impact by the free velocity, forward and in reverse, at a sliding plate."""
    problem = plate(1, 40)
    weight = np.arange(1.0, 7.0)
    change = problem.delassus.wt @ jnp.asarray([0.3, -0.2, 0.1, 0.2, 0.4, -0.1])

    def after(free: jax.Array, dense: bool) -> jax.Array:
        here = dataclasses.replace(problem, free=free)
        return problem.delassus.response @ solve(here.dense() if dense else here).x

    forward = [jax.jvp(lambda f, d=d: after(f, d), (problem.free,), (change,))[1] for d in (False, True)]
    np.testing.assert_allclose(*forward, rtol=0, atol=1e-6)
    back = jax.grad(lambda f: jnp.sum(weight * after(f, False)))(problem.free)
    np.testing.assert_allclose(back @ change, weight @ forward[0], rtol=1e-6)
