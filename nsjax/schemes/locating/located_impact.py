"""The impact at a located instant: velocity jump, notes, and the derivative of simultaneous impacts."""

from __future__ import annotations

import dataclasses

import jax.numpy as jnp

from nsjax import notes
from nsjax.contact import Jump, SolverSettings, StepForces, events, saltation, velocity_jump
from nsjax.contact.acceleration import SlidingRule
from nsjax.contact.criteria import Criteria, criteria_of
from nsjax.contact.event_motion import (
    EventMotion,
    accelerate,
    each_alone,
    motion_around,
    near_border,
    shift_back,
)
from nsjax.contact.links import struck_with
from nsjax.core.branches import branch
from nsjax.core.scheme import Event, Scheme
from nsjax.core.step import Formed, SystemState, formed
from nsjax.core.system import State
from nsjax.nonlinear import only_tangent
from nsjax.schemes.locating.trial_steps import inside
from nsjax.types import Array, record

SETTLES = 0.5
"""Normal speed, in units of the step times the free normal acceleration ``h a_N``, up to which a bounce is
the last of an accumulation of impacts.

A slower bounce flies for less than one step and would strike twice in a step. So all bounces that are left
are replaced by one impact without restitution. The sum of the impulses over their time is the same, since
the closed contact then carries the load. Position and derivative change by the order of ``h^2 a_N``, since
all these bounces scale with the first one.
"""


@record()
class ImpactContacts:
    """Contacts at a located impact.

    Args:
        now: (nc,) bool, contacts that strike.
        resting: (nc,) bool, contacts that were closed before.
        active: (nc,) bool, contacts that share the impulse.
        dt: () length of the step, or of what is left of it [s].
        bouncing: (nc,) bool, contacts that have bounced within the last steps; None: not known.
        again: (nc,) bool, contacts that have struck in this step already; None: not known.
    """

    now: Array
    resting: Array
    active: Array
    dt: Array
    bouncing: Array | None = None
    again: Array | None = None


@record()
class LocatedImpact:
    """Result of a located impact.

    Args:
        state: state after it.
        jump: velocity jump and impulses.
        notes: (nc,) bits of `nsjax.notes`.
        failed: () bool, whether the step must be left to the scheme inside.
    """

    state: State
    jump: Jump
    notes: Array
    failed: Array


def located_impact(scheme: Scheme, there: SystemState, struck: ImpactContacts) -> LocatedImpact:
    """The impact of the contacts ``struck.now`` at the state of ``there``.

    Restitution refers to the velocity that fulfils the constraints, see `_on_constraints`.
    """
    system, coef = there.system, scheme.coef
    inner = inside(scheme)
    settings = SolverSettings(tolerance=coef.tolerance, max_iterations=scheme.options.max_iterations)
    f, held = _on_constraints(inner, formed(there), settings)
    at = f.at.state
    settles, slow = _ends(criteria_of(inner), f, struck)
    jump = velocity_jump(f, struck.active, settings, StepForces(settling=settles))
    if held is not None:
        jump = dataclasses.replace(jump, constraints=jump.constraints + held)
    links = events.linked(criteria_of(inner), f, struck.active)
    pairs = struck_with(links, struck.now)
    state, near = State(t=at.t, q=at.q, v=at.v + jump.dv), jnp.zeros(system.nc, bool)
    if scheme.gradient != "discrete" and (system.nt or system.nc > 1):
        around = _around(inner, f, state, jump, struck)
        if system.nt:
            second_order = inner.in_modes is not None
            near = struck.now & near_border(around, events.frozen(struck.dt), second_order)
        if system.nc > 1:
            apart = (jnp.sum(struck.now) > 1) & ~jnp.any(pairs)
            own = lambda s: _each_in_time(around, s, jump, struck, there.gap())  # noqa: E731
            state = branch(apart, own, lambda s: s, state)
    bits = jnp.where(pairs, notes.TOGETHER, 0) | jnp.where(near, notes.KINK, 0)
    if settles is not None:
        bits = bits | jnp.where(settles, notes.ACCUMULATION, 0)
    return LocatedImpact(
        state=state, jump=jump, notes=bits, failed=jnp.any(slow) | ~(jump.residual <= coef.tolerance)
    )


def _on_constraints(inner: Scheme, f: Formed, settings: SolverSettings) -> tuple[Formed, Array | None]:
    """The system with the velocity that fulfils the bilateral constraints, and the impulses (nb,) that this
    takes; None where ``inner`` ends its steps with such a velocity.

    A scheme that holds constraints with the rows of its midpoint leaves rates of ``O(s)`` after a part of
    the length ``s``. Given on to the motion after the impact they would be an error of ``O(s)``, whose
    derivative by the instant is ``O(1)``.
    """
    system = f.at.system
    if not system.nb or inner.holds_velocities:
        return f, None
    held = velocity_jump(f, jnp.zeros(system.nc, bool), settings)
    return dataclasses.replace(f, at=f.at.moved(v=f.at.v + held.dv)), held.constraints


def _ends(criteria: Criteria, f: Formed, struck: ImpactContacts) -> tuple[Array | None, Array]:
    """Contacts (nc,) bool whose accumulation of bounces ends with this impact (None: not known), and
    contacts that are left to the scheme inside: those that approach slowly and have not bounced before.
    """
    rates = events.normal_rates(f)
    limit, *_ = events.gate(criteria, f, struck.dt)
    slow = struck.now & (rates >= -limit)
    if struck.bouncing is None or struck.again is None:
        return None, slow
    short, *_ = events.gate(dataclasses.replace(criteria, gate=SETTLES), f, struck.dt)
    settles = struck.now & (struck.bouncing & (rates >= -short) | struck.again & slow)
    return events.frozen(settles), slow & ~struck.bouncing


def _around(inner: Scheme, f: Formed, end: State, jump: Jump, struck: ImpactContacts) -> EventMotion:
    """Data of the motion around a located impact, without derivatives."""
    criteria, resting = criteria_of(inner), struck.resting
    here, there, still = events.frozen((f.at, end, jump))
    rule, system = SlidingRule(criteria=criteria), here.system
    known = accelerate(here, resting, rule)
    return EventMotion(
        at=here, a=(known.a, known.force),
        dv=each_alone(events.frozen(f.response), still.contacts),
        aside=jnp.zeros((system.nv, system.nc)), end=there, resting=resting,
        after=(resting | struck.now) & events.at_rest(criteria, still.after, there.v), rule=rule,
        active=struck.now | resting,
        impulses=jnp.concatenate([still.contacts.reshape(-1), still.constraints]),
    )  # fmt: skip


def _each_in_time(around: EventMotion, end: State, jump: Jump, struck: ImpactContacts, gap: Array) -> State:
    """The state ``end`` after simultaneous impacts that do not affect each other, with the derivative of
    each at its own time. All are located as one event, the least gap, whose time moves by a mean of their
    shifts; what each shift differs from the mean is added here.
    """
    now = struck.now
    tau = jnp.where(now, -only_tangent(gap, refuse=False) / jnp.where(now, jump.before, -1.0), 0.0)
    shift = saltation.Shift(tau=tau, mean=jnp.zeros(()), events=now, apart=jnp.asarray(True))
    after = motion_around(around, shift.apart, events.frozen(struck.dt))
    return shift_back(around.at.system, end, after, shift)


def merged(old: Event, event: Event) -> Event:
    """The contact decisions ``old`` of the parts of a step so far, merged with the ``event`` of the next
    part. A contact that strikes twice keeps the rates and the time of its first impact.
    """
    fresh = event.impact & ~old.impact
    return Event(
        gap=jnp.where(old.impact & ~event.impact, old.gap, event.gap),
        active=old.active | event.active,
        impact=old.impact | event.impact,
        rate_before=jnp.where(fresh, event.rate_before, old.rate_before),
        rate_after=jnp.where(fresh, event.rate_after, old.rate_after),
        shift=jnp.where(fresh, event.shift, old.shift),
        timed=old.timed | event.timed,
    )
