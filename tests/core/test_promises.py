"""A model whose structure does not hold is refused before any work starts."""

from __future__ import annotations

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import InputError, State, System, models, schemes
from nsjax.linalg import BlockTridiagonal, Dense

N = 6


def weigh(q, w, p):
    return 2.0 * w


def tilt(q, w, p):
    return w + 0.5 * jnp.concatenate([w[1:], w[:1] * 0.0])


def lift(q, w, p):
    return -w


def spring(t, q, v, p):
    return -q


def far(t, q, v, p):
    return -q + q[::-1]


def drag(t, q, v, p):
    return -v * jnp.abs(v)


def run(structure, inertia=weigh, force=spring) -> None:
    system = System(nq=N, nv=N, inertia=inertia, force=force, structure=structure)
    state = State(t=0.0, q=np.arange(1.0, N + 1), v=np.ones(N))
    nsjax.simulate(system, {}, state, schemes.moreau(), dt=0.1, steps=1)


@pytest.mark.parametrize(
    ("functions", "structure", "sentence"),
    [
        ({"force": far}, BlockTridiagonal(1), "force over the positions is not BlockTridiagonal"),
        (
            {"force": drag},
            BlockTridiagonal(1, constant=True),
            "force over the velocities has a tangent that changes",
        ),
        ({"force": drag}, Dense(constant=True), "force over the velocities has a tangent that changes"),
        ({"inertia": tilt}, BlockTridiagonal(1), "inertia is not symmetric"),
        ({"inertia": lift}, BlockTridiagonal(1), "inertia is not positive definite"),
    ],
)
def test_broken_promises(functions, structure, sentence) -> None:
    with pytest.raises(InputError, match=sentence):
        run(structure, **functions)


def test_kept_promises() -> None:
    run(BlockTridiagonal(1, constant=True))
    run(BlockTridiagonal(2), force=drag)
    run(Dense(constant=True))


def test_a_dense_matrix_ends_at_2000_unknowns() -> None:
    with pytest.raises(InputError, match=r"nv = 2401 .* promise structure=BlockTridiagonal"):
        dataclasses.replace(models.elastic_bar(elements=2400).system, structure=Dense())
    with pytest.raises(InputError, match="give inertia"):
        System(nq=2, nv=2, mass=unit_mass, force=spring, structure=BlockTridiagonal(1))


def unit_mass(q, p):
    return jnp.eye(2)
