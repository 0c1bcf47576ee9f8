"""The driver of derivatives at events: one step of any scheme, with the derivative of the motion around
it.


A scheme hands over its step, or the part of it in which velocities jump, as a function of the state before.
The driver lets the scheme do its step, looks for events in it (`nsjax.contact.sensitivity`), shifts the
state along the motion before the events, and shifts back along the motion after them
(`nsjax.contact.jump`). Values pass through unchanged; tangents are made when the values of the whole
step are known, with its linear part alone, so that mass, force and rows are formed once for the step, the
events of its contacts, and the derivative.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from nsjax import gradient_notes
from nsjax.contact import events, friction
from nsjax.contact.branches import LEAST_TURN
from nsjax.contact.event_motion import (
    EventMotion,
    MotionAround,
    each_alone,
    motion_around,
    no_motion,
    shift_back,
)
from nsjax.contact.events import Approach, Criteria, GapsAround, Touch, criteria_of, frozen, gaps_beside
from nsjax.contact.friction import SlidingRule
from nsjax.contact.jump import Jump, event_shift, settle, shift_apart, shift_of, shift_state
from nsjax.contact.problem import over_links
from nsjax.core.step import Formed, Step, SystemState, formed
from nsjax.core.system import State, System, row_groups
from nsjax.jaxtools import LiveLeaves, with_tangent
from nsjax.jaxtools.control_flow import branch
from nsjax.linalg import matvec
from nsjax.math import norm
from nsjax.types import Array, PyTree, record

# Report on the contacts of a step.


@record()
class ContactReport:
    """Report of the driver of derivatives on the contacts of a step.

    Args:
        touch: memory of the contacts after the step.
        notes: (nc,) bits of `nsjax.gradient_notes`.
        impact: (nc,) bool, impacts: approaches faster than the gate, with an impulse.
        tau: (nc,) zero, with the derivative of the time of each impact [s].
        timed: (nc,) bool, impacts whose time has a derivative, whatever a scheme lists as impacts.
        moves: () bool, whether events add to the derivative of the step; None: nobody asks.
    """

    touch: Touch
    notes: Array
    impact: Array
    tau: Array
    timed: Array
    moves: Array | None = None


def no_report(touch: Touch, marked: bool = False) -> ContactReport:
    """The report of a step in which no contact takes part; ``marked``: as in `Family`."""
    zero = jnp.zeros(touch.held.shape)
    none = jnp.zeros(zero.shape, bool)
    return ContactReport(
        touch=touch, notes=jnp.zeros(zero.shape, int), impact=none, tau=zero, timed=none,
        moves=jnp.asarray(False) if marked else None,
    )  # fmt: skip


# Interface of schemes to the driver of derivatives at events: steps, contacts, how they meet events.


@record()
class Stepped:
    """Result of a step, as a scheme returns it.

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


MARKED, QUIET = "marked", "quiet"
"""Values of `nsjax.Scheme.gradient` where steps have derivatives by kinds: ``"marked"`` in steps that say
whether events move their derivative, ``"quiet"`` for the derivative of steps without such events.
"""


@dataclasses.dataclass(frozen=True)
class Family:
    """Functions and choices by which a family of schemes handles events.

    Args:
        predict: ``(step) -> State`` at which the contacts are looked at: close to where they
            close, with the velocity before an impact.
        held: ``(step, contacts, r, found, load) -> (nc,) bool``, contacts at rest after the step ``r``, of
            which some carry a ``load``.
        corrects: whether gaps are corrected on position level. The derivative of such a step annuls
            that of a gap, so that independent impacts must each be shifted before it.
        turns: whether reversals of sliding are events of the step in which they happen.
        derivative: whether derivatives are wanted at all, or decisions alone.
        refuse: whether a second differentiation is refused.
        moves: whether events may add to the derivative; otherwise it is that of the plain step.
        marked: whether reports say if events do, see `MARKED`.
        ahead: part of the step by which ``predict`` looks ahead of the state along its velocity.
        laws: part of the step at which the contact laws hold for the velocity of its end: 1/2 where rows
            are those of the midpoint. Sliding is decided there: on a belt a contact that sticks under such
            a scheme slips, at the times of the grid, by the change of the belt's speed in half a step.
    """

    predict: Callable[[Step], State]
    held: Callable[[Step, Contacts, Stepped, Approach, Array], Array]
    corrects: bool
    turns: bool
    derivative: bool
    refuse: bool = True
    moves: bool = True
    marked: bool = False
    ahead: float = 0.0
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
    """The contacts of a step before it is taken.

    Args:
        touch: memory of the contacts.
        active: (nc,) bool, closed at the predicted state. A contact seen a step early does no harm.
        known: (nv,) acceleration and (rows,) row forces before the step; None: they are not known.
        load: (nc,) bool, under load before it, where the scheme knows better than ``touch.held``.
        around: gaps and their curvature at the predicted state, where the scheme has them.
    """

    touch: Touch
    active: Array
    known: tuple[Array, Array] | None = None
    load: Array | None = None
    around: GapsAround | None = None


def stacked(system: System, jump: Jump) -> Array:
    """Impulses of contacts and constraints as rows."""
    return row_groups(system).stack(jump.contacts, jump.constraints)


# Events of a step: approaching contacts, events whose times move, and the motion around them.


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
        """Events of the step: impacts, else reversals of sliding by the velocities at its start."""
        system, family, touch = self.step.system, self.family, self.contacts.touch
        f = self.f or formed(self.ahead)
        normals = f.rows.groups.normals_of
        aside = jnp.zeros_like(no_motion(system).along)
        if family.corrects:
            # schemes that correct positions know no islands; bounded forces have no gap
            back = normals(f.response, columns=True)
            own = jnp.sum(normals(f.rows.wt).T * back, axis=0)
            aside = back * jnp.where(found.impacts, found.rates / own, 0.0)
        e = jnp.broadcast_to(jnp.asarray(self.step.start.law().restitution, float), system.nc)
        reach = self.step.dt * friction.instant_uncertainty(touch.bounced, e, system.islands)
        motion = motion_around(self._around(r, report.touch, f, aside), independent_impacts(found), reach)
        shifts, rate, bits = found.impacts, found.rates, report.notes
        # gap(q + c dt v) changes along the motion by W (v + c dt a), its rate by W a and the curvature
        change = matvec(normals(f.rows.wt), motion.a_before)
        rate = rate + family.ahead * self.step.dt * change
        late = jnp.where(shifts, self.gap / jnp.where(shifts, rate, 1.0), 0.0)
        late = jnp.clip(late, -self.step.dt, self.step.dt)  # a contact is seen in the step of its impact
        rate = jnp.where(shifts, rate - late * (change + found.curvature), found.rates)
        turning = jnp.zeros((system.nc, system.nt))
        if self.turns:
            v, dt, slide, turning = self.step.state.v, self.step.dt, self.slide, motion.turning
            may = self.slow & ~jnp.any(found.impacts)
            turns = friction.reversal(self.criteria, slide, turning, may, v, dt)
            shifts = shifts | turns
            rate = jnp.where(found.impacts, rate, jnp.sum(turning * turning, axis=1))
            bits = bits | friction.unresolved_turns(self.criteria, turns, slide, turning, v)
        struck = over_links(
            lambda links, impacts: jnp.any(links & impacts, axis=1), found.links, found.impacts
        )
        bits = bits | jnp.where(struck & motion.near & jnp.any(shifts), gradient_notes.KINK, 0)
        moves = None if report.moves is None else report.moves | jnp.any(shifts)
        return StepEvents(
            found=found, shifts=shifts, late=late,
            report=dataclasses.replace(report, notes=bits, moves=moves),
            rate=rate, aside=aside, turning=turning, motion=motion,
        )  # fmt: skip

    def _around(self, r: Stepped, after: Touch, f: Formed, aside: Array) -> EventMotion:
        """Data of the motion around the events. Where a contact was seen a step too early
        (`Criteria.early`), the motion after the event is that before it, and the two shifts of the state
        cancel.
        """
        family, step, touch = self.family, self.step, self.contacts.touch
        rule = SlidingRule(criteria=self.criteria, stuck=touch.stuck if family.turns else None)
        late = dataclasses.replace(rule, stuck=after.stuck if family.turns else None)
        if self.turns:
            slide = family.slip(step.at(r.end), step.dt)
            if family.laws == 0.5:  # with the rows of the step
                slide = f.rows.groups.tangential(f.rows.rate(r.end.v))
            # what is left of it gives no direction to the motion after: `LEAST_TURN` is the same ratio
            rests = norm(slide) <= LEAST_TURN * norm(slide - self.slide)
            late = dataclasses.replace(late, stuck=after.stuck | rests)
            rule, late = (dataclasses.replace(x, slide=y) for x, y in ((rule, self.slide), (late, slide)))
        return EventMotion(
            at=self.ahead, a=self.contacts.known,
            dv=each_alone(f.rows.groups, f.response, r.jump.contacts), aside=aside,
            end=r.end, resting=touch.held, after=after.held, rule=late,
            active=loaded(r.jump, self.contacts.active), impulses=stacked(step.system, r.jump),
            before=(step.state, rule), corrects=family.corrects,
        )  # fmt: skip

    def hopping(self, end: State, found: Approach) -> Array:
        """Held contacts (nc,) bool that are open for a step and have not left, see `Criteria.hop`."""
        f, active = self.f, self.contacts.active
        hops = events.held_or_hopping(self.criteria, self.contacts.touch, active) & ~active

        def stays(_: None) -> Array:
            if f is None:
                rates = events.gap_rates(self.ahead.moved(v=end.v))
            else:
                rates = f.rows.groups.normals(f.rows.rate(end.v))
            return hops & (jnp.abs(rates) <= found.limit)

        return branch(jnp.any(hops) & jnp.any(found.impacts), stays, lambda _: hops, None)

    def report(self, r: Stepped, found: Approach) -> ContactReport:
        """Report on the contacts of the step: memory, notes and impacts."""
        touch, active, end, jump = self.contacts.touch, self.contacts.active, r.end, r.jump
        hops = self.hopping(end, found)
        stuck = jnp.where(hops, touch.stuck, friction.sticking(jump.contacts, self.ahead.friction()))
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
            moves=jnp.any(after.held & ~touch.held) if self.family.marked else None,
        )


def look_at(family: Family, step: Step, contacts: Contacts, r: Stepped, f: Formed | None) -> StepEvents:
    """Events of a step without derivatives, from its result and what the scheme has formed."""
    system, touch = step.system, contacts.touch
    slide, slow = touch.slide, jnp.zeros(system.nc, bool)
    if family.turns and system.nt and family.derivative:
        slide = family.slip(step.start, step.dt)
        slow = friction.may_turn(criteria_of(step.scheme), slide, touch, contacts.active, step.state.v)
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


def independent_impacts(found: Approach) -> Array:
    """() bool, several impacts, none of which moves another."""
    return (jnp.sum(found.impacts) > 1) & ~found.coupled


ContactStep = Callable[[Any, Contacts], tuple[Stepped, Formed | None]]
"""Function of a scheme that takes a step, see `through_events`."""


def through_events(
    respond: ContactStep, family: Family, step: Step, contacts: Contacts
) -> tuple[Stepped, ContactReport]:
    """A step with contacts whose derivative is that of the motion. Returns the result of the step, and the
    report on its contacts.

    Args:
        respond: ``(step, contacts) -> (Stepped, Formed or None)``, the result of the step, and what the
            scheme has formed where the contacts are looked at. It and the functions of ``family`` hold no
        family: how the scheme meets events.
        contacts: its contacts before it is taken.
    """
    contacts = frozen(contacts)
    if not family.derivative or not family.moves:
        r, f = respond(step, contacts)
        plain = dataclasses.replace(family, derivative=False)
        return r, look_at(plain, *frozen((step, contacts, r, f))).report
    return _moving(respond, family)(step, contacts)


def _moving(respond: ContactStep, family: Family) -> Any:
    """The step and its report, with the derivative of the motion."""

    @jax.custom_jvp
    def taken(step: Step, contacts: Contacts) -> tuple[Stepped, ContactReport]:
        r, f = respond(step, contacts)
        return r, look_at(family, *frozen((step, contacts, r, f))).report

    @functools.partial(taken.defjvp, symbolic_zeros=True)
    def rule(primals: Any, tangents: Any) -> Any:
        (step, contacts), (change, _) = primals, tangents
        at = LiveLeaves(step, change, _moves_in_shifts(step))
        # the step is evaluated once: values for the events, its linear part for the shifted start
        (r, f), along = jax.linearize(lambda x: respond(at.whole(x), contacts), at.values)
        b = look_at(family, *frozen((step, contacts, r, f)))
        answer = LiveLeaves(r, r, jax.tree.map(lambda _: True, r))

        def before(x: list[Array]) -> tuple[list[Array], Array]:
            live = at.whole(x)
            times = functools.partial(_times, family, b)
            none = lambda step: jnp.zeros(step.system.nc)  # noqa: E731
            tau = branch(jnp.any(b.shifts), times, none, live, again=True)
            shift = shift_of(tau, b.shifts, independent_impacts(b.found))
            system, v, a = live.system, step.state.v, b.motion.a_before
            state = shift_state(system, live.state, v, a, shift.mean)
            if family.corrects:
                state = shift_apart(system, state, shift, b.aside, jnp.zeros_like(b.aside))
            return at.picked(live.shifted(state)), shift.tau

        # the start is moved by the shift of the instants along the motion before the event, the linear step
        # follows, and its end is moved back along the motion after the event
        (_, tau), (shifted, dtau) = jax.jvp(before, (at.values,), (at.tangents,))

        def after(y: list[Array], tau: Array, x: list[Array]) -> tuple[Stepped, ContactReport]:
            return _after(family, at.whole(x), contacts, answer.whole(y), b, tau)

        moved = answer.picked(along(shifted)[0])
        return jax.jvp(after, (answer.values, tau, at.values), (moved, dtau, at.tangents))

    return taken


def _moves_in_shifts(step: Step) -> Any:
    """Step of bools, true for the leaves that move with its state: the state, and what follows from it."""
    still = jax.tree.map(lambda _: False, step)
    refreshed = step.system.refresh is not None
    return dataclasses.replace(
        still,
        params=jax.tree.map(lambda _: refreshed, step.params),
        carry=dataclasses.replace(still.carry, state=jax.tree.map(lambda _: True, step.state)),
        added=jax.tree.map(lambda _: True, step.added),
    )


def _after(
    family: Family, step: Step, contacts: Contacts, r: Stepped, b: StepEvents, tau: Array
) -> tuple[Stepped, ContactReport]:
    """The step shifted back along the motion after its events, and its report."""
    system, report = step.system, b.report
    shift = shift_of(tau, b.shifts, independent_impacts(b.found))
    end = shift_back(system, r.end, b.motion, shift)
    # impulses change by the forces before less those after the event, times its shift
    moved = (b.motion.force_before - b.motion.force) * shift.mean
    groups = row_groups(system)
    jump = dataclasses.replace(
        r.jump, contacts=with_tangent(r.jump.contacts, groups.contacts(moved)),
        constraints=with_tangent(r.jump.constraints, groups.bilateral(moved)),
    )  # fmt: skip
    # unresolved bounces leave a gap derivative of the order of the step, which `settled` removes
    landed = report.touch.held & ~contacts.touch.held
    settle = lambda s: settled(family, step.at(s), landed)  # noqa: E731
    end = branch(jnp.any(landed), settle, lambda s: s, end, again=True)
    report = dataclasses.replace(report, tau=jnp.where(report.impact, tau, 0.0))
    return dataclasses.replace(r, end=end, jump=jump), report


def _times(family: Family, b: StepEvents, step: Step) -> Array:
    """Time shifts (nc,): of impacts by gaps, of contacts that turn by their sliding along its change."""
    at = step.at(family.predict(step))
    # the gap at the impact, to first order: velocities that differ have acted on until it is seen
    (gap, earlier, later), reach = gaps_beside(at)
    function = gap - b.late * (later - earlier) / (2.0 * reach)
    if family.turns and step.system.nt:
        slip = family.slip(step.start, step.dt)
        function = jnp.where(b.found.impacts, function, jnp.sum(slip * b.turning, axis=1))
    return event_shift(function, b.rate, b.shifts, independent_impacts(b.found), family.refuse).tau


def settled(family: Family, live: SystemState, fresh: Array) -> State:
    """A state whose derivative keeps the gaps of contacts that have just come to rest."""
    at = frozen(live)
    rows, inertia = at.rows(), at.inertia()
    f = Formed(at=at, inertia=inertia, rows=rows, response=rows.response(inertia))
    q = settle(f, live, fresh, family.refuse)
    return State(t=live.t, q=q, v=live.v)
