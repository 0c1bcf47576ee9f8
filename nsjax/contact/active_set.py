"""The part of a contact problem that acts: active contacts, and contacts between bodies near each other."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.contact.branches import Branches
from nsjax.contact.problem import ContactProblem, DelassusFactors
from nsjax.core.errors import InputError
from nsjax.core.row_groups import Bounded, RowGroup, RowGroups
from nsjax.core.slots import Slots
from nsjax.core.system import System
from nsjax.core.system_parts import check_follower
from nsjax.linalg import LOOP_LIMIT
from nsjax.math import taken
from nsjax.types import Array, PyTree, record

# The active contacts of a problem as a smaller problem of fixed size.


CAPACITY, MANY = (8, 16), 32
"""Capacity of the smaller problem for each kind of contacts (with all rows; with a normal alone), if a
problem has up to `MANY` of the kind, and if it has more. Bodies touch the ground at few of their points."""


def places(problem: ContactProblem) -> tuple[int, int]:
    """Capacities for contacts with all rows, and for contacts with a normal alone."""
    return _room(problem.rows.rough), _room(problem.rows.frictionless)


def _room(count: int) -> int:
    """Capacity for ``count`` contacts of a kind."""
    return min(count, CAPACITY[count > MANY])


def overflows(rough: int, frictionless: int, nt: int) -> bool:
    """Whether a run begins without the solver of all rows. Either more contacts with all rows are possible
    than the capacity allows, and the solver is a large part of its program; or more contacts without
    friction are. These are mostly the limits of joints, of which one in two is active at most.
    """
    if rough <= _room(rough):
        return frictionless > _room(frictionless)
    return rough * (1 + nt) + frictionless > LOOP_LIMIT


def crowded(rough: int, closed: Array) -> bool:
    """Whether more contacts ``closed`` (nc,) bool, ``rough`` of them with all rows, are closed than the
    capacities allow.
    """
    kinds = np.split(np.asarray(closed), [rough])
    return any(np.sum(kind) > _room(len(kind)) for kind in kinds)


def gathers(problem: ContactProblem) -> bool:
    """Whether the active contacts of a problem are gathered: it has more contacts than the capacity."""
    rows = problem.rows
    # bounded forces follow contacts with friction alone, whose place is known
    return places(problem) != (rows.rough, rows.frictionless) and max(rows.leads, default=-1) < rows.rough


def fits(problem: ContactProblem) -> Array:
    """Whether all active contacts fit into the capacity."""
    (rough, frictionless), first = places(problem), problem.rows.rough
    last = first + problem.rows.frictionless
    return (jnp.sum(problem.mask[:first]) <= rough) & (jnp.sum(problem.mask[first:last]) <= frictionless)


class BoundedOrder(NamedTuple):
    """Order of the bounded contacts of a smaller problem: those that follow no contact, then those of each
    place. Numbers count from the first bounded contact.

    Args:
        free: bounded contacts that follow no contact.
        table: (rough, most) bounded contacts that follow each contact with friction; their number where
            there are fewer.
        back: (bounded,) place of each bounded contact in the concatenation of ``free`` and ``table``.
    """

    free: np.ndarray
    table: np.ndarray
    back: np.ndarray


@functools.lru_cache(maxsize=256)
def _bounded_order(leads: tuple[int, ...], rough: int, bounded: int) -> BoundedOrder:
    """The order of bounded contacts whose contacts, or -1, are the last entries of ``leads``."""
    own = np.array(leads[len(leads) - bounded :]) if leads else np.full(bounded, -1)
    free, groups = np.flatnonzero(own < 0), [np.flatnonzero(own == k) for k in range(rough)]
    most = max((len(x) for x in groups), default=0)
    table, back = np.full((rough, most), bounded), np.zeros(bounded, int)
    back[free] = np.arange(len(free))
    for k, x in enumerate(groups):
        table[k, : len(x)] = x
        back[x] = len(free) + k * most + np.arange(len(x))
    return BoundedOrder(free, table, back)


@record()
class Compact:
    """Smaller problem of gathered contacts, with the maps of its rows from and to the whole problem.

    Args:
        problem: the gathered contacts, one in each place; unused places are masked out.
        rough, frictionless: places of the contacts with all rows, and of those with a normal alone.
        whole: the problem whose contacts are gathered.
    """

    problem: ContactProblem
    rough: Slots
    frictionless: Slots
    whole: ContactProblem

    @property
    def order(self) -> BoundedOrder:
        """Order of the bounded contacts."""
        return order_of(self.whole)

    def spread(self, x: Array) -> Array:
        """Rows of the smaller problem as rows of the whole one, zero elsewhere."""
        few = self.problem.rows
        first, second, third = few.ends
        parts = [self.rough.put(x[:first].reshape(few.rough, 1 + few.nt)).reshape(-1)]
        if few.frictionless:
            parts.append(self.frictionless.put(x[first:second]))
        (free, table, back), n = self.order, few.tangents
        if not table.size:
            return jnp.concatenate([*parts, x[second:]])
        some = second + len(free) * n
        own = self.rough.put(x[some:third].reshape(few.rough, table.shape[1] * n))
        every = jnp.concatenate([x[second:some], own.reshape(-1)]).reshape(-1, n)
        return jnp.concatenate([*parts, taken(every, back).reshape(-1), x[third:]])

    def rows(self, x: Array) -> Array:
        """Rows of the smaller problem from those of the whole one, zero in unused places."""
        whole = self.whole.rows
        first, second, third = whole.ends
        parts = [self.rough.take(x[:first].reshape(whole.rough, 1 + whole.nt)).reshape(-1)]
        if whole.frictionless:
            parts.append(self.frictionless.take(x[first:second]))
        if not self.order.table.size:
            return jnp.concatenate([*parts, x[second:]])
        bounded = x[second:third].reshape(-1, whole.tangents)
        last = _bounded(self.order, self.rough, bounded).reshape(-1)
        return jnp.concatenate([*parts, last, x[third:]])

    def contacts(self, x: Array) -> Array:
        """Entries (nc, ...) of the contacts of the smaller problem, zero in unused places."""
        first = self.whole.rows.rough
        second = first + self.whole.rows.frictionless
        parts = [self.rough.take(x[:first])]
        if self.whole.rows.frictionless:
            parts.append(self.frictionless.take(x[first:second]))
        return jnp.concatenate([*parts, _bounded(self.order, self.rough, x[second:])])

    def branches(self, b: Branches) -> Branches:
        """Branches of the smaller problem from those of the whole one, open in unused places."""
        slip, slope, size = (self.contacts(x) for x in (b.slip, b.slope, b.size))
        return Branches(use=self.rows(b.use) > 0, slip=slip > 0, slope=slope, size=size, own=b.own)


def order_of(problem: ContactProblem) -> BoundedOrder:
    """Order of the bounded contacts of a smaller problem."""
    rows = problem.rows
    return _bounded_order(rows.leads, rows.rough, rows.bounded)


def _bounded(order: BoundedOrder, slots: Slots, x: Array) -> Array:
    """Entries of the bounded contacts of a smaller problem from those ``x`` (bounded, ...) of the whole
    one, zero where a place has fewer of them.
    """
    free, table, _ = order
    if not table.size:
        return x
    every = jnp.concatenate([x, jnp.zeros((1, *x.shape[1:]), x.dtype)])
    own = slots.take(taken(every, table.reshape(-1)).reshape(*table.shape, *x.shape[1:]))
    return jnp.concatenate([taken(x, free), own.reshape(-1, *x.shape[1:])])


def gather(problem: ContactProblem, rough: int, frictionless: int) -> Compact:
    """Smaller problem of the first active contacts, as many as there are places, and of all bounded and
    bilateral rows.

    Args:
        problem: dense or `DelassusFactors`, as the smaller one is.
        rough, frictionless: places for contacts with all rows, and for contacts with a normal alone.
    """
    groups, mask, order = problem.rows, problem.mask, order_of(problem)
    d, n, (first, second, third) = 1 + groups.nt, groups.tangents, groups.ends
    last = groups.rough + groups.frictionless
    own = (
        Slots.first(mask[: groups.rough], rough, sums=True),
        Slots.first(mask[groups.rough : last], frictionless, sums=True),
    )
    bounded: Any = np.arange(groups.bounded)
    if order.table.size:
        bounded = _bounded(order, own[0], jnp.arange(groups.bounded))
    rows = (own[0].which[:, None] * d + np.arange(d)).reshape(-1)
    last_rows = second + (bounded[:, None] * n + np.arange(n)).reshape(-1)
    rows = jnp.concatenate([rows, first + own[1].which, last_rows, np.arange(third, problem.free.shape[0])])
    contact = jnp.concatenate([own[0].which, groups.rough + own[1].which, last + bounded])
    active = jnp.concatenate([own[0].used, own[1].used, _bounded(order, own[0], mask[last:])])
    places = own[0].places, own[1].places
    leads: tuple[int, ...] = ()
    if order.table.size:
        led = tuple(k for k in range(places[0]) for _ in range(order.table.shape[1]))
        leads = (-1,) * len(order.free) + led
    given = None
    if problem.given is not None:
        normal = jnp.where(active, problem.given.normal[contact], 0.0)
        given = dataclasses.replace(problem.given, normal=normal)
    g: Any = problem.delassus
    if isinstance(g, DelassusFactors):
        g = DelassusFactors(wt=g.wt[rows], response=g.response[:, rows])
    else:
        g = problem.matrix[rows][:, rows]
    law = RowGroup(Bounded(n, leads, groups.own), bounded.shape[0])
    small = ContactProblem(
        rows=RowGroups.of(sum(places), groups.nt, groups.nb, places[1], law), delassus=g,
        free=problem.free[rows], friction=problem.friction[contact], mask=active, given=given,
    )  # fmt: skip
    return Compact(problem=small, rough=own[0], frictionless=own[1], whole=problem)


# Contacts between two bodies each, where the bodies change from step to step.
#
# A contact has a slot only as long as its bodies are near each other. The pair of bodies is its identity,
# by which the memory of contacts is handed from slot to slot.


class Pairs(Protocol):
    """Functions of refreshed parameters ``p`` (`System.refresh`); frozen and hashable."""

    def bodies(self, p: PyTree) -> Array:
        """(nc, 2) int, the two bodies of every slot; the number of bodies is the index of the ground."""

    def directions(self, t: Array, q: Array, p: PyTree) -> Array:
        """(nc, 2, 1 + nt, block) of gap rate and slips over the velocities of both bodies."""

    def identity(self, p: PyTree) -> Array:
        """(nc,) int, one number for each pair of bodies, ascending; empty slots come last."""

    def overflow(self, p: PyTree) -> Array:
        """() bool, whether there were more candidates than slots."""

    def near_counts(self, q: Array, p: PyTree) -> dict[str, Array]:
        """Capacity () that would hold all pairs near at a position, by the name of what has it."""


@record()
class PairMemory:
    """Memory of a scheme about contacts, and the identities (nc,) of the pairs in its slots."""

    memory: PyTree
    pairs: Array


REFUSED_GRADIENT = (
    "runs with pairs (contacts of many bodies) have no derivatives; take differences of runs, or a system "
    "without pairs"
)
"""Error sentence for runs with pairs that are differentiated."""


def check_run(system: System, scheme: Any, events: int, gradient: str | None) -> None:
    """Refuses schemes and options that runs with pairs, or with bounds that follow contacts, do not take.

    Raises:
        InputError: names the scheme or the option.
    """
    check_follower(system, scheme)
    if system.pairs is None:
        return
    if not scheme.traits.pair_contacts:
        raise InputError(
            f"scheme {scheme.name!r} does not work with pairs (contacts of many bodies); take "
            "schemes.moreau()"
        )
    if events:
        raise InputError(
            f"events = {events}: with pairs impacts are counted in traj.impacts, but not listed; leave "
            "events out"
        )
    if gradient == "saltation":
        raise InputError(f"gradient: {REFUSED_GRADIENT}")


def handed_on(old: Array, new: Array, values: PyTree, fresh: PyTree) -> PyTree:
    """Values (nc, ...) of slots in the order of the pairs ``new``, from their order ``old``; ``fresh`` for
    pairs that had no slot.

    Args:
        old, new: (nc,) int, ascending, empty slots with the largest numbers.
    """
    place = jnp.clip(jnp.searchsorted(old, new), 0, old.shape[0] - 1)
    known = old[place] == new

    def one(x: Array, none: Array) -> Array:
        return jnp.where(known.reshape(-1, *[1] * (x.ndim - 1)), x[place], none)

    return jax.tree.map(one, values, fresh)


def rows_handed_on(system: System, old: Array, new: Array, tally: Mapping[str, Array], fresh: Any) -> Any:
    """Quantities accumulated since the last saved row, in the order of the pairs ``new``; those of pairs
    that are no longer candidates are dropped.
    """
    of_contacts = {k: x for k, x in tally.items() if x.ndim and x.shape[0] == system.nc}
    moved = handed_on(old, new, of_contacts, {k: fresh[k] for k in of_contacts})
    return {**tally, **moved}
