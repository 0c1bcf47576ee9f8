"""The impulse at the end of a step of the mixed framework, and the derivative through it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax

from nsjax.contact import Jump, no_jump, saltation, velocity_jump
from nsjax.contact.acceleration import consistent_acceleration
from nsjax.core.inertia import inertia_at
from nsjax.core.operators import Rows, all_rows, row_rates
from nsjax.core.scheme import Scheme
from nsjax.core.system import State, System
from nsjax.schemes.base_step import End, Kept, Memory, base_step
from nsjax.schemes.books import approach_limit, event_limit
from nsjax.schemes.through_impacts import Around, accelerate, friction_of, settled, shift_back
from nsjax.types import Array, PyTree, record

# A closed contact rests if its gap rate is zero to rounding. Looser bounds spoil derivatives at
# single step sizes (`mixed_framework.md` section 5).
RESTING = 1e-11


@record()
class Struck:
    """State after the impulse (if there is one), the jump, impacts (nc,) and notes on the derivative."""

    state: State
    jump: Jump
    impact: Array
    notes: Array


def acceleration(
    scheme: Scheme, system: System, params: PyTree, t: Array, q: Array, v: Array, resting: Array
) -> Array:
    """The consistent acceleration on the ``resting`` contacts."""
    return consistent_acceleration(
        system, params, t, q, v, resting,
        tolerance=scheme.coef.tolerances.contact, max_iterations=scheme.options.max_iterations,
    )  # fmt: skip


def resting_contacts(system: System, params: PyTree, t: Array, q: Array, v: Array, closed: Array) -> Array:
    """Closed contacts whose gap rate is zero to rounding."""
    if not system.nc:
        return closed

    def look(_: None) -> Array:
        rates = row_rates(system, t, q, v, params)
        normal = rates[: system.nc * (1 + system.nt) : 1 + system.nt]
        return closed & (jnp.abs(normal) <= RESTING * (1.0 + jnp.max(jnp.abs(v))))

    return lax.cond(jnp.any(closed), look, lambda _: jnp.zeros(system.nc, bool), None)


def _jump(
    scheme: Scheme, system: System, params: PyTree, at: State, closed: Array
) -> tuple[Jump, Rows, Array, Array]:
    """Impulse of all closed contacts with the plain mass matrix; rows, response, free acceleration."""
    t = jnp.asarray(at.t)
    rows = all_rows(system, t, at.q, params)
    force = system.force(t, at.q, at.v, params)
    x = inertia_at(system, at.q, params).solve(jnp.concatenate([force[:, None], rows.wt.T], axis=1))
    jump = velocity_jump(
        system, params, rows, x[:, 1:], at.v, jnp.zeros(system.nv), closed,
        tolerance=scheme.coef.tolerances.contact, max_iterations=scheme.options.max_iterations,
        method="auto_rare",
    )  # fmt: skip
    return jump, rows, x[:, 1:], x[:, 0]


def strike(
    scheme: Scheme, system: System, params: PyTree, t: Array, end: End, memory: Memory, closed: Array,
    dt: Array,
) -> Struck:  # fmt: skip
    """Impulse of all closed contacts if one is new."""
    at = State(t=t, q=end.q, v=end.v)
    nothing = jnp.asarray(0)
    if not system.nc:
        return Struck(state=at, jump=no_jump(system), impact=jnp.zeros(0, bool), notes=nothing)
    new = closed & ~memory.closed

    def plain(at: State) -> Struck:
        jump, rows, _, free = _jump(scheme, system, params, at, closed)
        limit = approach_limit(system, params, at, rows, free, dt)
        impact = closed & (jump.before < -limit) & (jump.contacts[:, 0] > 0.0)
        after = State(t=t, q=at.q, v=at.v + jump.dv)
        return Struck(state=after, jump=jump, impact=impact, notes=nothing)

    def hit(_: None) -> Struck:
        if scheme.gradient == "discrete":
            return plain(at)
        return _through_impacts(scheme, system, params, at, end, memory, closed, new, dt, plain)

    def miss(_: None) -> Struck:
        none = jnp.zeros(system.nc, bool)
        return Struck(state=at, jump=no_jump(system), impact=none, notes=nothing)

    return lax.cond(jnp.any(new), hit, miss, None)


def _through_impacts(
    scheme: Scheme, system: System, params: PyTree, at: State, end: End, memory: Memory, closed: Array,
    new: Array, dt: Array, plain: Callable[[State], Struck],
) -> Struck:  # fmt: skip
    """The impulse between two time shifts; see `nsjax.contact.saltation`."""
    p, here, dt = saltation.frozen((params, at, dt))
    t = jnp.asarray(here.t)
    _, rows, response, free = _jump(scheme, system, p, here, closed)
    rates = rows.rate(here.v)[: system.nc * (1 + system.nt) : 1 + system.nt]
    events = new & (rates < -event_limit(system, p, here, rows, free, dt))
    friction = friction_of(system, p)
    coupled = saltation.impact_coupling(rows, response, events, memory.resting, friction, system.nt)
    gap = system.gap(at.t, at.q, params)  # type: ignore[misc]
    shift = saltation.event_shift(gap, rates, events, (jnp.sum(events) > 1) & ~coupled)
    struck = plain(saltation.shift_state(system, at, here.v, end.a, shift.mean))
    after = saltation.frozen(struck.state)
    resting = resting_contacts(system, p, t, after.q, after.v, closed)
    impulses = jnp.concatenate([struck.jump.contacts.reshape(-1), struck.jump.constraints])
    x = Around(
        at=here, a=saltation.frozen(end.a), aside=jnp.zeros((system.nv, system.nc)), end=after,
        resting=memory.resting, after=resting, active=closed, impulses=saltation.frozen(impulses),
    )  # fmt: skip
    back = settled(system, params, shift_back(system, p, struck.state, shift, x), resting & ~memory.resting)
    gated = new & ~events & (rates < 0.0)
    return Struck(state=back, jump=struck.jump, impact=struck.impact, notes=saltation.notes(gated, coupled))


def through_reversal(
    scheme: Scheme, system: System, params: PyTree, kept: Kept, state: State, memory: Memory, dt: Array
) -> End:
    """The base step between two time shifts where a planar contact turns from sliding forth to back.

    Accelerations carried out of such a step have the derivative of the motion after the turn: that of
    the step itself is of the order 1/dt where it ends at rest.
    """
    p, start, a, step = saltation.frozen((params, state, memory.a, dt))
    count = 2 * system.nc

    def motion(a: Array) -> tuple[Array, Array]:
        """Row velocities, and their rates along the motion."""

        def rates(s: Array) -> Array:
            q = system.retract(start.q, s * start.v)
            return row_rates(system, jnp.asarray(start.t) + s, q, start.v + s * a, p)[:count]

        return jax.jvp(rates, (jnp.zeros(()),), (jnp.ones(()),))

    now, change = motion(a)
    events = saltation.reversal(now, change, memory.resting, step, system.nt)
    if scheme.options.laws_at_start:
        # the stored acceleration of a contact that has just come to a stop is not that with which it leaves
        still = memory.resting & ~saltation.slides(now)
        a = lax.cond(
            jnp.any(still),
            lambda _: accelerate(system, p, start, start.v, memory.resting),
            lambda _: a,
            None,
        )
        change = motion(a)[1]
        events = events | saltation.departure(now, change, memory.resting, step)
    slide = system.slip(state.t, state.q, state.v, params)[:, 0]  # type: ignore[misc]
    shift = saltation.event_shift(slide, change[1::2], events, jnp.asarray(False))
    shifted = saltation.shift_state(system, state, start.v, a, shift.mean)
    end = base_step(scheme, system, params, kept, shifted, memory, dt, True)

    def finish(live: tuple[End, Array]) -> End:
        end, tau = live
        done = saltation.frozen(end)
        t = jnp.asarray(state.t) + dt
        late = State(t=t, q=end.q, v=end.v)
        # a step that ends at rest has an acceleration of its own, neither that before nor that after
        after = accelerate(system, params, late, end.v, memory.resting)
        back = saltation.shift_state(system, late, done.v, saltation.frozen(after), -tau)
        change = saltation.only_tangent(after)
        a, algorithmic = done.a + change, done.algorithmic + change
        return dataclasses.replace(end, q=back.q, v=back.v, a=a, algorithmic=algorithmic)

    return lax.cond(jnp.any(events), finish, lambda live: live[0], (end, shift.mean))
