"""Rigid boxes on a plane that do not meet one another, as a user would write them."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

import nsjax
from nsjax import Problem, State, System
from nsjax.linalg import BlockDiagonal, Dense
from nsjax.models.box import Block, Box


@dataclasses.dataclass(frozen=True)
class Boxes:
    """``n`` boxes, each of the registered model `nsjax.models.block`, one after the other."""

    n: int
    box: Box

    def _each(self, f, *x):
        """``f`` of every box, one after the other."""
        found = jax.vmap(f)(*(jnp.reshape(y, (self.n, -1)) for y in x))
        return found.reshape(-1, *found.shape[2:])

    def mass(self, q, p):
        """Mass matrix."""
        return jnp.kron(jnp.eye(self.n), self.box.mass(q, p["box"]))

    def inertia(self, q, w, p):
        """Its product."""
        weights = jnp.diagonal(self.box.mass(q, p["box"]))
        return (w.reshape(self.n, -1) * weights).reshape(-1)

    def force(self, t, q, v, p):
        """Weight and gyroscopic torques."""
        return self._each(lambda q, v: self.box.force(t, q, v, p["box"]), q, v)

    def potential(self, t, q, p):
        """Of the weight."""
        return jnp.sum(jax.vmap(lambda q: self.box.potential(t, q, p["box"]))(q.reshape(self.n, -1)))

    def gap(self, t, q, p):
        """Heights of the corners."""
        return self._each(lambda q: self.box.gap(t, q, p["box"]), q)

    def slip(self, t, q, v, p):
        """Velocities of the corners along the plane."""
        return self._each(lambda q, v: self.box.slip(t, q, v, p["box"]), q, v)

    def law(self, p):
        """Of the plane."""
        return nsjax.ContactLaw(restitution=p["box"].restitution, friction=p["box"].friction)

    def retract(self, q, xi):
        """Motion of the poses."""
        return self._each(self.box.sizes()["retract"], q, xi)

    def difference(self, q0, q1):
        """Its inverse."""
        return self._each(self.box.sizes()["difference"], q0, q1)


def starts(n: int, dimension: int) -> tuple[np.ndarray, np.ndarray]:
    """Poses and velocities (n, .) of boxes that slide on the plane; every third falls on an edge first."""
    k = np.arange(n)
    if dimension == 2:
        tilt = np.where(k % 3 == 1, 0.2 + 0.01 * k, 0.0)
        height = 0.1 * np.abs(np.sin(tilt)) + 0.05 * np.cos(tilt) + np.where(k % 3 == 1, 0.002, 0.0)
        q = np.stack([0.5 * k, height, tilt], axis=1)
        return q, np.stack([0.5 + 0.1 * np.cos(k), 0.0 * k, 0.0 * k], axis=1)
    tilt = np.where(k % 3 == 1, 0.2 + 0.01 * k, 0.0)
    height = 0.1 * np.abs(np.sin(tilt)) + 0.15 * np.cos(tilt) + np.where(k % 3 == 1, 0.002, 0.0)
    zero = 0.0 * k
    q = [0.5 * k, zero, height, np.cos(tilt / 2), np.sin(tilt / 2), zero, zero]
    v = [0.5 + 0.1 * np.cos(k), 0.2 * np.sin(k), zero, zero, zero, zero]
    return np.stack(q, axis=1), np.stack(v, axis=1)


def boxes(n: int, dimension: int = 2, *, islands: bool = True, **numbers) -> Problem:
    """``n`` boxes; ``numbers`` of `nsjax.models.block`."""
    box = Box(dimension)
    b = Boxes(n, box)
    one = box.system()
    motion = {} if dimension == 2 else {"retract": b.retract, "difference": b.difference}
    system = System(
        nq=n * one.nq, nv=n * one.nv, nc=n * one.nc, nt=one.nt, force=b.force, gap=b.gap, slip=b.slip,
        law=b.law, inertia=b.inertia, mass=None if islands else b.mass, potential=b.potential,
        structure=BlockDiagonal(one.nv) if islands else Dense(), islands=n if islands else 0, **motion,
    )  # fmt: skip
    q, v = starts(n, dimension)
    p = {"box": Block(**{"restitution": 0.2, "friction": 0.4, **numbers})}
    return Problem(system=system, params=p, state=State(t=0.0, q=q.reshape(-1), v=v.reshape(-1)))
