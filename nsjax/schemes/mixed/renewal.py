"""Accelerations in the memory of a mixed scheme: when they are computed anew, and what no force holds."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from nsjax.contact.acceleration import SlidingRule, lasting_forces
from nsjax.contact.criteria import criteria_of
from nsjax.contact.events import at_rest, frozen, gap_rates
from nsjax.contact.friction_decisions import sliding
from nsjax.core.branches import branch
from nsjax.core.step import Step
from nsjax.core.system import State
from nsjax.math import norm
from nsjax.schemes.mixed.base_step import Memory, contact_settings
from nsjax.types import Array


def recomputes(step: Step) -> bool:
    """Whether steps compute accelerations anew after a change of the persistent contacts."""
    return step.scheme.options.acceleration_after_change == "recompute" and step.system.nc > 0


def renewed(step: Step) -> tuple[Step, Array]:
    """The step with the accelerations of the persistent contacts in its memory. They are computed at the
    start of a step, so that the same code serves the start of the run. Contacts that no force holds through
    the step are open in it, and strike at its end. Of these, the second result (nc,) bool tells those that
    no force holds at all: their impact is one without collision.
    """
    memory, scheme = step.carry.memory, step.scheme
    none = jnp.zeros(step.system.nc, bool)
    if not step.system.nc or not (scheme.options.consistent_initial_acceleration or recomputes(step)):
        return step, none
    kept = (memory.a, memory.force), (memory.algorithmic, memory.algorithmic_force)

    def anew(_: None) -> Any:
        rule = SlidingRule(criteria=criteria_of(scheme))
        settings = contact_settings(scheme)
        found = lasting_forces(step.start, memory.resting, settings, rule, dt=step.dt)
        return (found.a, found.force), (found.a, found.force), found.blows, found.jams

    keep = lambda _: (*kept, none, none)  # noqa: E731
    (a, force), (algorithmic, behind), blows, jams = branch(memory.stale, anew, keep, None)
    memory = dataclasses.replace(
        memory, a=a, force=force, algorithmic=algorithmic, algorithmic_force=behind,
        closed=memory.closed & ~blows,
        touch=dataclasses.replace(memory.touch, held=memory.resting & ~blows),
    )  # fmt: skip
    return remembering(step, memory), jams


def remembering(step: Step, memory: Memory) -> Step:
    """The step with another memory."""
    return dataclasses.replace(step, carry=dataclasses.replace(step.carry, memory=memory))


def after_step(step: Step, state: State, closed: Array) -> tuple[Array, Array]:
    """Of the ``closed`` contacts (nc,) bool at the end ``state`` of a step, those at rest; and those that
    have rested throughout, whose sliding has stopped in the step, or will within half of the next one.

    Accelerations jump where sliding ends, as they do where contacts change: those of sliding, taken on,
    would make the contact slide back. A force that ends sliding early in the next step is found in time.
    """
    system, criteria, before = step.system, criteria_of(step.scheme), step.carry.memory
    none = jnp.zeros(system.nc, bool)
    if not system.nc:
        return none, none

    def look(_: None) -> tuple[Array, Array]:
        at = step.at(state)
        rests = closed & at_rest(criteria, gap_rates(at), at.v)
        if not (system.nt and recomputes(step)):
            return rests, none
        slip = jax.jit(lambda x: step.at(State(t=x[0], q=x[1], v=x[2])).slip())
        first, last = (slip(frozen((jnp.asarray(x.t), x.q, x.v))) for x in (step.state, state))
        slid = rests & before.resting & sliding(criteria, first, step.state.v)
        return rests, slid & (norm(last) <= 0.5 * norm(last - first))

    found: tuple[Array, Array] = branch(jnp.any(closed), look, lambda _: (none, none), None)
    return found
