"""Contact problems that fall into islands: answers, certificate and derivatives as of one problem."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.contact import ContactProblem, RowGroups, natural_residual, solve
from nsjax.linalg import Blocks

ISLANDS, CONTACTS, NT = 3, 2, 1


def problem(islands: bool, scale=1.0) -> ContactProblem:
    """Contacts that stick, slide and open; none acts in the last island."""
    size = CONTACTS * (1 + NT)
    mix = np.random.default_rng(5).normal(size=(ISLANDS, size, size))
    g = Blocks(values=jnp.asarray(mix @ mix.transpose(0, 2, 1) + np.eye(size)) * scale)
    free = jnp.array([-1.0, 0.2, -2.0, 5.0, -1.0, 3.0, 0.5, 0.1, -1.0, 0.3, -1.0, 0.3])
    mask = jnp.arange(ISLANDS * CONTACTS) < 4
    friction = jnp.linspace(0.2, 0.6, ISLANDS * CONTACTS) * scale
    return ContactProblem(
        rows=RowGroups.of(ISLANDS * CONTACTS, NT), delassus=g if islands else g.dense(), free=free * scale,
        friction=friction, mask=mask,
    )  # fmt: skip


def test_same_answer() -> None:
    solved = jax.jit(lambda problem: solve(problem, max_iterations=500))
    ours, dense = (solved(problem(i)) for i in (True, False))
    assert ours.residual <= 1e-11
    assert np.sum(dense.x > 0.1) >= 2
    # both are within 1e-11 of the answer, relative to impulses of about 1, at a condition of about 10
    np.testing.assert_allclose(ours.x, dense.x, atol=1e-9)
    # the largest error over islands, each relative to its own size, bounds that of the whole
    residual = jax.jit(natural_residual)
    assert residual(problem(True), ours.x) <= 1e-11
    assert residual(problem(False), ours.x) <= 1e-11
