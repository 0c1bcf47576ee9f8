"""Rows that are not asked: what a compiled call does for them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import schemes
from nsjax.contact import ContactLaw

MOST = 60
"""Evaluations of the gap that a run of two steps may take: some ten in each step and each of three rows, a
few at the start. With a gap for every row of a compiled call it takes more than 4,000.
"""


def test_gaps_of_asked_rows_alone() -> None:
    every = 1
    calls: list[int] = []

    def gap(t: jax.Array, q: jax.Array, p: None) -> jax.Array:
        jax.debug.callback(lambda: calls.append(0))
        return q

    ball = nsjax.System(
        name="ball", nq=1, nv=1, nc=1, mass=lambda q, p: jnp.eye(1),
        force=lambda t, q, v, p: jnp.array([-9.81]), gap=gap,
        law=lambda p: ContactLaw(),
    )  # fmt: skip
    problem = ball, None, nsjax.State(t=0.0, q=np.ones(1), v=np.zeros(1))
    nsjax.simulate(*problem, schemes.moreau(), dt=1e-3, steps=2, every=every)  # compiles, with checks
    calls.clear()
    traj = nsjax.simulate(*problem, schemes.moreau(), dt=1e-3, steps=2, every=every)
    jax.effects_barrier()
    assert 0 < len(calls) <= MOST
    # the gap of every saved row is that of its position
    assert traj.gap.shape[0] == 1 + 2 // every
    np.testing.assert_allclose(traj.gap[:, 0], traj.q[:, 0], rtol=0.0, atol=1e-15)


@pytest.mark.parametrize(("count", "places"), [(40, 4)])
def test_places_of_the_gaps_in_the_program_of_a_run(count: int, places: int) -> None:
    """In rows of contacts, at the ends of all saved rows, and in the step once for gaps and once
    for their curvature; with more than 32 contacts once for both, and once at the start of a traced run
    (`nsjax.core.start_checks.examined`). Every place costs a search of closest features in time of
    compilation; mechanisms of parts have none at the start.
    """
    system = nsjax.System(
        name="points", nq=count, nv=count, nc=count, mass=lambda q, p: jnp.eye(count),
        force=lambda t, q, v, p: -jnp.ones(count), gap=lambda t, q, p: jnp.arctanh(0.1 * q),
        law=lambda p: ContactLaw(restitution=0.5),
    )  # fmt: skip

    def run(q: jax.Array) -> jax.Array:
        state = nsjax.State(t=0.0, q=q, v=jnp.zeros(count))
        return nsjax.simulate(system, None, state, schemes.moreau(), dt=1e-3, steps=10).gap

    assert jax.jit(run).lower(jnp.ones(count)).as_text().count("atanh") == places
