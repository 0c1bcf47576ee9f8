"""Conjugate gradients behind the structure protocol against dense linear algebra."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import InputError, models, schemes
from nsjax.linalg import (
    ConjugateGradients,
    Local,
    NodeBlocks,
    Separable,
    box_colours,
    coloured,
    local_jacobian,
    matvec,
)
from nsjax.linalg.iterative import Iterative, stabilised

RNG = np.random.default_rng(5)
BOX = (2, 3, 2)


@functools.cache
def stretched() -> tuple[np.ndarray, np.ndarray]:
    """Mass and stiffness (nv, nv) of a strained brick with a held upper face, whose nodes are `BOX`."""
    system, p, state = models.flexible_cube(elements=(1, 2, 2), held="upper", density=50.0)

    @jax.jit
    def both(q):
        mass = jax.jacfwd(lambda w: system.inertia(q, w, p))(0.0 * q)
        return mass, -jax.jacfwd(lambda q: system.force(0.0, q, 0.0 * q, p))(q)

    mass, stiffness = both(state.q + 2e-3 * RNG.normal(size=system.nv))
    return np.asarray(mass), np.asarray(stiffness)


@pytest.mark.parametrize(
    ("preconditioner", "share"),
    [
        (NodeBlocks(box_colours(BOX), 3), 1.0),
        pytest.param(Separable(BOX, 3, (False, False, True)), 1e-6, marks=pytest.mark.slow),
    ],
)
def test_solutions_and_their_derivatives(preconditioner, share) -> None:
    """``(M + c K)^-1 b`` for a small and a large ``c``, forward and reverse, several columns."""
    mass, stiffness = stretched()
    structure = ConjugateGradients(preconditioner, tolerance=1e-13)
    assert structure.misfit(len(mass)) is None
    b = RNG.normal(size=(len(mass), 2))

    @jax.jit
    def solved(c, b):
        matrix = structure.tangent(lambda x: (mass + c * stiffness) @ x, jnp.zeros(len(mass)))
        return structure.eliminate(matrix, b)[1]

    def dense(c, b):
        return jnp.linalg.solve(mass + c * stiffness, b)

    size = np.abs(dense(share, b)).max()
    np.testing.assert_allclose(solved(share, b), dense(share, b), atol=1e-10 * size)
    one = (jnp.asarray(share), jnp.asarray(b)), (jnp.asarray(0.3), jnp.asarray(b[::-1]))
    wanted = jax.jit(lambda: jax.jvp(dense, *one)[1])()
    # the condition of the matrix, up to 1e4, times the tolerance
    bound = 1e-8 * np.abs(wanted).max()
    np.testing.assert_allclose(jax.jit(lambda: jax.jvp(solved, *one)[1])(), wanted, atol=bound)
    back = [
        float(jax.jit(jax.grad(lambda c, f=f: jnp.sum(jnp.sin(f(c, b) / size))))(share))
        for f in (solved, dense)
    ]
    assert back[0] == pytest.approx(back[1], rel=1e-7)


def test_matrices_that_are_not_symmetric() -> None:
    a = np.eye(30) + 0.1 * RNG.normal(size=(30, 30))
    b = RNG.normal(size=30)
    found = stabilised(lambda x: a @ x, lambda r: r, jnp.asarray(b), 1e-12, 200)
    assert found.solved
    np.testing.assert_allclose(found.x, np.linalg.solve(a, b), rtol=1e-9)


def test_no_answer_is_not_a_number() -> None:
    """Eight different eigenvalues need eight iterations."""
    matrix = jnp.diag(jnp.arange(1.0, 9.0))
    for most, fine in ((2, False), (9, True)):
        structure = ConjugateGradients(NodeBlocks((0, 0), 4), max_iterations=most)
        done = Iterative(
            structure=structure, product=lambda x: matrix @ x, made=jnp.stack([jnp.eye(4)] * 2)
        )
        assert np.isfinite(done.solve(jnp.ones(8))).all() == fine


def test_rows_at_nodes() -> None:
    values = RNG.normal(size=(2, 3, 2))
    rows = Local(values=jnp.asarray(values), nodes=(3, 1), size=8)
    whole = np.zeros((6, 8))
    whole[:3, 6:], whole[3:, 2:4] = values
    x, y = RNG.normal(size=8), RNG.normal(size=6)
    np.testing.assert_allclose(matvec(rows, x), whole @ x)
    np.testing.assert_allclose(matvec(rows.T, y), whole.T @ y)
    np.testing.assert_allclose(rows.dense(), whole)
    assert (rows.shape, rows.T.shape) == ((6, 8), (8, 6))
    again = local_jacobian(lambda x: whole @ x, jnp.zeros(8), 3, (3, 1), 2)
    np.testing.assert_allclose(again.values, values)


def test_colours_part_neighbours() -> None:
    elements = [(0, 1, 2), (2, 3, 4), (4, 5, 0)]
    colours = coloured(6, elements)
    assert all(len({colours[k] for k in e}) == 3 for e in elements)


def test_refusals() -> None:
    structure = ConjugateGradients(NodeBlocks((0, 1), 3), touched=(1, 1))
    assert "names a node twice" in structure.misfit(6)
    assert "2 nodes of 3 unknowns" in ConjugateGradients(NodeBlocks((0, 1), 3)).misfit(7)
    assert "(2, 2, 2) nodes" in ConjugateGradients(Separable((2, 2, 2), 3)).misfit(7)
    with pytest.raises(ValueError, match="a structure that eliminates"):
        structure.stacked(2)
    with pytest.raises(InputError, match="solver = 'amg'; choose one of direct, iterative"):
        models.flexible_cube(solver="amg")


def thrown(solver: str, rough: bool) -> nsjax.Problem:
    more = {"rough": True, "friction": 0.3} if rough else {}
    return models.flexible_cube(
        elements=1, height=1e-4, solver=solver, velocity=np.array([0.5 * rough, 0.0, -2.4]), **more
    )


def end_of(solver: str, rough: bool, gradient: str, steps: int = 2):
    """Place of an upper node by the speed of the throw."""

    def end(speed):
        problem = thrown(solver, rough)
        v = jnp.asarray(problem.state.v) * speed
        run = nsjax.simulate(
            *problem.replace({"state.v": v}), schemes.nsga_decoupled(), dt=1e-3, steps=steps,
            gradient=gradient,
        )  # fmt: skip
        return run.q[-1, -1] + run.v[-1, -3]

    return end


def check_program(rough: bool) -> None:
    """The derivative of the program, forward and reverse, against its own secant: nothing closes in it."""
    end = end_of("iterative", rough, "discrete")
    both = jax.jit(lambda x: (jax.jvp(end, (x,), (1.0,))[1], jax.grad(end)(x)))
    forward, reverse = (float(x) for x in both(1.0))
    run, step = jax.jit(end), 1e-5
    # rounding of values of 2.4 over the step; curvature is below that
    assert forward == pytest.approx(float(run(1 + step) - run(1 - step)) / (2 * step), abs=1e-7)
    assert reverse == pytest.approx(forward, rel=1e-8)


@pytest.mark.slow
def test_derivatives_at_nodes() -> None:
    check_program(rough=False)


@pytest.mark.slow
def test_derivatives_of_the_motion_through_contacts_at_nodes_are_refused() -> None:
    with pytest.raises(NotImplementedError, match=r'gradient="discrete".* solver="direct"'):
        jax.grad(end_of("iterative", False, "saltation", steps=1))(1.0)
