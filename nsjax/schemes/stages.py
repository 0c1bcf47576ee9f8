"""Stages of a base scheme: affine maps of velocity increments, and their momentum balance."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np

from nsjax.core.operators import all_rows, row_forces, row_rates
from nsjax.core.system import System
from nsjax.linalg import matvec
from nsjax.types import Array, record


@record()
class Maps:
    """Simultaneous stages as affine maps of the velocity increments ``z`` (stages, nv)::

        q_k = retract(anchor, xi_k + sum_l cq_kl z_l),  v_k = v_k + z_k,  a_k = a_k + sum_l ca_kl z_l

    Args:
        anchor: (nq,) position from which all stages move.
        xi, v, a: (stages, nv) predicted increments, velocities and accelerations.
        cq, ca: (stages, stages).
        t: (stages,) times.
        dt: scale that turns forces into impulses.
    """

    anchor: Array
    xi: Array
    v: Array
    a: Array
    cq: Array
    ca: Array
    t: Array
    dt: Array

    def at(self, system: System, z: Array) -> list[tuple[Array, Array, Array, Array]]:
        """``(t, q, v, a)`` of every stage at the increments ``z`` (stages * nv,)."""
        n = self.v.shape[0]
        z = z.reshape(n, -1)
        out = []
        for k in range(n):
            xi = self.xi[k] + jnp.sum(self.cq[k][:, None] * z, axis=0)
            a = self.a[k] + jnp.sum(self.ca[k][:, None] * z, axis=0)
            out.append((self.t[k], system.retract(self.anchor, xi), self.v[k] + z[k], a))
        return out


def single(anchor: Array, xi: Array, v: Array, a: Array, cq: Array, ca: Array, t: Array, dt: Array) -> Maps:
    """`Maps` of one stage."""
    one = jnp.ones((1, 1))
    return Maps(
        anchor=anchor, xi=xi[None], v=v[None], a=a[None], cq=cq * one, ca=ca * one, t=t[None], dt=dt
    )


@dataclasses.dataclass(frozen=True)
class StageEquations:
    """Momentum balance ``dt (M a - h) - W P = 0`` in all stages, for the stage solver."""

    system: System
    stages: int
    contacts: bool

    @property
    def nc(self) -> int:
        """Contacts of all stages."""
        return self.stages * self.system.nc if self.contacts else 0

    @property
    def nt(self) -> int:
        """Tangents per contact."""
        return self.system.nt

    @property
    def nb(self) -> int:
        """Bilateral rows of all stages."""
        return self.stages * self.system.nb

    def _order(self) -> np.ndarray:
        """Rows stage by stage -> contacts of all stages, then bilateral rows of all stages."""
        d = self.nc // self.stages * (1 + self.nt)
        m = d + self.system.nb
        index = np.arange(self.stages * m).reshape(self.stages, m)
        return np.concatenate([index[:, :d].reshape(-1), index[:, d:].reshape(-1)])

    def _stack(self, parts: list[Array]) -> Array:
        rows = parts[0] if len(parts) == 1 else jnp.concatenate(parts)
        return rows if self.stages == 1 else rows[self._order()]

    def split(self, impulses: Array) -> list[Array]:
        """Rows of every stage: contacts, then constraints."""
        if self.stages == 1:
            return [impulses]
        back = impulses[np.argsort(self._order())]
        return list(back.reshape(self.stages, -1))

    def residual(self, data: Any, z: Array) -> Array:
        """Momentum balance without row forces."""
        params, maps = data
        parts = []
        for t, q, v, a in maps.at(self.system, z):
            inertia = matvec(self.system.mass(q, params), a)  # type: ignore[misc]
            parts.append(maps.dt * (inertia - self.system.force(t, q, v, params)))
        return jnp.concatenate(parts)

    def forces(self, data: Any, z: Array, impulses: Array) -> Array:
        """``W P`` of every stage."""
        params, maps = data
        stages = maps.at(self.system, z)
        return jnp.concatenate(
            [
                row_forces(self.system, t, q, x, params, self.contacts)
                for (t, q, _, _), x in zip(stages, self.split(impulses), strict=True)
            ]
        )

    def rates(self, data: Any, z: Array) -> Array:
        """Row velocities of every stage."""
        params, maps = data
        return self._stack(
            [
                row_rates(self.system, t, q, v, params, self.contacts)
                for t, q, v, _ in maps.at(self.system, z)
            ]
        )

    def directions(self, data: Any, z: Array) -> Array:
        """``W`` (stages * nv, rows), block by block."""
        params, maps = data
        blocks = []
        for k, (t, q, _, _) in enumerate(maps.at(self.system, z)):
            wt = all_rows(self.system, t, q, params, self.contacts).wt
            zero = jnp.zeros_like(wt)
            blocks.append(jnp.concatenate([wt if j == k else zero for j in range(self.stages)], axis=1))
        return self._stack(blocks).T

    def friction(self, data: Any) -> Array:
        """Coefficients of all contacts of all stages."""
        if not self.nc:
            return jnp.zeros(0)
        one = self.system.law(data[0]).friction_of(self.system.nc)  # type: ignore[misc]
        return jnp.concatenate([one] * self.stages)
