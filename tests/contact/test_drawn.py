"""Drawn problems: all that have an answer are solved, all that have none are told apart."""

from __future__ import annotations

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nsjax.contact import ContactProblem, RowGroups, solve
from nsjax.contact.branches import branches, tangent
from nsjax.contact.solvers import SolverSettings
from tests.contact.drawn import Drawn, contradicting, drawn, has_answer
from tests.contact.problems import check_law

MOST = 5
TOLERANCE = 1e-11


def padded(problems: list[Drawn]) -> tuple[jax.Array, ...]:
    """Matrices, free velocities, coefficients and masks of problems in `MOST` contacts, stacked."""
    n, m = len(problems), 3 * MOST
    g, f = np.tile(np.eye(m), (n, 1, 1)), -np.ones((n, m))
    mu, mask = np.ones((n, MOST)), np.zeros((n, MOST), bool)
    for k, problem in enumerate(problems):
        rows = problem.free.shape[0]
        g[k, :rows, :rows], f[k, :rows] = problem.delassus, problem.free
        mu[k, : problem.contacts], mask[k, : problem.contacts] = problem.friction, True
    return jnp.asarray(g), jnp.asarray(f), jnp.asarray(mu), jnp.asarray(mask)


def made(data: tuple[jax.Array, ...], nt: int = 2, nb: int = 0) -> ContactProblem:
    g, f, mu, mask = data
    return ContactProblem(
        rows=RowGroups.of(mu.shape[0], nt, nb), delassus=g, free=f, friction=mu, mask=mask
    )  # fmt: skip


def every(nt: int, nb: int) -> Callable[..., tuple[jax.Array, ...]]:
    """Impulses, residuals and ways of stacked problems, one after the other."""

    def one(data: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        answer = solve(made(data, nt, nb), tolerance=TOLERANCE)
        return answer.x, answer.residual, answer.rounds

    return jax.jit(functools.partial(jax.lax.map, one))


space, plane = every(2, 0), every(1, 1)


@jax.jit
@functools.partial(jax.vmap, in_axes=(0, None, None))
def begun(data: tuple[jax.Array, ...], size: jax.Array, seed: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Residual and ways from drawn impulses, in multiples of what single rows need."""
    problem, settings = made(data), SolverSettings(tolerance=TOLERANCE)
    single = jnp.max(jnp.abs(problem.free * problem.scaling()))
    draw = jax.random.normal(jax.random.key(seed), problem.free.shape)
    answer = settings.solve(problem, size * single * draw)
    return answer.residual, answer.rounds


@pytest.mark.slow
@pytest.mark.parametrize("size", [1e9, 1.0])
def test_any_start_leads_to_an_answer(size: float) -> None:
    """Impulses of an impact are enormous beside those of a small step after it."""
    data = padded([drawn(seed, MOST) for seed in range(200)])
    residual, ways = begun(data, size, 0)
    assert np.max(residual) <= TOLERANCE
    assert np.sum(ways > 0) >= 5  # plain steps did not find these


def check_drawn(seeds: range) -> None:
    """A body above a plane always has an answer: with a velocity away from it all laws hold with room
    (Acary and Cadoux, 2013); a second one that touches it, too.
    """
    problems = [drawn(seed, MOST) for seed in seeds]
    data = padded(problems)
    x, residual, ways = (np.asarray(a) for a in space(data))
    assert np.all(residual <= TOLERANCE), [seeds[k] for k in np.flatnonzero(residual > TOLERANCE)]
    for k in np.flatnonzero(ways > 0):
        # the certificate bounds the natural map; single products may be larger
        check_law(made(tuple(a[k] for a in data)), x[k], 1e-9)
    assert np.mean(ways > 0) > 0.1  # where plain steps fail is what this is about


def test_drawn_problems_are_solved() -> None:
    check_drawn(range(300))


def test_an_answer_is_its_own_start() -> None:
    """Impulses that fulfil the laws come back as they are; from others problems are solved as from zero."""

    def one(data: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        first = solve(made(data), tolerance=TOLERANCE, method="auto_rare")
        start = jnp.stack([first.x, first.x * (1.0 + 0.1 * jnp.cos(jnp.arange(first.x.shape[0])))])
        ends = jax.lax.map(
            lambda x: solve(made(data), tolerance=TOLERANCE, method="auto_rare", start=x), start
        )
        return first.x, ends.x, ends.residual, ends.iterations

    data = padded([drawn(seed, MOST) for seed in range(100)])
    x, ends, residual, steps = (np.asarray(a) for a in jax.jit(functools.partial(jax.lax.map, one))(data))
    assert np.all(residual <= TOLERANCE)
    np.testing.assert_array_equal(ends[:, 0], x)
    assert np.all(steps[:, 0] == 0)
    assert np.mean(steps[:, 1] > 0) > 0.5


def check_contradicting(seeds: range) -> None:
    problems = [contradicting(seed) for seed in seeds]
    stacked = [jnp.asarray(np.stack(a)) for a in zip(*map(_data, problems), strict=True)]
    x, residual, _ = (np.asarray(a) for a in plane((*stacked, jnp.ones((len(seeds), 2), bool))))
    answers = np.array([has_answer(problem) for problem in problems])
    assert 0.1 < np.mean(answers) < 0.9
    assert np.all(residual[answers] <= TOLERANCE)
    assert np.all(np.isinf(residual[~answers]))
    # of the size that compliances about those of rows need: no larger than a row alone asks for
    alone = np.array([np.max(np.abs(p.free) / np.diag(p.delassus)) for p in problems])
    assert np.all(np.max(np.abs(x), axis=1)[~answers] <= 10.0 * alone[~answers])


def _data(problem: Drawn) -> tuple[np.ndarray, ...]:
    return problem.delassus, problem.free, problem.friction


def test_problems_without_an_answer_are_told_apart() -> None:
    check_contradicting(range(60))


@jax.jit
@jax.vmap
def rounding(data: tuple[jax.Array, ...], x: jax.Array) -> jax.Array:
    """That of a derivative by the coefficients: digits of the friction force, over the smallest singular
    value of rows that do not depend on each other (1e-10 where contacts slide at a speed of rounding).
    """
    problem = made(data)
    r = problem.scaling()
    at = branches(problem, x, problem.velocity(x), r)
    values = jnp.linalg.svd(tangent(problem, x, r, at, 0.0), compute_uv=False)
    least = jnp.min(jnp.where(values > 1e-13, values, jnp.inf))
    return jnp.finfo(x.dtype).eps * jnp.max(jnp.abs(x)) / jnp.minimum(least, 1.0)


@pytest.mark.slow
def test_derivatives_of_drawn_problems() -> None:
    """Of the velocity along a direction, where an answer came by way of compliant contacts:
    forward and reverse agree to what `rounding` leaves, and lanes side by side are those one after the
    other.
    """
    problems = [p for p in map(drawn, range(300)) if p.contacts == 4][:40]
    g, f, mu, mask = padded(problems)
    rows = np.repeat(np.asarray(mask), 3, axis=1)
    along = jnp.asarray(np.random.default_rng(0).normal(size=f.shape) * rows)

    @jax.jit
    @jax.vmap
    def both(
        g: jax.Array, f: jax.Array, mu: jax.Array, mask: jax.Array, d: jax.Array
    ) -> tuple[jax.Array, ...]:
        def moved(s: jax.Array) -> jax.Array:
            problem = made((g, f, mu * (1.0 + s), mask))
            return d @ (g @ solve(problem, tolerance=TOLERANCE).x)

        zero = jnp.zeros(())
        value, forward = jax.jvp(moved, (zero,), (jnp.ones(()),))
        return value, forward, jax.grad(moved)(zero)

    value, forward, reverse = (np.asarray(a) for a in both(g, f, mu, mask, along))
    assert np.all(np.isfinite(forward))
    x, _, ways = space((g, f, mu, mask))
    assert np.any(np.asarray(ways) > 0)
    bound = np.asarray(rounding((g, f, mu, mask), x))
    assert np.median(bound) < 1e-14
    assert np.all(np.abs(forward - reverse) <= 1e-8 * np.abs(reverse) + 10.0 * bound)
    alone = np.einsum("ki,kij,kj->k", along, np.asarray(g), np.asarray(x))
    np.testing.assert_allclose(value, alone, rtol=1e-6, atol=1e-9)
