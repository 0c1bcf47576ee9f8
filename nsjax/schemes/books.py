"""Output of a step that all schemes report in the same way."""

from __future__ import annotations

import jax.numpy as jnp

from nsjax import status
from nsjax.contact import Jump, no_jump
from nsjax.contact.events import Balance
from nsjax.contact.sensitivity import Told
from nsjax.contact.stage import StageAnswer
from nsjax.core.branches import branch
from nsjax.core.inertia import inertia_at
from nsjax.core.scheme import Event, Output
from nsjax.core.system import State, System
from nsjax.types import Array, PyTree


def step_status(
    system: System, params: PyTree, at: State, gap: Array, v: Array, q: Array, solved: Array,
    residual: Array, balance: Balance | None = None,
) -> Array:  # fmt: skip
    """Status bits of a step. Causes are told apart only when something is wrong.

    Args:
        at: a finite state inside the step at which mass and force are looked at to find the cause.
        gap: as tested by the scheme.
        v, q: the new state.
        solved: whether the contact problems met their tolerance.
        residual: of them; infinite where one has no answer.
        balance: mass and force at ``at`` where they are known.
    """

    def broken(x: Array) -> Array:
        return ~jnp.isfinite(jnp.sum(x))

    def causes(_: None) -> Array:
        if balance is None:
            mass, force = inertia_at(system, at.t, at.q, params), system.force(at.t, at.q, at.v, params)
            drift = mass.solve(force[:, None])
        else:
            mass, force, drift = balance.inertia, balance.push, balance.drift
        heavy = broken(mass.times(jnp.ones(system.nv)))
        inputs = heavy | broken(force)
        singular = ~inputs & broken(drift)
        state = ~inputs & ~singular & (broken(v) | broken(q))
        found = {
            status.GAP_NOT_FINITE: broken(gap) & ~broken(q),
            status.MASS_NOT_FINITE: heavy,
            status.FORCE_NOT_FINITE: broken(force),
            status.MASS_SINGULAR: singular,
            status.STATE_NOT_FINITE: state,
            status.CONTACT_JAMMED: ~inputs & ~singular & jnp.isinf(residual),
            status.CONTACT_UNSOLVED: ~solved & ~jnp.isinf(residual),
        }
        return sum((jnp.where(on, bit, 0) for bit, on in found.items()), start=jnp.asarray(0))

    bad = broken(gap) | broken(v) | broken(q) | ~solved
    return branch(bad, causes, lambda _: jnp.asarray(0), None)


def stage_jump(
    system: System,
    answer: StageAnswer,
    dv: Array,
    before: Array,
    after: Array,
    active: Array,
    contacts: bool,
) -> Jump:
    """The result of the stage solver as a `Jump`.

    Args:
        dv: (nv,) velocity change of the step.
        before, after: rates of the rows around the step, contacts (if any) first.
    """
    none = no_jump(system)
    count = system.nc * (1 + system.nt) if contacts else 0
    impulses, *rates = (x[:count].reshape(-1, 1 + system.nt) for x in (answer.impulses, before, after))
    return Jump(
        dv=dv,
        contacts=impulses if contacts else none.contacts,
        constraints=answer.impulses[count : count + system.nb],
        before=jnp.where(active, rates[0][:, 0], 0.0) if contacts else none.before,
        after=jnp.where(active, rates[1][:, 0], 0.0) if contacts else none.after,
        iterations=answer.iterations,
        residual=answer.residual,
        worst=none.worst,
    )


def impulse_output(
    system: System,
    params: PyTree,
    at: State,
    end: State,
    gap: Array,
    active: Array,
    told: Told | None,
    jump: Jump,
    dt: Array,
    solved: Array,
    balance: Balance | None = None,
) -> Output:
    """Output of a step whose contact and constraint forces are all impulses.

    Args:
        at: state inside the step, see `step_status`.
        end: the new state.
        told: of its events; None without contacts.
        balance: mass and force at ``at`` where they are known.
    """
    none, no = jnp.zeros(0), jnp.zeros(0, bool)
    told = told or Told(touch=None, notes=none.astype(int), impact=no, tau=none, timed=no)  # type: ignore[arg-type]
    return Output(
        force_normal=jump.contacts[:, 0] / dt,
        force_tangential=jump.contacts[:, 1:] / dt,
        constraint_force=jump.constraints / dt,
        impulse_normal=jump.contacts[:, 0],
        impulse_tangential=jump.contacts[:, 1:],
        constraint_impulse=jump.constraints,
        event=Event(
            gap=gap,
            active=active,
            impact=told.impact,
            rate_before=jump.before,
            rate_after=jump.after,
            shift=told.tau,
            timed=told.timed,
        ),
        iterations=jump.iterations,
        residual=jump.residual,
        status=step_status(system, params, at, gap, end.v, end.q, solved, jump.residual, balance),
        contact=jump.worst,
        notes=told.notes,
    )
