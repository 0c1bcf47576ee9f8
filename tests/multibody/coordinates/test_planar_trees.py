"""Mass matrices and forces of random planar trees against d'Alembert's principle, and of spatial chains
against planar ones.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nsjax.core.operators import prepared
from nsjax.multibody import assemble, body, hinge, joint_spring, slide
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


def chain(spatial: bool):
    """Two hinges, a slide given backwards, a hinge: in the plane, or in a plane that is turned in space."""

    def point(x, y):
        return TURN @ [x, y, 0.0] if spatial else (x, y)

    def inertia(j):
        return TURN @ np.diag([0.6 * j, 0.7 * j, j]) @ TURN.T if spatial else j

    axis = {"axis": TURN[:, 2]} if spatial else {}
    tilt = 0.4 * TURN[:, 2] if spatial else 0.4
    return assemble(
        body("a", mass=1.0, inertia=inertia(0.2), com=point(0.3, 0.1)),
        body("b", mass=0.7, inertia=inertia(0.3), com=point(0.2, -0.1)),
        body("c", mass=1.2, inertia=inertia(0.1), com=point(-0.1, 0.4)),
        body("d", mass=0.4, inertia=inertia(0.2), com=point(0.3, 0.0)),
        hinge("h1", "ground", "a", at=point(0.2, 0.1), **axis),
        hinge("h2", "b", "a", at=point(-0.3, 0.1), on=point(0.5, 0.2), armature=0.3, **axis),
        slide("s", "c", "b", at=point(0.1, 0.2), on=point(0.3, 0.0), axis=point(0.6, 0.8), turned=tilt),
        hinge("h3", "c", "d", at=point(0.4, 0.2), armature=0.2, **axis),
        joint_spring("k2", "h2", stiffness=3.0, damping=0.4, rest=0.2),
        joint_spring("k", "s", stiffness=5.0, cubic=2.0, damping=0.3),
        gravity=point(1.0, -9.81),
    )


@pytest.mark.slow
def test_spatial_chain_is_the_planar_one() -> None:
    """Accelerations to 1e-11 at 20 states: angles of planar bodies are sums of angles of spatial hinges."""
    flat, round_ = chain(False), chain(True)
    p = prepared(round_.system, jax.tree.map(lambda x: jnp.asarray(x, float), round_.params))
    # rows: a, b, c (slide against b), d; the hinge h2 turns a against b, the slide tilts b against c
    sums = jnp.asarray([[1.0, 0, 0, 0], [1, -1, 0, 0], [0, 0, 1, 0], [1, -1, 0, 1]])
    shift = jnp.asarray([0.0, 0.0, 0.0, -0.4])

    def acceleration(problem, p, q, v):
        system = problem.system
        return jnp.linalg.solve(system.mass(q, p), system.force(jnp.zeros(()), q, v, p))

    @jax.jit
    @jax.vmap
    def both(q, v):
        found = sums @ acceleration(round_, p, q, v)
        return found, acceleration(flat, flat.params, sums @ q + shift, sums @ v)

    rng = np.random.default_rng(1)
    found, wanted = both(*(jnp.asarray(rng.normal(size=(STATES, 4))) for _ in range(2)))
    assert off(found, wanted) <= 1e-11
