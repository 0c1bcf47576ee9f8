"""Steps whose contact forces are all impulses: Moreau, theta-method, Gear-Gupta-Leimkuhler.

Such a scheme decides at the predicted midpoint which contacts act and answers with one velocity jump.
The decision, the books and the derivative through impacts are the same for all and stand here.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from nsjax.contact import Jump, saltation
from nsjax.core.inertia import inertia_at
from nsjax.core.operators import all_rows, row_drift
from nsjax.core.scheme import Carry, Output, Scheme
from nsjax.core.system import State, System
from nsjax.linalg import matvec
from nsjax.schemes.books import approach_limit, event_limit, impacts_of, impulse_output, loaded
from nsjax.schemes.through_impacts import Around, accelerate, friction_of, settled, shift_back
from nsjax.types import Array, PyTree, record

# A contact that has come to rest has an impact again only if its approach is this many times faster than
# `approach_limit`. Bodies that rest on several contacts may rattle by some ten steps of acceleration: a
# billiard whose derivative grows without bound and has nothing to do with that of the motion.
RATTLE = 4.0


@record()
class Resting:
    """Memory of these schemes, for the derivative only: contacts (nc,) bool at rest after the step, and
    the sliding velocity (nc,) of planar contacts at its start [m/s]; contacts (nc,) bool that have been
    at rest since their last impact.
    """

    contacts: Array
    slide: Array
    landed: Array


@record()
class Response:
    """What a scheme makes of a step.

    Args:
        end: state at the end, ``t`` included.
        jump: impulses and rates.
        limit: (nc,) gap rates up to which an approach is no impact; see `approach_limit`.
        estimate: error estimate of an iteration relative to 1 + |v|, zero if nothing is iterated.
        more: whatever else the scheme hands on.
    """

    end: State
    jump: Jump
    limit: Array
    estimate: Array
    more: PyTree = ()


Predict = Callable[[System, State, Array], State]
Respond = Callable[[Scheme, System, PyTree, State, Array, Array, bool], Response]


def impulsive_init(
    scheme: Scheme, system: System, params: PyTree, constants: PyTree, state: State
) -> Carry:
    """Nothing is known to be at rest at the start."""
    return Carry(state=state, memory=no_rest(system) if system.nc else ())


def no_rest(system: System) -> Resting:
    """What is known of contacts at the start."""
    none = jnp.zeros(system.nc, bool)
    return Resting(contacts=none, slide=jnp.zeros(system.nc), landed=none)


def midpoint(system: System, state: State, dt: Array) -> State:
    """Predicted midpoint ``q + dt/2 v``, where contacts are decided."""
    return State(t=state.t + 0.5 * dt, q=system.retract(state.q, 0.5 * dt * state.v), v=state.v)


def no_limit(system: System) -> Array:
    """`Response.limit` of a step without contacts."""
    return jnp.zeros(system.nc)


def impulsive_step(
    respond: Respond, scheme: Scheme, system: System, params: PyTree, carry: Carry, dt: Array,
    *, corrects: bool = False,
) -> tuple[Carry, Output]:  # fmt: skip
    """One step around ``respond(scheme, system, params, state, active, dt, contacts)``.

    ``corrects``: whether gaps are corrected on position level, see `through_impacts`.
    """
    state = State(t=jnp.asarray(carry.state.t), q=carry.state.q, v=carry.state.v)
    at = midpoint(system, state, dt)
    gap = jnp.zeros(0) if system.gap is None else system.gap(at.t, at.q, params)
    active = gap <= scheme.coef.gap_tolerance
    none: tuple[Array, PyTree] = (jnp.asarray(0), ())
    if system.nc:
        none = jnp.asarray(0), dataclasses.replace(no_rest(system), landed=carry.memory.landed)

    def touch(_: None) -> tuple[Response, Any]:
        if scheme.gradient == "discrete":
            return respond(scheme, system, params, state, active, dt, True), none

        def step(state: State) -> Response:
            return respond(scheme, system, params, state, active, dt, True)

        return through_impacts(
            step, midpoint, system, params, state, carry.memory, active, dt, corrects=corrects
        )

    def fly(_: None) -> tuple[Response, Any]:
        return respond(scheme, system, params, state, active, dt, False), none

    r, (notes, memory) = lax.cond(jnp.any(active), touch, fly, None) if system.nc else fly(None)
    impact = impacts_of(r.jump, active, r.limit)
    solved = (r.jump.residual <= scheme.coef.tolerance) & (r.estimate <= scheme.coef.stage_tolerance)
    output = impulse_output(system, params, at, r.end, gap, active, impact, r.jump, dt, solved, notes)
    return Carry(state=r.end, memory=memory), output


@record()
class _Before:
    """What is known of the step before it is taken, without derivatives."""

    impacts: Array
    events: Array
    limit: Array
    rate: Array
    a: Array
    aside: Array
    coupled: Array


def through_impacts(
    respond: Callable[[State], Response], predict: Predict, system: System, params: PyTree, state: State,
    memory: Resting, active: Array, dt: Array, *, corrects: bool,
) -> tuple[Response, tuple[Array, Resting]]:  # fmt: skip
    """A step with contacts whose derivative is that of the motion; see `nsjax.contact.saltation`.

    Args:
        respond: the step from a state.
        predict: ``(system, state, dt) -> State`` where the contacts are looked at: close to where they
            close, with the velocity before an impact.
        memory: contacts at rest before the step.
        active: (nc,) bool, contacts closed at the predicted state. One seen a step early does no harm.
        corrects: whether the scheme corrects gaps on position level. The derivative of such a step
            annuls that of a gap, so that independent impacts must each be shifted before it.

    Returns:
        What the scheme makes of the step; notes, and the contacts at rest after it.
    """
    p, start, step, memory = saltation.frozen((params, state, dt, memory))
    slide, slow = _slow(system, p, start, memory)
    ahead = predict(system, start, step)
    rates = gap_rates(system, p, ahead)
    new = active & ~memory.contacts & (rates < 0.0)
    fresh = jnp.any(new)
    b = lax.cond(
        fresh | jnp.any(slow),
        lambda _: _look(system, p, start, ahead, active, memory, slow, step),
        lambda _: _nothing(system),
        None,
    )
    at = predict(system, state, dt)
    function = system.gap(at.t, at.q, params)  # type: ignore[misc]
    if system.nt == 1:
        live = system.slip(state.t, state.q, state.v, params)[:, 0]  # type: ignore[misc]
        function = jnp.where(b.impacts, function, live)
    apart = (jnp.sum(b.impacts) > 1) & ~b.coupled
    shift = saltation.event_shift(function, b.rate, b.events, apart)
    shifted = saltation.shift_state(system, state, start.v, b.a, shift.mean)
    if corrects:
        shifted = saltation.shift_apart(system, shifted, shift, b.aside, jnp.zeros_like(b.aside))
    r = respond(shifted)
    # a contact that has just landed rests if it would not pass the gate again
    after = loaded(r.jump, active) & (jnp.abs(r.jump.after) <= jnp.minimum(r.limit, b.limit))

    def finish(live: tuple[State, saltation.Shift]) -> State:
        end, shift = live
        jump = saltation.frozen(r.jump)
        # a contact seen too early has no impulse yet: its own shift forth and back then cancels
        x = Around(
            at=ahead, a=b.a, aside=b.aside, end=saltation.frozen(end), resting=memory.contacts,
            after=after, active=loaded(jump, active), impulses=_stacked(jump),
        )  # fmt: skip
        return shift_back(system, p, end, shift, x, corrects=corrects)

    end = lax.cond(jnp.any(b.events), finish, lambda live: live[0], (r.end, shift))
    landed = after & ~memory.contacts
    end = lax.cond(jnp.any(landed), lambda s: settled(system, params, s, landed), lambda s: s, end)
    gated = new & ~b.impacts
    memory = Resting(contacts=after, slide=slide, landed=jnp.where(b.impacts, after, memory.landed | after))
    return dataclasses.replace(r, end=end), (saltation.notes(gated, b.coupled), memory)


def gap_rates(system: System, p: PyTree, at: State) -> Array:
    """Rates of the gaps (nc,) along the velocity of a state."""

    def along(s: Array) -> Array:
        return system.gap(jnp.asarray(at.t) + s, system.retract(at.q, s * at.v), p)  # type: ignore[misc]

    return jax.jvp(along, (jnp.zeros(()),), (jnp.ones(()),))[1]


def _stacked(jump: Jump) -> Array:
    """Impulses of contacts and constraints as rows."""
    return jnp.concatenate([jump.contacts.reshape(-1), jump.constraints])


def _slow(system: System, p: PyTree, start: State, memory: Resting) -> tuple[Array, Array]:
    """Sliding velocities (nc,), and planar resting contacts that may turn within the step: the velocity
    is at most three times its last change.
    """
    if system.nt != 1:
        return memory.slide, jnp.zeros(system.nc, bool)
    slide = system.slip(start.t, start.q, start.v, p)[:, 0]  # type: ignore[misc]
    slow = memory.contacts & (jnp.abs(slide) <= 3.0 * jnp.abs(slide - memory.slide))
    return slide, slow


def _nothing(system: System) -> _Before:
    """No event."""
    none, zero = jnp.zeros(system.nc, bool), jnp.zeros(system.nc)
    return _Before(
        impacts=none, events=none, limit=jnp.full(system.nc, jnp.inf), rate=zero, a=jnp.zeros(system.nv),
        aside=jnp.zeros((system.nv, system.nc)), coupled=jnp.asarray(False),
    )  # fmt: skip


def _look(
    system: System, p: PyTree, start: State, at: State, active: Array, memory: Resting, slow: Array,
    dt: Array,
) -> _Before:  # fmt: skip
    """Events of the step: impacts by the gate on the approach, else reversals of sliding."""
    rows = all_rows(system, jnp.asarray(at.t), at.q, p)
    force = system.force(at.t, at.q, at.v, p)
    x = inertia_at(system, at.q, p).solve(jnp.concatenate([force[:, None], rows.wt.T], axis=1))
    d, count = 1 + system.nt, system.nc * (1 + system.nt)
    rates = rows.rate(start.v)[:count]
    limit = event_limit(system, p, at, rows, x[:, 0], dt)
    rattle = RATTLE * approach_limit(system, p, at, rows, x[:, 0], dt)
    impacts = active & (rates[::d] < -jnp.where(memory.landed, rattle, limit))

    def motion(_: None) -> tuple[Array, Array]:
        a = accelerate(system, p, start, start.v, memory.contacts)
        return a, (matvec(rows.wt, a) + row_drift(system, jnp.asarray(at.t), at.q, start.v, p))[:count]

    still = jnp.zeros(system.nv), jnp.zeros(count)
    a, change = lax.cond(jnp.any(impacts) | jnp.any(slow), motion, lambda _: still, None)
    normal = x[:, 1 : 1 + count : d]
    turns = saltation.reversal(rates, change, slow & ~jnp.any(impacts), dt, system.nt)
    return _Before(
        impacts=impacts,
        events=impacts | turns,
        limit=limit,
        rate=jnp.where(impacts, rates[::d], change[d - 1 :: d]),
        a=a,
        aside=normal * jnp.where(impacts, rates[::d] / jnp.sum(rows.wt[:count:d].T * normal, axis=0), 0.0),
        coupled=saltation.impact_coupling(
            rows, x[:, 1:], impacts, memory.contacts, friction_of(system, p), system.nt
        ),
    )
