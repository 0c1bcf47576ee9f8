"""Steps whose contact forces are all impulses: Moreau, theta-method, Gear-Gupta-Leimkuhler.

Such a scheme decides at the predicted midpoint which contacts act and answers with one velocity jump.
The decision, the books and the derivative through impacts are the same for all and stand here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax import lax

from nsjax.contact import Jump, saltation, velocity_jump
from nsjax.contact.acceleration import consistent_acceleration
from nsjax.core.operators import Rows, all_rows, row_drift
from nsjax.core.scheme import Carry, Output, Scheme
from nsjax.core.system import State, System
from nsjax.linalg import matmul, matvec, solve_positive
from nsjax.schemes.books import approach_limit, classify, impulse_output
from nsjax.types import Array, PyTree, record


@record()
class Resting:
    """Memory of these schemes, for the derivative only: contacts (nc,) bool at rest after the step."""

    contacts: Array


@record()
class Response:
    """What a scheme makes of a step.

    Args:
        end: state at the end, ``t`` included.
        jump: impulses and rates.
        limit: (nc,) gap rates up to which an approach is no impact; see `approach_limit`.
        estimate: error estimate of an iteration relative to 1 + |v|, zero if nothing is iterated.
    """

    end: State
    jump: Jump
    limit: Array
    estimate: Array


Respond = Callable[[Scheme, System, PyTree, State, Array, Array, bool], Response]


def impulsive_init(
    scheme: Scheme, system: System, params: PyTree, constants: PyTree, state: State
) -> Carry:
    """Nothing is known to be at rest at the start."""
    return Carry(state=state, memory=Resting(contacts=jnp.zeros(system.nc, bool)) if system.nc else ())


def midpoint(system: System, state: State, dt: Array) -> State:
    """Predicted midpoint ``q + dt/2 v``, where contacts are decided."""
    return State(t=state.t + 0.5 * dt, q=system.retract(state.q, 0.5 * dt * state.v), v=state.v)


def no_limit(system: System) -> Array:
    """`Response.limit` of a step without contacts."""
    return jnp.zeros(system.nc)


def impulsive_step(
    respond: Respond, scheme: Scheme, system: System, params: PyTree, carry: Carry, dt: Array
) -> tuple[Carry, Output]:
    """One step around ``respond(scheme, system, params, state, active, dt, contacts)``."""
    state = State(t=jnp.asarray(carry.state.t), q=carry.state.q, v=carry.state.v)
    at = midpoint(system, state, dt)
    gap = jnp.zeros(0) if system.gap is None else system.gap(at.t, at.q, params)
    active = gap <= scheme.coef.gap_tolerance
    nothing = jnp.asarray(0)

    def touch(_: None) -> tuple[Response, Array]:
        if scheme.gradient == "discrete":
            return respond(scheme, system, params, state, active, dt, True), nothing
        return _through_impacts(respond, scheme, system, params, carry, active, dt)

    def fly(_: None) -> tuple[Response, Array]:
        return respond(scheme, system, params, state, active, dt, False), nothing

    r, notes = lax.cond(jnp.any(active), touch, fly, None) if system.nc else fly(None)
    impact, resting = classify(r.jump, active, r.limit)
    solved = (r.jump.residual <= scheme.coef.tolerance) & (r.estimate <= scheme.coef.stage_tolerance)
    output = impulse_output(system, params, at, r.end, gap, active, impact, r.jump, dt, solved, notes)
    memory = Resting(contacts=resting) if system.nc else ()
    return Carry(state=r.end, memory=memory), output


@record()
class _Before:
    """What is known of the step before it is taken, without derivatives."""

    at: State
    rows: Rows
    response: Array
    impacts: Array
    events: Array
    rate: Array
    a: Array


def _through_impacts(
    respond: Respond, scheme: Scheme, system: System, params: PyTree, carry: Carry, active: Array, dt: Array
) -> tuple[Response, Array]:
    """A step with contacts whose derivative is that of the motion; see `nsjax.contact.saltation`."""
    state = State(t=jnp.asarray(carry.state.t), q=carry.state.q, v=carry.state.v)
    resting = carry.memory.contacts
    p, start, step = saltation.frozen((params, state, dt))
    coef = saltation.frozen(scheme.coef)

    def accelerate(at: State, v: Array, on: Array) -> Array:
        return consistent_acceleration(
            system, p, jnp.asarray(at.t), at.q, v, on,
            tolerance=coef.tolerance, max_iterations=scheme.options.max_iterations,
        )  # fmt: skip

    b = _look(system, p, start, active, resting, step, accelerate)
    at = midpoint(system, state, dt)
    function = system.gap(at.t, at.q, params)  # type: ignore[misc]
    if system.nt == 1:
        slide = system.slip(state.t, state.q, state.v, params)[:, 0]  # type: ignore[misc]
        function = jnp.where(b.impacts, function, slide)
    coupled = saltation.impact_coupling(b.rows, b.response, b.impacts, system.nt)
    several = (jnp.sum(b.impacts) > 1) & ~coupled
    shift = saltation.event_shift(function, b.rate, b.events, several)
    shifted = saltation.shift_state(system, state, start.v, b.a, shift.mean)
    r = respond(scheme, system, params, shifted, active, dt, True)
    _, after = classify(r.jump, active, r.limit)
    end = saltation.frozen(r.end)
    a_plus = lax.cond(
        jnp.any(b.events), lambda _: accelerate(end, end.v, after), lambda _: jnp.zeros(system.nv), None
    )
    back = saltation.shift_state(system, r.end, end.v, a_plus, -shift.mean)

    def alone(s: Array) -> Array:
        """Velocity change by every contact alone, ``s`` later (nv, nc)."""
        later = State(t=b.at.t + s, q=system.retract(b.at.q, s * start.v), v=start.v + s * b.a)
        return _jumps_alone(scheme, system, p, later, active)

    back = saltation.shift_apart(
        system, back, shift, alone, lambda v, on: accelerate(b.at, v, resting | (on & after)), start.v
    )
    q = _settle(system, params, back, after & ~resting)
    rates = b.rows.rate(start.v)[: system.nc * (1 + system.nt) : 1 + system.nt]
    gated = active & ~resting & ~b.impacts & (rates < 0.0)
    end = State(t=back.t, q=q, v=back.v)
    return Response(end=end, jump=r.jump, limit=r.limit, estimate=r.estimate), saltation.notes(
        gated, coupled
    )


def _look(
    system: System, p: PyTree, start: State, active: Array, resting: Array, dt: Array, accelerate: Any
) -> _Before:
    """Events of the step: impacts by the gate on the approach, else reversals of sliding."""
    at = midpoint(system, start, dt)
    rows = all_rows(system, jnp.asarray(at.t), at.q, p)
    force = system.force(at.t, at.q, at.v, p)
    mass = system.mass(at.q, p)  # type: ignore[misc]
    x = solve_positive(mass, jnp.concatenate([force[:, None], rows.wt.T], axis=1))
    free, response = x[:, 0], x[:, 1:]
    d, count = 1 + system.nt, system.nc * (1 + system.nt)
    rates = rows.rate(start.v)[:count]
    limit = approach_limit(system, p, at, rows, free, dt)
    impacts = active & (rates[::d] < -limit)
    slow = jnp.zeros(system.nc, bool)
    if system.nt == 1:
        slow = (
            resting
            & active
            & ~jnp.any(impacts)
            & (jnp.abs(rates[1::2]) <= _slide_limit(system, p, at, rows, response, free, dt))
        )

    def needed(_: None) -> tuple[Array, Array]:
        a = accelerate(start, start.v, resting)
        change = matvec(rows.wt, a) + row_drift(system, jnp.asarray(at.t), at.q, start.v, p)
        return a, change[:count]

    nothing = jnp.zeros(system.nv), jnp.zeros(count)
    a, change = lax.cond(jnp.any(impacts | slow), needed, lambda _: nothing, None)
    turns = saltation.reversal(rates, change, slow, dt, system.nt)
    rate = jnp.where(impacts, rates[::d], change[d - 1 :: d])
    return _Before(
        at=at, rows=rows, response=response, impacts=impacts, events=impacts | turns, rate=rate, a=a
    )


def _slide_limit(
    system: System, p: PyTree, at: State, rows: Rows, response: Array, free: Array, dt: Array
) -> Array:
    """Sliding velocity (nc,) above which no reversal can happen in the step: twice the free acceleration
    and the friction of the weight, contact by contact.
    """
    count = 2 * system.nc
    g = jnp.abs(matmul(rows.wt[:count], response[:, :count]))
    a = jnp.abs(matvec(rows.wt, free) + row_drift(system, jnp.asarray(at.t), at.q, at.v, p))[:count]
    diagonal = jnp.diagonal(g)
    load = jnp.sum(a[::2] / diagonal[::2])
    friction = system.law(p).friction_of(system.nc)  # type: ignore[misc]
    return (
        2.0 * dt * (a[1::2] + load * (jnp.max(friction) * diagonal[1::2] + jnp.max(g[1::2, ::2], axis=1)))
    )


def _jumps_alone(scheme: Scheme, system: System, p: PyTree, at: State, active: Array) -> Array:
    """Velocity change (nv, nc) by the impulse of every contact."""
    rows = all_rows(system, jnp.asarray(at.t), at.q, p)
    response = solve_positive(system.mass(at.q, p), rows.wt.T)  # type: ignore[misc]
    jump = velocity_jump(
        system, p, rows, response, at.v, jnp.zeros(system.nv), active,
        tolerance=scheme.coef.tolerance, max_iterations=scheme.options.max_iterations,
    )  # fmt: skip
    count = system.nc * (1 + system.nt)
    each = response[:, :count].reshape(system.nv, system.nc, 1 + system.nt)
    return jnp.sum(each * jump.contacts[None], axis=2)


def _settle(system: System, params: PyTree, end: State, fresh: Array) -> Array:
    """Position whose derivative keeps the gaps of contacts that have just come to rest."""
    t, q = jnp.asarray(end.t), end.q

    def keep(_: None) -> Array:
        p, at_t, at_q = saltation.frozen((params, t, q))
        rows = all_rows(system, at_t, at_q, p)
        response = solve_positive(system.mass(at_q, p), rows.wt.T)  # type: ignore[misc]
        return saltation.settle(system, params, t, q, rows, response, fresh)

    return lax.cond(jnp.any(fresh), keep, lambda _: q, None)
