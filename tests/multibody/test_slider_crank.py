"""The planar slider-crank from parts is the hand-written one."""

from __future__ import annotations

import random

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import schemes
from nsjax.multibody import assemble, hinge
from nsjax.simulate import _advance, begin_eager_run
from tests.multibody.slider_crank_parts import BY_HAND, FROM_PARTS, PARTS, START

SCHEMES = {"moreau": schemes.moreau(), "generalized_alpha": schemes.generalized_alpha()}
SHUFFLED = random.Random(3).sample(PARTS, len(PARTS))


def evaluated(system, p, q, v):
    """Mass matrix, forces, gaps, slips and energy."""
    t = jnp.zeros(())
    return {
        "mass": system.mass(q, p), "force": system.force(t, q, v, p), "gap": system.gap(t, q, p),
        "slip": system.slip(t, q, v, p), "potential": system.potential(t, q, p),
    }  # fmt: skip


def functions(problem):
    """The same of many states at once."""
    return jax.jit(jax.vmap(lambda q, v: evaluated(problem.system, problem.params, q, v)))


@pytest.fixture(scope="module")
def states():
    rng = np.random.default_rng(0)
    return jnp.asarray(rng.uniform(-3.0, 3.0, (100, 3))), jnp.asarray(100.0 * rng.normal(size=(100, 3)))


def test_functions_are_equal(states) -> None:
    """Rounding alone: 1e-12 of the size of each quantity."""
    found, wanted = (functions(x)(*states) for x in (FROM_PARTS, BY_HAND))
    for name, values in wanted.items():
        size = np.max(np.abs(values), axis=tuple(range(1, values.ndim)), keepdims=True)
        assert np.max(np.abs(found[name] - values) / size) <= 1e-12, name
    assert np.array_equal(FROM_PARTS.state.q, BY_HAND.state.q)
    assert np.array_equal(FROM_PARTS.state.v, BY_HAND.state.v)


def test_order_of_parts_is_free(states) -> None:
    """Another order of bodies is another order of coordinates, and nothing else."""
    other = assemble(*SHUFFLED, gravity=9.81, start=START)
    assert jax.tree.all(jax.tree.map(np.array_equal, other.params, FROM_PARTS.params))
    labels = other.system.labels.q
    order = np.array([labels.index(x) for x in FROM_PARTS.system.labels.q])
    assert list(order) != [0, 1, 2]
    assert np.array_equal(np.asarray(other.state.v)[order], FROM_PARTS.state.v)
    back = np.argsort(order)
    found, wanted = functions(other)(*(x[:, back] for x in states)), functions(FROM_PARTS)(*states)
    for name, values in found.items():
        values = values[:, order] if name in ("mass", "force") else values
        values = values[:, :, order] if name == "mass" else values
        assert np.max(np.abs(values - wanted[name])) <= 1e-12 * np.max(np.abs(wanted[name])), name


def run(problem, scheme, steps=2000):
    traj = nsjax.simulate(*problem, SCHEMES[scheme], dt=1e-5, steps=steps, every=100)
    traj.raise_for_status()
    return traj


def test_equal_topologies_share_programs() -> None:
    """Another mechanism of the same parts with other numbers compiles nothing."""
    run(FROM_PARTS, "moreau", 100)
    programs = _advance._cache_size(), begin_eager_run._cache_size()
    parts = [x if x.name != "pin" else hinge("pin", "crank", "rod", at=0.16) for x in PARTS]
    other = assemble(*parts, gravity=1.62, start=START)
    assert other.system == FROM_PARTS.system
    assert hash(other.system) == hash(FROM_PARTS.system)
    run(other, "moreau", 100)
    assert (_advance._cache_size(), begin_eager_run._cache_size()) == programs
