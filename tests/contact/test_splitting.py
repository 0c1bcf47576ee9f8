"""Contacts between two bodies each, by products alone, against the dense solver."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nsjax.contact import ContactProblem, Factored, natural_residual, solve
from nsjax.linalg import Paired

BODIES, CONTACTS, NT, BLOCK = 4, 6, 2, 6


BY_PRODUCTS = jax.jit(solve)
BY_MATRIX = jax.jit(functools.partial(solve, method="gauss_seidel", max_iterations=2000))


def problem(friction: float, seed: int = 1) -> ContactProblem:
    """A heap: normals pair by pair, tangents across them with arms, as of spheres of unequal size."""
    draw = np.random.default_rng(seed)
    of = np.array([[0, 4], [1, 4], [0, 1], [2, 0], [2, 1], [3, 2]])
    values = np.zeros((CONTACTS, 2, 1 + NT, BLOCK))
    for k in range(CONTACTS):
        frame, _ = np.linalg.qr(draw.normal(size=(3, 3)))
        for side, sign in ((0, 1.0), (1, -1.0)):
            values[k, side, :, :3] = sign * frame
            values[k, side, 1:, 3:] = draw.uniform(0.05, 0.1) * frame[::-1][:2]
    weight = np.concatenate([np.full(3, 1.0), np.full(3, 250.0)])
    wt = Paired(values=jnp.asarray(values), of=jnp.asarray(of), blocks=BODIES)
    fixed = (of < BODIES)[:, :, None, None]
    response = Paired(values=jnp.asarray(values * weight * fixed), of=wt.of, blocks=BODIES, across=True)
    free = draw.normal(size=(CONTACTS, 1 + NT))
    free[:, 0] = -np.abs(free[:, 0])
    return ContactProblem(
        nc=CONTACTS, nt=NT, nb=0, delassus=Factored(wt=wt, response=response),
        free=jnp.asarray(free.reshape(-1)), friction=jnp.full(CONTACTS, friction),
        mask=jnp.arange(CONTACTS) != 4,
    )  # fmt: skip


@pytest.mark.parametrize("friction", [0.0, 0.4])
def test_as_the_dense_solver(friction: float) -> None:
    ours = problem(friction)
    g = ours.delassus.wt.dense() @ ours.delassus.response.dense()
    dense = dataclasses.replace(ours, delassus=g)
    found, wanted = BY_PRODUCTS(ours), BY_MATRIX(dense)
    assert found.residual <= 1e-11
    assert natural_residual(dense, found.x) <= 1.01e-11  # the certificate of the matrix
    # more rows than velocities would let impulses differ; here they are unique, and condition about 1e3
    np.testing.assert_allclose(found.x, wanted.x, atol=1e-8)
    assert np.sum(np.asarray(ours.contacts(found.x))[:, 0] > 0.0) >= 3
    assert np.all(ours.contacts(found.x)[4] == 0.0)


def test_random_problems() -> None:
    """By the certificate of the matrix, which knows nothing of pairs or groups."""
    for seed in range(2, 22):
        ours = problem(0.4, seed)
        g = ours.delassus.wt.dense() @ ours.delassus.response.dense()
        found = BY_PRODUCTS(ours)
        assert found.residual <= 1e-11, seed
        assert natural_residual(dataclasses.replace(ours, delassus=g), found.x) <= 1.01e-11, seed


def slots(x: ContactProblem, order: np.ndarray) -> ContactProblem:
    """The same contacts in other slots."""
    wt, response = (
        dataclasses.replace(a, values=a.values[order], of=a.of[order])
        for a in (x.delassus.wt, x.delassus.response)
    )
    return dataclasses.replace(
        x, delassus=Factored(wt=wt, response=response), mask=x.mask[order],
        free=x.contacts(x.free)[order].reshape(-1), friction=x.friction[order],
    )  # fmt: skip


def test_slots_do_not_matter() -> None:
    given, order = problem(0.4), np.random.default_rng(3).permutation(CONTACTS)
    wanted = given.contacts(BY_PRODUCTS(given).x)[order]
    # condition about 1e3, see above
    np.testing.assert_allclose(
        given.contacts(BY_PRODUCTS(slots(given, order)).x), wanted, atol=1e-8, rtol=0.0
    )


def test_from_known_impulses() -> None:
    """The answer needs no sweep, what is near it fewer, and contacts that open in between keep nothing."""
    given = problem(0.4)
    cold = BY_PRODUCTS(given)
    begun = jax.jit(lambda problem, x: solve(problem, start=x))
    again = begun(given, cold.x)
    assert again.iterations == 0
    assert np.array_equal(again.x, cold.x)
    assert begun(given, cold.x * (1.0 + 1e-9)).iterations < cold.iterations
    for open_now in (jnp.zeros(CONTACTS, bool), given.mask & (jnp.arange(CONTACTS) != 0)):
        other = dataclasses.replace(given, mask=open_now)
        found = begun(other, cold.x)
        assert found.residual <= 1e-11
        assert np.all(np.where(open_now[:, None], 0.0, given.contacts(found.x)) == 0.0)
        np.testing.assert_allclose(found.x, BY_PRODUCTS(other).x, atol=1e-8)


def test_what_is_not_reached_is_said() -> None:
    assert BY_PRODUCTS(problem(0.4), tolerance=0.0, max_iterations=0).residual > 0.1


def test_derivatives_are_refused() -> None:
    given = problem(0.4)
    with pytest.raises(NotImplementedError, match="with pairs"):
        jax.grad(lambda s: jnp.sum(solve(dataclasses.replace(given, free=s * given.free)).x))(1.0)
