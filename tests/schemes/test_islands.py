"""Contacts in islands: the same motions and derivatives as with one problem for all, and as one by one."""

from __future__ import annotations

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import InputError, State, schemes
from nsjax.core.operators import all_rows
from nsjax.core.step import inertia_at
from nsjax.linalg import BlockDiagonal, matmul
from tests.common.boxes import boxes

STEPS, DT = 60, 5e-4


@functools.cache
def run(name: str, islands: bool, dimension: int = 2, n: int = 3):
    scheme = schemes.REGISTRY[name].factory()
    return nsjax.simulate(*boxes(n, dimension, islands=islands), scheme, dt=DT, steps=STEPS, every=6)


def compare(name: str, dimension: int) -> None:
    """Impulses are shared by dependent contacts, so that sums of them are compared."""
    ours, dense = run(name, True, dimension), run(name, False, dimension)
    ours.raise_for_status()
    assert np.sum(ours.impacts) > 0
    for field in ("q", "v"):
        np.testing.assert_allclose(getattr(ours, field), getattr(dense, field), atol=1e-10)
    both = [x.impulse_normal.reshape(len(x.t), 3, -1).sum(axis=2) for x in (ours, dense)]
    np.testing.assert_allclose(*both, atol=1e-9 * np.max(both[1]))


@pytest.mark.slow
def test_same_motion_as_one_problem() -> None:
    compare("moreau", 2)


def end(islands: bool, friction, speed):
    """A position and a velocity of the box that falls, and of one that slides, after its impact."""
    system, p, state = boxes(2, islands=islands)
    state = dataclasses.replace(state, v=state.v * speed)
    last = nsjax.simulate(
        system, {**p, "friction": friction}, state, schemes.moreau(), dt=DT, steps=60, every=60
    )
    return jnp.array([1.0, -0.7, 0.4, 0.2, 0.9, -0.3]) @ (last.q[-1] + 0.1 * last.v[-1])


@pytest.mark.slow
def test_same_derivatives_forward_and_reverse() -> None:
    """Through an impact, sliding and sticking: by the shifts of impact times, too."""
    at, along = (jnp.asarray(0.4), jnp.asarray(1.0)), (jnp.asarray(0.3), jnp.asarray(1.0))
    forward = [
        jax.jit(lambda x, dx, i=i: jax.jvp(functools.partial(end, i), x, dx)[1])(at, along)
        for i in (True, False)
    ]
    assert abs(forward[1]) > 1e-3
    np.testing.assert_allclose(forward[0], forward[1], rtol=1e-10)
    reverse = jax.jit(jax.grad(functools.partial(end, True), argnums=(0, 1)))(*at)
    np.testing.assert_allclose(0.3 * reverse[0] + reverse[1], forward[0], rtol=1e-10)


def test_rows_are_stored_part_by_part() -> None:
    """64 boxes in space, 512 contacts: rows, responses and Delassus operators below a megabyte; as arrays
    they had 1536 x 384 entries, and 1536 x 1536."""
    system, p, state = boxes(64, 3)

    def formed(q):
        rows = all_rows(system, jnp.zeros(()), q, p)
        response = inertia_at(system, 0.0, q, p).solve(rows.wt.T)
        return rows, response, matmul(rows.wt, response)

    shapes = jax.eval_shape(formed, jnp.asarray(state.q))
    assert shapes[0].wt.shape == (1536, 384)
    assert sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(shapes)) < 1e6


def together(t, q, p):
    """Heights over a plane that the first body carries."""
    return boxes(3).system.gap(t, q, p) - q[1]


def test_contacts_that_couple_are_refused() -> None:
    system, p, state = boxes(3)
    coupled = dataclasses.replace(system, gap=together)
    with pytest.raises(InputError, match="depend on velocities of other parts"):
        nsjax.simulate(
            coupled, p, dataclasses.replace(state, q=state.q + 1.0), schemes.moreau(), dt=DT, steps=1
        )


def test_a_coupling_of_bodies_is_refused() -> None:
    def pull(t, q, v, p):
        return -q[::-1]

    system = nsjax.System(nq=6, nv=6, inertia=lambda q, w, p: w, force=pull, structure=BlockDiagonal(2))
    with pytest.raises(InputError, match="force over the positions is not BlockDiagonal"):
        nsjax.simulate(
            system, {}, State(t=0.0, q=np.ones(6), v=np.ones(6)), schemes.moreau(), dt=DT, steps=1
        )
