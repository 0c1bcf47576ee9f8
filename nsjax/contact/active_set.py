"""The part of a contact problem that acts: contacts near each other, active contacts, needed rows."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.contact.branches import Branches
from nsjax.contact.problem import ContactProblem, DelassusFactors, GivenNormals
from nsjax.core.errors import InputError
from nsjax.core.system import System
from nsjax.core.system_parts import check_follower
from nsjax.linalg import LOOP_LIMIT
from nsjax.math import taken
from nsjax.types import Array, PyTree, record

# A contact problem with all rows of every contact as one with only the rows that each contact needs.


@dataclasses.dataclass(frozen=True)
class RowChoice:
    """Contacts by the rows that they need, as numbers in the order of the problem with all rows.

    A robot with 4 feet, 24 limits of joints and 12 dry joints has 48 of 120 rows left.

    Args:
        rough: contacts with all rows.
        smooth: contacts without friction, which keep their normal.
        bounded: contacts with a given normal impulse, which keep their first tangents.
        nt: tangents of each contact.
        tangents: tangents that each of the bounded contacts keeps.
    """

    rough: tuple[int, ...]
    smooth: tuple[int, ...]
    bounded: tuple[int, ...]
    nt: int
    tangents: int = 1

    @property
    def order(self) -> np.ndarray:
        """Numbers of all contacts in the order of the smaller problem."""
        return np.array([*self.rough, *self.smooth, *self.bounded], int)

    @property
    def all(self) -> bool:
        """Whether all rows are needed."""
        return not self.smooth and not self.bounded

    def rows(self, x: Array) -> Array:
        """Entries (k, ...) of the chosen rows from those of all rows (m, ...)."""
        if self.all:
            return x
        count = len(self.order) * (1 + self.nt)
        block, more = x[:count].reshape(-1, 1 + self.nt, *x.shape[1:]), x.shape[1:]
        parts = [taken(block, np.array(self.rough, int)).reshape(-1, *more)]
        last = taken(block[:, 1 : 1 + self.tangents], np.array(self.bounded, int)).reshape(-1, *more)
        parts += [taken(block[:, 0], np.array(self.smooth, int)), last]
        return jnp.concatenate([*parts, x[count:]])

    def columns(self, x: Array) -> Array:
        """Columns (n, k) of the chosen rows from those of all rows (n, m)."""
        return x if self.all else self.rows(x.T).T

    def problem(
        self, operator: tuple[Array, Array], laws: tuple[Array, Array, GivenNormals | None], nb: int
    ) -> ContactProblem:
        """The problem of the chosen rows.

        Args:
            operator: ``G`` (k, k) and the free velocities (k,) of these rows.
            laws: friction (nc,), mask (nc,) and given normal impulses of all contacts in their order.
            nb: bilateral rows.
        """
        (delassus, free), (friction, mask, given) = operator, laws
        if not self.all:
            friction, mask = (taken(x, self.order) for x in (friction, mask))
            given = self._given(given)
        return ContactProblem(
            nc=len(self.order), nt=self.nt, nb=nb, delassus=delassus, free=free, friction=friction,
            mask=mask, given=given, smooth=len(self.smooth), bounded=len(self.bounded),
        )  # fmt: skip

    def _given(self, given: GivenNormals | None) -> GivenNormals | None:
        """Given normal impulses in the order of the smaller problem."""
        if given is None:
            return None
        order, leads = self.order, np.array(given.leads, int)
        if leads.size:
            leads = np.where(leads < 0, -1, np.argsort(order)[leads])[order]
        return GivenNormals(
            on=given.on[order], normal=taken(given.normal, order), leads=tuple(int(k) for k in leads),
            tangents=self.tangents,
        )  # fmt: skip

    def every(self, problem: ContactProblem, x: Array) -> Array:
        """Impulses of all rows from those of the smaller ``problem``."""
        if self.all:
            return x
        contacts = taken(problem.impulses(x), np.argsort(self.order))
        return jnp.concatenate([contacts.reshape(-1), problem.bilateral(x)])


def row_choice(nc: int, nt: int, smooth: np.ndarray | None, given: GivenNormals | None) -> RowChoice:
    """The rows that contacts need.

    Args:
        nc, nt: contacts, and tangents of each.
        smooth: (nc,) bool, contacts without friction whatever the parameters are; None: all rows are
            chosen.
        given: normal impulses that are given, if any.
    """
    none = np.zeros(nc, bool)
    bounded = none if given is None else np.asarray(given.on)
    if smooth is None or not nt:
        smooth = bounded = none
    smooth = smooth & ~bounded
    tangents = 1 if given is None else given.tangents
    return RowChoice(
        _row_numbers(~smooth & ~bounded), _row_numbers(smooth), _row_numbers(bounded), nt, tangents
    )


def chosen_rows(problem: ContactProblem, smooth: np.ndarray) -> tuple[ContactProblem, RowChoice]:
    """The problem with the rows that its contacts need, and their choice among all rows.

    Args:
        problem: the problem with all rows of every contact.
        smooth: (nc,) bool, contacts without friction whatever the parameters are.

    Returns:
        The problem itself, with all rows, if its operator is not an array.
    """
    g: Any = problem.delassus
    array = isinstance(g, jax.Array)
    own = row_choice(problem.nc, problem.nt, smooth if array else None, problem.given)
    if own.all:
        return problem, own
    operator = own.columns(own.rows(g)), own.rows(problem.free)
    return own.problem(operator, (problem.friction, problem.mask, problem.given), problem.nb), own


def _row_numbers(which: np.ndarray) -> tuple[int, ...]:
    """Numbers of the contacts that are true."""
    return tuple(int(k) for k in np.flatnonzero(which))


def smooth_contacts(system: System, bounded: int) -> np.ndarray:
    """Contacts (nc,) bool of `System.smooth`, which come before the ``bounded`` last ones."""
    last = system.nc - bounded
    number = np.arange(system.nc)
    return (number >= last - system.smooth) & (number < last)


# The active contacts of a problem as a smaller problem of fixed size.


CAPACITY, MANY = (8, 16), 32
"""Capacity of the smaller problem for each kind of contacts (with all rows; with a normal alone), if a
problem has up to `MANY` of the kind, and if it has more. Bodies touch the ground at few of their points."""


def places(problem: ContactProblem) -> tuple[int, int]:
    """Capacities for contacts with all rows, and for contacts with a normal alone."""
    return _room(problem.rough), _room(problem.smooth)


def _room(count: int) -> int:
    """Capacity for ``count`` contacts of a kind."""
    return min(count, CAPACITY[count > MANY])


def overflows(rough: int, smooth: int, nt: int) -> bool:
    """Whether a run begins without the solver of all rows. Either more contacts with all rows are possible
    than the capacity allows, and the solver is a large part of its program; or more contacts without
    friction are. These are mostly the limits of joints, of which one in two is active at most.
    """
    if rough <= _room(rough):
        return smooth > _room(smooth)
    return rough * (1 + nt) + smooth > LOOP_LIMIT


def crowded(rough: int, closed: Array) -> bool:
    """Whether more contacts ``closed`` (nc,) bool, ``rough`` of them with all rows, are closed than the
    capacities allow.
    """
    kinds = np.split(np.asarray(closed), [rough])
    return any(np.sum(kind) > _room(len(kind)) for kind in kinds)


def gathers(problem: ContactProblem) -> bool:
    """Whether the active contacts of a problem are gathered: it has more contacts than the capacity, and
    only bounded contacts follow the normal impulses of others, of contacts with friction.
    """
    return places(problem) != (problem.rough, problem.smooth) and not _mixed(problem)


def _mixed(problem: ContactProblem) -> bool:
    """Whether contacts with a normal row follow others, or others follow contacts without friction."""
    if problem.given is None or not problem.given.leads:
        return False
    leads, last = problem.given.leads, problem.nc - problem.bounded
    return max(leads[:last], default=-1) >= 0 or max(leads) >= problem.rough


def fits(problem: ContactProblem) -> Array:
    """Whether all active contacts fit into the capacity."""
    rough, smooth = places(problem)
    last = problem.rough + problem.smooth
    return (jnp.sum(problem.mask[: problem.rough]) <= rough) & (
        jnp.sum(problem.mask[problem.rough : last]) <= smooth
    )


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
        rough, smooth: (places, contacts) bool, one-hot: the contact of its kind in each place; None: all
            contacts in their order.
        whole: the problem whose contacts are gathered.
    """

    problem: ContactProblem
    rough: Array | None
    smooth: Array | None
    whole: ContactProblem

    @property
    def order(self) -> BoundedOrder:
        """Order of the bounded contacts."""
        return order_of(self.whole)

    def spread(self, x: Array) -> Array:
        """Rows of the smaller problem as rows of the whole one, zero elsewhere."""
        (first, second, third), few = self.problem.ends, self.problem
        rough = _spread(self.rough, x[:first].reshape(few.rough, 1 + few.nt))
        parts = [rough.reshape(-1)]
        if few.smooth:
            parts.append(_spread(self.smooth, x[first:second]))
        (free, table, back), n = self.order, few.tangents
        if not table.size:
            return jnp.concatenate([*parts, x[second:]])
        some = second + len(free) * n
        own = _spread(self.rough, x[some:third].reshape(few.rough, table.shape[1] * n))
        every = jnp.concatenate([x[second:some], own.reshape(-1)]).reshape(-1, n)
        return jnp.concatenate([*parts, taken(every, back).reshape(-1), x[third:]])

    def rows(self, x: Array) -> Array:
        """Rows of the smaller problem from those of the whole one, zero in unused places: by a sum instead
        of a gather, whose transpose would be a scatter.
        """
        first, second, third = self.whole.ends
        parts = [_picked(self.rough, x[:first].reshape(self.whole.rough, 1 + self.whole.nt)).reshape(-1)]
        if self.whole.smooth:
            parts.append(_picked(self.smooth, x[first:second]))
        if not self.order.table.size:
            return jnp.concatenate([*parts, x[second:]])
        bounded = x[second:third].reshape(-1, self.whole.tangents)
        last = _bounded(self.order, self.rough, bounded).reshape(-1)
        return jnp.concatenate([*parts, last, x[third:]])

    def contacts(self, x: Array) -> Array:
        """Entries (nc, ...) of the contacts of the smaller problem, zero in unused places."""
        first, second = self.whole.rough, self.whole.rough + self.whole.smooth
        parts = [_picked(self.rough, x[:first])]
        if self.whole.smooth:
            parts.append(_picked(self.smooth, x[first:second]))
        return jnp.concatenate([*parts, _bounded(self.order, self.rough, x[second:])])

    def branches(self, b: Branches) -> Branches:
        """Branches of the smaller problem from those of the whole one, open in unused places."""
        slip, slope, size = (self.contacts(x) for x in (b.slip, b.slope, b.size))
        return Branches(use=self.rows(b.use) > 0, slip=slip > 0, slope=slope, size=size)


def order_of(problem: ContactProblem) -> BoundedOrder:
    """Order of the bounded contacts of a smaller problem."""
    leads = problem.given.leads if problem.given is not None else ()
    return _bounded_order(leads, problem.rough, problem.bounded)


def _picked(place: Array | None, x: Array) -> Array:
    """Entries of the contact in each place, zero in unused places."""
    if place is None:
        return x
    return jnp.sum(jnp.where(place.reshape(place.shape + (1,) * (x.ndim - 1)), x[None], 0), axis=1)


def _spread(place: Array | None, x: Array) -> Array:
    """Entries of all contacts from those in the places, zero elsewhere."""
    if place is None:
        return x
    return jnp.sum(jnp.where(place.reshape(place.shape + (1,) * (x.ndim - 1)), x[:, None], 0), axis=0)


def _bounded(order: BoundedOrder, place: Array | None, x: Array) -> Array:
    """Entries of the bounded contacts of a smaller problem from those ``x`` (bounded, ...) of the whole
    one, zero where a place has fewer of them.
    """
    free, table, _ = order
    if not table.size:
        return x
    every = jnp.concatenate([x, jnp.zeros((1, *x.shape[1:]), x.dtype)])
    own = _picked(place, taken(every, table.reshape(-1)).reshape(*table.shape, *x.shape[1:]))
    return jnp.concatenate([taken(x, free).astype(own.dtype), own.reshape(-1, *x.shape[1:])])


def _places(mask: Array, size: int) -> Array | None:
    """One-hot rows (size, n) for the first true entries of ``mask`` (n,); None where all entries fit."""
    if size >= mask.shape[0]:
        return None
    order = _numbered(mask)
    return mask[None, :] & (order[None, :] == np.arange(size)[:, None])


SUMMED = 64
"""Number of entries up to which a running sum is a masked one, of at most 4,096 comparisons. That of JAX is
a reduction over windows on CPU, and from JAX 0.11 on a loop of its own on accelerators.
"""


def _numbered(mask: Array) -> Array:
    """Number (n,) of each true entry of ``mask`` (n,) among the true ones, from zero."""
    n = mask.shape[0]
    if n > SUMMED:
        return jnp.cumsum(mask) - 1
    return jnp.sum(jnp.where(np.tri(n, dtype=bool), mask[None, :], False), axis=1, dtype=int) - 1


def _contact_numbers(place: Array | None, count: int) -> Array:
    """Index of the contact in each place (places,)."""
    return jnp.arange(count) if place is None else jnp.sum(place * np.arange(count), axis=1)


def gather(problem: ContactProblem, rough: int, smooth: int) -> Compact:
    """Smaller problem of the first active contacts, as many as there are places, and of all bounded and
    bilateral rows.

    Args:
        problem: dense or `DelassusFactors`, as the smaller one is.
        rough, smooth: places for contacts with all rows, and for contacts with a normal alone.
    """
    d, (first, second, third), last = 1 + problem.nt, problem.ends, problem.rough + problem.smooth
    mask, order = problem.mask, order_of(problem)
    own = _places(mask[: problem.rough], rough), _places(mask[problem.rough : last], smooth)
    which = _contact_numbers(own[0], problem.rough), _contact_numbers(own[1], problem.smooth)
    bounded: Any = np.arange(problem.bounded)
    if order.table.size:
        bounded = _bounded(order, own[0], jnp.arange(problem.bounded))
    rows = (which[0][:, None] * d + np.arange(d)).reshape(-1)
    n = problem.tangents
    last_rows = second + (bounded[:, None] * n + np.arange(n)).reshape(-1)
    rows = jnp.concatenate([rows, first + which[1], last_rows, np.arange(third, problem.free.shape[0])])
    contact = jnp.concatenate([which[0], problem.rough + which[1], last + bounded])
    kinds = mask[: problem.rough], mask[problem.rough : last]
    here = [m if x is None else jnp.any(x, axis=1) for x, m in zip(own, kinds, strict=True)]
    active = jnp.concatenate([*here, _bounded(order, own[0], mask[last:]).astype(bool)])
    places = which[0].shape[0], which[1].shape[0]
    leads: tuple[int, ...] = ()
    if order.table.size:
        led = tuple(k for k in range(places[0]) for _ in range(order.table.shape[1]))
        leads = (-1,) * (sum(places) + len(order.free)) + led
    given = None
    if problem.given is not None:
        normal = jnp.where(active, problem.given.normal[contact], 0.0)
        on = active & jnp.asarray(problem.given.on)[contact]
        given = GivenNormals(on=on, normal=normal, leads=leads, tangents=n)
    g: Any = problem.delassus
    if isinstance(g, DelassusFactors):
        g = DelassusFactors(wt=g.wt[rows], response=g.response[:, rows])
    else:
        g = problem.matrix[rows][:, rows]
    small = ContactProblem(
        nc=contact.shape[0], nt=problem.nt, nb=problem.nb, delassus=g, free=problem.free[rows],
        friction=problem.friction[contact], mask=active, given=given, smooth=places[1],
        bounded=bounded.shape[0],
    )  # fmt: skip
    return Compact(problem=small, rough=own[0], smooth=own[1], whole=problem)


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
    if not scheme.pair_contacts:
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
