"""The driver of derivatives at events: one step of any scheme, with the derivative of the motion around it.

A scheme hands over its step, or the part of it in which velocities jump, as a function of the state before.
The driver lets the scheme do its step, looks for events in it (`nsjax.contact.step_events`), shifts the
state along the motion before the events, and shifts back along the motion after them
(`nsjax.contact.saltation`). Values pass through unchanged; tangents are made when the values of the whole
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

from nsjax.contact import saltation
from nsjax.contact.contact_report import ContactReport
from nsjax.contact.event_motion import shift_back
from nsjax.contact.events import frozen, gaps_beside
from nsjax.contact.family import Contacts, Family, Stepped, stacked
from nsjax.contact.step_events import StepEvents, apart, look_at
from nsjax.core.branches import branch
from nsjax.core.step import Formed, Step, SystemState
from nsjax.core.system import State
from nsjax.nonlinear import LiveLeaves, with_tangent
from nsjax.types import Array

Respond = Callable[[Any, Contacts], tuple[Stepped, Formed | None]]
"""Function of a scheme that takes a step, see `through_events`."""


def through_events(
    respond: Respond, family: Family, step: Step, contacts: Contacts
) -> tuple[Stepped, ContactReport]:
    """A step with contacts whose derivative is that of the motion.

    Args:
        respond: ``(step, contacts) -> (Stepped, Formed or None)``, the result of the step, and what the
            scheme has formed where the contacts are looked at, with all rows if derivatives are wanted. It
            and the functions of ``family`` hold no arrays of the run: they are called again in derivatives.
        family: how the scheme meets events.
        step: the step.
        contacts: its contacts before it is taken.

    Returns:
        The result of the step, and the report on its contacts.
    """
    contacts = frozen(contacts)
    if not family.derivative:
        r, f = respond(step, contacts)
        return r, look_at(family, *frozen((step, contacts, r, f))).report
    return _moving(respond, family)(step, contacts)


def _moving(respond: Respond, family: Family) -> Any:
    """The step and its report, with the derivative of the motion."""

    @jax.custom_jvp
    def taken(step: Step, contacts: Contacts) -> tuple[Stepped, ContactReport]:
        r, f = respond(step, contacts)
        return r, look_at(family, *frozen((step, contacts, r, f))).report

    @functools.partial(taken.defjvp, symbolic_zeros=True)
    def rule(primals: Any, tangents: Any) -> Any:
        (step, contacts), (change, _) = primals, tangents
        at = LiveLeaves(step, change, _moves_in_shifts(step))
        (r, f), along = jax.linearize(lambda x: respond(at.whole(x), contacts), at.values)
        b = look_at(family, *frozen((step, contacts, r, f)))
        answer = LiveLeaves(r, r, jax.tree.map(lambda _: True, r))

        def before(x: list[Array]) -> tuple[list[Array], Array]:
            live = at.whole(x)
            times = functools.partial(_times, family, b)
            none = lambda step: jnp.zeros(step.system.nc)  # noqa: E731
            tau = branch(jnp.any(b.shifts), times, none, live, again=True)
            shift = saltation.shift_of(tau, b.shifts, apart(b.found))
            system, v, a = live.system, step.state.v, b.motion.a_before
            state = saltation.shift_state(system, live.state, v, a, shift.mean)
            if family.corrects:
                state = saltation.shift_apart(system, state, shift, b.aside, jnp.zeros_like(b.aside))
            return at.picked(live.shifted(state)), shift.tau

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
    shift = saltation.shift_of(tau, b.shifts, apart(b.found))
    end = shift_back(system, r.end, b.motion, shift)
    # impulses change by the forces before less those after the event, times its shift
    rows = with_tangent(stacked(r.jump), (b.motion.force_before - b.motion.force) * shift.mean)
    count = system.nc * (1 + system.nt)
    jump = dataclasses.replace(
        r.jump, contacts=rows[:count].reshape(r.jump.contacts.shape), constraints=rows[count:]
    )
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
    return saltation.event_shift(function, b.rate, b.shifts, apart(b.found), family.refuse).tau


def settled(family: Family, live: SystemState, fresh: Array) -> State:
    """A state whose derivative keeps the gaps of contacts that have just come to rest."""
    at = frozen(live)
    rows, inertia = at.rows(), at.inertia()
    f = Formed(at=at, inertia=inertia, rows=rows, response=rows.response(inertia))
    q = saltation.settle(f, live, fresh, family.refuse)
    return State(t=live.t, q=q, v=live.v)
