"""Contact problems are solved in the smallest capacity that holds their active contacts."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nsjax.contact import ContactProblem, DelassusFactors, RowGroups, natural_residual, solve
from nsjax.contact.active_set import capacities, fits

POSSIBLE = 100


def drawn(seed: int, active: int) -> ContactProblem:
    """``active`` of the contacts of twenty planar bodies, at random places, which depend on each other."""
    rng, n = np.random.default_rng(seed), 60
    wt = rng.normal(size=(2 * POSSIBLE, n)) * (rng.uniform(size=(2 * POSSIBLE, n)) < 0.2)
    wt[np.arange(2 * POSSIBLE), rng.integers(0, n, 2 * POSSIBLE)] += 2.0
    mask = np.zeros(POSSIBLE, bool)
    mask[rng.permutation(POSSIBLE)[:active]] = True
    return ContactProblem(
        rows=RowGroups.of(POSSIBLE, 1), mask=jnp.asarray(mask),
        delassus=DelassusFactors(wt=jnp.asarray(wt), response=jnp.asarray(wt.T)),
        free=jnp.asarray(rng.normal(size=2 * POSSIBLE)), friction=jnp.asarray(rng.uniform(size=POSSIBLE)),
    )  # fmt: skip


def test_capacities_grow_while_they_are_small_parts_of_all() -> None:
    assert capacities(drawn(0, 1)) == [(16, 0), (48, 0)]
    none = dataclasses.replace(drawn(0, 1), rows=RowGroups.of(0, 0, 2 * POSSIBLE))
    assert capacities(none) == [(0, 0)]


@pytest.mark.slow
def test_answers_and_derivatives_in_every_capacity() -> None:
    """Against plain steps on the whole problem, a second method; forward and in reverse."""

    def answer(free: jax.Array, problem: ContactProblem, method: str) -> jax.Array:
        problem = dataclasses.replace(problem, free=free)
        return problem.delassus.response @ solve(problem, method=method, max_iterations=200).x

    @jax.jit
    def seen(problem: ContactProblem, along: jax.Array, weight: jax.Array) -> list[jax.Array]:
        of = [lambda free, m=m: answer(free, problem, m) for m in ("auto", "newton")]
        moved = [jax.jvp(f, (problem.free,), (along,)) for f in of]
        back = [jax.grad(lambda free, f=f: jnp.sum(weight * f(free)))(problem.free) for f in of]
        residual = natural_residual(problem, solve(problem).x)
        return [*moved, *back, residual]

    places, rng = set(), np.random.default_rng(3)
    for seed, active in enumerate((3, 16, 17, 30, 48, 49, 54)):
        problem = drawn(seed, active)
        places.add(tuple(bool(fits(problem, x)) for x in capacities(problem)))
        one, other, here, there, residual = seen(
            problem, rng.normal(size=2 * POSSIBLE), rng.normal(size=60)
        )
        assert residual < 1e-11
        # two answers of one problem differ by the tolerance times the condition of its rows, some thousand
        for x, y in ((one[0], other[0]), (one[1], other[1]), (here, there)):
            np.testing.assert_allclose(x, y, rtol=0, atol=1e-7)
    assert places == {(True, True), (False, True), (False, False)}
