"""A step divided at the instants at which contacts close or modes change, with the impacts there."""

from __future__ import annotations

import dataclasses

import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax import gradient_notes
from nsjax.contact import Jump, SolverSettings, StepForces, events, velocity_jump
from nsjax.contact.event_motion import (
    EventMotion,
    accelerate,
    each_alone,
    motion_around,
    near_border,
    shift_back,
)
from nsjax.contact.events import Criteria, criteria_of
from nsjax.contact.friction import SlidingRule
from nsjax.contact.jump import Shift
from nsjax.contact.problem import struck_with
from nsjax.contact.sensitivity import stacked
from nsjax.core.operators import acting, refreshed
from nsjax.core.scheme import Carry, Event, Output, PartEnd, Scheme
from nsjax.core.step import Formed, Step, SystemState, formed
from nsjax.core.system import State, row_groups
from nsjax.jaxtools import only_tangent
from nsjax.jaxtools.control_flow import branch
from nsjax.schemes.common import step_status
from nsjax.schemes.locating.modes import StepPart, advance, begin, no_modes, state_of, to_event
from nsjax.schemes.locating.trial_steps import CUTS, DEPTH, FirstEvent, happening, inside
from nsjax.types import Array, record

# The impact at a located instant: velocity jump, notes, and the derivative of simultaneous impacts.


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
        notes: (nc,) bits of `nsjax.gradient_notes`.
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
    settings = SolverSettings(
        tolerance=coef.contact_tolerance, max_iterations=scheme.options.max_iterations
    )
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
            second_order = inner.traits.in_modes is not None
            near = struck.now & near_border(around, events.frozen(struck.dt), second_order)
        if system.nc > 1:
            # impacts that do not move each other happen one after the other as soon as their gaps differ:
            # each has an instant of its own, and the derivative knows it
            independent = (jnp.sum(struck.now) > 1) & ~jnp.any(pairs)
            own = lambda s: _each_in_time(around, s, jump, struck, there.gap())  # noqa: E731
            state = branch(independent, own, lambda s: s, state)
    bits = jnp.where(pairs, gradient_notes.TOGETHER, 0) | jnp.where(near, gradient_notes.KINK, 0)
    if settles is not None:
        bits = bits | jnp.where(settles, gradient_notes.ACCUMULATION, 0)
    return LocatedImpact(
        state=state,
        jump=jump,
        notes=bits,
        failed=jnp.any(slow) | ~(jump.residual <= coef.contact_tolerance),
    )


def _on_constraints(inner: Scheme, f: Formed, settings: SolverSettings) -> tuple[Formed, Array | None]:
    """The system with the velocity that fulfils the bilateral constraints, and the impulses (nb,) that this
    takes; None where ``inner`` ends its steps so. Else a part of the length ``s`` leaves rates of ``O(s)``,
    whose derivative by the instant is ``O(1)``.
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
    # normal speed, in units of the step times the free normal acceleration ``h a_N``, up to which a bounce
    # is the last of an accumulation: a slower one flies for less than a step. All bounces that are left are
    # replaced by one impact without restitution; position and derivative change by ``O(h^2 a_N)``
    short, *_ = events.gate(dataclasses.replace(criteria, gate=0.5), f, struck.dt)
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
        dv=each_alone(f.rows.groups, events.frozen(f.response), still.contacts),
        aside=jnp.zeros((system.nv, system.nc)), end=there, resting=resting,
        after=(resting | struck.now) & events.at_rest(criteria, still.after, there.v), rule=rule,
        active=struck.now | resting,
        impulses=stacked(system, still),
    )  # fmt: skip


def _each_in_time(around: EventMotion, end: State, jump: Jump, struck: ImpactContacts, gap: Array) -> State:
    """The state ``end`` after simultaneous impacts that do not affect each other, with the derivative of
    each at its own time. All are located as one event, the least gap, whose time moves by a mean of their
    shifts; what each shift differs from the mean is added here.
    """
    now = struck.now
    tau = jnp.where(now, -only_tangent(gap, refuse=False) / jnp.where(now, jump.before, -1.0), 0.0)
    shift = Shift(tau=tau, mean=jnp.zeros(()), events=now, independent=jnp.asarray(True))
    after = motion_around(around, shift.independent, events.frozen(struck.dt))
    return shift_back(around.at.system, end, after, shift)


def merged(old: Event, event: Event) -> Event:
    """The contact decisions so far with those of the next part; of two impacts, the first counts."""
    fresh, unheld = event.impact & ~old.impact, old.unheld
    if unheld is not None and event.unheld is not None:
        unheld = unheld | event.unheld
    return Event(
        gap=jnp.where(old.impact & ~event.impact, old.gap, event.gap),
        active=old.active | event.active,
        impact=old.impact | event.impact,
        rate_before=jnp.where(fresh, event.rate_before, old.rate_before),
        rate_after=jnp.where(fresh, event.rate_after, old.rate_after),
        shift=jnp.where(fresh, event.shift, old.shift),
        timed=old.timed | event.timed,
        unheld=unheld,
    )


# A step divided at the instants at which contacts close or the modes of closed contacts change.


@record()
class _Partial:
    """A step of which some parts are done.

    Args:
        state: state at the end of these parts.
        left: () time to the end of the step [s].
        held: (nc,) bool, contacts that are closed and at rest.
        gone: (nc,) bool, contacts that opened in this step.
        slid: (nc,) bool, contacts that slide already.
        begun: (nc,) sign of the direction in which contacts begin to slide; zero: not known.
        end: motion at the end of the last part, with the impulses of all parts and impacts summed.
        event: contact decisions.
        unlocated: (nc,) bool, contacts with an event, and contacts because of which the step is left to the
            scheme inside.
        bits: (nc,) notes.
        iterations, residual: () sum and largest value over the contact problems of impacts.
        done: () bool, whether the step has ended.
        failed: () bool, whether the step must be left to the scheme inside.
    """

    state: State
    left: Array
    held: Array
    gone: Array
    slid: Array
    begun: Array
    end: PartEnd
    event: Event
    unlocated: Array
    bits: Array
    iterations: Array
    residual: Array
    done: Array
    failed: Array


def step_in_modes(step: Step) -> tuple[Carry, Output]:
    """The step in parts; where that fails, by the scheme inside."""

    def cut(part: _Partial, _: None) -> tuple[_Partial, None]:
        return branch(part.done, lambda p: p, lambda p: _after_part(step, p), part), None

    begin, flown = _flight(step, _no_part(step))

    def parts(both: tuple[_Partial, _Partial]) -> _Partial:
        return lax.scan(cut, both[0], None, length=CUTS + 1)[0]

    part = branch(flown.done, lambda both: both[1], parts, (begin, flown))

    def plain(part: _Partial) -> tuple[Carry, Output]:
        inner = inside(step.scheme)
        carry, output = dataclasses.replace(step, scheme=inner).take()
        bits = output.notes | jnp.where(part.unlocated, gradient_notes.UNLOCATED, 0)
        return carry, dataclasses.replace(output, notes=bits, event=_with_unheld(output.event))

    def located(part: _Partial) -> tuple[Carry, Output]:
        carry, output = _result(step, part)
        return carry, dataclasses.replace(output, event=_with_unheld(output.event))

    return branch(part.done & ~part.failed, located, plain, part)


def _with_unheld(event: Event) -> Event:
    """The event with `Event.unheld`, which only some schemes know: branches agree in what they return."""
    return event if event.unheld is not None else dataclasses.replace(event, unheld=event.impact & False)


def _no_part(step: Step) -> _Partial:
    """The step before its first part."""
    system, rules = step.system, inside(step.scheme).traits.in_modes
    assert rules is not None
    none, zero, no = jnp.zeros(system.nc, bool), jnp.zeros(system.nc), jnp.asarray(False)
    rows, v = jnp.zeros(row_groups(system).count), step.state.v
    event = Event(gap=zero, active=none, impact=none, rate_before=zero, rate_after=zero, shift=zero,
                  timed=none)  # fmt: skip
    state = State(t=jnp.asarray(step.state.t), q=step.state.q, v=v)
    held, slid = rules.held(step.carry.memory)
    return _Partial(
        state=state, left=step.dt, held=held, gone=none, slid=slid, begun=zero,
        end=PartEnd(q=state.q, v=v, a=jnp.zeros_like(v), force=rows, impulse=rows), event=event,
        unlocated=none, bits=jnp.zeros(system.nc, int), iterations=jnp.asarray(0), residual=jnp.zeros(()),
        done=no, failed=no,
    )  # fmt: skip


def _starting(step: Step, part: _Partial) -> StepPart:
    """The next part of the step, before its modes are known: all contacts open."""
    system, state = step.system, part.state
    return StepPart(
        scheme=step.scheme, params=refreshed(system, state.t, state.q, step.params),
        constants=step.constants, state=state, left=part.left, modes=no_modes(system.nc),
        base=jnp.zeros(system.nc),
    )  # fmt: skip


def _flight(step: Step, part: _Partial) -> tuple[_Partial, _Partial]:
    """The step before its first part, and after a flight over its length unless contacts prevent it."""
    system, d = step.system, _starting(step, part)
    end = advance(system, d, d.left, flies=True)
    there = state_of(d, d.left, end)
    gaps = [step.at(x).gap() for x in events.frozen((part.state, there))]
    low = acting(system, there.t, there.q, step.params, (gaps[0] <= 0.0) | (gaps[1] <= 0.0))
    return part, dataclasses.replace(_after_motion(part, d, d.left, end), done=~jnp.any(part.held | low))


def _after_part(step: Step, part: _Partial) -> _Partial:
    """The step after its next part: to its end if nothing happens, else through the next event."""
    system, d = step.system, _starting(step, part)
    d, rattles = begin(system, d, part.held & ~part.gone, part.gone, part.slid, part.begun)
    gone = part.gone | part.held & ~d.modes.held
    part = _marked_failed(dataclasses.replace(part, gone=gone, slid=d.modes.slide != 0.0), rattles)
    x = to_event(system, d)
    end, _, hops = x.flight.end
    ends = ~jnp.any(x.flight.hit)
    # contacts that hop come to rest by the contact laws of the scheme inside
    part = _after_motion(_marked_failed(part, hops & ends), d, x.time, end)
    part = dataclasses.replace(part, done=ends, held=d.modes.held)
    return branch(ends, lambda p: p, lambda p: _after_event(step, d, x, p), part)


def _marked_failed(part: _Partial, contacts: Array) -> _Partial:
    """The step, marked to be left to the scheme inside if any of ``contacts`` (nc,) bool is true."""
    return dataclasses.replace(
        part, unlocated=part.unlocated | contacts, failed=part.failed | jnp.any(contacts)
    )


def _after_motion(part: _Partial, d: StepPart, sigma: Array, end: PartEnd) -> _Partial:
    """The step after the motion ``end`` of a part ``d`` of the length ``sigma`` [s]."""
    summed = dataclasses.replace(end, impulse=part.end.impulse + end.impulse)
    event = dataclasses.replace(part.event, active=part.event.active | d.modes.held)
    return dataclasses.replace(
        part, state=state_of(d, sigma, end), left=part.left - sigma, end=summed, event=event
    )


def _after_event(step: Step, d: StepPart, x: FirstEvent, part: _Partial) -> _Partial:
    """The step, at the end of its part ``x``, after the event there."""
    hit = x.flight.hit
    now = happening(x.flight.values, hit, np.array([DEPTH, 0.0, 0.0, 0.0])[: len(hit), None])
    part = dataclasses.replace(
        part, unlocated=part.unlocated | jnp.any(hit, axis=0), failed=part.failed | ~x.found
    )
    slid, begun = part.slid, part.begun
    if step.system.nt:
        side = -jnp.sign(x.flight.end[1][:, 1])
        begun = jnp.where(now[3], side, jnp.where(now[2], 0.0, begun))
        slid = slid & ~now[2]
    part = dataclasses.replace(part, gone=(part.gone | now[1]) & ~now[0], slid=slid, begun=begun)
    return branch(jnp.any(now[0]), lambda p: _after_impact(step, d, p, now[0]), lambda p: p, part)


def _after_impact(step: Step, d: StepPart, part: _Partial, now: Array) -> _Partial:
    """The step after the impact of the contacts ``now`` (nc,)."""
    system, at, held = step.system, part.state, d.modes.held
    there = SystemState(system=system, params=refreshed(system, at.t, at.q, d.params), state=at)
    inner, again = inside(step.scheme), part.event.impact
    criteria, rules = criteria_of(inner), inner.traits.in_modes
    assert rules is not None
    # a contact that was open for longer than that does not belong to an accumulation
    bouncing = again | (rules.flown(step.carry.memory) <= criteria.long)
    struck = ImpactContacts(
        now=now, resting=held, active=held | now, dt=step.dt, bouncing=bouncing, again=again
    )
    impact: LocatedImpact = located_impact(step.scheme, there, struck)
    jump = impact.jump
    event = Event(
        gap=jnp.where(now, -DEPTH, 0.0), active=held | now, impact=now, rate_before=jump.before,
        rate_after=jump.after, shift=jnp.where(now, at.t - (step.state.t + step.dt), 0.0), timed=now,
    )  # fmt: skip
    rests = events.at_rest(criteria, jump.after, impact.state.v)
    impulse = part.end.impulse + stacked(step.system, jump)
    return dataclasses.replace(
        part, state=impact.state, held=events.frozen((held | now) & rests),
        failed=part.failed | impact.failed,
        slid=jnp.zeros_like(part.slid), begun=jnp.zeros_like(part.begun),
        end=dataclasses.replace(part.end, impulse=impulse), event=merged(part.event, event),
        bits=part.bits | impact.notes, iterations=part.iterations + jump.iterations,
        residual=jnp.maximum(part.residual, jump.residual),
    )  # fmt: skip


def _result(step: Step, part: _Partial) -> tuple[Carry, Output]:
    """Carry and output of a step that is done."""
    system, rules = step.system, inside(step.scheme).traits.in_modes
    assert rules is not None
    groups, event = row_groups(system), part.event
    gap = step.at(part.state).gap()
    event = dataclasses.replace(event, gap=jnp.where(event.impact, -DEPTH, gap))
    state = step.state
    ahead = step.at(State(t=part.state.t, q=system.retract(state.q, step.dt * state.v), v=state.v))
    status = step_status(ahead, part.state, gap, jnp.asarray(True), part.residual)
    force, impulse = ((groups.contacts(x), groups.bilateral(x)) for x in (part.end.force, part.end.impulse))
    stuck = part.held & ~part.slid
    memory = rules.remembered(step.carry.memory, part.end, part.held, stuck, event.active, event.impact)
    output = Output(
        force_normal=force[0][:, 0], force_tangential=force[0][:, 1:], constraint_force=force[1],
        impulse_normal=impulse[0][:, 0], impulse_tangential=impulse[0][:, 1:],
        constraint_impulse=impulse[1], event=event, iterations=part.iterations, residual=part.residual,
        status=status, contact=jnp.asarray(-1, int), notes=part.bits,
    )  # fmt: skip
    return Carry(state=part.state, memory=memory), output
