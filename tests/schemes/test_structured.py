"""Schemes on models with structure: the same motion as with dense matrices, none of which is formed."""

from __future__ import annotations

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import ContactLaw, Problem, State, System, models, schemes
from nsjax.core.start_checks import probe
from nsjax.linalg import BlockTridiagonal, Dense, Pattern, Sparse
from tests.design import drawn

MASSES = 5
STRUCTURES = {
    "dense": Dense(),
    "chain": BlockTridiagonal(2),
    "sparse": Sparse(Pattern.of_elements(2 * MASSES, [range(2 * k, 2 * k + 4) for k in range(MASSES - 1)])),
}
OTHERS = drawn("structured")[:2]


def heavy(q, w, p):
    return 0.1 * w


def pull(t, q, v, p):
    """Nonlinear springs between neighbours, a little damping, weight."""
    x, u = q.reshape(MASSES, 2), v.reshape(MASSES, 2)
    d = x[1:] - x[:-1]
    length = jnp.sqrt(jnp.sum(d * d, axis=1, keepdims=True))
    f = p["stiffness"] * (length - 0.2) / length * d + 0.05 * (u[1:] - u[:-1])
    weight = jnp.array([0.0, -0.981])
    return (jnp.pad(f, ((0, 1), (0, 0))) - jnp.pad(f, ((1, 0), (0, 0))) + weight).reshape(-1)


def height(t, q, p):
    return q.reshape(MASSES, 2)[:, 1]


def slide(t, q, v, p):
    return v.reshape(MASSES, 2)[:, :1]


def closure(t, q, p):
    """The ends keep their distance: a loop that the chain does not have."""
    d = q[-2:] - q[:2]
    return jnp.sum(d * d)[None] - 0.36


def law(p):
    return ContactLaw(restitution=0.2, friction=p["friction"])


@functools.cache
def loop(structure: str) -> Problem:
    """Masses in a closed loop that falls on rough ground."""
    system = System(
        nq=2 * MASSES, nv=2 * MASSES, nc=MASSES, nt=1, nb=1, inertia=heavy, force=pull, gap=height,
        slip=slide, constraint=closure, law=law, structure=STRUCTURES[structure],
    )  # fmt: skip
    x = np.array([[0.0, 0.1], [0.1, 0.26], [0.3, 0.3], [0.5, 0.26], [0.6, 0.1]])
    state = State(t=0.0, q=x.reshape(-1), v=np.tile([0.5, 0.0], MASSES))
    return Problem(system=system, params={"stiffness": 40.0, "friction": 0.3}, state=state)


def final(scheme, structure: str, stiffness=40.0, steps: int = 80):
    system, params, state = loop(structure)
    return nsjax.simulate(
        system, {**params, "stiffness": stiffness}, state, scheme, dt=2e-3, steps=steps, every=10
    )


def compare(name: str, structure: str) -> None:
    scheme = schemes.REGISTRY[name].factory()
    ours, dense = final(scheme, structure), final(scheme, "dense")
    ours.raise_for_status()
    assert dense.impulse_normal.sum() > 0.01
    assert np.abs(dense.impulse_tangential).max() > 0.0
    # iterations to tolerances of 1e-11 and rounding, amplified along the impacts of the run
    np.testing.assert_allclose(ours.q, dense.q, atol=1e-9)
    np.testing.assert_allclose(ours.impulse_normal, dense.impulse_normal, atol=1e-9)
    assert np.abs(ours.constraint_impulse).max() > 0.0


@pytest.mark.slow
def test_chain_with_contacts_and_a_loop_as_border() -> None:
    compare("moreau", "chain")


@pytest.mark.slow
@pytest.mark.parametrize("structure", ["chain", "sparse"])
def test_derivatives_forward_and_reverse(structure: str) -> None:
    scheme = schemes.generalized_alpha(0.8)

    def place(structure: str):
        return lambda k: jnp.sum(final(scheme, structure, k, steps=60).q[-1] ** 2)

    dense = jax.jacfwd(place("dense"))(40.0)
    forward, reverse = jax.jacfwd(place(structure))(40.0), jax.grad(place(structure))(40.0)
    # rounding, and what two steps of the derivative leave out of forces beyond the pattern (1e-12)
    assert float(forward) == pytest.approx(float(dense), rel=1e-9)
    assert float(reverse) == pytest.approx(float(forward), rel=1e-9)
    assert abs(float(dense)) > 1e-5


def bar(structure) -> Problem:
    problem = models.elastic_bar(elements=12, distance=0.3, restitution=0.3, damping=1e-3)
    return dataclasses.replace(problem, system=dataclasses.replace(problem.system, structure=structure))


@pytest.mark.slow
@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize(
    "structure", [BlockTridiagonal(1), BlockTridiagonal(1, constant=True), Dense(constant=True)]
)
def test_factors_kept_for_a_run(name: str, structure) -> None:
    """A bar through its contact: matrices kept, or formed in every step, or dense, are the same."""
    scheme = schemes.REGISTRY[name].factory()
    ours, dense = (
        nsjax.simulate(*bar(s), scheme, dt=4e-3, steps=250, every=50) for s in (structure, Dense())
    )
    ours.raise_for_status()
    assert dense.impulse_normal.sum() > 100.0
    np.testing.assert_allclose(ours.q, dense.q, rtol=1e-10)
    np.testing.assert_allclose(ours.impulse_normal, dense.impulse_normal, rtol=1e-9)


def shapes(jaxpr) -> set[tuple[int, ...]]:
    """Of all values in a program, inner programs included."""
    found = {v.aval.shape for e in jaxpr.eqns for v in e.outvars if hasattr(v.aval, "shape")}
    for equation in jaxpr.eqns:
        for inner in jax.tree.leaves(
            equation.params, is_leaf=lambda x: hasattr(x, "eqns") or hasattr(x, "jaxpr")
        ):
            inner = getattr(inner, "jaxpr", inner)
            if hasattr(inner, "eqns"):
                found |= shapes(inner)
    return found


def check_sizes(program) -> None:
    """No value is larger than vectors, their directional derivatives in three colours, saved steps."""
    sizes = [int(np.prod(s)) for s in shapes(program.jaxpr)]
    assert 2501 <= max(sizes) <= 40 * 2501


def bar_run(name: str):
    system, params, state = models.elastic_bar(elements=2500)
    scheme = schemes.REGISTRY[name].factory()

    def run(params, state):
        traj = nsjax.simulate(system, params, state, scheme, dt=1e-4, steps=2, every=1)
        return jnp.sum(traj.q[-1])

    return run, params, state


def test_no_dense_matrix_above_2000_unknowns() -> None:
    name = "moreau"
    run, params, state = bar_run(name)
    check_sizes(jax.make_jaxpr(run)(params, state))


def test_no_dense_matrix_in_the_checks_of_a_start() -> None:
    system, params, state = models.elastic_bar(elements=2500)
    # as they are traced, not from a program that is kept
    check_sizes(jax.make_jaxpr(lambda p, s: probe(system, p, s))(params, state))
