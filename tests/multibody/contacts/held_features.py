"""Gaps of a mechanism from features that are held at a state, for the tests of pairs of solids."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.core.operators import prepared
from nsjax.multibody import body

INERTIA = (0.01, 0.012, 0.015)


def massive(name: str) -> Any:
    return body(name, mass=1.0, inertia=INERTIA)


class Program:
    """Gaps, their rates along a velocity with features held, forward and reverse, slips; and gaps anew."""

    def __init__(self, problem: Any) -> None:
        system, zero = problem.system, jnp.zeros(())
        p = prepared(system, jax.tree.map(lambda x: jnp.asarray(x, float), problem.params))

        def run(q: jax.Array, v: jax.Array) -> tuple[jax.Array, ...]:
            fresh = system.refresh(zero, q, p)
            gap = lambda x: system.gap(zero, system.retract(q, x * v), fresh)  # noqa: E731
            value, rate = jax.jvp(gap, (zero,), (jnp.ones(()),))
            slip = system.slip(zero, q, v, fresh) if system.nt else jnp.zeros((system.nc, 0))
            return value, rate, jax.jacrev(gap)(zero), slip

        def anew(q: jax.Array, v: jax.Array) -> jax.Array:
            return system.gap(zero, system.retract(q, v), p)

        self.run, self.anew = jax.jit(run), jax.jit(anew)
        names = [x.split(".")[0] for x in system.labels.contacts]
        self.rows = {name: np.array([x == name for x in names]) for name in dict.fromkeys(names)}
