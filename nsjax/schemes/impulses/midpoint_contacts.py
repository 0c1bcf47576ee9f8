"""Steps whose contact forces are all impulses: Moreau, theta-method, Gear-Gupta-Leimkuhler.

Such a scheme decides at the predicted midpoint which contacts act and answers with one velocity jump.
The decision and the books are the same for all and stand here.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from nsjax.contact import events
from nsjax.contact.criteria import criteria_of
from nsjax.contact.events import Balance, Formed
from nsjax.contact.sensitivity import Family, Stepped, nothing_told, through_events
from nsjax.core.branches import branch
from nsjax.core.operators import touching
from nsjax.core.scheme import Carry, Output, Scheme
from nsjax.core.system import State, System
from nsjax.schemes.at_events import derivatives, held_contacts, touch_at_start
from nsjax.schemes.books import impulse_output
from nsjax.types import Array, PyTree, record

Respond = Callable[
    [Scheme, System, PyTree, State, Array, Array, bool, Balance | None, Formed | None], Stepped
]
Weigh = Callable[[Scheme, System, PyTree, State, Array], Balance]
Gaps = Callable[[System, PyTree, State], Array]


@record()
class Remembered:
    """Memory of a scheme with one of its own: what is remembered of contacts, and that."""

    touch: PyTree
    own: PyTree


def contact_init(scheme: Scheme, system: System, params: PyTree, constants: PyTree, state: State) -> Carry:
    """Contacts that touch at the start and do not approach are no impacts to come."""
    if not system.nc:
        return Carry(state=state, memory=())
    touch = touch_at_start(scheme, system, params, state, scheme.coef.gap_tolerance)
    return Carry(state=state, memory=touch)


def midpoint(system: System, state: State, dt: Array) -> State:
    """Predicted midpoint ``q + dt/2 v``, where contacts are decided."""
    return State(t=state.t + 0.5 * dt, q=system.retract(state.q, 0.5 * dt * state.v), v=state.v)


def gap_of(system: System, params: PyTree, at: State) -> Array:
    """Gaps (nc,) of a state [m]."""
    gap: Array = system.gap(at.t, at.q, params)
    return gap


def impulse_step(
    respond: Respond, scheme: Scheme, system: System, params: PyTree, carry: Carry, dt: Array,
    *, corrects: bool = False, weigh: Weigh | None = None, gaps: Gaps = gap_of,
) -> tuple[Carry, Output]:  # fmt: skip
    """One step around ``respond(scheme, system, params, state, active, dt, contacts, balance, formed)``.

    Args:
        respond: makes a `Stepped` of the state; ``active`` (nc,) are the contacts that take part,
            ``contacts`` (static) says whether any may; ``balance`` and ``formed`` are None where the step
            has to find them, because it is shifted for a derivative or there is no ``weigh``.
        scheme: with the numbers ``tolerance``, ``stage_tolerance``, and ``gap_tolerance``, up to which gaps
            count as closed.
        carry: of `contact_init`, or of the step before.
        corrects: whether gaps are corrected on position level.
        weigh: ``(scheme, system, params, state, dt) -> Balance``, mass and force at the predicted midpoint,
            where those of the step are these.
        gaps: ``(system, params, at) -> (nc,)`` [m] what decides which contacts take part; ``at`` is the
            predicted midpoint, whose own gaps are the default.

    Returns:
        Carry, whose memory is what is remembered of contacts, with `Stepped.more` if there is any; output.
    """
    state = State(t=jnp.asarray(carry.state.t), q=carry.state.q, v=carry.state.v)
    touch = carry.memory.touch if isinstance(carry.memory, Remembered) else carry.memory
    at = midpoint(system, state, dt)
    gap = jnp.zeros(0) if system.gap is None else gaps(system, params, at)
    active = touching(system, at.t, at.q, params, gap, scheme.coef.gap_tolerance)
    criteria = criteria_of(scheme)
    family = Family(
        predict=midpoint, held=functools.partial(held_contacts, criteria), corrects=corrects, turns=True,
        shares=weigh is not None, laws=0.5, **derivatives(scheme),
    )  # fmt: skip

    balance = None
    if weigh is not None and not family.derivative:
        balance = weigh(scheme, system, params, state, dt)

    def step(p: PyTree, state: State, formed: Formed | None) -> Stepped:
        return respond(scheme, system, p, state, active, dt, True, balance, formed)

    def meet(_: None) -> Any:
        return through_events(
            step, family, criteria, system, params, state, touch, active, dt, balance=balance
        )

    def fly(_: None) -> Any:
        r = respond(scheme, system, params, state, active, dt, False, balance, None)
        return r, nothing_told(events.fly(criteria, touch)) if system.nc else None

    if not system.nc:
        r, told = fly(None)
    else:
        # sliding goes on turning while a contact at rest hops for a step
        met = jnp.any(active) | jnp.any(touch.held) if system.nt else jnp.any(active)
        r, told = branch(met, meet, fly, None)
    solved = (r.jump.residual <= scheme.coef.tolerance) & (r.estimate <= scheme.coef.stage_tolerance)
    output = impulse_output(system, params, at, r.end, gap, active, told, r.jump, dt, solved, balance)
    kept = told.touch if system.nc else ()
    memory = kept if isinstance(r.more, tuple) and not r.more else Remembered(touch=kept, own=r.more)
    return Carry(state=r.end, memory=memory), output
