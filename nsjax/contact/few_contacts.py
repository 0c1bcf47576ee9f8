"""Steps that evaluate few contacts among many, and programs without the solver of all rows."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.contact.active_set import crowded, overflows
from nsjax.contact.bounded import by_law, by_row
from nsjax.contact.events import NEVER, Criteria, Touch, fly
from nsjax.contact.switches import ClosedPhases
from nsjax.core.errors import InputError
from nsjax.core.operators import prepared, refreshed
from nsjax.core.scheme import QUANTITIES, Carry, Output, Scheme
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

    The last ``common`` contacts are the last ones of both systems, in their order. The first laws of
    bounded rows (`System.dry_friction`; one for a row, or for two that share a disc) belong to both
    systems, too.
    The last laws follow the contacts; ``followers`` are their numbers in the system of the few contacts and
    in that of all.
    """

    common: int
    followers: tuple[int, int]

    @property
    def system(self) -> System:
        """The system of the chosen contacts: a place without a contact is never allowed to act, and
        `System.refresh` keeps the choice.
        """

    def which(self, p: PyTree) -> Array:
        """Index (few,) int, among all contacts, of the contact in each place; without the common ones."""

    def used(self, p: PyTree) -> Array:
        """Places (few,) bool with a contact."""

    def places(self, p: PyTree) -> Array:
        """Place (many,) int of each contact among the few; the number of places for one without a place."""

    def rows(self, p: PyTree) -> tuple[Array, Array, Array]:
        """``which``, ``used`` and ``places`` for the laws of bounded rows that follow contacts."""

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


def widths(few: PyTree, many: PyTree, chosen: ContactChoice, count: int) -> tuple[int, ...]:
    """Entries for a contact in each leaf, from the shapes of the leaves for the few and for ``count``, in
    which laws of bounded rows count as contacts.

    Raises:
        InputError: for a leaf whose shape does not tell the number.
    """
    more = count - chosen.system.nc + chosen.followers[1] - chosen.followers[0]
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


def narrow(chosen: ContactChoice, p: PyTree, count: int, x: Array, width: int, none: Any = 0) -> Array:
    """Array of the few contacts, with their bounded laws, from that of all ``count`` contacts with theirs,
    ``none`` in empty places.

    Args:
        width: entries of ``x`` for a contact; 0: ``x`` is not over contacts, and returned as it is.
    """
    if not width:
        return x
    many, last = (count - chosen.common) * width, x.shape[0] - chosen.followers[1] * width
    which, used = chosen.which(p), chosen.used(p)
    parts = [_few(x[:many], width, which, used, none), x[many:last]]
    if chosen.followers[1]:
        which, used, _ = chosen.rows(p)
        parts.append(_few(x[last:], width, which, used, none))
    return jnp.concatenate(parts)


def _few(x: Array, width: int, which: Array, used: Array, none: Any) -> Array:
    """Array of the few from that of many, ``width`` entries each."""
    head = x.reshape(x.shape[0] // width, width, *x.shape[1:])
    used = used.reshape(-1, *[1] * x.ndim)
    own = jnp.where(used, _at(head, which), jnp.asarray(none, x.dtype))
    return own.reshape(own.shape[0] * width, *x.shape[1:])  # an axis without entries leaves -1 open


def widen(chosen: ContactChoice, p: PyTree, x: Array, width: int, others: Any = 0) -> Array:
    """Array of all contacts from that of the few, both with or without the laws of bounded rows.

    Args:
        width: entries of ``x`` for a contact; 0: ``x`` is not over contacts, and returned as it is.
        others: values of contacts without a place; a number, or an array of all contacts.
    """
    if not width:
        return x
    system = chosen.system
    few, last = (system.nc - chosen.common) * width, x.shape[0]
    rows = bool(chosen.followers[0]) and last > system.nc * width
    last -= chosen.followers[0] * width if rows else 0
    parts = [_all(x[:few], width, chosen.places(p), others), x[few:last]]
    if rows:
        end = others[-chosen.followers[1] * width :] if jnp.ndim(others) else others
        parts.append(_all(x[last:], width, chosen.rows(p)[2], end))
    return jnp.concatenate(parts)


def widen_rows(chosen: ContactChoice, p: PyTree, x: Array) -> Array:
    """Array (laws, ...) of all laws of bounded rows from that of the few; zero without a place."""
    if not chosen.followers[0]:
        return x
    first = x.shape[0] - chosen.followers[0]
    return jnp.concatenate([x[:first], _all(x[first:], 1, chosen.rows(p)[2], 0)])


def _all(x: Array, width: int, places: Array, others: Any) -> Array:
    """Array of many from that of the few, ``width`` entries each."""
    few, many = x.shape[0] // width, places.shape[0]
    head = x.reshape(few, width, *x.shape[1:])
    here = (places < few).reshape(-1, *[1] * x.ndim)
    if jnp.ndim(others):
        others = others[: many * width].reshape(many, width, *x.shape[1:])
    own = jnp.where(here, _at(head, jnp.where(places < few, places, 0)), jnp.asarray(others, x.dtype))
    return own.reshape(own.shape[0] * width, *x.shape[1:])  # an axis without entries leaves -1 open


def _at(x: Array, places: Array) -> Array:
    """Entries of ``x`` at ``places`` along the first axis."""
    if x.shape[0] * places.shape[0] * math.prod(x.shape[1:]) <= SUMMED and x.dtype != bool:
        here = jnp.arange(x.shape[0]) == places[:, None]
        here = here.reshape(*here.shape, *[1] * (x.ndim - 1))
        return jnp.sum(jnp.where(here, x[None], 0), axis=1)
    return x.at[places].get(mode="promise_in_bounds")


SUMMED = 4096
"""Most products for which entries are taken by masked sums, whose transposes are no scatters."""


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
    chosen = system.chosen
    sizes, wide = (
        widths(few.memory, many.memory, chosen, system.nc),
        functools.partial(widen, chosen, p),
    )
    memory = _each(few.memory, sizes, wide, lambda x: _unknown(wide, x))
    return dataclasses.replace(few, memory=WholeMemory(memory=memory, widths=sizes))


def _unknown(of: Callable[[Any, int, Any], Any], touch: Touch) -> Touch:
    """`Touch` after ``of(array, width, value)`` on each array; ``value`` is that of an unknown contact."""
    fields = {f.name: getattr(touch, f.name) for f in dataclasses.fields(touch)}
    return Touch(**{name: of(x, 1, NEVER if name == "off" else 0) for name, x in fields.items()})


def narrow_to_chosen(
    system: System, p: PyTree, carry: Carry, closing: ClosedPhases | None
) -> tuple[Carry, ClosedPhases | None]:  # fmt: skip
    """Carry and closed phases of the chosen contacts alone."""
    chosen, count, whole = system.chosen, system.nc, carry.memory
    one = functools.partial(narrow, chosen, p, count)

    memory = _each(whole.memory, whole.widths, one, lambda x: _unknown(one, x))
    if closing is not None:
        closing = jax.tree.map(lambda x: one(x, 1), closing)
    return dataclasses.replace(carry, memory=memory), closing


def widen_to_all(
    criteria: Criteria, system: System, p: PyTree, before: Carry, carry: Carry, output: Output
) -> tuple[Carry, Output]:
    """Carry and output of all contacts, after a step of the chosen ones; the others are open."""
    chosen, whole = system.chosen, before.memory
    wide = functools.partial(widen, chosen, p)
    flown = iter([fly(criteria, x) for x in _leaves(whole.memory)[0] if isinstance(x, Touch)])

    def touch(x: Touch) -> Touch:
        return jax.tree.map(lambda y, others: wide(y, 1, others), x, next(flown))

    memory = _each(carry.memory, whole.widths, wide, touch)
    own = {
        name: wide(getattr(output, name), 1, jnp.inf if name == "margin" else 0)
        for name, kind in QUANTITIES.items()
        if kind.axes[:1] == ("nc",) and getattr(output, name) is not None
    }
    own |= {
        name: by_row(system, widen_rows(chosen, p, by_law(chosen.system, getattr(output, name))))
        for name, kind in QUANTITIES.items()
        if kind.axes == ("nd",) and getattr(output, name) is not None
    }
    event = jax.tree.map(lambda x: wide(x, 1) if jnp.ndim(x) else x, output.event)
    gaps = {name: getattr(output.event, name) for name in ("gap", "begun", "ended")}
    unknown = {name: wide(x, 1, jnp.inf) for name, x in gaps.items() if x is not None}
    event = dataclasses.replace(event, **unknown)
    which = jnp.concatenate([chosen.which(p), jnp.arange(system.nc - chosen.common, system.nc)])
    contact = jnp.where(output.contact < 0, -1, which[jnp.clip(output.contact, 0)])
    lost = jnp.where(chosen.overflow(p), CANDIDATES_LOST, 0)
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
