"""Row part of the step equations of schemes whose contact directions are frozen inside the step."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from nsjax.contact import GivenNormals, Jump
from nsjax.contact.stage import StageAnswer, StageSettings, StageStart, solve_stage
from nsjax.core.operators import Rows, momentum, no_rows
from nsjax.core.scheme import Scheme
from nsjax.core.step import SystemState
from nsjax.core.system import System
from nsjax.linalg import Structure
from nsjax.schemes.books import stage_jump
from nsjax.types import Array, record


@record()
class FrozenRows:
    """Rows of a step and the restitution of each.

    Args:
        rows: contact rows (if contacts count), then bilateral rows.
        restitution: one coefficient per row, zero for bilateral ones.
    """

    rows: Rows
    restitution: Array


def frozen_rows(at: SystemState, contacts: bool) -> FrozenRows:
    """Rows at a state."""
    system = at.system
    count = system.nc * (1 + system.nt) if contacts else 0
    if not count and not system.nb:
        return FrozenRows(rows=no_rows(system), restitution=jnp.zeros(0))
    e = jnp.zeros(system.nb)
    if count:
        law = system.law(at.params)
        e = jnp.concatenate([law.row_restitution(system.nc, system.nt), e])
    return FrozenRows(rows=at.rows(contacts), restitution=e)


@dataclasses.dataclass(frozen=True)
class FrozenRowEquations:
    """Unknown ``z = v_{i+1} - v_i``; a scheme adds ``residual(data, z)``.

    The data have the fields ``params``, ``state`` (start of the step), ``dt`` and ``frozen``.

    Args:
        system: of the problem.
        contacts: whether any may act.
        tangent: with which the solver iterates, ``"full"`` or ``"mass"``.
    """

    system: System
    contacts: bool
    tangent: str = "full"

    def frozen(self, d: Any, z: Array) -> tuple[Callable[[Array], Array], bool]:
        """``M w`` at the start of the step; the rates are those of frozen rows."""
        return lambda w: momentum(self.system, d.state.q, w, d.params), True

    @property
    def structure(self) -> Structure:
        """Structure of the tangent: that of the model."""
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

    @property
    def islands(self) -> int:
        """Number of islands of the model."""
        return self.system.islands

    def forces(self, d: Any, z: Array, impulses: Array) -> Array:
        """``W P``."""
        return d.frozen.rows.force(impulses)

    def directions(self, d: Any, z: Array) -> Any:
        """``W`` (nv, rows)."""
        return d.frozen.rows.directions()

    def rates(self, d: Any, z: Array) -> Array:
        """``u^+ + e u^-`` of every row."""
        rate, v = d.frozen.rows.all_rates, d.state.v
        return rate(v + z) + d.frozen.restitution * rate(v)

    def replaced(self, rates: Array, normal: Array | None = None, bilateral: Array | None = None) -> Array:
        """``rates`` with others of the normals (nc,) and of the bilateral rows (nb,), if given."""
        count = self.nc * (1 + self.nt)
        contacts, last = rates[:count], rates[count:] if bilateral is None else bilateral
        if normal is not None:
            tangents = contacts.reshape(self.nc, 1 + self.nt)[:, 1:]
            contacts = jnp.concatenate([normal[:, None], tangents], axis=1).reshape(-1)
        return jnp.concatenate([contacts, last])

    def friction(self, d: Any) -> Array:
        """Coefficients (nc,)."""
        if not self.nc:
            return jnp.zeros(0)
        return self.system.law(d.params).friction_of(self.nc)

    def given(self, d: Any) -> GivenNormals | None:
        """Normal impulses that are given, if any."""
        return self.system.law(d.params).given(self.nc, d.dt) if self.nc else None


def solve_frozen(
    scheme: Scheme, equations: Any, data: Any, active: Array, start: StageStart
) -> tuple[Jump, StageAnswer]:
    """Solves the equations of a step for ``z = v_{i+1} - v_i``.

    Args:
        scheme: with the numbers ``tolerance`` and ``stage_tolerance`` and the choices ``max_passes`` and
            ``max_iterations``.
        equations: `FrozenRowEquations`.
        data: what they read.
        active: (nc,) bool, contacts that take part.
        start: zeros, with a tangent that is known, if any.

    Returns:
        Jump, and the solver's answer.
    """
    system, v, options = equations.system, data.state.v, scheme.options
    settings = StageSettings(
        tolerance=scheme.coef.stage_tolerance,
        contact_tolerance=scheme.coef.tolerance,
        scale=1.0 + jnp.max(jnp.abs(v)),
        max_passes=options.max_passes,
        max_iterations=options.max_iterations,
    )
    answer = solve_stage(equations, data, active[: equations.nc], settings, start)
    before, after = (data.frozen.rows.all_rates(v + x) for x in (0.0, answer.z))
    acting = active if equations.contacts else None
    jump = stage_jump(system, answer, answer.z, (before, after), acting, equations.given(data))
    return jump, answer
