"""Contact and constraint rows in the step equations of schemes that freeze their directions in a step."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from nsjax.contact import GivenNormals, Jump
from nsjax.contact.row_choice import smooth_contacts
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
    """Rows of contacts and constraints that are constant in a step, with their restitution.

    Args:
        rows: contact rows (if contacts may act), then bilateral rows.
        restitution: (rows,) coefficients of restitution, zero for bilateral rows.
    """

    rows: Rows
    restitution: Array


def frozen_rows(at: SystemState, contacts: bool) -> FrozenRows:
    """Rows at a state; those of contacts only if ``contacts`` is true."""
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
    """Equations of a step with frozen rows, for the velocity increment ``z = v_{i+1} - v_i``.

    ``residual(data, z) = W P`` is the momentum balance, with ``residual`` added by the scheme, and
    ``rates(data, z)`` and the row impulses ``P`` fulfil the laws of contacts and constraints.

    The data ``d`` of all methods have the fields ``params``, ``state`` (start of the step), ``dt`` and
    ``frozen`` (`FrozenRows`).

    Args:
        system: system of the problem.
        contacts: whether contacts may act in the step.
        tangent: tangent of the iteration, see `nsjax.schemes.mixed.framework.mixed_scheme`.
    """

    system: System
    contacts: bool
    tangent: str = "full"

    def frozen(self, d: Any, z: Array) -> tuple[Callable[[Array], Array], bool]:
        """``w -> M w`` at the start of the step, and True: rates are ``W' z`` plus a constant."""
        return lambda w: momentum(self.system, d.state.q, w, d.params), True

    @property
    def structure(self) -> Structure:
        """Structure of the tangent matrix: that of the model."""
        return self.system.structure

    @property
    def nc(self) -> int:
        """Number of contacts that may act."""
        return self.system.nc if self.contacts else 0

    @property
    def nt(self) -> int:
        """Number of tangents per contact."""
        return self.system.nt

    @property
    def nb(self) -> int:
        """Number of bilateral rows."""
        return self.system.nb

    @property
    def islands(self) -> int:
        """Number of islands of the model."""
        return self.system.islands

    def forces(self, d: Any, z: Array, impulses: Array) -> Array:
        """Generalised impulse ``W P`` (nv,) of the row impulses ``P`` (rows,) [N s]."""
        return d.frozen.rows.force(impulses)

    def directions(self, d: Any, z: Array) -> Any:
        """Directions ``W`` (nv, rows) of the row impulses."""
        return d.frozen.rows.directions()

    def rates(self, d: Any, z: Array) -> Array:
        """``u^+ + e u^-`` (rows,) of the row velocities before and after the step [m/s]."""
        rate, v = d.frozen.rows.all_rates, d.state.v
        return rate(v + z) + d.frozen.restitution * rate(v)

    def replaced(self, rates: Array, normal: Array | None = None, bilateral: Array | None = None) -> Array:
        """``rates`` (rows,) with the entries of the normals (nc,) and of the bilateral rows (nb,) replaced,
        where these are given.
        """
        count = self.nc * (1 + self.nt)
        contacts, last = rates[:count], rates[count:] if bilateral is None else bilateral
        if normal is not None:
            tangents = contacts.reshape(self.nc, 1 + self.nt)[:, 1:]
            contacts = jnp.concatenate([normal[:, None], tangents], axis=1).reshape(-1)
        return jnp.concatenate([contacts, last])

    def friction(self, d: Any) -> Array:
        """Coefficients of friction (nc,)."""
        if not self.nc:
            return jnp.zeros(0)
        return self.system.law(d.params).friction_of(self.nc)

    def given(self, d: Any) -> GivenNormals | None:
        """Normal impulses that the contact law prescribes; None if it prescribes none."""
        return self.system.law(d.params).given(self.nc, d.dt) if self.nc else None

    def smooth(self, d: Any) -> np.ndarray:
        """Contacts (nc,) bool without friction."""
        if not self.nc:
            return np.zeros(0, bool)
        return smooth_contacts(self.system, self.system.law(d.params).loads)


def solve_frozen(
    scheme: Scheme, equations: Any, data: Any, active: Array, start: StageStart
) -> tuple[Jump, StageAnswer]:
    """Solves the equations of a step for ``z = v_{i+1} - v_i``.

    Args:
        scheme: has the numbers ``tolerance`` and ``stage_tolerance`` and the choices ``max_passes`` and
            ``max_iterations``.
        equations: `FrozenRowEquations`.
        data: data of the equations.
        active: (nc,) bool, contacts that take part.
        start: start of the iteration: zeros, and a tangent if one is known.

    Returns:
        The velocity jump with its impulses, and the answer of the stage solver.
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
