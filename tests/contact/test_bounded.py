"""Contact problems with given normal impulses: against a box-constrained least-squares solver."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import lsq_linear

from nsjax.contact import Bounded, ContactProblem, GivenForces, RowGroup, RowGroups, natural_residual, solve


def bounded_problem(
    seed: int, nc: int, nd: int, nt: int = 1
) -> tuple[ContactProblem, np.ndarray, np.ndarray]:
    """Frictionless contacts, then bounded rows; the directions (rows, nv) that matter, and a velocity. With
    one tangent those of the contacts are empty, as in a model without; with two they are any.
    """
    rng = np.random.default_rng(seed)
    n, d = nc + nd, 1 + nt
    w = rng.normal(size=(n, n + 2))
    rows = np.zeros((nc * d + nd, n + 2))
    rows[: nc * d : d] = w[:nc]
    rows[nc * d :] = w[nc:]
    if nt == 2:
        for k in range(nc):
            rows[k * d + 1 : k * d + d] = rng.normal(size=(2, n + 2))
    v = rng.normal(size=n + 2)
    normal = np.concatenate([np.zeros(nc), rng.uniform(0.0, 0.5, nd)])
    problem = ContactProblem(
        rows=RowGroups.of(nc, nt, bounded=RowGroup(Bounded(), nd)),
        delassus=jnp.asarray(rows @ rows.T), free=jnp.asarray(rows @ v),
        friction=jnp.asarray(np.concatenate([np.zeros(nc), np.ones(nd)])), mask=jnp.ones(n, bool),
        given=GivenForces(normal=jnp.asarray(normal)),
    )  # fmt: skip
    return problem, w, v


def reference(w: np.ndarray, v: np.ndarray, nc: int, bound: np.ndarray) -> np.ndarray:
    """``min |W x + v|^2`` with ``x_N >= 0`` and ``|x_D| <= bound``: its conditions are the laws."""
    low = np.concatenate([np.zeros(nc), -bound])
    high = np.concatenate([np.full(nc, np.inf), bound])
    return lsq_linear(w.T, -v, bounds=(low, high), tol=1e-14, method="bvls").x


@pytest.mark.parametrize(
    ("method", "nc", "nd", "nt"),
    [
        ("auto", 3, 3, 1),
        *(pytest.param(*x, marks=pytest.mark.slow) for x in (("newton", 0, 3, 1), ("auto", 2, 2, 2))),
    ],
)
def test_bounded_rows_are_a_box(method: str, nc: int, nd: int, nt: int) -> None:
    solved = jax.jit(lambda p: solve(p, tolerance=1e-11, max_iterations=50, method=method))
    certificate, edges = jax.jit(natural_residual), 0
    for seed in range(12):
        problem, w, v = bounded_problem(seed, nc, nd, nt)
        bound = np.asarray(problem.given.normal)[nc:]
        answer = solved(problem)
        assert answer.residual <= 1e-11
        assert certificate(problem, answer.x) <= 1e-11
        d = 1 + nt
        x = np.concatenate([answer.x[: nc * d : d], answer.x[nc * d :]])
        # the certificate bounds row-scaled errors; the operators have condition numbers up to 1e3
        np.testing.assert_allclose(x, reference(w, v, nc, bound), atol=1e-8)
        edges += int(np.sum(np.abs(x[nc:]) >= bound * (1 - 1e-9)))
    assert 0 < edges < 12 * nd  # some slide, some stick


@pytest.mark.slow
def test_derivative_of_bounded_rows() -> None:
    """With respect to bounds and free velocity: on the branches the answer is linear, so that the
    reference's own differences are exact.
    """
    problem, w, v = bounded_problem(5, 2, 3)
    bound = np.asarray(problem.given.normal)[2:]
    rng = np.random.default_rng(0)
    db, dv = rng.normal(size=3), rng.normal(size=len(v))
    rows = np.zeros((7, len(v)))
    rows[:4:2], rows[4:] = w[:2], w[2:]

    def x(s: jax.Array) -> jax.Array:
        given = GivenForces(normal=jnp.concatenate([jnp.zeros(2), bound + s * db]))
        free = problem.free + s * (rows @ dv)
        return solve(dataclasses.replace(problem, given=given, free=free)).x

    forward, reverse = jax.jit(lambda s: (jax.jacfwd(x)(s), jax.jacrev(x)(s)))(0.0)
    h = 1e-6
    ends = [reference(w, v + s * dv, 2, bound + s * db) for s in (h, -h)]
    wanted = (ends[0] - ends[1]) / (2 * h)
    found = np.concatenate([forward[:4:2], forward[4:]])
    np.testing.assert_allclose(found, wanted, atol=1e-6 * np.abs(wanted).max())
    np.testing.assert_allclose(reverse, forward, atol=1e-12 * np.abs(forward).max())


@pytest.mark.parametrize(("bound", "speed"), [(0.0, -0.4), pytest.param(1e-3, 0.7, marks=pytest.mark.slow)])
def test_the_derivative_by_a_bound_starts_at_zero(bound: float, speed: float) -> None:
    """A row that slides makes ``-bound sign(u)``: the same derivative for no bound as for a small one."""

    def force(bound: jax.Array) -> jax.Array:
        problem = ContactProblem(
            rows=RowGroups.of(0, 1, bounded=RowGroup(Bounded(), 1)), delassus=jnp.array([[2.0]]),
            free=jnp.array([speed]), friction=jnp.ones(1), mask=jnp.ones(1, bool),
            given=GivenForces(normal=bound[None]),
        )  # fmt: skip
        return solve(problem).x

    for derivative in (jax.jit(jax.jacfwd(force)), jax.jit(jax.jacrev(force))):
        np.testing.assert_allclose(derivative(jnp.asarray(bound)), [-np.sign(speed)], atol=1e-8)
