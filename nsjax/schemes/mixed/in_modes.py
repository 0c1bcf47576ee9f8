"""Steps of an explicit base scheme in fixed contact modes, without contact laws."""

from __future__ import annotations

import dataclasses

import jax.numpy as jnp

from nsjax.contact.events import NEVER
from nsjax.core.scheme import Answer, InModes, PartEnd, Scheme
from nsjax.core.step import Step
from nsjax.schemes.mixed.base_step import BaseEnd, Memory, Runner, on_contacts
from nsjax.types import Array


class _GivenImpulses(Runner):
    """Runs a base scheme with row impulses by given equations instead of the contact laws."""

    def __init__(self, step: Step, closed: Array, contacts: bool, answer: Answer) -> None:
        super().__init__(step, closed, contacts)
        self.answer = answer

    def velocity_level(self, delassus: Array, free: Array) -> Array:
        """Impulses of the rows by the equations of their modes."""
        return self.answer(delassus, free)


def _advance(step: Step, held: Array | None, answer: Answer) -> PartEnd:
    """The base step without an impulse at its end."""
    options, coef = step.scheme.options, step.scheme.coef

    def base(contacts: bool) -> PartEnd:
        run = _GivenImpulses(
            step, jnp.zeros(step.system.nc, bool) if held is None else held, contacts, answer
        )
        end: BaseEnd = options.base(coef, step.state, None, step.dt, run)
        return PartEnd(q=end.q, v=end.v, a=end.a, force=end.force, impulse=end.impulse)

    if held is None:
        return base(False)
    found: PartEnd = on_contacts(step.system, held, base)
    return found


def _fits(scheme: Scheme) -> bool:
    """Whether base steps fulfil constraints on velocity level, and report their own forces."""
    options = scheme.options
    plain = options.starting_force is None and not options.leaving_is_open
    return bool(plain and options.constraint_form == "index_2")


def _held(memory: Memory) -> tuple[Array, Array]:
    touch = memory.touch
    return memory.resting, memory.resting & (touch.off == 0) & ~touch.stuck


def _flown(memory: Memory) -> Array:
    return jnp.where(memory.touch.bounced, memory.touch.off, NEVER)


def _remembered(
    memory: Memory, end: PartEnd, held: Array, stuck: Array, active: Array, impact: Array
) -> Memory:
    """The memory after a step in which the contacts ``active`` took part and the contacts ``impact`` had
    impacts.
    """
    old = memory.touch
    touch = dataclasses.replace(
        old,
        held=held,
        stuck=stuck,
        off=jnp.where(active, 0, old.off + 1),
        bounced=(old.bounced | impact) & ~held,
        slide=jnp.full_like(old.slide, jnp.inf),  # not known
    )
    return dataclasses.replace(
        memory, a=end.a, algorithmic=end.a, force=end.force, algorithmic_force=end.force, closed=held,
        touch=touch, stale=jnp.asarray(False),
    )  # fmt: skip


EXPLICIT = InModes(fits=_fits, advance=_advance, held=_held, flown=_flown, remembered=_remembered)
"""Steps in modes of base schemes that start from position and velocity alone and solve no stages."""
