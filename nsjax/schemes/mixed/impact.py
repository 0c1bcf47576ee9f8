"""The impact at the end of a step of the mixed framework, reversals of sliding within a step, and the
derivatives through both.
"""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp

from nsjax.contact import Jump, events, friction_decisions, no_jump, saltation, velocity_jump
from nsjax.contact.acceleration import SlidingRule
from nsjax.contact.contact_report import ContactReport, no_report
from nsjax.contact.criteria import criteria_of
from nsjax.contact.event_motion import accelerate
from nsjax.contact.events import Approach, frozen
from nsjax.contact.family import Contacts, Family, Stepped
from nsjax.contact.sensitivity import through_events
from nsjax.core.branches import branch
from nsjax.core.step import Formed, Step, SystemState, formed
from nsjax.core.system import State
from nsjax.nonlinear import only_tangent, with_tangent
from nsjax.schemes.at_events import derivatives
from nsjax.schemes.mixed.base_step import End, contact_settings
from nsjax.schemes.mixed.stiff_steps import base_step
from nsjax.types import Array, record


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
        there = step.at(dataclasses.replace(step.state, q=r.end.q, v=r.end.v))
        return resting_contacts(step, there, contacts.active)

    def hit(_: None) -> ImpactEnd:
        family = Family(
            predict=_start, held=held, corrects=False, turns=False, **derivatives(step.scheme),
        )  # fmt: skip
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
    """The base step, between two time shifts if sliding of a contact reverses in it.

    Accelerations that such a step hands on have the derivative of the motion after the reversal: that of
    the step itself is of the order 1/dt where the step ends at rest.
    """
    scheme, system, state, memory = step.scheme, step.system, step.state, step.carry.memory
    criteria, rule = criteria_of(scheme), SlidingRule(criteria=criteria_of(scheme))
    still = frozen(dataclasses.replace(step, constants=()))
    start, a, v = still.start, still.carry.memory.a, still.state.v
    now, change = _sliding(start, a)
    turning = friction_decisions.reversal(criteria, now, change, _may_turn(step), v, still.dt)
    if scheme.options.laws_at_start:
        # a contact that has just stopped slides off with another acceleration than the stored one
        stops = memory.resting & ~friction_decisions.sliding(criteria, now, v)
        own = lambda _: accelerate(start, memory.resting, rule).a  # noqa: E731
        a = branch(jnp.any(stops), own, lambda _: a, None)
        change = _sliding(start, a)[1]
        turning = turning | friction_decisions.departure(criteria, now, change, memory.resting, v, still.dt)
    along, rate = jnp.sum(step.start.slip() * change, axis=1), jnp.sum(change * change, axis=1)
    refuse = derivatives(scheme)["refuse"]
    shift = saltation.event_shift(along, rate, turning, jnp.asarray(False), refuse)
    step = step.shifted(saltation.shift_state(system, state, v, a, shift.mean))
    end = base_step(step, True)
    kinks = friction_decisions.unresolved_turns(criteria, turning, now, change, v)
    end = dataclasses.replace(end, notes=kinks, slide=now)

    def finish(live: tuple[End, Array]) -> End:
        end, tau = live
        done = frozen(end)
        late = State(t=jnp.asarray(state.t) + step.dt, q=end.q, v=end.v)
        # the acceleration of a step that ends at rest is neither that before the reversal nor that after it
        found = accelerate(step.at(late), memory.resting, rule)
        after, force = found.a, found.force
        back = saltation.shift_state(system, late, done.v, frozen(after), -tau)
        change = only_tangent(after, refuse)
        a, algorithmic = done.a + change, done.algorithmic + change
        impulse = with_tangent(end.impulse, (frozen(memory.force) - frozen(force)) * tau)
        return dataclasses.replace(end, q=back.q, v=back.v, a=a, algorithmic=algorithmic, impulse=impulse)

    return branch(jnp.any(turning), finish, lambda live: live[0], (end, shift.mean))


def _may_turn(step: Step) -> Array:
    """Contacts at rest (nc,) bool whose sliding may turn: not those that stood still one step before, whose
    sliding has just begun and grows.

    A step may begin to slide up to a step too early. Friction then still holds the contact, at a rate that
    is the smaller the nearer the instant is, and a time shift is a change of velocity over this rate: any
    number. A scheme that does not hold velocities (`Scheme.holds_velocities`) leaves slips of either sign
    while a contact sticks; there this is not known, and shifts end these slips.
    """
    scheme, memory = step.scheme, step.carry.memory
    resting: Array = memory.resting
    if not scheme.holds_velocities:
        return resting
    return resting & friction_decisions.sliding(criteria_of(scheme), memory.touch.slide, step.state.v)


def _sliding(at: SystemState, a: Array) -> tuple[Array, Array]:
    """Tangential velocities (nc, nt), and their rates along the motion with the acceleration ``a``."""
    system = at.system
    d, count = 1 + system.nt, system.nc * (1 + system.nt)

    def rates(s: Array) -> Array:
        there = at.moved(t=at.t + s, q=system.retract(at.q, s * at.v), v=at.v + s * a)
        return there.rates()[:count].reshape(system.nc, d)[:, 1:]

    return jax.jvp(rates, (jnp.zeros(()),), (jnp.ones(()),))
