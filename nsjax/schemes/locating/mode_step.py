"""A step divided at the instants at which contacts close or the modes of closed contacts change."""

from __future__ import annotations

import dataclasses

import jax.numpy as jnp
from jax import lax

from nsjax import notes
from nsjax.contact import events
from nsjax.contact.criteria import criteria_of
from nsjax.core.branches import branch
from nsjax.core.operators import acting, refreshed
from nsjax.core.scheme import Carry, Event, Output, PartEnd
from nsjax.core.step import Step, SystemState
from nsjax.core.system import State
from nsjax.schemes.books import step_status
from nsjax.schemes.locating.first_event import DEPTH, SAME_INSTANT, FirstEvent
from nsjax.schemes.locating.located_impact import ImpactContacts, LocatedImpact, located_impact, merged
from nsjax.schemes.locating.mode_parts import StepPart, advance, begin, state_of, to_event
from nsjax.schemes.locating.modes import no_modes
from nsjax.schemes.locating.trial_steps import CUTS, inside
from nsjax.types import Array, record


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
        last: _Partial = lax.scan(cut, both[0], None, length=CUTS + 1)[0]
        return last

    part = branch(flown.done, lambda both: both[1], parts, (begin, flown))

    def plain(part: _Partial) -> tuple[Carry, Output]:
        inner = inside(step.scheme)
        carry, output = dataclasses.replace(step, scheme=inner).take()
        bits = output.notes | jnp.where(part.unlocated, notes.UNLOCATED, 0)
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
    system, rules = step.system, inside(step.scheme).in_modes
    assert rules is not None
    none, zero, no = jnp.zeros(system.nc, bool), jnp.zeros(system.nc), jnp.asarray(False)
    rows, v = jnp.zeros(system.nc * (1 + system.nt) + system.nb), step.state.v
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
    """The step before its first part; and the step after a flight over its whole length, which is done
    unless a contact is closed at its start or penetrated at its end.
    """
    system, d = step.system, _starting(step, part)
    end = advance(system, d, d.left, flies=True)
    there = state_of(d, d.left, end)
    gaps = [step.at(x).gap() for x in events.frozen((part.state, there))]
    low = acting(system, there.t, there.q, step.params, (gaps[0] <= 0.0) | (gaps[1] + DEPTH < 0.0))
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
    values, hit = x.flight.values, x.flight.hit
    # events at the same instant have equal values of their functions to rounding
    now = hit & (values <= jnp.min(jnp.where(hit, values, jnp.inf)) + SAME_INSTANT)
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
    criteria, rules = criteria_of(inner), inner.in_modes
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
    impulse = part.end.impulse + jnp.concatenate([jump.contacts.reshape(-1), jump.constraints])
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
    system, rules = step.system, inside(step.scheme).in_modes
    assert rules is not None
    d, n, event = 1 + system.nt, system.nc * (1 + system.nt), part.event
    gap = step.at(part.state).gap()
    event = dataclasses.replace(event, gap=jnp.where(event.impact, -DEPTH, gap))
    state = step.state
    ahead = step.at(State(t=part.state.t, q=system.retract(state.q, step.dt * state.v), v=state.v))
    status = step_status(ahead, part.state, gap, jnp.asarray(True), part.residual)
    force, impulse = ((x[:n].reshape(system.nc, d), x[n:]) for x in (part.end.force, part.end.impulse))
    stuck = part.held & ~part.slid
    memory = rules.remembered(step.carry.memory, part.end, part.held, stuck, event.active, event.impact)
    output = Output(
        force_normal=force[0][:, 0], force_tangential=force[0][:, 1:], constraint_force=force[1],
        impulse_normal=impulse[0][:, 0], impulse_tangential=impulse[0][:, 1:],
        constraint_impulse=impulse[1], event=event, iterations=part.iterations, residual=part.residual,
        status=status, contact=jnp.asarray(-1, int), notes=part.bits,
    )  # fmt: skip
    return Carry(state=part.state, memory=memory), output
