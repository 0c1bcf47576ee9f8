"""Derivatives of the contact solution: against unrolled iterations and high-precision differences."""

from __future__ import annotations

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nsjax.contact import ContactProblem, RowGroups, SolverSettings, solve
from tests.contact.problems import random_problem


def strictly_complementary(problem: ContactProblem, x: np.ndarray) -> bool:
    """No contact is near a change of branch."""
    u = np.asarray(problem.velocity(x))
    d = 1 + problem.nt
    margin = 1e-2 * np.abs(problem.free).max()
    for k in range(problem.nc):
        xn, un = x[k * d], u[k * d]
        xt, ut = np.linalg.norm(x[k * d + 1 : (k + 1) * d]), np.linalg.norm(u[k * d + 1 : (k + 1) * d])
        if problem.mask[k] and max(xn * problem.delassus[k * d, k * d], un) < margin:
            return False
        closed = problem.mask[k] and xn > 0 and problem.nt
        if closed and max(problem.friction[k] * xn - xt, ut) < margin:
            return False
    return True


def impulses(g, f, mu, e, problem):
    """Impulses of an impact as a function of the data: F = (1 + e) f."""
    return solve(dataclasses.replace(problem, delassus=g, free=(1 + e) * f, friction=mu), tolerance=1e-13).x


@pytest.mark.slow
@pytest.mark.parametrize("nt", [0, 1, 2])
def test_implicit_derivative_equals_differences(nt: int) -> None:
    """Central differences at strictly complementary points, where the solution is smooth.

    Newton's answer is accurate to 1e-13, so a step of 1e-5 leaves an error of about 1e-8.
    """
    forward = jax.jit(jax.jacfwd(impulses, argnums=(0, 1, 2, 3)))
    reverse = jax.jit(jax.jacrev(impulses, argnums=(0, 1, 2, 3)))
    value = jax.jit(impulses)
    tried = 0
    for seed in range(40):
        problem = random_problem(seed, 2, nt, mu=0.4)
        data = (problem.delassus, problem.free, problem.friction, jnp.asarray(0.3))
        x = np.asarray(value(*data, problem))
        scaled = dataclasses.replace(problem, free=1.3 * problem.free)
        if not strictly_complementary(scaled, x):
            continue
        tried += 1
        exact = forward(*data, problem)
        for a, b in zip(exact, reverse(*data, problem), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)
        rng = np.random.default_rng(seed)
        for position, leaf in enumerate(data):
            direction = jnp.asarray(rng.normal(size=leaf.shape))
            moved = [
                value(
                    *(z + s * 1e-5 * direction if i == position else z for i, z in enumerate(data)), problem
                )
                for s in (1, -1)
            ]
            difference = (moved[0] - moved[1]) / 2e-5
            predicted = jnp.tensordot(exact[position], direction, leaf.ndim)
            np.testing.assert_allclose(predicted, difference, rtol=1e-5, atol=1e-7)
    assert tried >= 10


@pytest.mark.slow
def test_friction_zero_takes_the_slip_direction_from_the_velocity() -> None:
    """At mu = 0 the force vanishes, but dx_T/dmu = -sign(u_T) x_N does not."""
    free = jnp.array([-1.0, 2.0])

    def tangential(mu):
        problem = ContactProblem(
            rows=RowGroups.of(1, 1), delassus=jnp.eye(2), free=free, friction=mu[None],
            mask=jnp.array([True]),
        )  # fmt: skip
        return solve(problem).x

    np.testing.assert_allclose(jax.jacfwd(tangential)(jnp.asarray(0.0)), [0.0, -1.0], atol=1e-12)
    np.testing.assert_allclose(jax.jacrev(tangential)(jnp.asarray(0.0)), [0.0, -1.0], atol=1e-12)


@pytest.mark.parametrize("nt", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_derivatives_are_finite_on_awkward_problems(nt: int) -> None:
    """Zero velocity, zero force, friction zero, dependent and masked contacts: 10^4 problems."""
    count, nc = 5000, 2
    m = nc * (1 + nt)
    rng = np.random.default_rng(0)
    w = rng.normal(size=(count, m, m))
    w[1::5, 1 + nt :] = w[1::5, : 1 + nt]  # the same contact twice
    w[2::5, :, 2:] = 0.0  # rank two
    free = rng.normal(size=(count, m, 1))
    free[3::5] = 0.0
    free[4::10, ::2] = 0.0
    f = np.where(rng.uniform(size=(count, 1, 1)) < 0.5, w @ (w.transpose(0, 2, 1) @ free), free)[:, :, 0]
    mu = rng.uniform(size=(count, nc)) * (rng.uniform(size=(count, nc)) < 0.7)
    batch = ContactProblem(
        rows=RowGroups.of(nc, nt), delassus=jnp.asarray(w @ w.transpose(0, 2, 1)), free=jnp.asarray(f),
        friction=jnp.asarray(mu), mask=jnp.asarray(rng.uniform(size=(count, nc)) < 0.9),
    )  # fmt: skip

    def loss(floats, mask):
        g, f, mu = floats
        problem = ContactProblem(rows=RowGroups.of(nc, nt), delassus=g, free=f, friction=mu, mask=mask)
        return jnp.sum(jnp.sin(solve(problem).x))

    floats = (batch.delassus, batch.free, batch.friction)
    gradient = jax.jit(functools.partial(jax.lax.map, lambda a: jax.grad(loss)(*a)))((floats, batch.mask))
    for leaf in gradient:
        assert np.all(np.isfinite(leaf))


def sliding(x: jax.Array) -> ContactProblem:
    """A contact that slides in the plane, with coupled rows; x = (restitution, rates, friction)."""
    e, normal, along, friction = x
    g = jnp.array([[1.0, 0.3], [0.3, 3.5]]) * (1.0 + along**2)
    return ContactProblem(
        rows=RowGroups.of(1, 1),
        delassus=g, free=jnp.stack([(1.0 + e) * normal, along]), friction=friction[None],
        mask=jnp.array([True]),
    )  # fmt: skip


@pytest.mark.slow
def test_second_derivatives_of_sliding() -> None:
    """In closed form, in both modes: they follow the matrix of the rows."""
    at = jnp.array([0.7, -2.8, 4.1, 0.2])

    def exact(x: jax.Array) -> jax.Array:
        problem = sliding(x)
        g, mu = problem.matrix, x[3]
        normal = -problem.free[0] / (g[0, 0] - mu * g[0, 1])
        return jnp.stack([normal, -mu * normal])

    def found(x: jax.Array) -> jax.Array:
        return SolverSettings().solve(sliding(x)).x

    wanted = jax.hessian(exact)(at)
    for ways in (jax.jacfwd, jax.jacfwd), (jax.jacfwd, jax.jacrev):
        np.testing.assert_allclose(ways[0](ways[1](found))(at), wanted, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(jax.jacfwd(found)(at), jax.jacfwd(exact)(at), rtol=1e-12, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_second_derivatives_of_contacts_in_space(seed: int) -> None:
    """Against differences of first derivatives within the branches: 1e-5 wide, they are exact to 1e-9 of
    the first derivatives, over the step.
    """
    problem = random_problem(seed, nc=2, nt=2, nb=1)
    m = problem.free.shape[0]
    drawn = np.random.default_rng(seed + 10)
    ways = drawn.standard_normal((2, m)), drawn.standard_normal((m, m)), drawn.random(2)

    def found(s: jax.Array) -> jax.Array:
        more = 0.01 * s[1] * (ways[1] @ ways[1].T)
        moved = dataclasses.replace(
            problem, free=problem.free + s @ ways[0], delassus=problem.delassus + more,
            friction=problem.friction * (1.0 + s[0] * ways[2]),
        )  # fmt: skip
        return SolverSettings(tolerance=1e-13).solve(moved).x

    first, zero, h = jax.jit(jax.jacfwd(found)), jnp.zeros(2), 1e-5
    wide = jnp.stack([(first(zero + h * e) - first(zero - h * e)) / (2.0 * h) for e in jnp.eye(2)], axis=-1)
    bend = jax.jit(jax.jacfwd(jax.jacfwd(found)))(zero)
    np.testing.assert_allclose(bend, wide, atol=1e-6 * float(jnp.max(jnp.abs(wide))) + 1e-6)
    np.testing.assert_allclose(bend, jnp.swapaxes(bend, 1, 2), atol=1e-8 * float(jnp.max(jnp.abs(bend))))
