"""Bounded rows whose bounds follow normal impulses: rolling resistance and friction against spinning."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nsjax.contact import Bounded, ContactProblem, GivenForces, RowGroup, RowGroups, natural_residual, solve
from nsjax.contact.active_set import gathers

solved = jax.jit(lambda problem: solve(problem))
certificate = jax.jit(natural_residual)


def pushed(free, multiple):
    """A contact with friction and a force that follows it, uncoupled."""
    return ContactProblem(
        rows=RowGroups.of(1, 1, bounded=RowGroup(Bounded(leads=(0,)), 1)),
        delassus=jnp.diag(jnp.array([1.0, 2.0, 4.0])), free=jnp.asarray(free),
        friction=jnp.array([0.3, multiple]), mask=jnp.ones(2, bool), given=GivenForces(normal=jnp.zeros(2)),
    )  # fmt: skip


def test_a_row_at_and_within_its_bound() -> None:
    for spin, wanted in ((10.0, -0.4), (-10.0, 0.4), (0.8, -0.2)):
        problem = pushed((-2.0, 0.1, spin), 0.2)
        answer = solved(problem)
        assert float(answer.residual) < 1e-12
        np.testing.assert_allclose(problem.impulses(answer.x), [[2.0, -0.05], [2.0, wanted]], atol=1e-12)
        assert float(certificate(problem, np.asarray(answer.x) * 1.01)) > 1e-3
    # an open contact bears no moment, and neither does one that takes no part
    for changes in ({"free": problem.free.at[0].set(1.0)}, {"mask": jnp.array([False, True])}):
        answer = solved(dataclasses.replace(problem, **changes))
        assert float(answer.residual) < 1e-12
        assert not np.any(np.asarray(answer.x))


def test_derivatives_by_all_data() -> None:
    """Of a coupled problem, forward, reverse and by differences."""
    w = np.random.default_rng(3).normal(size=(3, 5))

    @jax.jit
    def end(problem, s):
        return solve(dataclasses.replace(
            problem, free=problem.free * (1.0 + s), friction=problem.friction + jnp.array([0.1, 0.3]) * s,
        )).x  # fmt: skip

    both = jax.jit(lambda problem, s: (jax.jacfwd(end, 1)(problem, s), jax.jacrev(end, 1)(problem, s)))
    for spin in (9.0, 0.02):
        problem = pushed((-2.0, 3.0, spin), 0.2)
        problem = dataclasses.replace(problem, delassus=jnp.asarray(w @ w.T * 0.02) + problem.delassus)
        forward, reverse = both(problem, 0.0)
        difference = (end(problem, 1e-6) - end(problem, -1e-6)) / 2e-6
        np.testing.assert_allclose(forward, difference, atol=1e-7)
        np.testing.assert_allclose(reverse, forward, atol=1e-12)


def test_a_row_follows_a_contact_without_friction_behind_one_with() -> None:
    """Rows of three sizes beside each other: normal and tangent, normal alone, tangent alone."""
    w = np.random.default_rng(1).normal(size=(4, 6))
    problem = ContactProblem(
        rows=RowGroups.of(2, 1, frictionless=1, bounded=RowGroup(Bounded(leads=(1,)), 1)),
        delassus=jnp.asarray(w @ w.T * 0.05 + np.eye(4)),
        free=jnp.array([-1.0, 0.2, -2.0, 9.0]), friction=jnp.array([0.3, 0.0, 0.25]),
        mask=jnp.ones(3, bool), given=GivenForces(normal=jnp.zeros(3)),
    )  # fmt: skip
    answer = solved(problem)
    assert float(answer.residual) < 1e-12
    assert int(answer.iterations) <= 6
    assert abs(float(answer.x[3]) + 0.25 * float(answer.x[2])) < 1e-12
    assert float(answer.x[2]) > 0.5


FOLLOWERS = (0, 1, 3, 3, 1, 0, 3, 3, 1, 2)
"""Number of moments that follow each contact with friction."""


def spread_out_problem(seed: int) -> ContactProblem:
    """Random rows: ten contacts with friction, of which six are active, and the moments that follow them,
    beside a contact without friction, two forces with bounds of their own, and a bilateral row.
    """
    rng = np.random.default_rng(seed)
    rough, frictionless, own, nb = len(FOLLOWERS), 1, 2, 1
    leads = [k for k, n in enumerate(FOLLOWERS) for _ in range(n)]
    bounded = own + len(leads)
    nc, m = rough + frictionless + bounded, 3 * rough + frictionless + bounded + nb
    kinds = np.repeat([0, 1, 2, 3], [rough, frictionless, own, len(leads)])
    w = rng.normal(size=(m + 3, m))
    mask = np.ones(nc, bool)
    mask[rng.choice(rough, 4, replace=False)] = False
    free = rng.normal(size=m)
    free[: 3 * rough : 3] -= 1.0
    forces = RowGroup(Bounded(leads=(-1,) * own + tuple(leads)), bounded)
    return ContactProblem(
        rows=RowGroups.of(rough + frictionless, 2, nb, frictionless, forces),
        delassus=jnp.asarray(w.T @ w / m),
        free=jnp.asarray(free),
        friction=jnp.asarray(np.array([0.4, 0.0, 1.0, 0.05])[kinds]), mask=jnp.asarray(mask),
        given=GivenForces(normal=jnp.asarray(np.where(kinds == 2, 0.05, 0.0))),
    )  # fmt: skip


@pytest.mark.slow
def test_active_contacts_are_gathered_with_the_moments_that_follow_them() -> None:
    """The answer and its derivative are those of the whole problem, solved by another method."""

    def answer(problem: ContactProblem, method: str) -> Any:
        return solve(problem, method=method, tolerance=1e-12, max_iterations=200)

    @jax.jit
    def both(problem: ContactProblem, along: Any) -> Any:
        def of(method: str) -> Any:
            return jax.jvp(
                lambda f: answer(dataclasses.replace(problem, free=f), method).x, (problem.free,), (along,)
            )

        return of("auto"), of("newton")

    moments = 0.0
    for seed in range(6):
        problem = spread_out_problem(seed)
        assert gathers(problem)
        along = jnp.asarray(np.random.default_rng(100 + seed).normal(size=problem.free.shape))
        (one, slope), (other, wanted) = both(problem, along)
        # two solvers end at the tolerance times the condition of the rows, some thousand
        np.testing.assert_allclose(one, other, atol=1e-9)
        np.testing.assert_allclose(slope, wanted, atol=1e-9)
        moments = max(moments, float(jnp.max(jnp.abs(one[-len(FOLLOWERS) :]))))
    assert moments > 1e-3
