"""What a run remembers of its contacts, between all that are stored and the few in the slots of a step.

A system with a `System.contact_set` has more contacts than a step evaluates. Contacts with names are in
everything that a user sees, and in the memory of a run; a step sees those in the slots that
`System.refresh` has chosen at its start, and the others are open. Contacts between changing bodies are
stored as long as they have a slot, by the identity of their bodies.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp

from nsjax.contact.bounded import by_law, by_row
from nsjax.contact.events import NEVER, Touch, criteria_of, fly
from nsjax.contact.sweeps import REFUSED_GRADIENT
from nsjax.contact.switches import ClosedPhases
from nsjax.core.errors import InputError
from nsjax.core.scheme import QUANTITIES, Carry, Output
from nsjax.core.slots import ContactSlots
from nsjax.core.step import Step
from nsjax.core.system import System, step_system
from nsjax.core.system_parts import check_follower
from nsjax.renamed import renamed_fields
from nsjax.status import CANDIDATES_LOST
from nsjax.types import Array, PyTree, record


@renamed_fields
@record(static=("widths",))
class ContactMemory:
    """Memory of a scheme in terms of all contacts that a run stores.

    Args:
        memory: pytree whose arrays over contacts hold all of them.
        widths: entries for a contact along the first axis, leaf by leaf; 0: an array that is not over
            contacts.
        identity: (nc,) int, of the stored contacts that have no names; None: contacts have names.
    """

    memory: PyTree
    widths: tuple[int, ...] = ()
    identity: Array | None = None


def widths(few: PyTree, many: PyTree, more: int) -> tuple[int, ...]:
    """Entries for a contact in each leaf, from the shapes of the leaves for the few and for ``more``
    contacts, in which laws of bounded rows count as contacts. Raises `InputError` for a leaf whose shape
    does not tell the number.
    """
    found = []
    for one, other in zip(jax.tree.leaves(few), jax.tree.leaves(many), strict=True):
        apart = other.shape[0] - one.shape[0] if one.shape else 0
        if one.shape[1:] != other.shape[1:] or apart % max(more, 1):
            raise InputError(
                "contact_group: it has a capacity, and the memory of the scheme cannot be divided by "
                "contacts; leave capacity out, or take another scheme"
            )
        found.append(apart // more if more else 0)
    return tuple(found)


def _leaves(x: Any) -> tuple[list[Any], Any]:
    """Leaves of a pytree, with a `Touch` as one leaf, and its structure."""
    return jax.tree.flatten(x, is_leaf=lambda y: isinstance(y, Touch))


def _each(memory: PyTree, sizes: tuple[int, ...], of: Callable[[Any, int], Any], touch: Any) -> PyTree:
    """Memory of a scheme after ``of(array, width)`` on every array and ``touch`` on every `Touch`."""
    leaves, tree = _leaves(memory)
    rest, found = iter(sizes), []
    for x in leaves:
        if isinstance(x, Touch):
            for _ in jax.tree.leaves(x):
                next(rest)
            found.append(touch(x))
        else:
            found.append(of(x, next(rest)))
    return jax.tree.unflatten(tree, found)


def begin_memory(system: System, p: PyTree, few: Carry, many: Callable[[], Carry]) -> Carry:
    """The carry at the start of a run, with a memory of all contacts that the run stores. ``few``: carry of
    the contacts of a step; ``many``: makes that of all contacts, of which the shapes alone are asked.
    """
    of: Any = system.contact_set
    if of.changing:
        sizes = tuple(x.shape[0] // system.nc for x in jax.tree.leaves(few.memory))
        stored = ContactMemory(memory=few.memory, widths=sizes, identity=of.identity(p))
        return dataclasses.replace(few, memory=stored)
    slots = of.slots(p, None)
    sizes = widths(few.memory, jax.eval_shape(many).memory, slots.dropped)
    memory = _each(few.memory, sizes, slots.put, lambda x: _unknown(slots.put, x))
    return dataclasses.replace(few, memory=ContactMemory(memory=memory, widths=sizes))


def _unknown(of: Callable[[Any, int, Any], Any], touch: Touch) -> Touch:
    """`Touch` after ``of(array, width, value)`` on each array; ``value`` is that of an unknown contact."""
    fields = {f.name: getattr(touch, f.name) for f in dataclasses.fields(touch)}
    return Touch(**{name: of(x, 1, NEVER if name == "off" else 0) for name, x in fields.items()})


def contacts_of_step(system: System, p: PyTree, carry: Carry) -> ContactSlots | None:
    """Places of the contacts of a step among those that a run stores; None: the stored ones themselves."""
    of = system.contact_set
    return None if of is None else of.slots(p, carry.memory.identity)


def tally_of_step(
    system: System, slots: ContactSlots | None, tally: Mapping[str, Array]
) -> dict[str, Array]:  # fmt: skip
    """Quantities since the last saved row, in the order of the contacts that are stored from now on."""
    if slots is None or not system.changing_contacts:
        return dict(tally)

    def moved(name: str, x: Array) -> Array:
        none = QUANTITIES[name].start(system)
        return slots.contacts.take(x, none) if x.ndim and x.shape[0] == system.nc else x

    return {name: moved(name, x) for name, x in tally.items()}


def narrow(
    slots: ContactSlots, carry: Carry, closing: ClosedPhases | None
) -> tuple[Carry, ClosedPhases | None]:  # fmt: skip
    """Carry and closed phases of the contacts of a step alone."""
    stored = carry.memory
    memory = _each(stored.memory, stored.widths, slots.take, lambda x: _unknown(slots.take, x))
    return dataclasses.replace(carry, memory=memory), jax.tree.map(slots.take, closing)


def widen(
    system: System, step: Step, slots: ContactSlots, carry: Carry, output: Output
) -> tuple[Carry, Output]:
    """Carry and output of all contacts that a run stores, after a step; those without a slot are open.

    Args:
        step: the step, from the carry of all contacts.
        slots: places of its contacts.
        carry, output: after the step.
    """
    of, stored = system.contact_set, step.carry.memory
    assert of is not None
    lost = jnp.where(of.overflow(step.params), CANDIDATES_LOST, 0)
    output = dataclasses.replace(output, status=output.status | lost)
    if of.changing:
        now = dataclasses.replace(stored, memory=carry.memory, identity=of.identity(step.params))
        return dataclasses.replace(carry, memory=now), output
    criteria = criteria_of(step.scheme)
    # contacts without a slot have flown on, and their flights are a step longer
    flown = iter([fly(criteria, x) for x in _leaves(stored.memory)[0] if isinstance(x, Touch)])

    def touch(x: Touch) -> Touch:
        return jax.tree.map(lambda y, others: slots.put(y, 1, others), x, next(flown))

    memory = _each(carry.memory, stored.widths, slots.put, touch)
    own = {
        name: slots.put(getattr(output, name), 1, jnp.inf if name == "margin" else 0)
        for name, kind in QUANTITIES.items()
        if kind.axes[:1] == ("nc",) and getattr(output, name) is not None
    }
    own |= {
        name: by_row(system, slots.put_laws(by_law(step_system(system), getattr(output, name))))
        for name, kind in QUANTITIES.items()
        if kind.axes == ("nd",) and getattr(output, name) is not None
    }
    event = jax.tree.map(lambda x: slots.put(x) if jnp.ndim(x) else x, output.event)
    gaps = {name: getattr(output.event, name) for name in ("gap", "begun", "ended")}
    unknown = {name: slots.put(x, 1, jnp.inf) for name, x in gaps.items() if x is not None}
    event = dataclasses.replace(event, **unknown)
    contact = jnp.where(output.contact < 0, -1, slots.which[jnp.clip(output.contact, 0)])
    output = dataclasses.replace(output, **own, event=event, contact=contact)
    return dataclasses.replace(carry, memory=dataclasses.replace(stored, memory=memory)), output


def check_run(system: System, scheme: Any, events: int, gradient: str | None) -> None:
    """Refuses schemes and options that runs with contacts between changing bodies, or with bounds that
    follow contacts, do not take.
    """
    check_follower(system, scheme)
    if not system.changing_contacts:
        return
    if not scheme.traits.pair_contacts:
        raise InputError(
            f"scheme {scheme.name!r} does not work with contacts between changing bodies; take "
            "schemes.moreau()"
        )
    if events:
        raise InputError(
            f"events = {events}: impacts between changing bodies are counted in traj.impacts, but not "
            "listed; leave events out"
        )
    if gradient == "saltation":
        raise InputError(f"gradient: {REFUSED_GRADIENT}")
