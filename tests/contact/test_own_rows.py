"""Frictionless contacts with one row: the answers are those of contacts without friction of all rows."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nsjax.contact import Bounded, ContactProblem, GivenForces, RowGroup, RowGroups, natural_residual, solve
from nsjax.contact.active_set import CAPACITY
from nsjax.contact.problem import DelassusFactors

DRAWS = 12
KINDS = ((3, 4, 3), (0, 3, 2), (2, 0, 3), (CAPACITY[0] + 3, CAPACITY[0] + 2, 2))
"""Contacts with friction, without, and bounded ones; of the last there are more than places."""


def _drawn(seed: int, kinds: tuple[int, int, int], nt: int, nb: int, tangents: int = 1) -> ContactProblem:
    """A problem, factored. Bounded forces have one row, or both of a disc."""
    rng, (rough, frictionless, bounded) = np.random.default_rng(seed), kinds
    nc, m = sum(kinds), rough * (1 + nt) + frictionless + bounded * tangents + nb
    nv = m + 2
    wt = rng.normal(size=(m, nv))
    mass = rng.normal(size=(nv, nv))
    mass = mass @ mass.T + nv * np.eye(nv)
    last = np.arange(nc) >= rough + frictionless
    mask = (rng.uniform(size=nc) < 0.6) | last
    return ContactProblem(
        rows=RowGroups.of(rough + frictionless, nt, nb, frictionless, RowGroup(Bounded(tangents), bounded)),
        delassus=DelassusFactors(wt=jnp.asarray(wt),
            response=jnp.linalg.solve(mass, wt.T)),
        free=jnp.asarray(rng.normal(size=m)), mask=jnp.asarray(mask),
        friction=jnp.where(last, 1.0, jnp.where(np.arange(nc) < rough, rng.uniform(0.0, 0.8, nc), 0.0)),
        given=GivenForces(normal=jnp.where(last, rng.uniform(0.0, 0.3, nc), 0.0)) if bounded else None,
    )  # fmt: skip


def _with_all_rows(problem: ContactProblem) -> tuple[ContactProblem, np.ndarray]:
    """The problem with empty tangents of its frictionless contacts, and the places of its rows."""
    rows = problem.rows
    (first, second, _), d = rows.ends, 1 + rows.nt
    places = np.concatenate([np.arange(first), first + d * np.arange(rows.frictionless)])
    last = first + d * rows.frictionless
    places = np.concatenate([places, last + np.arange(rows.count - second)])
    m = last + rows.count - second
    g, free = np.zeros((m, m)), np.zeros(m)
    g[np.ix_(places, places)] = problem.dense().matrix
    free[places] = problem.free
    forces = RowGroup(Bounded(rows.tangents), rows.bounded)
    every = RowGroups.of(rows.rough + rows.frictionless, rows.nt, rows.nb, 0, forces)
    return dataclasses.replace(problem, rows=every, delassus=jnp.asarray(g), free=jnp.asarray(free)), places


@jax.jit
def _solved(problem: ContactProblem, df: jax.Array) -> tuple[Any, ...]:
    """Answer, residual, residual computed afresh, impulses of contacts, derivative: one program."""

    def answer(free: jax.Array) -> tuple[Any, Any]:
        found = solve(dataclasses.replace(problem, free=free))
        return found.x, found.residual

    (x, residual), (change, _) = jax.jvp(answer, (problem.free,), (df,))
    return x, residual, natural_residual(problem, x), problem.contacts(x), change


SIZES = [(1, 1), (2, 1), (2, 2)]
"""Tangents of contacts, and those of bounded ones that are not empty."""


@pytest.mark.slow
@pytest.mark.parametrize(("kinds", "nt", "tangents"), [(x, *SIZES[k % 3]) for k, x in enumerate(KINDS)])
def test_answers_of_all_rows(kinds: tuple[int, int, int], nt: int, tangents: int) -> None:
    """Impulses, their certificate and their derivatives."""
    for seed in range(DRAWS):
        problem = _drawn(seed, kinds, nt, 1, tangents)
        every, own = _with_all_rows(problem)
        df = np.random.default_rng(seed).normal(size=len(own))
        padded = np.zeros(every.free.shape)
        padded[own] = df
        x, residual, again, found, change = _solved(problem, jnp.asarray(df))
        wanted, _, _, contacts, whole = _solved(every, jnp.asarray(padded))
        assert float(residual) <= 1e-11
        assert float(again) <= 1e-11
        # both meet 1e-11 of impulses up to ten; derivatives lose what the matrix is conditioned by
        np.testing.assert_allclose(x, wanted[own], atol=1e-9)
        np.testing.assert_allclose(found, contacts, atol=1e-9)
        np.testing.assert_allclose(change, whole[own], atol=1e-7)


def test_rows_and_contacts_are_inverse() -> None:
    """A row vector taken apart and stacked again."""
    problem = _drawn(0, KINDS[0], 2, 2, 2)
    x = jnp.arange(1.0, 1.0 + problem.rows.count)
    np.testing.assert_array_equal(problem.stack(problem.contacts(x), problem.bilateral(x)), x)
