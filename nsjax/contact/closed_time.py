"""Derivative of the time for which contacts are closed: landings and releases move with the data.

A run counts closed time in steps. The count has no derivative: it misses how the ends of a closed phase
move inside their steps. A landing moves with its last impact. A release happens where the acceleration
``A`` that the gap would have without the contact passes zero, so that ``dt_release = -dA / (dA/dt)``.

The contact force passes zero there, too, but it cannot replace ``A``: a scheme with impulses knows only the
impulse of a whole step, which is zero in one step and twice as large in the next where a contact hops.
``A`` is a smooth function of the state. Source: the implicit function theorem; the papers do not treat
closed times.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from nsjax.contact.acceleration import SlidingRule
from nsjax.contact.criteria import criteria_of
from nsjax.contact.event_motion import accelerate
from nsjax.contact.events import Touch, frozen, gap_rates
from nsjax.contact.friction_decisions import sticking
from nsjax.core.scheme import Carry, Output
from nsjax.core.step import Step
from nsjax.core.system import State
from nsjax.nonlinear import only_tangent
from nsjax.types import Array, record


@record()
class ClosedPhases:
    """Memory of the closed phases of contacts between steps.

    Args:
        shift: (nc,) zero, with the derivative of the time of the last impact or release that counts,
            relative to its step [s].
        steps: (nc,) int, steps for which the contact has been held.
    """

    shift: Array
    steps: Array


def touch_of(carry: Carry) -> Touch | Any:
    """Memory that a scheme keeps of its contacts, if it is a `Touch`, as in the package; else None."""
    memory = carry.memory
    touch = memory if isinstance(memory, Touch) else getattr(memory, "touch", None)
    return touch if isinstance(touch, Touch) else None


def begin_closing(carry: Carry, wanted: bool) -> ClosedPhases | None:
    """Closed phases at the start of a run; None if no derivative is wanted or the scheme has no `Touch`."""
    touch = touch_of(carry)
    if not wanted or touch is None:
        return None
    none = jnp.zeros(touch.held.shape)
    return ClosedPhases(shift=none, steps=none.astype(int))


def follow_closing(
    step: Step, closing: ClosedPhases, after: Carry, output: Output
) -> tuple[ClosedPhases, Array]:
    """Closed phases after a step, and the gain (nc,) of the closed time: zero, with a derivative.

    A phase begins where a contact comes to rest under load. Its start moves with the last impact after a
    long flight, see `Criteria.long`: the instants of shorter flights have errors that are comparable to the
    flights, and the time from that impact to the end of all bounces changes by whole steps. A contact that
    is held again after a hop was not released: the shift of that release is removed. A phase ends where the
    contact is no longer held. Its end moves with the impact elsewhere that throws the contact off, if there
    is one, else by `_release`. A phase of at most `Criteria.hop` steps ends with its own landing: a contact
    that leaves at once has not been closed.
    """
    criteria, before, dt = criteria_of(step.scheme), step.carry, step.dt
    held, holds = touch_of(before).held, touch_of(after).held
    impact = output.event.timed
    flown = touch_of(before).off > criteria.long
    shift = jnp.where(impact & flown, output.event.shift, closing.shift)
    left = held & ~holds
    struck = jnp.sum(jnp.where(impact, output.event.shift, 0.0)) / jnp.maximum(jnp.sum(impact), 1)
    free = lax.cond(
        jnp.any(left & ~jnp.any(impact)),
        lambda _: _release(step, after.state, holds, output),
        lambda _: jnp.zeros(shift.shape),
        None,
    )
    gone = jnp.where(jnp.any(impact), struck, jnp.where(closing.steps > criteria.hop, free, shift))
    gained = jnp.where(left, gone, jnp.where(holds & ~held, -shift, 0.0))
    # closed time also counts steps in which a contact still touches after its release, without load; the
    # derivative by the step size counts the steps of held contacts alone
    gained = gained + jnp.where(holds, only_tangent(dt, False), 0.0)
    steps = jnp.where(holds, closing.steps + 1, 0)
    return ClosedPhases(shift=jnp.where(left, gone, shift), steps=steps), gained


def _release(step: Step, end: State, on: Array, output: Output) -> Array:
    """Time shifts (nc,) of releases in a step: zero where the acceleration of the gap does not pass zero
    near the step, as for a contact that hops or is released at a prescribed time.
    """
    criteria, system, dt = criteria_of(step.scheme), step.system, step.dt
    impulses = jnp.concatenate([output.impulse_normal[:, None], output.impulse_tangential], axis=1)
    stuck = sticking(*frozen((impulses, step.start.friction())))

    def opening(x: tuple[Array, Array, Array]) -> Array:
        """Accelerations of the gaps with the contacts ``on`` alone."""
        t, q, v = x
        at = step.shifted(State(t=t, q=q, v=v)).start
        a = accelerate(at, on, SlidingRule(criteria=criteria, stuck=stuck)).a

        def rates(s: Array) -> Array:
            return gap_rates(at.moved(t=t + s, q=system.retract(q, s * v), v=v + s * a))

        return jax.jvp(rates, (jnp.zeros(()),), (jnp.ones(()),))[1]

    both = (
        jnp.stack([jnp.asarray(x), frozen(y)]) for x, y in zip(_parts(step.state), _parts(end), strict=True)
    )
    first, last = lax.map(opening, tuple(both))
    change = frozen(last - first)
    late = frozen(jnp.abs(first)) <= (1 + criteria.hop) * change
    passes = late & (frozen(last) > 0.0)
    # the divisor is frozen: the impacts of the run refuse a second derivative, or take it
    return jnp.where(passes, -only_tangent(first, False) * dt / jnp.where(passes, change, 1.0), 0.0)


def _parts(state: State) -> tuple[Array, Array, Array]:
    return jnp.asarray(state.t), state.q, state.v
