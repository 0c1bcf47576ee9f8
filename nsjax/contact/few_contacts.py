"""Steps that evaluate few contacts among many, and programs without the solver of all rows."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.contact.active_set import crowded, overflows
from nsjax.contact.bounded import by_law, by_row
from nsjax.contact.events import NEVER, Touch, criteria_of, fly
from nsjax.contact.switches import ClosedPhases
from nsjax.core.errors import InputError
from nsjax.core.operators import prepared, refreshed
from nsjax.core.scheme import QUANTITIES, Carry, Output, Scheme
from nsjax.core.slots import ContactSlots
from nsjax.core.step import Step
from nsjax.core.system import State, System
from nsjax.jaxtools.control_flow import tree_shapes
from nsjax.jaxtools.owned import kept
from nsjax.jaxtools.programs import equations
from nsjax.status import CANDIDATES_LOST
from nsjax.types import Array, PyTree, record

# Choice of the few contacts that a step evaluates, among many.
#
# A system with `System.chosen` has all of its contacts in everything that a user sees, and in the memory
# of a run. A step sees the few that `System.refresh` has chosen at its start; the others are open, and
# none of their functions is evaluated.


class ContactChoice(Protocol):
    """The few chosen contacts of a step; frozen and hashable. Functions take refreshed parameters ``p``.

    The last contacts of both systems may be common to them, in their order. The first laws of bounded rows
    (`System.dry_friction`; one for a row, or for two that share a disc) belong to both systems, too; the
    last laws follow the contacts.
    """

    @property
    def system(self) -> System:
        """The system of the chosen contacts: a place without a contact is never allowed to act, and
        `System.refresh` keeps the choice.
        """

    def slots(self, p: PyTree) -> ContactSlots:
        """Places of the contacts and of the laws that follow them."""

    def near_counts(self, p: PyTree) -> dict[str, Array]:
        """Largest number () of near pairs of two kinds of shapes, by the name of the group."""

    def overflow(self, p: PyTree) -> Array:
        """() bool, whether more contacts were near than there are places."""


@record(static=("widths",))
class WholeMemory:
    """Memory of a scheme in terms of all contacts.

    Args:
        memory: pytree whose arrays over contacts hold all of them.
        widths: entries for a contact along the first axis, leaf by leaf; 0: an array that is not over
            contacts.
    """

    memory: PyTree
    widths: tuple[int, ...]


def widths(few: PyTree, many: PyTree, more: int) -> tuple[int, ...]:
    """Entries for a contact in each leaf, from the shapes of the leaves for the few and for ``more``
    contacts, in which laws of bounded rows count as contacts.

    Raises:
        InputError: for a leaf whose shape does not tell the number.
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


# A step on few chosen contacts (`nsjax.contact.few_contacts`), and its results in terms of all contacts.


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


def begin_with_all(system: System, p: PyTree, few: Carry, many: Carry) -> Carry:
    """The carry at the start of a run, with a memory of all contacts.

    Args:
        few: carry of the chosen contacts.
        many: shapes of the carry of all contacts.
    """
    slots = system.chosen.slots(p)
    sizes = widths(few.memory, many.memory, slots.dropped)
    memory = _each(few.memory, sizes, slots.put, lambda x: _unknown(slots.put, x))
    return dataclasses.replace(few, memory=WholeMemory(memory=memory, widths=sizes))


def _unknown(of: Callable[[Any, int, Any], Any], touch: Touch) -> Touch:
    """`Touch` after ``of(array, width, value)`` on each array; ``value`` is that of an unknown contact."""
    fields = {f.name: getattr(touch, f.name) for f in dataclasses.fields(touch)}
    return Touch(**{name: of(x, 1, NEVER if name == "off" else 0) for name, x in fields.items()})


def narrow_to_chosen(
    slots: ContactSlots, carry: Carry, closing: ClosedPhases | None
) -> tuple[Carry, ClosedPhases | None]:  # fmt: skip
    """Carry and closed phases of the chosen contacts alone."""
    whole = carry.memory
    memory = _each(whole.memory, whole.widths, slots.take, lambda x: _unknown(slots.take, x))
    if closing is not None:
        closing = jax.tree.map(slots.take, closing)
    return dataclasses.replace(carry, memory=memory), closing


def widen_to_all(
    system: System, step: Step, slots: ContactSlots, carry: Carry, output: Output
) -> tuple[Carry, Output]:
    """Carry and output of all contacts, after a step of the chosen ones; the others are open.

    Args:
        system: of all contacts.
        step: the step, from the carry of all contacts.
        slots: places of the chosen ones.
        carry, output: after the step of the chosen ones.
    """
    chosen, whole, criteria = system.chosen, step.carry.memory, criteria_of(step.scheme)
    flown = iter([fly(criteria, x) for x in _leaves(whole.memory)[0] if isinstance(x, Touch)])

    def touch(x: Touch) -> Touch:
        return jax.tree.map(lambda y, others: slots.put(y, 1, others), x, next(flown))

    memory = _each(carry.memory, whole.widths, slots.put, touch)
    own = {
        name: slots.put(getattr(output, name), 1, jnp.inf if name == "margin" else 0)
        for name, kind in QUANTITIES.items()
        if kind.axes[:1] == ("nc",) and getattr(output, name) is not None
    }
    own |= {
        name: by_row(system, slots.put_laws(by_law(chosen.system, getattr(output, name))))
        for name, kind in QUANTITIES.items()
        if kind.axes == ("nd",) and getattr(output, name) is not None
    }
    event = jax.tree.map(lambda x: slots.put(x) if jnp.ndim(x) else x, output.event)
    gaps = {name: getattr(output.event, name) for name in ("gap", "begun", "ended")}
    unknown = {name: slots.put(x, 1, jnp.inf) for name, x in gaps.items() if x is not None}
    event = dataclasses.replace(event, **unknown)
    contact = jnp.where(output.contact < 0, -1, slots.which[jnp.clip(output.contact, 0)])
    lost = jnp.where(chosen.overflow(step.params), CANDIDATES_LOST, 0)
    output = dataclasses.replace(
        output, **own, event=event, contact=contact, status=output.status | lost
    )  # fmt: skip
    return dataclasses.replace(carry, memory=WholeMemory(memory=memory, widths=whole.widths)), output


# Programs without the solver of all rows, for runs whose active contacts fit into the capacity.
#
# A step gathers its active contacts in a few places (`nsjax.contact.active_set`). If there are more, all
# rows are solved together. Above `nsjax.linalg.ROW_LIMIT` rows that takes a library's factorisation,
# which is called in few steps or in none, and whose presence alone keeps a time loop from being one
# kernel. Up to this number its loops are in the kernel (`nsjax.contact.branches`) and take time to
# compile. By Moreau's rule, CPU microseconds a step and CPU seconds to compile with the library, with
# these loops, and without either: a planar hopper of seven bodies with 125 rows 113 and 8, 41 and 13, 41
# and 11; a cheetah with 231 rows 101 and 10, 52 and 18; three boxes with 144 rows 135 and 11, 50 and 22,
# 50 and 18.
#
# Joint limits alone can be more than their capacity, but hardly are: a joint is at one of its two at
# most. Without the solver of all rows an ant (16 limits) compiles in 8.5 CPU seconds in place of 10.1, a
# go1 (24) in 12.0 in place of 15.0, a humanoid (34) in 21 in place of 25, with steps of the same length.
#
# A run outside transformations therefore begins with a program without that solver. If a step fails in
# it, the steps since the last call are computed again, as are all further ones, by the whole program,
# which is compiled then.


LARGEST_GAPS = 1_500
"""Equations of the gaps of a step up to which it may become one kernel, whose compilation takes time that
grows with its square. Gaps of the hopper and cheetah above have 741 and 1,183. Those of a humanoid with 413
contacts and of a finger with cylinders, 2,544 and 5,065, belong to steps of 47,000 and 52,000 equations:
the finger compiles in some 50 CPU seconds in pieces, and as one kernel not in four minutes.
"""


def without_overflow(
    system: System, scheme: Scheme, params: PyTree, state: State, closed: Any
) -> Scheme | None:  # fmt: skip
    """The scheme whose solver takes at most as many active contacts as there are places; None where its
    program would not be faster, would compile for long, or would fail at once.

    Args:
        system: of the run.
        scheme: of the run.
        params: of the run.
        state: at its start.
        closed: contacts (nc,) bool that touch at its start.
    """
    if getattr(scheme.options, "few", None) is not False or jax.default_backend() != "cpu":
        return None
    step = _of_step(system)
    rough = step.nc - step.frictionless
    if step.pairs is not None or step.islands or not overflows(rough, step.frictionless, step.nt):
        return None
    if crowded(np.shape(closed)[0] - system.frictionless, closed):
        return None
    if _gap_equations(system, *tree_shapes((params, state))) > LARGEST_GAPS:
        return None
    return dataclasses.replace(scheme, options=dataclasses.replace(scheme.options, few=True))


def _of_step(system: System) -> System:
    """The system that a step sees."""
    return system if system.chosen is None else system.chosen.system


@kept
def _gap_equations(system: System, structure: Any, leaves: tuple[tuple[Any, Any], ...]) -> int:
    """Equations of the gaps that a step evaluates, and of what is refreshed for them."""
    params, state = jax.tree.unflatten(structure, [jax.ShapeDtypeStruct(*x) for x in leaves])

    def gaps(params: PyTree, state: State) -> Any:
        p = refreshed(system, state.t, state.q, prepared(system, params))
        return _of_step(system).gap(state.t, state.q, p)

    return equations(jax.make_jaxpr(gaps)(params, state))
