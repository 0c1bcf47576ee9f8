"""Projection of a position onto contacts and constraints: no penetration, no drift."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np

from nsjax.contact.stage import StageSettings, solve_stage
from nsjax.core.branches import branch
from nsjax.core.inertia import inertia_at
from nsjax.core.operators import acting, gap_rows
from nsjax.core.system import System
from nsjax.linalg import BlockTridiagonal, Structure, matvec
from nsjax.types import Array, PyTree, record


@record()
class Projection:
    """A projected position.

    Args:
        q: (nq,) the position, where ``0 <= g_N + depth _|_ Psi >= 0`` and ``g_B = 0``.
        psi: (nc + nb,) multipliers ``Psi / dt``, contacts first.
        iterations, residual, estimate: of the solvers; see `nsjax.contact.stage.StageAnswer`.
    """

    q: Array
    psi: Array
    iterations: Array
    residual: Array
    estimate: Array


@record()
class _Data:
    """Everything live that the equations read."""

    params: PyTree
    t: Array
    q: Array
    directions: Array
    dt: Array
    depth: Array | float


@dataclasses.dataclass(frozen=True)
class _Equations:
    """``z - D Psi = 0`` with the gaps of ``q + dt z``, over ``dt``: increments as velocities, so that
    all tolerances are those of velocities.
    """

    system: System
    contacts: bool
    nt: int = 0

    @property
    def structure(self) -> Structure:
        """The tangent is the unit matrix."""
        return self.system.structure if self.system.structure.dense else BlockTridiagonal(1)

    @property
    def nc(self) -> int:
        """Contacts."""
        return self.system.nc if self.contacts else 0

    @property
    def nb(self) -> int:
        """Bilateral rows."""
        return self.system.nb

    def residual(self, d: Any, z: Array) -> Array:
        """The increment itself."""
        return z

    def forces(self, d: Any, z: Array, impulses: Array) -> Array:
        """``D Psi`` with frozen directions."""
        return matvec(d.directions, impulses)

    def directions(self, d: Any, z: Array) -> Array:
        """``D`` (nv, rows)."""
        return d.directions

    def rates(self, d: Any, z: Array) -> Array:
        """Gaps, with the depth allowed, and constraint residuals over ``dt``."""
        rows = position_rows(self.system, d.t, self.system.retract(d.q, d.dt * z), d.params, self.nc)
        return (rows + d.depth * (np.arange(self.nc + self.nb) < self.nc)) / d.dt

    def friction(self, d: Any) -> Array:
        """No friction on position level."""
        return jnp.zeros(self.nc)

    def given(self, d: Any) -> None:
        """Nothing is given on position level."""


def position_rows(system: System, t: Array, q: Array, p: PyTree, nc: int) -> Array:
    """Gaps, if contacts count, and constraint residuals (nc + nb,) [m]."""
    parts = []
    if nc:
        parts.append(system.gap(t, q, p))
    if system.nb:
        parts.append(system.constraint(t, q, p))
    return parts[0] if len(parts) == 1 else jnp.concatenate(parts)


def correction_directions(
    system: System, t: Array, q: Array, p: PyTree, contacts: bool, kinetic: bool
) -> Array:
    """``D`` (nv, nc + nb): ``W`` at ``(t, q)``, or ``M^-1 W`` in the kinetic metric."""
    parts = []
    if system.nc and contacts:
        parts.append(gap_rows(system, "gap", system.nc, t, q, p).wt)
    if system.nb:
        parts.append(gap_rows(system, "constraint", system.nb, t, q, p).wt)
    w = jnp.concatenate(parts).T
    return inertia_at(system, t, q, p).solve(w) if kinetic else w


def project_position(
    system: System,
    params: PyTree,
    t: Array,
    q: Array,
    at: tuple[Array, Array],
    dt: Array,
    v: Array,
    *,
    contacts: bool,
    kinetic: bool,
    tolerance: Array | float,
    contact_tolerance: Array | float,
    max_passes: int,
    max_iterations: int,
    depth: Array | float = 0.0,
) -> Projection:
    """``q + D Psi`` with ``0 <= g_N + depth _|_ Psi >= 0``, ``g_B = 0``, nearest to ``q`` to first order.

    Without constraints and without a contact penetrated by more than ``depth`` nothing is solved.

    Args:
        at: time and position at which the directions ``D`` are taken.
        dt, v: scales: increments count as velocities ``increment / dt`` beside ``v``.
        contacts: whether the contacts take part, or only the bilateral constraints.
        kinetic: ``D = M^-1 W``, independent of units, instead of ``D = W``.
        tolerance, contact_tolerance, max_passes, max_iterations: see `nsjax.contact.stage.solve_stage`.
        depth: penetration that is left alone [m].

    Source: [S&U&S (32), (33)].
    """
    nc = system.nc if contacts else 0
    may = acting(system, t, q, params, jnp.ones(system.nc, bool))

    def move(_: None) -> Projection:
        directions = correction_directions(system, *at, params, contacts, kinetic)
        data = _Data(params=params, t=t, q=q, directions=directions, dt=dt, depth=depth)
        settings = StageSettings(
            tolerance=tolerance, contact_tolerance=contact_tolerance, scale=1.0 + jnp.max(jnp.abs(v))
        )
        answer = solve_stage(
            _Equations(system, contacts), data, jnp.zeros(system.nv), may[:nc], settings,
            max_passes=max_passes, max_iterations=max_iterations,
        )  # fmt: skip
        return Projection(
            q=system.retract(q, dt * answer.z),
            psi=answer.impulses,
            iterations=answer.iterations,
            residual=answer.residual,
            estimate=answer.estimate,
        )

    def stay(_: None) -> Projection:
        zero = jnp.zeros(())
        return Projection(
            q=q, psi=jnp.zeros(nc + system.nb), iterations=jnp.asarray(0, int), residual=zero, estimate=zero
        )

    if system.nb:
        return move(None)
    if not nc:
        return stay(None)
    gap = system.gap(t, q, params)
    return branch(jnp.any((gap + depth < 0.0) & may), move, stay, None)
