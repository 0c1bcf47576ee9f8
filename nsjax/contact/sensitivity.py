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
from nsjax.contact import events, saltation, sliding
from nsjax.contact.aftermath import Around, accelerate, shift_back
from nsjax.contact.criteria import Criteria
from nsjax.contact.events import Approach, Balance, Formed, Touch, frozen
from nsjax.contact.jump import Jump
from nsjax.contact.links import over_links
from nsjax.core.branches import branch
from nsjax.core.inertia import inertia_at
from nsjax.core.operators import all_rows, refreshed, row_drift
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


@record()
class Told:
    """What the driver tells of a step.

    Args:
        touch: what is remembered of the contacts.
        notes: (nc,) bits of `nsjax.notes`.
        impact: (nc,) bool, impacts: approaches faster than the gate that met an impulse.
        tau: (nc,) zero, with the derivative of the time of each impact [s].
        timed: (nc,) bool, impacts that have one, whatever a scheme lists as impacts.
    """

    touch: Touch
    notes: Array
    impact: Array
    tau: Array
    timed: Array


def nothing_told(touch: Touch) -> Told:
    """Of a step without contacts."""
    zero = jnp.zeros(touch.held.shape)
    none = jnp.zeros(zero.shape, bool)
    return Told(touch=touch, notes=jnp.zeros(zero.shape, int), impact=none, tau=zero, timed=none)


@dataclasses.dataclass(frozen=True)
class Family:
    """How a family of schemes meets events.

    Args:
        predict: ``(system, state, dt) -> State`` where the contacts are looked at: close to where they
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

    predict: Callable[[System, State, Array], State]
    held: Callable[[State, Array, Touch, Approach, Jump], Array]
    corrects: bool
    turns: bool
    derivative: bool
    refuse: bool = True
    shares: bool = False
    laws: float = 1.0

    def slip(self, system: System, state: State, p: PyTree, dt: Array) -> Array:
        """Tangential velocities (nc, nt) to which the law of the last step referred."""
        if self.laws == 1.0:
            return system.slip(state.t, state.q, state.v, p)
        back = (1.0 - self.laws) * dt
        return system.slip(state.t - back, system.retract(state.q, -back * state.v), state.v, p)


def loaded(jump: Jump, active: Array) -> Array:
    """Contacts (nc,) bool that carry an impulse."""
    return active & (jump.contacts[:, 0] > 0.0)


@record()
class _Before:
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


def _no_event(system: System) -> _Before:
    return _Before(
        found=events.no_approach(system), shifts=jnp.zeros(system.nc, bool), rate=jnp.zeros(system.nc),
        a=jnp.zeros(system.nv), force=jnp.zeros(system.nc * (1 + system.nt) + system.nb),
        aside=jnp.zeros((system.nv, 0 if system.pairs is not None else system.nc)),
        turning=jnp.zeros((system.nc, system.nt)),
    )  # fmt: skip


def _look(
    criteria: Criteria, family: Family, system: System, p: PyTree, start: State, at: State, active: Array,
    gap: Array, touch: Touch, slide: Array, slow: Array, known: tuple[Array, Array] | None, dt: Array,
    f: Formed | None,
) -> _Before:  # fmt: skip
    """Events of the step: impacts, else reversals of the sliding velocities ``slide`` at its start, from
    which those at the predicted state differ by what a belt changes until then.
    """
    f = f or events.formed(system, p, at)
    found = events.approach(criteria, system, p, f, touch, active, gap, dt)
    none = _no_event(system)
    if not family.derivative:
        return dataclasses.replace(none, found=found)
    d, count = 1 + system.nt, system.nc * (1 + system.nt)

    def motion(_: None) -> tuple[Array, Array, Array]:
        own = slide if family.turns and system.nt else None
        a, force = known or accelerate(criteria, system, p, start, start.v, touch.held, touch.stuck, own)
        if not family.turns:
            return a, force, jnp.zeros(count)
        drift = row_drift(system, jnp.asarray(at.t), at.q, start.v, p)
        return a, force, matvec(every(f.rows.wt, count, 1), a) + drift[:count]

    still = none.a, none.force, jnp.zeros(count)
    a, force, change = branch(jnp.any(found.impacts) | jnp.any(slow), motion, lambda _: still, None)
    turning = change.reshape(system.nc, d)[:, 1:]
    shifts, rate = found.impacts, found.rates
    if family.turns and system.nt:
        may = slow & ~touch.stuck & ~jnp.any(found.impacts)
        turns = sliding.reversal(criteria, slide, turning, may, start.v, dt)
        shifts, rate = shifts | turns, jnp.where(found.impacts, rate, jnp.sum(turning * turning, axis=1))
        kinks = sliding.unresolved(criteria, turns, slide, turning, start.v)
        found = dataclasses.replace(found, notes=found.notes | kinks)
    aside = none.aside
    if family.corrects:
        back = f.response[:, :count:d]  # schemes that correct positions know no islands
        own = jnp.sum(events.normals(system, f.rows.wt).T * back, axis=0)
        aside = back * jnp.where(found.impacts, found.rates / own, 0.0)
    return _Before(
        found=found, shifts=shifts, rate=rate, a=a, force=force, aside=aside, turning=turning
    )  # fmt: skip


def through_events(
    respond: Callable[[PyTree, State, Formed | None], Stepped], family: Family, criteria: Criteria,
    system: System, params: PyTree, state: State, touch: Touch, active: Array, dt: Array,
    known: tuple[Array, Array] | None = None, load: Array | None = None,
    balance: Balance | None = None,
) -> tuple[Stepped, Told]:  # fmt: skip
    """A step with contacts whose derivative is that of the motion.

    Args:
        respond: the step with parameters, from a state, and what is `Formed` already.
        touch: what is remembered of the contacts.
        active: (nc,) bool, contacts closed at the predicted state. One seen a step early does no harm.
        known: (nv,) acceleration and (rows,) row forces before the step where they are known.
        load: (nc,) bool, contacts under load before it, where the scheme knows better than ``touch.held``.
        balance: mass and force at the predicted state where they are known.

    Returns:
        What the scheme makes of the step, and what is told of it.
    """
    p, start, step, touch, known = frozen((params, state, dt, touch, known))
    friction = system.law(p).friction_of(system.nc)
    slide, slow = touch.slide, jnp.zeros(system.nc, bool)
    if family.turns and system.nt and family.derivative:
        slide = family.slip(system, start, p, step)
        slow = sliding.slowing(criteria, slide, touch, active)
    ahead = family.predict(system, start, step)
    new = active & ~touch.held
    at = family.predict(system, state, dt)
    gap = system.gap(at.t, at.q, params)
    f = None
    if family.shares and not family.derivative:
        f = events.formed_on(system, params, balance) if balance else events.formed(system, params, at)
    b = branch(
        jnp.any(new) | jnp.any(slow),
        lambda _: _look(
            criteria,
            family,
            system,
            p,
            start,
            ahead,
            active,
            frozen(gap),
            touch,
            frozen(slide),
            slow,
            known,
            step,
            frozen(f),
        ),
        lambda _: _no_event(system),
        None,
    )

    def tell(r: Stepped) -> Told:
        hops = _hopping(criteria, system, p, ahead, frozen(r.end), touch, b.found, active, frozen(f))
        stuck = jnp.where(hops, touch.stuck, sliding.sticking(frozen(r.jump.contacts), friction))
        return _tell(
            family, frozen(r.end), frozen(r.jump), touch, b.found, active, hops, slide, stuck, load
        )

    if not family.derivative:
        r = respond(params, state, f)
        return r, tell(r)
    shift = _event_shift(family, system, params, state, b, gap, dt)
    shifted = saltation.shift_state(system, state, start.v, b.a, shift.mean)
    if family.corrects:
        shifted = saltation.shift_apart(system, shifted, shift, b.aside, jnp.zeros_like(b.aside))
    # what the step holds fixed moves with its start
    r = respond(refreshed(system, shifted.t, shifted.q, params), shifted, None)
    told = tell(r)
    return _after(criteria, family, system, params, ahead, r, told, b, shift, touch, active, step)


def _after(
    criteria: Criteria, family: Family, system: System, params: PyTree, ahead: State, r: Stepped,
    told: Told, b: _Before, shift: saltation.Shift, touch: Touch, active: Array, dt: Array,
) -> tuple[Stepped, Told]:  # fmt: skip
    """The step shifted back along the motion after its events."""
    p = frozen(params)

    def finish(live: tuple[State, saltation.Shift, Array]) -> tuple[State, Array, Array]:
        end, shift, impulses = live
        jump, slide = frozen(r.jump), None
        if family.turns and system.nt:
            slide = family.slip(system, frozen(end), p, dt)
        # a contact seen too early has no impulse yet: its own shift forth and back then cancels
        x = Around(
            at=ahead, a=b.a, aside=b.aside, end=frozen(end), resting=touch.held, after=told.touch.held,
            stuck=told.touch.stuck if family.turns else None, active=loaded(jump, active),
            impulses=_stacked(jump), slide=slide,
        )  # fmt: skip
        e = system.law(p).row_restitution(system.nc, 0)
        reach = dt * sliding.unsure(touch.bounced, e, system.islands)
        back, force, near = shift_back(criteria, system, p, end, shift, x, reach, corrects=family.corrects)
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
    end = branch(jnp.any(landed), lambda s: settled(family, system, params, s, landed), lambda s: s, end)
    tau = jnp.where(told.impact, shift.tau, 0.0)
    told = dataclasses.replace(told, notes=told.notes | kinks, tau=tau)
    return dataclasses.replace(r, end=end, jump=jump), told


def _event_shift(
    family: Family, system: System, params: PyTree, state: State, b: _Before, gap: Array, dt: Array
) -> saltation.Shift:
    """Shifts by the gaps of impacts, and by the sliding along its change of contacts that turn."""
    function = gap
    if family.turns and system.nt:
        slip = family.slip(system, state, params, dt)
        function = jnp.where(b.found.impacts, gap, jnp.sum(slip * b.turning, axis=1))
    apart = (jnp.sum(b.found.impacts) > 1) & ~b.found.coupled
    return saltation.event_shift(function, b.rate, b.shifts, apart, family.refuse)


def _hopping(
    criteria: Criteria, system: System, p: PyTree, ahead: State, end: State, touch: Touch, found: Approach,
    active: Array, f: Formed | None,
) -> Array:  # fmt: skip
    """Held contacts (nc,) bool that are open for a step and have not left: see `Criteria.hop`; an
    impact elsewhere may have sent them away. ``f``: what is formed already at ``ahead``.
    """
    hops = events.lasting(criteria, touch, active) & ~active

    def stays(_: None) -> Array:
        if f is None:
            rates = events.gap_rates(system, p, State(t=ahead.t, q=ahead.q, v=end.v))
        else:
            rates = events.normals(system, f.rows.rate(end.v), f.rows.single)
        return hops & (jnp.abs(rates) <= found.limit)

    return branch(jnp.any(hops) & jnp.any(found.impacts), stays, lambda _: hops, None)


def _tell(
    family: Family, end: State, jump: Jump, touch: Touch, found: Approach, active: Array, hops: Array,
    slide: Array, stuck: Array, under: Array | None,
) -> Told:  # fmt: skip
    """What is remembered and noted of a step."""
    load = loaded(jump, active)
    held = family.held(end, load, touch, found, jump) | hops
    impact = found.impacts & load
    return Told(
        touch=events.touched(touch, found, active, load, held, slide, stuck),
        notes=found.notes
        | events.settling(touch, held)
        | events.unloaded_partners(found, touch.held if under is None else under, load),
        impact=impact,
        tau=jnp.zeros(load.shape),
        timed=impact,
    )


def settled(family: Family, system: System, params: PyTree, end: State, fresh: Array) -> State:
    """``end`` whose derivative keeps the gaps of contacts that have just come to rest."""
    t, q = jnp.asarray(end.t), end.q
    p, at_t, at_q = frozen((params, t, q))
    rows = all_rows(system, at_t, at_q, p)
    response = inertia_at(system, at_t, at_q, p).solve(rows.wt.T)
    q = saltation.settle(system, params, t, q, rows, response, fresh, family.refuse)
    return State(t=t, q=q, v=end.v)


def _stacked(jump: Jump) -> Array:
    """Impulses of contacts and constraints as rows."""
    return jnp.concatenate([jump.contacts.reshape(-1), jump.constraints])
