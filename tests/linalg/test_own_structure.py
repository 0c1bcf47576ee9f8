"""A structure that somebody else has written: unknowns that know nothing of each other."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import ContactLaw, InputError, State, System, schemes


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Divided:
    """An eliminated diagonal matrix."""

    diagonal: jax.Array

    def solve(self, b):
        return b / (self.diagonal if b.ndim == 1 else self.diagonal[:, None])


@dataclasses.dataclass(frozen=True)
class Diagonal:
    """One directional derivative tells all."""

    constant = False
    dense = False

    def misfit(self, size):
        return None

    def stacked(self, copies):
        raise NotImplementedError

    def tangent(self, f, x):
        return jax.jvp(f, (x,), (jnp.ones_like(x),))[1]

    def times(self, matrix, x):
        return matrix * x

    def eliminate(self, matrix, columns):
        return Divided(matrix), Divided(matrix).solve(columns)


def mass(q, p):
    return jnp.diag(2.0 + jnp.sin(q))


def inertia(q, w, p):
    return (2.0 + jnp.sin(q)) * w


def force(t, q, v, p):
    return -p["k"] * q**3 - 9.81


def gap(t, q, p):
    return q + 0.3


def law(p):
    return ContactLaw(restitution=0.5)


DENSE = System(nq=4, nv=4, nc=4, mass=mass, inertia=inertia, force=force, gap=gap, law=law)
START = State(t=0.0, q=np.linspace(0.0, 0.3, 4), v=np.zeros(4))


@pytest.mark.parametrize("name", [pytest.param("half_explicit", marks=pytest.mark.slow)])
def test_it_serves_like_those_of_the_package(name: str) -> None:
    """The same motion and derivative as with dense matrices."""
    scheme = schemes.REGISTRY[name].factory()
    own = dataclasses.replace(DENSE, mass=None, structure=Diagonal())

    def end(k, system):
        return nsjax.simulate(system, {"k": k}, START, scheme, dt=1e-3, steps=500, every=500).q[-1]

    for f in (jax.jit(end, static_argnums=1), jax.jit(jax.jacfwd(end), static_argnums=1)):
        np.testing.assert_allclose(f(5.0, own), f(5.0, DENSE), rtol=1e-10)


def test_what_it_promises_is_looked_at() -> None:
    def coupled(t, q, v, p):
        return force(t, q, v, p) + jnp.roll(q, 1)

    own = dataclasses.replace(DENSE, mass=None, force=coupled, structure=Diagonal())
    with pytest.raises(InputError, match="force over the positions is not Diagonal"):
        nsjax.simulate(own, {"k": 5.0}, START, schemes.moreau(), dt=1e-3, steps=1)
