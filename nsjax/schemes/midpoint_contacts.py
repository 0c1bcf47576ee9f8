"""Steps whose contact forces are all impulses: Moreau, theta-method, Gear-Gupta-Leimkuhler.

Such a scheme decides at the predicted midpoint which contacts act and answers with one velocity jump.
The decision and the books are the same for all and stand here.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax import lax

from nsjax.contact import events
from nsjax.contact.events import Formed
from nsjax.contact.sensitivity import Family, Stepped, nothing_told, through_events
from nsjax.core.operators import touching
from nsjax.core.scheme import Carry, Output, Scheme
from nsjax.core.system import State, System
from nsjax.schemes.books import impulse_output
from nsjax.schemes.family import derivatives, held_contacts, touch_at_start
from nsjax.types import Array, PyTree

Respond = Callable[[Scheme, System, PyTree, State, Array, Array, bool, Formed | None], Stepped]


def contact_init(scheme: Scheme, system: System, params: PyTree, constants: PyTree, state: State) -> Carry:
    """Contacts that touch at the start and do not approach are no impacts to come."""
    if not system.nc:
        return Carry(state=state, memory=())
    touch = touch_at_start(scheme, system, params, state, scheme.coef.gap_tolerance)
    return Carry(state=state, memory=touch)


def midpoint(system: System, state: State, dt: Array) -> State:
    """Predicted midpoint ``q + dt/2 v``, where contacts are decided."""
    return State(t=state.t + 0.5 * dt, q=system.retract(state.q, 0.5 * dt * state.v), v=state.v)


def impulse_step(
    respond: Respond, scheme: Scheme, system: System, params: PyTree, carry: Carry, dt: Array,
    *, corrects: bool = False, shares: bool = False,
) -> tuple[Carry, Output]:  # fmt: skip
    """One step around ``respond(scheme, system, params, state, active, dt, contacts, formed)``.

    ``corrects``: whether gaps are corrected on position level; ``shares``: whether ``respond`` takes what
    is ``formed`` already; see `nsjax.contact.sensitivity.Family`.
    """
    state = State(t=jnp.asarray(carry.state.t), q=carry.state.q, v=carry.state.v)
    at = midpoint(system, state, dt)
    gap = jnp.zeros(0) if system.gap is None else system.gap(at.t, at.q, params)
    active = touching(system, at.t, at.q, params, gap, scheme.coef.gap_tolerance)
    criteria = events.criteria_of(scheme)
    family = Family(
        predict=midpoint, held=functools.partial(held_contacts, criteria), corrects=corrects, turns=True,
        shares=shares, **derivatives(scheme),
    )  # fmt: skip

    def step(p: PyTree, state: State, formed: Formed | None) -> Stepped:
        return respond(scheme, system, p, state, active, dt, True, formed)

    def meet(_: None) -> Any:
        return through_events(step, family, criteria, system, params, state, carry.memory, active, dt)

    def fly(_: None) -> Any:
        r = respond(scheme, system, params, state, active, dt, False, None)
        return r, nothing_told(events.fly(criteria, carry.memory)) if system.nc else None

    if not system.nc:
        r, told = fly(None)
    else:
        # sliding goes on turning while a contact at rest hops for a step
        met = jnp.any(active) | jnp.any(carry.memory.held) if system.nt else jnp.any(active)
        r, told = lax.cond(met, meet, fly, None)
    solved = (r.jump.residual <= scheme.coef.tolerance) & (r.estimate <= scheme.coef.stage_tolerance)
    output = impulse_output(system, params, at, r.end, gap, active, told, r.jump, dt, solved)
    return Carry(state=r.end, memory=told.touch if system.nc else ()), output
