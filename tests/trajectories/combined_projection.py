"""The scheme behind two of the files, written as a user would: a `Scheme` of plain functions, with the
directions and the stage solver of the package.

A Moreau-Jean step that is implicit in everything, the mass matrix and the directions ``W`` included,
with the end position projected on the contacts that took part (README of the data, "combined
projection").
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax import Carry, Event, Output, Scheme, State, System, status
from nsjax.contact.stage import StageSettings, StageStart, solve_stage
from nsjax.core.operators import all_rows, row_forces, row_rates
from nsjax.linalg import Structure, matmul, matvec, solve_positive
from nsjax.types import Array, record


@record()
class Coefficients:
    """Bound on the gaps after the projection [m], on the stages and on the contact problems."""

    projection: Array | float = 1e-10
    stage: Array | float = 1e-12
    contact: Array | float = 1e-11


@record()
class _Data:
    """What the equations of a step read; ``target``: (rows,) ``e u^-``."""

    params: Any
    state: State
    dt: Array
    start_force: Array
    target: Array


@record()
class _Pass:
    """One pass of a step: contacts it asks for and those it had, row rates, end, impulses, books."""

    grown: Array
    closed: Array
    before: Array
    after: Array
    q: Array
    v: Array
    impulses: Array
    iterations: Array
    residual: Array
    solved: Array
    count: Array | int


@dataclasses.dataclass(frozen=True)
class _Equations:
    """``M(q_1) z - dt (h_0 + h_1) / 2 - W(q_1) P = 0`` with ``z = v_1 - v_0``."""

    system: System

    @property
    def structure(self) -> Structure:
        return self.system.structure

    @property
    def nc(self) -> int:
        return self.system.nc

    @property
    def nt(self) -> int:
        return self.system.nt

    @property
    def nb(self) -> int:
        return 0

    def given(self, d):
        return None

    def smooth(self, d):
        return np.zeros(self.nc, bool)

    def end(self, d, z):
        q = self.system.retract(d.state.q, d.dt * (d.state.v + 0.5 * z))
        return d.state.t + d.dt, q, d.state.v + z

    def residual(self, d, z):
        t, q, v = self.end(d, z)
        push = 0.5 * d.dt * (d.start_force + self.system.force(t, q, v, d.params))
        return matvec(self.system.mass(q, d.params), z) - push

    def forces(self, d, z, impulses):
        t, q, _ = self.end(d, z)
        return row_forces(self.system, t, q, impulses, d.params)

    def directions(self, d, z):
        t, q, _ = self.end(d, z)
        return all_rows(self.system, t, q, d.params).wt.T

    def rates(self, d, z):
        t, q, v = self.end(d, z)
        return row_rates(self.system, t, q, v, d.params) + d.target

    def friction(self, d):
        return self.system.law(d.params).friction_of(self.nc)


def combined_projection(projection: float = 1e-10) -> Scheme:
    """The scheme; ``projection``: bound on the gaps of the contacts that took part [m]."""
    return Scheme(
        name="combined_projection", coef=Coefficients(projection=projection), options=None,
        prepare=_prepare, init=_init, step=_step, gradient="discrete",
    )  # fmt: skip


def _prepare(scheme, system, params, dt):
    return ()


def _init(scheme, system, params, constants, state):
    return Carry(state=state)


def _project(system, params, t, q, closed, tolerance):
    """Moves ``q`` along ``M^-1 W_N`` until the gaps of all ``closed`` contacts vanish."""

    def gaps(q):
        return jnp.where(closed, system.gap(t, q, params), 0.0)

    def nearer(both):
        q, k = both
        normal = all_rows(system, t, q, params).wt[:: 1 + system.nt]
        normal = jnp.where(closed[:, None], normal, 0.0)
        response = solve_positive(system.mass(q, params), normal.T)
        absent = jnp.where(closed, 0.0, 1.0)[:, None] * jnp.eye(system.nc)
        x = solve_positive(matmul(normal, response) + absent, -gaps(q)[:, None])[:, 0]
        return system.retract(q, matvec(response, x)), k + 1

    def far(both):
        q, k = both
        return (jnp.max(jnp.abs(gaps(q))) > tolerance) & (k < 20)

    return lax.while_loop(far, nearer, (q, 0))[0]


def _step(scheme, system, params, constants, carry, dt):
    t, q, v = jnp.asarray(carry.state.t), carry.state.q, carry.state.v
    e = system.law(params).row_restitution(system.nc, system.nt)
    force = system.force(t, q, v, params)
    started = system.gap(t, q, params) <= 0.0
    start = _Pass(
        grown=started, closed=started, before=row_rates(system, t, q, v, params), after=jnp.zeros_like(e),
        q=q, v=v, impulses=jnp.zeros_like(e), iterations=jnp.asarray(0), residual=jnp.zeros(()),
        solved=jnp.asarray(True), count=0,
    )  # fmt: skip

    def attempt(old):
        """The step with the contacts ``old.grown``, whose rates before the impact are ``old.before``."""
        data = _Data(
            params=params, state=State(t=t, q=q, v=v), dt=dt, start_force=force, target=e * old.before
        )  # fmt: skip
        return _attempt(system, scheme.coef, data, old)

    def grows(new):
        return (new.count == 0) | jnp.any(new.grown & ~new.closed)

    end = lax.while_loop(grows, attempt, start)
    return Carry(state=State(t=t + dt, q=end.q, v=end.v)), _output(system, params, t + dt, dt, started, end)


def _attempt(system, coef, data, old):
    equations, closed, t = _Equations(system), old.grown, data.state.t + data.dt
    settings = StageSettings(
        tolerance=coef.stage, contact_tolerance=coef.contact, scale=1.0 + jnp.max(jnp.abs(data.state.v))
    )
    answer = solve_stage(equations, data, closed, settings, StageStart(z=jnp.zeros(system.nv)))
    _, q, v = equations.end(data, answer.z)
    after = row_rates(system, t, q, v, data.params)
    q = _project(system, data.params, t, q, closed, coef.projection)
    grown = closed | (system.gap(t, q, data.params) <= 0.0)
    # a contact that joins is hit at the rate at the end of the pass that found it
    joins = jnp.repeat(grown & ~closed, 1 + system.nt, total_repeat_length=after.shape[0])
    return _Pass(
        grown=grown, closed=closed, before=jnp.where(joins, after, old.before), after=after, q=q, v=v,
        impulses=answer.impulses, iterations=old.iterations + answer.iterations, residual=answer.residual,
        solved=(answer.estimate <= coef.stage) & (answer.residual <= coef.contact), count=old.count + 1,
    )  # fmt: skip


def _output(system, params, t, dt, started, end):
    rows = jnp.stack([end.impulses, end.before, end.after]).reshape(3, system.nc, 1 + system.nt)
    normal, before, after = rows[:, :, 0]
    return Output(
        force_normal=normal / dt, force_tangential=rows[0, :, 1:] / dt, constraint_force=jnp.zeros(0),
        impulse_normal=normal, impulse_tangential=rows[0, :, 1:], constraint_impulse=jnp.zeros(0),
        event=Event(
            gap=system.gap(t, end.q, params), active=end.closed,
            impact=end.closed & ~started & (normal > 0.0),
            rate_before=jnp.where(end.closed, before, 0.0), rate_after=jnp.where(end.closed, after, 0.0),
        ),
        iterations=end.iterations, residual=end.residual,
        status=jnp.where(end.solved, 0, status.CONTACT_UNSOLVED), contact=jnp.asarray(-1),
        notes=jnp.asarray(0),
    )  # fmt: skip
