"""Row part of the step equations of schemes whose contact directions are frozen inside the step."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax.numpy as jnp

from nsjax.core.operators import Rows, all_rows
from nsjax.core.system import System
from nsjax.linalg import Structure, matvec
from nsjax.types import Array, PyTree, record


@record()
class FrozenRows:
    """Rows of a step and the restitution of each.

    Args:
        rows: contact rows (if contacts count), then bilateral rows.
        restitution: one coefficient per row, zero for bilateral ones.
    """

    rows: Rows
    restitution: Array


def frozen_rows(system: System, params: PyTree, t: Array, q: Array, contacts: bool) -> FrozenRows:
    """Rows at ``(t, q)``."""
    count = system.nc * (1 + system.nt) if contacts else 0
    if not count and not system.nb:
        return FrozenRows(
            rows=Rows(wt=jnp.zeros((0, system.nv)), offset=jnp.zeros(0)), restitution=jnp.zeros(0)
        )
    e = jnp.zeros(system.nb)
    if count:
        law = system.law(params)  # type: ignore[misc]
        e = jnp.concatenate([law.row_restitution(system.nc, system.nt), e])
    return FrozenRows(rows=all_rows(system, t, q, params, contacts), restitution=e)


@dataclasses.dataclass(frozen=True)
class FrozenRowEquations:
    """Unknown ``z = v_{i+1} - v_i``; a scheme adds ``residual(data, z)``.

    The data have the fields ``params``, ``state`` (start of the step) and ``frozen``.
    """

    system: System
    contacts: bool

    @property
    def structure(self) -> Structure:
        """Of the tangent: that of the model."""
        return self.system.structure

    @property
    def nc(self) -> int:
        """Contacts."""
        return self.system.nc if self.contacts else 0

    @property
    def nt(self) -> int:
        """Tangents per contact."""
        return self.system.nt

    @property
    def nb(self) -> int:
        """Bilateral rows."""
        return self.system.nb

    def forces(self, d: Any, z: Array, impulses: Array) -> Array:
        """``W P``."""
        return matvec(d.frozen.rows.wt.T, impulses)

    def directions(self, d: Any, z: Array) -> Array:
        """``W`` (nv, rows)."""
        return d.frozen.rows.wt.T

    def rates(self, d: Any, z: Array) -> Array:
        """``u^+ + e u^-`` of every row."""
        rate, v = d.frozen.rows.rate, d.state.v
        return rate(v + z) + d.frozen.restitution * rate(v)

    def friction(self, d: Any) -> Array:
        """Coefficients (nc,)."""
        if not self.nc:
            return jnp.zeros(0)
        return self.system.law(d.params).friction_of(self.nc)  # type: ignore[misc]
