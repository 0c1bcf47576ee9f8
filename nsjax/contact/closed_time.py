"""Derivative of the time for which contacts are closed: landings and releases move with the data.

A run counts closed time in steps. What the count misses for a derivative is how the ends of a closed phase
move inside their steps. A landing moves with its last impact. A release is where the gap would open: its
acceleration with the contact let go, ``A``, passes zero, so that ``dt_release = -dA / (dA/dt)``; the
force of the contact passes zero there, too, but is known to rounding of its steps alone in schemes of
impulses. Source: the implicit function theorem; nothing of it is in the papers.
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
class Closing:
    """What is remembered of closed phases.

    Args:
        shift: (nc,) zero, with the derivative of the time of the last impact or release that counts,
            relative to its step [s].
        steps: (nc,) int, steps for which the contact has been held.
    """

    shift: Array
    steps: Array


def touch_of(carry: Carry) -> Touch | Any:
    """What a scheme remembers of its contacts, if it does so as those of the package; else None."""
    memory = carry.memory
    touch = memory if isinstance(memory, Touch) else getattr(memory, "touch", None)
    return touch if isinstance(touch, Touch) else None


def begin_closing(carry: Carry, wanted: bool) -> Closing | None:
    """Nothing has landed yet; None where no derivative is wanted, or the scheme tells nothing of rest."""
    touch = touch_of(carry)
    if not wanted or touch is None:
        return None
    none = jnp.zeros(touch.held.shape)
    return Closing(shift=none, steps=none.astype(int))


def follow_closing(step: Step, closing: Closing, after: Carry, output: Output) -> tuple[Closing, Array]:
    """What is remembered after a step, and what the derivative of the closed time gains: (nc,), zero.

    A phase begins where a contact comes to rest under load, with its last impact from a long flight, see
    `Criteria.long`: times of shorter ones are known to parts of themselves alone, and the time from it to
    the end of all bounces changes by steps. A contact that is held again
    after a hop was not released: the shift of that release is taken back. A phase ends where the
    contact is held no longer: with an impact elsewhere that throws it off, else with `_release`, and with
    its landing where it lasted for no more steps than tell a hop from a release: what leaves at once has
    not been closed.
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
    # what touches without load after a release is counted, but takes part in nothing
    gained = gained + jnp.where(holds, only_tangent(dt, False), 0.0)
    steps = jnp.where(holds, closing.steps + 1, 0)
    return Closing(shift=jnp.where(left, gone, shift), steps=steps), gained


def _release(step: Step, end: State, on: Array, output: Output) -> Array:
    """Time shifts (nc,) of releases in a step: zero where the acceleration of the gap does not pass zero
    near the step, as of a contact that hops or is let go at a given time.
    """
    criteria, system, dt = criteria_of(step.scheme), step.system, step.dt
    impulses = jnp.concatenate([output.impulse_normal[:, None], output.impulse_tangential], axis=1)
    stuck = sticking(*frozen((impulses, step.start.friction())))

    def opening(x: tuple[Array, Array, Array]) -> Array:
        """Accelerations of the gaps with the contacts ``on`` alone."""
        t, q, v = x
        at = step.shifted(State(t=t, q=q, v=v)).start
        a, _ = accelerate(at, on, SlidingRule(criteria=criteria, stuck=stuck))

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
    # what scales it is frozen: a second derivative is refused, or taken, by the impacts of the run
    return jnp.where(passes, -only_tangent(first, False) * dt / jnp.where(passes, change, 1.0), 0.0)


def _parts(state: State) -> tuple[Array, Array, Array]:
    return jnp.asarray(state.t), state.q, state.v
