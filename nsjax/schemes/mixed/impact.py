"""The impact at the end of a step of the mixed framework, and accelerations after contact changes."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from nsjax.contact import Jump, events, friction, jump, no_jump, velocity_jump
from nsjax.contact.event_motion import accelerate
from nsjax.contact.events import Approach, at_rest, criteria_of, frozen, gap_rates
from nsjax.contact.friction import SlidingRule, lasting_forces, sliding
from nsjax.contact.sensitivity import ContactReport, Contacts, Family, Stepped, no_report, through_events
from nsjax.core.step import Formed, Step, SystemState, formed
from nsjax.core.system import State, row_groups
from nsjax.jaxtools import only_tangent, with_tangent
from nsjax.jaxtools.control_flow import branch
from nsjax.math import norm
from nsjax.schemes.common import derivatives
from nsjax.schemes.mixed.base_step import End, Memory, base_step, contact_settings
from nsjax.types import Array, record

# Accelerations in the memory of a mixed scheme: when they are computed anew, and what no force holds.


def recomputes(step: Step) -> bool:
    """Whether steps compute accelerations anew after a change of the persistent contacts."""
    return step.scheme.options.acceleration_after_change == "recompute" and step.system.nc > 0


def renewed(step: Step) -> tuple[Step, Array]:
    """The step with the accelerations of the persistent contacts in its memory. They are computed at the
    start of a step, so that the same code serves the start of the run. Contacts that no force holds through
    the step are open in it, and strike at its end. Of these, the second result (nc,) bool tells those that
    no force holds at all: their impact is one without collision.
    """
    memory, scheme = step.carry.memory, step.scheme
    none = jnp.zeros(step.system.nc, bool)
    if not step.system.nc or not (scheme.options.consistent_initial_acceleration or recomputes(step)):
        return step, none
    kept = (memory.a, memory.force), (memory.algorithmic, memory.algorithmic_force)

    def anew(_: None) -> Any:
        rule = SlidingRule(criteria=criteria_of(scheme))
        settings = contact_settings(scheme)
        found = lasting_forces(step.start, memory.resting, settings, rule, dt=step.dt)
        return (found.a, found.force), (found.a, found.force), found.blows, found.jams

    keep = lambda _: (*kept, none, none)  # noqa: E731
    (a, force), (algorithmic, behind), blows, jams = branch(memory.stale, anew, keep, None)
    memory = dataclasses.replace(
        memory, a=a, force=force, algorithmic=algorithmic, algorithmic_force=behind,
        closed=memory.closed & ~blows,
        touch=dataclasses.replace(memory.touch, held=memory.resting & ~blows),
    )  # fmt: skip
    return remembering(step, memory), jams


def remembering(step: Step, memory: Memory) -> Step:
    """The step with another memory."""
    return dataclasses.replace(step, carry=dataclasses.replace(step.carry, memory=memory))


def after_step(step: Step, state: State, closed: Array) -> tuple[Array, Array]:
    """Of the ``closed`` contacts (nc,) bool at the end ``state`` of a step, those at rest; and those that
    have rested throughout, whose sliding has stopped in the step, or will within half of the next one:
    sliding accelerations, taken on, would make them slide back.
    """
    system, criteria, before = step.system, criteria_of(step.scheme), step.carry.memory
    none = jnp.zeros(system.nc, bool)
    if not system.nc:
        return none, none

    def look(_: None) -> tuple[Array, Array]:
        at = step.at(state)
        rests = closed & at_rest(criteria, gap_rates(at), at.v)
        if not (system.nt and recomputes(step)):
            return rests, none
        # one program for both ends of the step
        slip = jax.jit(lambda x: step.at(State(t=x[0], q=x[1], v=x[2])).slip())
        first, last = (slip(frozen((jnp.asarray(x.t), x.q, x.v))) for x in (step.state, state))
        slid = rests & before.resting & sliding(criteria, first, step.state.v)
        return rests, slid & (norm(last) <= 0.5 * norm(last - first))

    return branch(jnp.any(closed), look, lambda _: (none, none), None)


# The impact at the end of a step of the mixed framework, reversals of sliding within a step, and the
# derivatives through both.


@record()
class ImpactEnd:
    """State after the impulse (if there is one), the jump, and the report of the contacts."""

    state: State
    jump: Jump
    report: ContactReport


def resting_contacts(step: Step, at: SystemState, closed: Array) -> Array:
    """Closed contacts whose gap rate is zero to rounding."""
    if not at.system.nc:
        return closed

    def look(_: None) -> Array:
        return closed & events.at_rest(criteria_of(step.scheme), events.gap_rates(at), at.v)

    return branch(jnp.any(closed), look, lambda _: jnp.zeros(at.system.nc, bool), None)


def end_with_impact(step: Step, end: End, closed: Array, load: Array) -> ImpactEnd:
    """The end of a step: an impulse on all ``closed`` contacts if one of them is new.

    Args:
        step: the whole step.
        end: end of the base step.
        closed: (nc,) bool, contacts closed there.
        load: (nc,) bool, contacts that carried a force in the base step.
    """
    system, criteria, memory = step.system, criteria_of(step.scheme), step.carry.memory
    at = State(t=jnp.asarray(step.state.t) + step.dt, q=end.q, v=end.v)
    if not system.nc:
        return ImpactEnd(state=at, jump=no_jump(system), report=no_report(memory.touch))
    new = closed & ~memory.closed

    def respond(step: Step, contacts: Contacts) -> tuple[Stepped, Formed]:
        f = formed(step.start)
        jump = velocity_jump(f, contacts.active, contact_settings(step.scheme))
        at = step.state
        after = State(t=jnp.asarray(at.t), q=at.q, v=at.v + jump.dv)
        return Stepped(end=after, jump=jump, estimate=jnp.zeros(())), f

    def held(step: Step, contacts: Contacts, r: Stepped, found: Approach, load: Array) -> Array:
        # at rest by the velocity after the impulse, at the position where it acts
        there = step.at(dataclasses.replace(step.state, q=r.end.q, v=r.end.v))
        return resting_contacts(step, there, contacts.active)

    def hit(_: None) -> ImpactEnd:
        family = Family(predict=_start, held=held, corrects=False, turns=False, **derivatives(step.scheme))
        contacts = Contacts(touch=memory.touch, active=closed, known=(end.a, end.force), load=load)
        r, report = through_events(respond, family, step.starting(at), contacts)
        # contacts do not chatter here: a newly closed contact that approaches is an impact, however slow
        rests = events.at_rest(criteria, r.jump.before, end.v)
        impact = new & (r.jump.before < 0.0) & ~rests & (r.jump.contacts[:, 0] > 0.0)
        report = dataclasses.replace(report, impact=frozen(impact))
        return ImpactEnd(state=r.end, jump=r.jump, report=report)

    def miss(_: None) -> ImpactEnd:
        touch = events.set_touching(dataclasses.replace(memory.touch, off=memory.touch.off + 1), closed)
        return ImpactEnd(state=at, jump=no_jump(system), report=no_report(touch))

    return branch(jnp.any(new), hit, miss, None)


def _start(step: Step) -> State:
    """State at which contacts are looked at and the impulse acts: that at the end of the base step."""
    state = step.state
    return State(t=jnp.asarray(state.t), q=state.q, v=state.v)


def through_reversal(step: Step) -> End:
    """The base step, between two time shifts if sliding of a contact reverses in it. The accelerations that
    it hands on then have the derivative of the motion after the reversal.
    """
    scheme, system, state, memory = step.scheme, step.system, step.state, step.carry.memory
    criteria, rule = criteria_of(scheme), SlidingRule(criteria=criteria_of(scheme))
    # whether and where sliding turns is decided on values
    still = frozen(dataclasses.replace(step, constants=()))
    start, a, v = still.start, still.carry.memory.a, still.state.v
    now, change = _sliding(start, a)
    turning = friction.reversal(criteria, now, change, _may_turn(step), v, still.dt)
    if scheme.options.laws_at_start:
        # a contact that has just stopped slides off with another acceleration than the stored one
        stops = memory.resting & ~friction.sliding(criteria, now, v)
        own = lambda _: accelerate(start, memory.resting, rule).a  # noqa: E731
        a = branch(jnp.any(stops), own, lambda _: a, None)
        change = _sliding(start, a)[1]
        turning = turning | friction.departure(criteria, now, change, memory.resting, v, still.dt)
    along, rate = jnp.sum(step.start.slip() * change, axis=1), jnp.sum(change * change, axis=1)
    refuse = derivatives(scheme)["refuse"]
    shift = jump.event_shift(along, rate, turning, jnp.asarray(False), refuse)
    step = step.shifted(jump.shift_state(system, state, v, a, shift.mean))
    end = base_step(step, True)
    kinks = friction.unresolved_turns(criteria, turning, now, change, v)
    end = dataclasses.replace(end, notes=kinks, slide=now)

    def finish(live: tuple[End, Array]) -> End:
        end, tau = live
        done = frozen(end)
        late = State(t=jnp.asarray(state.t) + step.dt, q=end.q, v=end.v)
        # the acceleration of a step that ends at rest is neither that before the reversal nor that after it
        found = accelerate(step.at(late), memory.resting, rule)
        after, force = found.a, found.force
        back = jump.shift_state(system, late, done.v, frozen(after), -tau)
        change = only_tangent(after, refuse)
        a, algorithmic = done.a + change, done.algorithmic + change
        impulse = with_tangent(end.impulse, (frozen(memory.force) - frozen(force)) * tau)
        return dataclasses.replace(end, q=back.q, v=back.v, a=a, algorithmic=algorithmic, impulse=impulse)

    return branch(jnp.any(turning), finish, lambda live: live[0], (end, shift.mean))


def _may_turn(step: Step) -> Array:
    """Contacts at rest (nc,) bool whose sliding may turn: not those that stood still one step before, whose
    sliding has just begun and grows, at a rate by which a time shift would be any number. Of schemes that
    do not hold velocities (`Scheme.holds_velocities`) this is not known.
    """
    scheme, memory = step.scheme, step.carry.memory
    resting: Array = memory.resting
    if not scheme.holds_velocities:
        return resting
    return resting & friction.sliding(criteria_of(scheme), memory.touch.slide, step.state.v)


def _sliding(at: SystemState, a: Array) -> tuple[Array, Array]:
    """Tangential velocities (nc, nt), and their rates along the motion with the acceleration ``a``."""
    system = at.system

    def rates(s: Array) -> Array:
        there = at.moved(t=at.t + s, q=system.retract(at.q, s * at.v), v=at.v + s * a)
        return row_groups(system).tangential(there.rates())

    return jax.jvp(rates, (jnp.zeros(()),), (jnp.ones(()),))
