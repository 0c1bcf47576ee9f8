"""The impact at the end of a step of the mixed framework, sliding that turns within one, and the
derivatives through both.
"""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp

from nsjax.contact import Jump, events, no_jump, saltation, sliding, velocity_jump
from nsjax.contact.aftermath import accelerate
from nsjax.contact.criteria import criteria_of
from nsjax.contact.events import Approach, Formed, Touch, frozen
from nsjax.contact.sensitivity import Family, Stepped, Told, nothing_told, through_events
from nsjax.core.branches import branch
from nsjax.core.operators import refreshed, row_rates
from nsjax.core.scheme import Scheme
from nsjax.core.system import State, System
from nsjax.nonlinear import only_tangent, with_tangent
from nsjax.schemes.at_events import derivatives
from nsjax.schemes.mixed.base_step import End, Kept, Memory, base_step
from nsjax.types import Array, PyTree, record


@record()
class Struck:
    """State after the impulse (if there is one), the jump, and what is told of the events."""

    state: State
    jump: Jump
    told: Told


def resting_contacts(
    scheme: Scheme, system: System, params: PyTree, t: Array, q: Array, v: Array, closed: Array
) -> Array:
    """Closed contacts whose gap rate is zero to rounding."""
    if not system.nc:
        return closed

    def look(_: None) -> Array:
        rates = events.gap_rates(system, params, State(t=t, q=q, v=v))
        return closed & events.at_rest(criteria_of(scheme), rates, v)

    return branch(jnp.any(closed), look, lambda _: jnp.zeros(system.nc, bool), None)


def strike(
    scheme: Scheme, system: System, params: PyTree, t: Array, end: End, memory: Memory, closed: Array,
    load: Array, dt: Array,
) -> Struck:  # fmt: skip
    """Impulse of all closed contacts if one is new.

    Args:
        load: (nc,) bool, contacts that carried a force in the base step.
    """
    at = State(t=t, q=end.q, v=end.v)
    if not system.nc:
        return Struck(state=at, jump=no_jump(system), told=nothing_told(memory.touch))
    new = closed & ~memory.closed

    def respond(p: PyTree, at: State, f: Formed | None) -> Stepped:
        f = f or events.formed(system, p, at)
        jump = velocity_jump(
            system, p, f.rows, f.response, at.v, jnp.zeros(system.nv), closed,
            tolerance=scheme.coef.tolerances.contact, max_iterations=scheme.options.max_iterations,
            method="auto_rare", inertia=f.inertia,
        )  # fmt: skip
        after = State(t=jnp.asarray(at.t), q=at.q, v=at.v + jump.dv)
        return Stepped(end=after, jump=jump, estimate=jnp.zeros(()))

    def held(after: State, loaded: Array, touch: Touch, found: Approach, jump: Jump) -> Array:
        return resting_contacts(scheme, system, frozen(params), t, after.q, after.v, closed)

    def hit(_: None) -> Struck:
        family = Family(
            predict=_here, held=held, corrects=False, turns=False, shares=True, **derivatives(scheme)
        )
        r, told = through_events(
            respond, family, criteria_of(scheme), system, params, at, memory.touch, closed, dt,
            (end.a, end.force), load,
        )  # fmt: skip
        # contacts do not chatter here: a newly closed contact that approaches is an impact, however slow
        rests = events.at_rest(criteria_of(scheme), r.jump.before, end.v)
        impact = new & (r.jump.before < 0.0) & ~rests & (r.jump.contacts[:, 0] > 0.0)
        return Struck(state=r.end, jump=r.jump, told=dataclasses.replace(told, impact=frozen(impact)))

    def miss(_: None) -> Struck:
        touch = events.touching(dataclasses.replace(memory.touch, off=memory.touch.off + 1), closed)
        return Struck(state=at, jump=no_jump(system), told=nothing_told(touch))

    return branch(jnp.any(new), hit, miss, None)


def _here(system: System, state: State, dt: Array) -> State:
    """The impulse acts at the end of the step, where the gaps are looked at."""
    return State(t=jnp.asarray(state.t), q=state.q, v=state.v)


def through_reversal(
    scheme: Scheme, system: System, params: PyTree, kept: Kept, state: State, memory: Memory, dt: Array
) -> End:
    """The base step between two time shifts where a contact turns from sliding forth to back.

    Accelerations carried out of such a step have the derivative of the motion after the turn: that of
    the step itself is of the order 1/dt where it ends at rest.
    """
    criteria = criteria_of(scheme)
    p, start, a, step = frozen((params, state, memory.a, dt))
    d, count = 1 + system.nt, system.nc * (1 + system.nt)

    def motion(a: Array) -> tuple[Array, Array]:
        """Tangential velocities (nc, nt), and their rates along the motion."""

        def rates(s: Array) -> Array:
            q = system.retract(start.q, s * start.v)
            found = row_rates(system, jnp.asarray(start.t) + s, q, start.v + s * a, p)[:count]
            return found.reshape(system.nc, d)[:, 1:]

        return jax.jvp(rates, (jnp.zeros(()),), (jnp.ones(()),))

    now, change = motion(a)
    turning = sliding.reversal(criteria, now, change, memory.resting, start.v, step)
    if scheme.options.laws_at_start:
        # a contact that has just stopped leaves with another acceleration than the stored one
        still = memory.resting & ~sliding.sliding(criteria, now, start.v)
        own = lambda _: accelerate(criteria, system, p, start, start.v, memory.resting)[0]  # noqa: E731
        a = branch(jnp.any(still), own, lambda _: a, None)
        change = motion(a)[1]
        turning = turning | sliding.departure(criteria, now, change, memory.resting, start.v, step)
    slide = system.slip(state.t, state.q, state.v, params)
    along, rate = jnp.sum(slide * change, axis=1), jnp.sum(change * change, axis=1)
    refuse = derivatives(scheme)["refuse"]
    shift = saltation.event_shift(along, rate, turning, jnp.asarray(False), refuse)
    shifted = saltation.shift_state(system, state, start.v, a, shift.mean)
    params = refreshed(system, shifted.t, shifted.q, params)
    end = base_step(scheme, system, params, kept, shifted, memory, dt, True)
    kinks = sliding.unresolved(criteria, turning, now, change, start.v)
    end = dataclasses.replace(end, notes=kinks)

    def finish(live: tuple[End, Array]) -> End:
        end, tau = live
        done = frozen(end)
        t = jnp.asarray(state.t) + dt
        late = State(t=t, q=end.q, v=end.v)
        # the acceleration of a step that ends at rest is neither that before it nor that after it
        after, force = accelerate(criteria, system, params, late, end.v, memory.resting)
        back = saltation.shift_state(system, late, done.v, frozen(after), -tau)
        change = only_tangent(after, refuse)
        a, algorithmic = done.a + change, done.algorithmic + change
        impulse = with_tangent(end.impulse, (frozen(memory.force) - frozen(force)) * tau)
        return dataclasses.replace(end, q=back.q, v=back.v, a=a, algorithmic=algorithmic, impulse=impulse)

    return branch(jnp.any(turning), finish, lambda live: live[0], (end, shift.mean))
