"""Events of a step: approaching contacts, events whose times move, and the motion around them."""

from __future__ import annotations

import dataclasses

import jax.numpy as jnp

from nsjax import notes
from nsjax.contact import events, friction_decisions
from nsjax.contact.acceleration import SlidingRule
from nsjax.contact.contact_report import ContactReport
from nsjax.contact.criteria import Criteria, criteria_of
from nsjax.contact.dependent import LEAST_TURN
from nsjax.contact.event_motion import EventMotion, MotionAround, each_alone, motion_around, no_motion
from nsjax.contact.events import Approach, Touch
from nsjax.contact.family import Contacts, Family, Stepped, loaded, stacked
from nsjax.contact.links import over_links
from nsjax.core.branches import branch
from nsjax.core.step import Formed, Step, SystemState, formed
from nsjax.core.system import State
from nsjax.linalg import every, matvec
from nsjax.math import norm
from nsjax.types import Array, record


@record()
class StepEvents:
    """Events of a step, without derivatives.

    Args:
        found: approaching contacts.
        report: report on all contacts.
        shifts: (nc,) bool, events whose times move.
        late: (nc,) times from the impacts to the state at which contacts are looked at [s].
        rate: (nc,) rates of the event functions.
        aside: (nv, nc) see `nsjax.contact.event_motion.EventMotion`.
        turning: (nc, nt) rate of change of the sliding velocity [m/s^2].
        motion: the motion before and after the events.
    """

    found: Approach
    report: ContactReport
    shifts: Array
    late: Array
    rate: Array
    aside: Array
    turning: Array
    motion: MotionAround


@record(static=("family",))
class _ContactView:
    """One step without derivatives, as the driver looks at its contacts.

    Args:
        family: how its scheme meets events.
        step: the step.
        contacts: its contacts before it is taken.
        ahead: the system where the contacts are looked at.
        f: what the scheme has formed there already, if anything.
        gap: (nc,) gaps there [m].
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

    def approach(self) -> Approach:
        """Approaching contacts."""
        f, known = self.f or formed(self.ahead), self.contacts
        return events.approach(self.step, f, known.touch, known.active, self.gap, known.around)

    def events(self, r: Stepped, found: Approach, report: ContactReport) -> StepEvents:
        """Events of the step: impacts, else reversals of sliding, by the velocities at its start; a belt
        may have changed those at the predicted state.
        """
        system, family, touch = self.step.system, self.family, self.contacts.touch
        d, count = 1 + system.nt, system.nc * (1 + system.nt)
        f = self.f or formed(self.ahead)
        aside = jnp.zeros_like(no_motion(system).along)
        if family.corrects:
            back = f.response[:, :count:d]  # schemes that correct positions know no islands
            own = jnp.sum(events.normals(system, f.rows.wt).T * back, axis=0)
            aside = back * jnp.where(found.impacts, found.rates / own, 0.0)
        e = system.law(self.step.params).row_restitution(system.nc, 0)
        reach = self.step.dt * friction_decisions.instant_uncertainty(touch.bounced, e, system.islands)
        motion = motion_around(self._around(r, report.touch, f, aside), apart(found), reach)
        shifts, rate, bits = found.impacts, found.rates, report.notes
        # gap(q + c dt v) changes along the motion by W (v + c dt a), its rate by W a and the curvature
        change = matvec(every(f.rows.wt, count, 1), motion.a_before)[:count:d]
        rate = rate + family.ahead * self.step.dt * change
        late = jnp.where(shifts, self.gap / jnp.where(shifts, rate, 1.0), 0.0)
        late = jnp.clip(late, -self.step.dt, self.step.dt)  # a contact is seen in the step of its impact
        rate = jnp.where(shifts, rate - late * (change + found.curvature), found.rates)
        turning = jnp.zeros((system.nc, system.nt))
        if self.turns:
            v, dt, slide, turning = self.step.state.v, self.step.dt, self.slide, motion.turning
            may = self.slow & ~jnp.any(found.impacts)
            turns = friction_decisions.reversal(self.criteria, slide, turning, may, v, dt)
            shifts, rate = (
                shifts | turns,
                jnp.where(found.impacts, rate, jnp.sum(turning * turning, axis=1)),
            )
            bits = bits | friction_decisions.unresolved_turns(self.criteria, turns, slide, turning, v)
        struck = over_links(
            lambda links, impacts: jnp.any(links & impacts, axis=1), found.links, found.impacts
        )
        bits = bits | jnp.where(struck & motion.near & jnp.any(shifts), notes.KINK, 0)
        return StepEvents(
            found=found, report=dataclasses.replace(report, notes=bits), shifts=shifts, late=late,
            rate=rate, aside=aside, turning=turning, motion=motion,
        )  # fmt: skip

    def _around(self, r: Stepped, after: Touch, f: Formed, aside: Array) -> EventMotion:
        """Data of the motion around the events.

        A scheme that closes contacts at the end of a step may see one a step too early (`Criteria.early`).
        Its impulse is then zero, the motion after the event is that before it, and the two shifts of the
        state cancel.
        """
        family, step, touch = self.family, self.step, self.contacts.touch
        rule = SlidingRule(criteria=self.criteria, stuck=touch.stuck if family.turns else None)
        late = dataclasses.replace(rule, stuck=after.stuck if family.turns else None)
        if self.turns:
            slide = family.slip(step.at(r.end), step.dt)
            if family.laws == 0.5:  # with the rows of the step
                d, nc = 1 + step.system.nt, step.system.nc
                slide = f.rows.rate(r.end.v)[: nc * d].reshape(nc, d)[:, 1:]
            # what is left of it gives no direction to the motion after: `LEAST_TURN` is the same ratio
            rests = norm(slide) <= LEAST_TURN * norm(slide - self.slide)
            late = dataclasses.replace(late, stuck=after.stuck | rests)
            rule, late = (dataclasses.replace(x, slide=y) for x, y in ((rule, self.slide), (late, slide)))
        return EventMotion(
            at=self.ahead, a=self.contacts.known, dv=each_alone(f.response, r.jump.contacts), aside=aside,
            end=r.end, resting=touch.held, after=after.held, rule=late,
            active=loaded(r.jump, self.contacts.active), impulses=stacked(r.jump),
            before=(step.state, rule), corrects=family.corrects,
        )  # fmt: skip

    def hopping(self, end: State, found: Approach) -> Array:
        """Held contacts (nc,) bool that are open for a step and have not left: see `Criteria.hop`; an
        impact elsewhere may have sent them away.
        """
        f, active = self.f, self.contacts.active
        hops = events.held_or_hopping(self.criteria, self.contacts.touch, active) & ~active

        def stays(_: None) -> Array:
            if f is None:
                rates = events.gap_rates(self.ahead.moved(v=end.v))
            else:
                rates = events.normals(self.step.system, f.rows.rate(end.v), f.rows.single)
            return hops & (jnp.abs(rates) <= found.limit)

        return branch(jnp.any(hops) & jnp.any(found.impacts), stays, lambda _: hops, None)

    def report(self, r: Stepped, found: Approach) -> ContactReport:
        """Report on the contacts of the step: memory, notes and impacts."""
        touch, active, end, jump = self.contacts.touch, self.contacts.active, r.end, r.jump
        hops = self.hopping(end, found)
        stuck = jnp.where(
            hops, touch.stuck, friction_decisions.sticking(jump.contacts, self.ahead.friction())
        )
        load, under = loaded(jump, active), self.contacts.load
        held = self.family.held(self.step, self.contacts, r, found, load) | hops
        impact = found.impacts & load
        after = events.touch_after_step(touch, found, active, load, held)
        return ContactReport(
            touch=dataclasses.replace(after, slide=self.slide, stuck=stuck),
            notes=found.notes
            | events.settling(touch, held)
            | events.unloaded_partners(found, touch.held if under is None else under, load),
            impact=impact,
            tau=jnp.zeros(load.shape),
            timed=impact,
        )


def look_at(family: Family, step: Step, contacts: Contacts, r: Stepped, f: Formed | None) -> StepEvents:
    """Events of a step, without derivatives; if ``family`` wants no derivatives, no event moves.

    Args:
        family, step, contacts: as in `nsjax.contact.sensitivity.through_events`.
        r, f: result of the step, and what the scheme has formed.
    """
    system, touch = step.system, contacts.touch
    slide, slow = touch.slide, jnp.zeros(system.nc, bool)
    if family.turns and system.nt and family.derivative:
        slide = family.slip(step.start, step.dt)
        slow = friction_decisions.may_turn(
            criteria_of(step.scheme), slide, touch, contacts.active, step.state.v
        )
    ahead = step.at(family.predict(step))
    look = _ContactView(
        family=family, step=step, contacts=contacts, ahead=ahead, f=f, slide=slide, slow=slow,
        gap=ahead.gap() if contacts.around is None else contacts.around.gap,
    )  # fmt: skip
    new = jnp.any(contacts.active & ~touch.held) | jnp.any(slow)
    found = branch(new, lambda _: look.approach(), lambda _: events.no_approach(system), None)
    report = look.report(r, found)
    none = jnp.zeros(system.nc)
    quiet = StepEvents(
        found=found, report=report, shifts=jnp.zeros(system.nc, bool), late=none, rate=none,
        aside=jnp.zeros_like(no_motion(system).along), turning=jnp.zeros((system.nc, system.nt)),
        motion=no_motion(system),
    )  # fmt: skip
    if not family.derivative:
        return quiet
    meets = jnp.any(found.impacts) | jnp.any(slow)
    # derivatives and notes alone need this branch: other programs have returned above
    return branch(meets, lambda _: look.events(r, found, report), lambda _: quiet, None)


def apart(found: Approach) -> Array:
    """() bool, several impacts, none of which moves another."""
    return (jnp.sum(found.impacts) > 1) & ~found.coupled
