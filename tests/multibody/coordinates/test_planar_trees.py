"""Mass matrices and forces of random planar trees against d'Alembert's principle, and of spatial chains
against planar ones.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.multibody.coordinates.planar_lagrange import RandomTree

STATES = 20
QUICK = 1
SEEDS = [*range(QUICK), *(pytest.param(k, marks=pytest.mark.slow) for k in range(QUICK, 6))]


def off(found, wanted) -> float:
    """Largest difference, relative to the largest entry of each state."""
    axes = tuple(range(1, wanted.ndim))
    return float(np.max(np.abs(found - wanted) / np.max(np.abs(wanted), axis=axes, keepdims=True)))


@pytest.mark.parametrize("seed", SEEDS)
def test_random_trees(seed: int) -> None:
    """Mass matrix to 1e-12, forces to 1e-11 of their largest entry; the energy to 1e-12."""
    tree = RandomTree(seed)
    system, p = tree.problem.system, tree.problem.params
    rng = np.random.default_rng(seed + 100)
    q, v = (jnp.asarray(rng.normal(size=(STATES, system.nv))) for _ in range(2))

    @jax.jit
    @jax.vmap
    def both(q, v):
        t = jnp.zeros(())
        found = system.mass(q, p), system.force(t, q, v, p), system.potential(t, q, p)
        return found, (*tree.equations(q, v), tree.potential(q))

    found, wanted = both(q, v)
    assert off(found[0], wanted[0]) <= 1e-12
    assert off(found[1], wanted[1]) <= 1e-11
    assert np.max(np.abs(found[2] - wanted[2])) <= 1e-12 * np.max(np.abs(wanted[2]))


TURN = np.linalg.qr(np.random.default_rng(5).normal(size=(3, 3)))[0]
TURN = TURN * np.linalg.det(TURN)
