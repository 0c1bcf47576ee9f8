"""A model whose structure does not hold is refused before any work starts."""

from __future__ import annotations

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import InputError, State, System, models, schemes
from nsjax.core.checks import check_values
from nsjax.linalg import BlockDiagonal, BlockTridiagonal
from nsjax.multibody import assemble, body

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


def spinning_apart(t, q, v, p):
    """Gyroscopic moments of two bodies of equal inertias 1e4, which cancel but for rounding, and a drag
    between the bodies, a hundred million times smaller than what cancels.
    """
    spins = v.reshape(2, 3)
    return -jnp.cross(spins, 1e4 * spins).reshape(-1) - 1e-3 * v[::-1]


def test_gyroscopic_moments_that_cancel_are_no_coupling() -> None:
    """Rounding leaves something else of them in a product than column by column; a drag between the bodies
    is found nevertheless.
    """
    spin = (0.0, 0.0, 0.0, 0.3, 0.7, -0.2)
    wheels = assemble(
        *(body(name, mass=1.0, inertia=(1e4, 1e4, 1e4)) for name in "ab"), coordinates="absolute",
        gravity=9.81, start={name: ((k, 0.0, 0.0), spin) for k, name in enumerate("ab")},
    )  # fmt: skip
    assert wheels.system.structure == BlockDiagonal(6)
    check_values(*wheels)
    with pytest.raises(InputError, match="force over the velocities is not BlockTridiagonal"):
        run(BlockTridiagonal(1), lambda q, w, p: 1e4 * w, spinning_apart)


def test_contacts_that_are_not_without_friction() -> None:
    """The law has friction where none is promised; more contacts are promised than there are."""
    problem = models.block()
    system = dataclasses.replace(problem.system, frictionless=1)
    with pytest.raises(InputError, match=r"frictionless = 1, but friction of the law is [0-9.]+"):
        nsjax.simulate(system, problem.params, problem.state, schemes.moreau(), dt=1e-3, steps=1)
    with pytest.raises(InputError, match=r"frictionless = [0-9]+ of nc = [0-9]+ contacts"):
        dataclasses.replace(problem.system, frictionless=problem.system.nc + 1)


def _rows(t, q, p):
    """Of a ball over a floor."""
    return jnp.ones((1, 1, 1)), jnp.zeros((1, 1))


def _wrong_rows(t, q, p):
    return 1.001 * jnp.ones((1, 1, 1)), jnp.zeros((1, 1))


def test_rows_are_those_of_gaps() -> None:
    """Rows that a system gives take the place of derivatives, once they are looked at."""
    problem = models.bouncing_ball()
    known = dataclasses.replace(problem.system, rows=_rows)
    runs = [
        nsjax.simulate(s, problem.params, problem.state, schemes.moreau(), dt=1e-3, steps=500)
        for s in (problem.system, known)
    ]
    assert int(runs[0].impacts.sum()) >= 1
    np.testing.assert_array_equal(*(x.q for x in runs))
    wrong = dataclasses.replace(known, rows=_wrong_rows)
    with pytest.raises(InputError, match=r"rows: rates of the contacts differ .* by 0\.001 of their size"):
        nsjax.simulate(wrong, problem.params, problem.state, schemes.moreau(), dt=1e-3, steps=500)
    with pytest.raises(InputError, match="rows is given but never used with nc = 0"):
        dataclasses.replace(problem.system, nc=0, gap=None, law=None, rows=_rows, labels=nsjax.Labels())
