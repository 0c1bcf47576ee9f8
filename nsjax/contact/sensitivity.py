"""The driver of derivatives at events: one step of any scheme, with the derivative of the motion around it.

A scheme hands over what it makes of a step, or of the part of it in which velocities jump, as a function
of the state before. The driver looks at the contacts, tells the events (`nsjax.contact.events`),
shifts the state along the motion before them, lets the scheme do its step, and shifts back along the motion
after (`nsjax.contact.saltation`). Values pass through unchanged.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import jax.numpy as jnp

from nsjax import notes
from nsjax.contact import events, friction_decisions, saltation
from nsjax.contact.acceleration import SlidingRule
from nsjax.contact.contact_report import ContactReport
from nsjax.contact.criteria import Criteria, criteria_of
from nsjax.contact.event_motion import EventMotion, accelerate, shift_back
from nsjax.contact.events import Approach, Touch, frozen
from nsjax.contact.jump import Jump
from nsjax.contact.links import over_links
from nsjax.core.branches import branch
from nsjax.core.step import Balance, Formed, Step, SystemState, formed
from nsjax.core.system import State, System
from nsjax.linalg import every, matvec
from nsjax.nonlinear import with_tangent
from nsjax.types import Array, PyTree, record


@record()
class Stepped:
    """What a scheme makes of a step.

    Args:
        end: state at the end, ``t`` included.
        jump: impulses and rates.
        estimate: (), error estimate of an iteration relative to ``1 + |v|``, zero if nothing is iterated.
        more: whatever else the scheme hands on.
    """

    end: State
    jump: Jump
    estimate: Array
    more: PyTree = ()


@dataclasses.dataclass(frozen=True)
class Family:
    """How a family of schemes meets events.

    Args:
        predict: ``(step) -> State`` where the contacts are looked at: close to where they
            close, with the velocity before an impact.
        held: ``(end, loaded, touch, found, jump) -> (nc,) bool``, contacts at rest after the step.
        corrects: whether gaps are corrected on position level. The derivative of such a step annuls
            that of a gap, so that independent impacts must each be shifted before it.
        turns: whether reversals of sliding are met in the same step.
        derivative: whether derivatives are wanted at all, or decisions alone.
        shares: whether, without derivatives, the step takes rows, responses and free acceleration from
            where the contacts are looked at.
        refuse: whether a second differentiation is refused.
        laws: part of the step at which the contact laws hold for the velocity of its end: 1/2 where rows
            are those of the midpoint. Sliding is told there: on a belt a contact that sticks under such a
            scheme slides, at the times of the grid, by what the belt changes in half a step.
    """

    predict: Callable[[Step], State]
    held: Callable[[State, Array, Touch, Approach, Jump], Array]
    corrects: bool
    turns: bool
    derivative: bool
    refuse: bool = True
    shares: bool = False
    laws: float = 1.0

    def slip(self, at: SystemState, dt: Array) -> Array:
        """Tangential velocities (nc, nt) to which the law of the last step referred."""
        if self.laws == 1.0:
            return at.slip()
        back = (1.0 - self.laws) * dt
        return at.moved(t=at.state.t - back, q=at.system.retract(at.q, -back * at.v)).slip()


def loaded(jump: Jump, active: Array) -> Array:
    """Contacts (nc,) bool that carry an impulse."""
    return active & (jump.contacts[:, 0] > 0.0)


@record()
class Contacts:
    """What is known of the contacts of a step before it is taken.

    Args:
        touch: what is remembered of them.
        active: (nc,) bool, closed at the predicted state. One seen a step early does no harm.
        known: (nv,) acceleration and (rows,) row forces before the step where they are known.
        load: (nc,) bool, under load before it, where the scheme knows better than ``touch.held``.
        balance: mass and force at the predicted state where they are known.
    """

    touch: Touch
    active: Array
    known: tuple[Array, Array] | None = None
    load: Array | None = None
    balance: Balance | None = None


@record()
class _StepEvents:
    """What is known of the step before it is taken, without derivatives.

    Args:
        found: contacts that come.
        shifts: (nc,) bool, events whose times move.
        rate: (nc,) rates of their event functions.
        a, force: (nv,) acceleration and (rows,) row forces.
        aside: (nv, nc) approach of every contact alone as motion of the system.
        turning: (nc, nt) direction of the change of sliding.
    """

    found: Approach
    shifts: Array
    rate: Array
    a: Array
    force: Array
    aside: Array
    turning: Array


def _no_event(system: System) -> _StepEvents:
    return _StepEvents(
        found=events.no_approach(system), shifts=jnp.zeros(system.nc, bool), rate=jnp.zeros(system.nc),
        a=jnp.zeros(system.nv), force=jnp.zeros(system.nc * (1 + system.nt) + system.nb),
        aside=jnp.zeros((system.nv, 0 if system.pairs is not None else system.nc)),
        turning=jnp.zeros((system.nc, system.nt)),
    )  # fmt: skip


@record(static=("family",))
class _ContactView:
    """One step without derivatives, as the driver looks at its contacts.

    Args:
        family: of its scheme.
        step: the step.
        contacts: what is known of them.
        ahead: the system where they are looked at.
        f: what is formed there already, if anything.
        gap: (nc,) gaps there.
        slide: (nc, nt) sliding velocities at the start.
        slow: (nc,) bool, contacts whose sliding may turn.
    """

    family: Family
    step: Step
    contacts: Contacts
    ahead: SystemState
    f: Formed | None
    gap: Array
    slide: Array
    slow: Array

    @property
    def criteria(self) -> Criteria:
        """Thresholds of the scheme."""
        return criteria_of(self.step.scheme)

    @property
    def turns(self) -> bool:
        """Whether sliding that turns is an event of the step."""
        return self.family.turns and self.step.system.nt > 0

    def before(self) -> _StepEvents:
        """Events of the step: impacts, else reversals of the sliding velocities at its start, from which
        those at the predicted state differ by what a belt changes until then.
        """
        system, contacts, family = self.step.system, self.contacts, self.family
        f = self.f or formed(self.ahead)
        found = events.approach(self.step, f, contacts.touch, contacts.active, self.gap)
        none = _no_event(system)
        if not family.derivative:
            return dataclasses.replace(none, found=found)
        d, count = 1 + system.nt, system.nc * (1 + system.nt)
        still = none.a, none.force, jnp.zeros(count)
        a, force, change = branch(
            jnp.any(found.impacts) | jnp.any(self.slow), lambda _: self._motion(f), lambda _: still, None
        )
        turning = change.reshape(system.nc, d)[:, 1:]
        shifts, rate = found.impacts, found.rates
        if self.turns:
            v, dt, slide = self.step.state.v, self.step.dt, self.slide
            may = self.slow & ~jnp.any(found.impacts)
            turns = friction_decisions.reversal(self.criteria, slide, turning, may, v, dt)
            shifts, rate = (
                shifts | turns,
                jnp.where(found.impacts, rate, jnp.sum(turning * turning, axis=1)),
            )
            kinks = friction_decisions.unresolved(self.criteria, turns, slide, turning, v)
            found = dataclasses.replace(found, notes=found.notes | kinks)
        aside = none.aside
        if family.corrects:
            back = f.response[:, :count:d]  # schemes that correct positions know no islands
            own = jnp.sum(events.normals(system, f.rows.wt).T * back, axis=0)
            aside = back * jnp.where(found.impacts, found.rates / own, 0.0)
        return _StepEvents(
            found=found, shifts=shifts, rate=rate, a=a, force=force, aside=aside, turning=turning
        )  # fmt: skip

    def _motion(self, f: Formed) -> tuple[Array, Array, Array]:
        """Acceleration and row forces before the step, and the rates of the velocities of contact rows."""
        start, touch, system = self.step.start, self.contacts.touch, self.step.system
        count = system.nc * (1 + system.nt)
        rule = SlidingRule(
            criteria=self.criteria, stuck=touch.stuck, slide=self.slide if self.turns else None
        )
        a, force = self.contacts.known or accelerate(start, touch.held, rule)
        if not self.family.turns:
            return a, force, jnp.zeros(count)
        drift = self.ahead.moved(v=start.v).drift()
        return a, force, matvec(every(f.rows.wt, count, 1), a) + drift[:count]

    def hopping(self, end: State, found: Approach) -> Array:
        """Held contacts (nc,) bool that are open for a step and have not left: see `Criteria.hop`; an
        impact elsewhere may have sent them away.
        """
        f, active = self.f, self.contacts.active
        hops = events.lasting(self.criteria, self.contacts.touch, active) & ~active

        def stays(_: None) -> Array:
            if f is None:
                rates = events.gap_rates(self.ahead.moved(v=end.v))
            else:
                rates = events.normals(self.step.system, f.rows.rate(end.v), f.rows.single)
            return hops & (jnp.abs(rates) <= found.limit)

        return branch(jnp.any(hops) & jnp.any(found.impacts), stays, lambda _: hops, None)

    def report(self, end: State, jump: Jump, found: Approach) -> ContactReport:
        """What is remembered and noted of the step."""
        touch, active = self.contacts.touch, self.contacts.active
        hops = self.hopping(end, found)
        stuck = jnp.where(
            hops, touch.stuck, friction_decisions.sticking(jump.contacts, self.ahead.friction())
        )
        load, under = loaded(jump, active), self.contacts.load
        held = self.family.held(end, load, touch, found, jump) | hops
        impact = found.impacts & load
        after = events.touched(touch, found, active, load, held)
        return ContactReport(
            touch=dataclasses.replace(after, slide=self.slide, stuck=stuck),
            notes=found.notes
            | events.settling(touch, held)
            | events.unloaded_partners(found, touch.held if under is None else under, load),
            impact=impact,
            tau=jnp.zeros(load.shape),
            timed=impact,
        )


def through_events(
    respond: Callable[[Step, Formed | None], Stepped], family: Family, step: Step, contacts: Contacts
) -> tuple[Stepped, ContactReport]:
    """A step with contacts whose derivative is that of the motion.

    Args:
        respond: what the scheme makes of a step; the second argument is what is `Formed` already.
        family: how it meets events.
        step: the step.
        contacts: what is known of them.

    Returns:
        What the scheme makes of the step, and what is reported of its contacts.
    """
    system = step.system
    still, known = frozen((step, contacts))
    slide, slow = known.touch.slide, jnp.zeros(system.nc, bool)
    if family.turns and system.nt and family.derivative:
        slide = family.slip(still.start, still.dt)
        criteria, v = criteria_of(step.scheme), still.state.v
        slow = friction_decisions.may_turn(criteria, slide, known.touch, contacts.active, v)
    ahead = still.at(family.predict(still))
    new = contacts.active & ~known.touch.held
    at = step.at(family.predict(step))
    gap = at.gap()
    f = None
    if family.shares and not family.derivative:
        f = contacts.balance.formed() if contacts.balance else formed(at)
    look = _ContactView(
        family=family, step=still, contacts=known, ahead=ahead, f=frozen(f), gap=frozen(gap), slide=slide,
        slow=slow,
    )  # fmt: skip
    b = branch(jnp.any(new) | jnp.any(slow), lambda _: look.before(), lambda _: _no_event(system), None)
    if not family.derivative:
        r = respond(step, f)
        return r, look.report(frozen(r.end), frozen(r.jump), b.found)
    shift = _event_shift(family, step, b, gap)
    shifted = saltation.shift_state(system, step.state, still.state.v, b.a, shift.mean)
    if family.corrects:
        shifted = saltation.shift_apart(system, shifted, shift, b.aside, jnp.zeros_like(b.aside))
    r = respond(step.shifted(shifted), None)
    return _after(look, step, r, b, shift)


def _after(
    look: _ContactView, step: Step, r: Stepped, b: _StepEvents, shift: saltation.Shift
) -> tuple[Stepped, ContactReport]:
    """The step shifted back along the motion after its events, and its report."""
    system, touch = step.system, look.contacts.touch
    told = look.report(frozen(r.end), frozen(r.jump), b.found)

    def finish(live: tuple[State, saltation.Shift, Array]) -> tuple[State, Array, Array]:
        end, shift, impulses = live
        x = _around(look, frozen(end), frozen(r.jump), told.touch, b)
        e = system.law(look.step.params).row_restitution(system.nc, 0)
        reach = look.step.dt * friction_decisions.unsure(touch.bounced, e, system.islands)
        back, force, near = shift_back(x, end, shift, reach)
        # what the forces before and after the event make of the time by which it moves
        rows = with_tangent(impulses, (b.force - force) * shift.mean)
        struck = over_links(
            lambda links, impacts: jnp.any(links & impacts, axis=1), b.found.links, b.found.impacts
        )
        return back, rows, jnp.where(struck & near, notes.KINK, 0)

    rows = _stacked(r.jump)
    none = jnp.zeros(system.nc, int)
    end, rows, kinks = branch(jnp.any(b.shifts), finish, lambda x: (x[0], x[2], none), (r.end, shift, rows))
    count = system.nc * (1 + system.nt)
    jump = dataclasses.replace(
        r.jump, contacts=rows[:count].reshape(r.jump.contacts.shape), constraints=rows[count:]
    )
    landed = told.touch.held & ~touch.held
    settle = lambda s: settled(look.family, step.at(s), landed)  # noqa: E731
    end = branch(jnp.any(landed), settle, lambda s: s, end)
    tau = jnp.where(told.impact, shift.tau, 0.0)
    told = dataclasses.replace(told, notes=told.notes | kinks, tau=tau)
    return dataclasses.replace(r, end=end, jump=jump), told


def _around(look: _ContactView, end: State, jump: Jump, after: Touch, b: _StepEvents) -> EventMotion:
    """The motion around the events of a step. A contact seen too early has no impulse yet: its own shift
    forth and back then cancels.
    """
    slide = look.family.slip(look.step.at(end), look.step.dt) if look.turns else None
    stuck = after.stuck if look.family.turns else None
    return EventMotion(
        at=look.ahead, a=b.a, aside=b.aside, end=end, resting=look.contacts.touch.held, after=after.held,
        rule=SlidingRule(criteria=look.criteria, stuck=stuck, slide=slide),
        active=loaded(jump, look.contacts.active), impulses=_stacked(jump), corrects=look.family.corrects,
    )  # fmt: skip


def _event_shift(family: Family, step: Step, b: _StepEvents, gap: Array) -> saltation.Shift:
    """Shifts by the gaps of impacts, and by the sliding along its change of contacts that turn."""
    function = gap
    if family.turns and step.system.nt:
        slip = family.slip(step.start, step.dt)
        function = jnp.where(b.found.impacts, gap, jnp.sum(slip * b.turning, axis=1))
    apart = (jnp.sum(b.found.impacts) > 1) & ~b.found.coupled
    return saltation.event_shift(function, b.rate, b.shifts, apart, family.refuse)


def settled(family: Family, live: SystemState, fresh: Array) -> State:
    """A state whose derivative keeps the gaps of contacts that have just come to rest."""
    at = frozen(live)
    rows, inertia = at.rows(), at.inertia()
    f = Formed(at=at, inertia=inertia, rows=rows, response=rows.response(inertia))
    q = saltation.settle(f, live, fresh, family.refuse)
    return State(t=live.t, q=q, v=live.v)


def _stacked(jump: Jump) -> Array:
    """Impulses of contacts and constraints as rows."""
    return jnp.concatenate([jump.contacts.reshape(-1), jump.constraints])
