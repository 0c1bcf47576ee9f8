"""Rows of contacts in islands, and what they refuse; motions stand in `test_paths.py`."""

from __future__ import annotations

import dataclasses

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

DT = 5e-4


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
