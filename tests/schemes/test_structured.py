"""Of a long bar no dense matrix is formed, in no run and no check."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

import nsjax
from nsjax import models, schemes
from nsjax.core.start_checks import probe


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
