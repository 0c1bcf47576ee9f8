"""Output of a step that all schemes report in the same way."""

from __future__ import annotations

import jax.numpy as jnp

from nsjax import status
from nsjax.contact import Jump, no_jump
from nsjax.contact.contact_report import ContactReport
from nsjax.contact.family import Stepped
from nsjax.contact.problem import GivenNormals
from nsjax.contact.stage import StageAnswer
from nsjax.core.branches import branch
from nsjax.core.scheme import Event, Output
from nsjax.core.step import Balance, SystemState
from nsjax.core.system import State, System
from nsjax.types import Array


def step_status(
    at: SystemState, end: State, gap: Array, solved: Array, residual: Array, balance: Balance | None = None
) -> Array:
    """Status bits of a step, see `nsjax.status`. Causes are looked for only when something is wrong.

    Args:
        at: the system at a finite state inside the step; mass and force there show the cause.
        end: the new state.
        gap: (nc,) gaps by which the scheme decided its contacts [m].
        solved: () bool, whether all contact problems fulfil their tolerance.
        residual: () residual of the contact problems; infinite if one has no solution.
        balance: mass and force at ``at``; None: they are evaluated where needed.

    Returns:
        () int, the bits.
    """

    def broken(x: Array) -> Array:
        return ~jnp.isfinite(jnp.sum(x))

    def causes(_: None) -> Array:
        if balance is None:
            mass, force = at.inertia(), at.force()
            drift = mass.solve(force[:, None])
        else:
            mass, force, drift = balance.inertia, balance.push, balance.drift
        heavy = broken(mass.times(jnp.ones(at.system.nv)))
        inputs = heavy | broken(force)
        singular = ~inputs & broken(drift)
        state = ~inputs & ~singular & (broken(end.v) | broken(end.q))
        found = {
            status.GAP_NOT_FINITE: broken(gap) & ~broken(end.q),
            status.MASS_NOT_FINITE: heavy,
            status.FORCE_NOT_FINITE: broken(force),
            status.MASS_SINGULAR: singular,
            status.STATE_NOT_FINITE: state,
            status.CONTACT_JAMMED: ~inputs & ~singular & jnp.isinf(residual),
            status.CONTACT_UNSOLVED: ~solved & ~jnp.isinf(residual),
        }
        return sum((jnp.where(on, bit, 0) for bit, on in found.items()), start=jnp.asarray(0))

    bad = broken(gap) | broken(end.v) | broken(end.q) | ~solved
    return branch(bad, causes, lambda _: jnp.asarray(0), None)


def stage_jump(
    system: System, answer: StageAnswer, dv: Array, rates: tuple[Array, Array], active: Array | None,
    given: GivenNormals | None = None,
) -> Jump:  # fmt: skip
    """The result of the stage solver as a `Jump`.

    Args:
        system: the system.
        answer: answer of the stage solver.
        dv: (nv,) velocity change of the step.
        rates: (rows,) row velocities before and after the step [m/s], contacts (if any) first.
        active: (nc,) bool, contacts that take part; None where contacts have no rows.
        given: normal impulses that the contact law prescribes. A bounded row that belongs to a contact
            takes the normal impulse of that contact: otherwise it would count as unloaded, and a reversal
            of its sliding would be no event.
    """
    none = no_jump(system)
    count = 0 if active is None else system.nc * (1 + system.nt)
    impulses, *both = (x[:count].reshape(-1, 1 + system.nt) for x in (answer.impulses, *rates))
    before, after = none.before, none.after
    if active is not None:
        if given is not None and given.leads:
            normal = given.normals(impulses[:, 0], active)
            impulses = jnp.concatenate([normal[:, None], impulses[:, 1:]], axis=1)
        before, after = (jnp.where(active, x[:, 0], 0.0) for x in both)
    return Jump(
        dv=dv,
        contacts=none.contacts if active is None else impulses,
        constraints=answer.impulses[count : count + system.nb],
        before=before,
        after=after,
        iterations=answer.iterations,
        residual=answer.residual,
        worst=none.worst,
    )


def contact_event(gap: Array, active: Array, report: ContactReport, jump: Jump) -> Event:
    """The contact decision of a step: gaps (nc,) by which it was made [m], ``active`` contacts (nc,) bool
    that took part, impacts of the ``report``, and normal gap rates of the ``jump``.
    """
    return Event(
        gap=gap,
        active=active,
        impact=report.impact,
        rate_before=jump.before,
        rate_after=jump.after,
        shift=report.tau,
        timed=report.timed,
    )


def impulse_output(r: Stepped, event: Event, notes: Array, dt: Array, status: Array) -> Output:
    """Output of a step whose contact and constraint forces are all impulses: forces are impulses over
    ``dt``.
    """
    jump = r.jump
    return Output(
        force_normal=jump.contacts[:, 0] / dt,
        force_tangential=jump.contacts[:, 1:] / dt,
        constraint_force=jump.constraints / dt,
        impulse_normal=jump.contacts[:, 0],
        impulse_tangential=jump.contacts[:, 1:],
        constraint_impulse=jump.constraints,
        event=event,
        iterations=jump.iterations,
        residual=jump.residual,
        status=status,
        contact=jump.worst,
        notes=notes,
    )
