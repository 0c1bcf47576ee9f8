"""The smooth motion of the nonsmooth generalized-alpha family, with a choice of the forces in it.

Forces that it leaves out act in position corrections and velocity jumps, with first order.
Source: [C section 3.1].
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from nsjax.contact.projection import position_rows
from nsjax.core.operators import gap_drift, gap_rows, jacobian, momentum, row_rates
from nsjax.schemes.nsga.levels import Level
from nsjax.schemes.nsga.states import (
    Prediction,
    Smooth,
    bilateral_forces,
    decided,
    smooth_motion,
    smooth_state,
)
from nsjax.types import Array

SMOOTH = ("constrained", "full", "free", "zero")
"""Accelerations of the smooth motion: with bilateral forces, [B14]; with contact forces, too; with neither,
after Chen and co-workers; none at all.
"""


@dataclasses.dataclass(frozen=True)
class SmoothLevel(Level):
    """Motion without impacts and contacts, constraints on velocity level; data ``(Prediction, u, w)``.

    Args:
        smooth: forces that it contains, see `SMOOTH`. ``"full"``: also those of the contacts
            (nc,) bool that follow in the data, with both laws on acceleration level.
    """

    smooth: str = "constrained"

    @property
    def contacts(self) -> int:
        """Number of contact rows."""
        return self.system.nc if self.smooth == "full" else 0

    @property
    def rows(self) -> int:
        """Number of rows: contacts, then constraints."""
        return 0 if self.smooth in ("free", "zero") else self.contacts + self.system.nb

    @property
    def bilateral(self) -> int:
        """Number of bilateral rows."""
        return self.rows - self.contacts

    def factors(self, d: Any) -> tuple[Array, Array]:
        """``k_s = p_s``: a mass over a time; a mass on acceleration level."""
        k = d[0].scale if self.smooth == "full" else d[0].scale / d[0].dt
        return k, k

    def _at(self, d: Any, w: Array) -> tuple[Array, Array, Array, Array]:
        """Position and velocity at which the operators are taken; smooth velocity and acceleration."""
        s, u, jump = d[:3]
        q, v, a = smooth_motion(self.system, s, w)
        if self.coupled:
            return self.system.retract(q, u), v + jump, v, a
        return q, v, v, a

    def terms(self, d: Any, w: Array, pi: Array) -> tuple[Array, ...]:
        """``M dv/dt - f - G_b' pi``; for ``"zero"`` a scaled ``w``, so that the velocity is constant."""
        (q, v, _, a), s = self._at(d, w), d[0]
        if self.smooth == "zero":
            return (s.scale * w,)
        inertia, force = momentum(self.system, q, a, s.params), self.system.force(s.t, q, v, s.params)
        if self.smooth == "free":
            return inertia, -force
        return inertia, -force, -bilateral_forces(self.system, s, q, pi, self.contacts)

    def values(self, d: Any, w: Array) -> Array:
        """``G_b v`` of the smooth velocity; ``G dv/dt + dG/dt v`` on acceleration level."""
        if not self.rows:
            return jnp.zeros(0)
        q, total, v, a = self._at(d, w)
        if self.smooth == "full":
            return self._accelerations(d[0], q, total, a)
        return row_rates(self.system, d[0].t, q, v, d[0].params, contacts=False)

    def directions(self, d: Any, w: Array) -> tuple[Array, Array]:
        """``G'`` and the tangent of `values`."""
        n, parts = self.system.nv, []
        if not self.rows:
            return jnp.zeros((n, 0)), jnp.zeros((0, n))
        q, _, _, _ = self._at(d, w)
        for name, count in (("gap", self.contacts), ("constraint", self.system.nb)):
            if count:
                parts.append(gap_rows(self.system, name, d[0].t, q, d[0].params).jacobian())
        return jnp.concatenate(parts).T, jacobian(lambda w: self.values(d, w), w, self.rows)

    def law(self, d: Any, sigma: Array) -> Array:
        """Acting part of ``sigma``: contacts only push, and only contacts that take part."""
        nc = self.contacts
        if not nc:
            return sigma
        push = jnp.where(d[3] & decided(sigma[:nc] >= 0.0), sigma[:nc], 0.0)
        return jnp.concatenate([push, sigma[nc:]])

    def _accelerations(self, s: Prediction, q: Array, v: Array, a: Array) -> Array:
        """Accelerations of gaps and constraints at the total state."""
        system, p = self.system, s.params
        names = [name for name, count in (("gap", system.nc), ("constraint", system.nb)) if count]
        drift = jnp.concatenate([gap_drift(system, s.t, q, v, p, name) for name in names])
        along = lambda xi: position_rows(system, s.t, (q, xi), p, system.nc)  # noqa: E731
        return drift + jax.jvp(along, (jnp.zeros(system.nv),), (a,))[1]

    def state(self, s: Prediction, delta: Array, x: Array) -> Smooth:
        """The smooth motion for the other subproblems, with its forces ``x`` (rows,) [N]."""
        system, nc = self.system, self.contacts
        lam = x[nc:] if self.rows else jnp.zeros(system.nb)
        found = smooth_state(system, s, delta, lam)
        if self.smooth == "zero":
            return dataclasses.replace(found, force=jnp.zeros(system.nv))
        if s.held is None:
            return found
        # an acceleration c1 delta adds delta to the velocity and c2 delta to the position
        added = x[:nc] / s.c1
        return dataclasses.replace(found, push=x[:nc], contacts=s.held + jnp.stack([s.c2 * added, added]))
