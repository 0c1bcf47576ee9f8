"""Projection of a position onto contacts and constraints: no penetration, no drift."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.contact.stage import StageSettings, StageStart, solve_stage
from nsjax.core.operators import acting, position_gradient, position_rows
from nsjax.core.row_groups import RowGroups
from nsjax.core.step import SystemState
from nsjax.core.system import System, row_groups
from nsjax.jaxtools.control_flow import branch
from nsjax.linalg import BlockTridiagonal, Structure, matmul, matvec
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
    """``z - D Psi = 0`` with the gaps of ``q + dt z``, over ``dt``: all tolerances are of velocities."""

    system: System
    contacts: bool

    @property
    def structure(self) -> Structure:
        """The tangent is the unit matrix."""
        return self.system.structure if self.system.structure.dense else BlockTridiagonal(1)

    @property
    def rows(self) -> RowGroups:
        """Gaps, if contacts take part, and constraints: no friction on position level."""
        return row_groups(self.system, self.contacts).without_friction()

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
        nc, count = self.rows.nc, self.rows.count
        rows = position_rows(self.system, d.t, (d.q, d.dt * z), d.params, nc)
        return (rows + d.depth * (np.arange(count) < nc)) / d.dt

    def friction(self, d: Any) -> Array:
        """No friction on position level."""
        return jnp.zeros(self.rows.nc)

    def given(self, d: Any) -> None:
        """Nothing is given on position level."""


@record(static=("contacts",))
class Directions:
    """Directions ``D`` along which positions are corrected.

    Args:
        at: the system at the state at which the directions are taken.
        contacts: whether the contacts take part, or only the bilateral constraints.
        kinetic: ``D = M^-1 W``, independent of units, instead of ``D = W``.
        modes: ``P`` (nv, m), velocities of the only motions that correct positions, ``D = P P' W``; None:
            all do.
    """

    at: SystemState
    contacts: bool
    kinetic: bool | Array
    modes: Array | None = None

    def matrix(self) -> Array:
        """``D`` (nv, nc + nb)."""
        at = self.at
        rows = position_gradient(at.system, at.t, at.q, at.params, self.contacts)
        if self.modes is not None:
            return matmul(self.modes, matmul(self.modes.T, rows.directions()))
        respond = lambda: rows.response(at.inertia())  # noqa: E731
        return chosen(self.kinetic, respond, rows.directions())


def chosen(which: bool | Array, one: Callable[[], Any], other: Any) -> Any:
    """``one()`` or the ``other``; both are computed where the choice is traced."""
    if isinstance(which, bool):
        return one() if which else other
    return jax.tree.map(lambda x, y: jnp.where(which, x, y), one(), other)


def project_position(
    end: SystemState, along: Directions, dt: Array, settings: StageSettings, depth: Array | float = 0.0,
    among: Array | None = None,
) -> Projection:  # fmt: skip
    """``q + D Psi`` with ``0 <= g_N + depth _|_ Psi >= 0``, ``g_B = 0``, nearest to ``q`` to first order.

    Without constraints and without a contact penetrated by more than ``depth`` nothing is solved.

    Args:
        end: the system at the position ``q``.
        along: the directions ``D``.
        dt: increments count as velocities ``increment / dt``.
        settings: of the solver, whose tolerances are those of velocities; their scale is that of ``end``.
        depth: penetration that is not corrected [m].
        among: (nc,) bool, contacts that take part; None: all.

    Source: [S&U&S (32), (33)].
    """
    system, params, t, q = end.system, end.params, end.t, end.q
    nc = system.nc if along.contacts else 0
    may = acting(system, t, q, params, jnp.ones(system.nc, bool) if among is None else among)

    def move(_: None) -> Projection:
        data = _Data(params=params, t=t, q=q, directions=along.matrix(), dt=dt, depth=depth)
        start = StageStart(z=jnp.zeros(system.nv))
        scaled = dataclasses.replace(settings, scale=1.0 + jnp.max(jnp.abs(end.v)))
        answer = solve_stage(_Equations(system, along.contacts), data, may[:nc], scaled, start)
        return Projection(
            q=system.retract(q, dt * answer.z), psi=answer.impulses, iterations=answer.iterations,
            residual=answer.residual, estimate=answer.estimate,
        )  # fmt: skip

    def stay(_: None) -> Projection:
        zero = jnp.zeros(())
        return Projection(
            q=q, psi=jnp.zeros(nc + system.nb), iterations=jnp.asarray(0, int), residual=zero, estimate=zero
        )

    if system.nb:
        return move(None)
    if not nc:
        return stay(None)
    return branch(jnp.any((end.gap() + depth < 0.0) & may), move, stay, None)
