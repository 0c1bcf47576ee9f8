"""Forward and reverse products of the derivative of a run, with everything that may be traced."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import nsjax
from nsjax import State, System
from nsjax.core.scheme import Scheme
from nsjax.gradient_notes import SERIOUS
from tests.gradients.program import floats

MOTION = 3
"""Number of outputs that are the motion: time, position, velocity."""

SAVED = ("force_normal", "dry_friction_force", "impulse_normal", "notes", "impacts")


@functools.cache
def _program(system: System, static: Scheme, steps: int):
    """``(x, dx, seed, forces) -> (w . J dx, J' w . dx, size of both, forward twice, status, notes,
    impacts)`` with ``x``: parameters, numbers of the scheme, start and step size; ``forces`` is the weight
    of all outputs but time, position and velocity.

    Both products are taken of one linearisation. Where a body at rest is held by several rows, their forces
    are not determined alone: rounding chooses among them, and so among their derivatives, another one in
    every program. The motion is; a forward derivative of its own, without a linearisation, is compared.
    The creep correction of nsga schemes moves positions by ``dt^2 / 2`` of the forces over the mass: their
    derivatives are compared beyond this part of those of the forces, with masses above a half.
    """
    creeps = static.name.startswith("nsga")

    def run(x):
        params, coef, state, dt = x
        scheme = dataclasses.replace(static, coef=coef)
        traj = nsjax.simulate(
            system, params, state, scheme, dt=dt, steps=steps, every=steps // 2, save=SAVED
        )
        bits = lax.reduce(traj.notes, np.asarray(0), lax.bitwise_or, (0, 1))
        moving = traj.t, traj.q, traj.v, traj.force_normal, traj.dry_friction_force, traj.impulse_normal
        return moving, (traj.status, bits, jnp.sum(traj.impacts))

    def both(x, dx, seed, forces):
        key = jax.random.key(seed)
        _, motion, aux = jax.jvp(run, (x,), (dx,), has_aux=True)
        _, push, _ = jax.linearize(run, x, has_aux=True)
        dy = push(dx)
        w = [jax.random.normal(jax.random.fold_in(key, k), y.shape) for k, y in enumerate(dy)]
        w = [y if k < MOTION else forces * y for k, y in enumerate(w)]
        (back,) = jax.linear_transpose(push, x)(tuple(w))
        one = jnp.concatenate([jnp.ravel(a * b) for a, b in zip(w, dy, strict=True)])
        pairs = zip(jax.tree.leaves(back), jax.tree.leaves(dx), strict=True)
        other = jnp.concatenate([jnp.ravel(a * b) for a, b in pairs])
        size = jnp.sum(jnp.abs(one)) + jnp.sum(jnp.abs(other))
        shared = jnp.maximum(jnp.max(jnp.abs(motion[3])), jnp.max(jnp.abs(motion[4])))
        free = 0.0, x[3] ** 2 * shared if creeps else 0.0, 0.0
        off = [
            jnp.maximum(jnp.max(jnp.abs(a - b)) - part, 0.0) / (1.0 + jnp.max(jnp.abs(a)))
            for a, b, part in zip(motion, dy, free, strict=False)
        ]
        return jnp.sum(one), jnp.sum(other), size, jnp.max(jnp.stack(off)), *aux

    return jax.jit(both)


@dataclasses.dataclass(frozen=True)
class Products:
    """Of one run: the two products, the sum of the magnitudes of their terms, by how much two forward
    derivatives of the motion differ, and what the run says.
    """

    forward: float
    reverse: float
    size: float
    twice: float
    status: int
    notes: int
    impacts: int

    @property
    def finite(self) -> bool:
        return bool(np.isfinite([self.forward, self.reverse, self.size, self.twice]).all())

    @property
    def off(self) -> float:
        """Relative difference."""
        return abs(self.forward - self.reverse) / self.size

    @property
    def serious(self) -> bool:
        return bool(self.notes & SERIOUS)


def products(
    system: System, scheme: Scheme, params: Any, state: State, dt: float, steps: int, seed: int,
    forces: float = 1.0,
) -> Products:  # fmt: skip
    """Of a run, along a random change of every number in it and of every output; those that are forces or
    impulses have the weight ``forces``.
    """
    rng = np.random.default_rng(seed)
    x = floats((params, scheme.coef, state, dt))
    # changes in the size of the numbers; those of the start in that of the motion
    change = [
        rng.normal(size=np.shape(leaf)) * np.maximum(np.abs(leaf), 0.1) for leaf in jax.tree.leaves(x)
    ]
    dx = jax.tree.unflatten(jax.tree.structure(x), [jnp.asarray(c) for c in change])
    static = dataclasses.replace(scheme, coef=())
    one, other, size, twice, *told = _program(system, static, steps)(x, dx, seed, forces)
    return Products(float(one), float(other), float(size), float(twice), *(int(n) for n in told))
