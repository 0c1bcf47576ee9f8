"""The part of a contact problem that acts: few of many contacts, as a smaller problem of fixed size."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.contact.branches import Branches
from nsjax.contact.problem import ContactProblem, DelassusFactors
from nsjax.core.operators import prepared, refreshed
from nsjax.core.row_groups import Bounded, RowGroup, RowGroups
from nsjax.core.scheme import Scheme
from nsjax.core.slots import Slots
from nsjax.core.system import State, System, step_system
from nsjax.jaxtools.control_flow import tree_shapes
from nsjax.jaxtools.owned import kept
from nsjax.jaxtools.programs import equations
from nsjax.linalg import LOOP_LIMIT
from nsjax.math import taken
from nsjax.types import Array, PyTree, record

CAPACITY, MANY = (8, 16), 32
"""Capacity for each kind of contacts (with all rows; a normal alone), if there are up to `MANY` of it."""


def capacities(problem: ContactProblem) -> list[tuple[int, int]]:
    """Capacities of the smaller problems, ascending: contacts with all rows, with a normal alone."""
    rough, frictionless = problem.rows.rough, problem.rows.frictionless
    found = [(_room(rough), _room(frictionless))]
    # Ratio of a capacity to the one before it: a tower of ten boxes stands on 40 of 440 contacts. Each adds
    # a solver to the program, and twice as many rows take eight times as long to eliminate; so a capacity
    # beyond the first is at most half of all.
    wider = 3
    while 0 < 2 * wider * found[-1][0] <= rough:
        found.append((wider * found[-1][0], min(wider * found[-1][1], frictionless)))
    return found


def _room(count: int) -> int:
    """First capacity for ``count`` contacts of a kind."""
    return min(count, CAPACITY[count > MANY])


def overflows(rough: int, frictionless: int, nt: int) -> bool:
    """Whether a run begins without the solver of all rows: more contacts with all rows are possible than
    the capacity allows, and the solver is a large part of its program; or more contacts without friction
    are, mostly limits of joints, of which one in two is active at most.
    """
    if rough <= _room(rough):
        return frictionless > _room(frictionless)
    return rough * (1 + nt) + frictionless > LOOP_LIMIT


def crowded(rough: int, closed: Array) -> bool:
    """Whether more contacts ``closed`` (nc,), ``rough`` of them with all rows, are closed than places."""
    kinds = np.split(np.asarray(closed), [rough])
    return any(np.sum(kind) > _room(len(kind)) for kind in kinds)


def gathers(problem: ContactProblem) -> bool:
    """Whether the active contacts of a problem are gathered: it has more than the smallest capacity."""
    rows, (first, *_) = problem.rows, capacities(problem)
    # bounded forces follow contacts with friction alone, whose place is known
    return first != (rows.rough, rows.frictionless) and max(rows.leads, default=-1) < rows.rough


def fits(problem: ContactProblem, capacity: tuple[int, int]) -> Array:
    """Whether all active contacts fit into a capacity."""
    (rough, frictionless), first = capacity, problem.rows.rough
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
        # forces that follow a contact move with its place
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
    """Entries of the bounded contacts of a smaller problem from those of the whole one; zero where none."""
    free, table, _ = order
    if not table.size:
        return x
    every = jnp.concatenate([x, jnp.zeros((1, *x.shape[1:]), x.dtype)])
    own = slots.take(taken(every, table.reshape(-1)).reshape(*table.shape, *x.shape[1:]))
    return jnp.concatenate([taken(x, free), own.reshape(-1, *x.shape[1:])])


def gather(problem: ContactProblem, rough: int, frictionless: int) -> Compact:
    """Smaller problem of the first active contacts, as many as there are places for contacts with all rows
    (``rough``) and with a normal alone (``frictionless``), and of all bounded and bilateral rows.
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
    # law by law, as in the whole problem: rows of rough contacts, normals, bounded and bilateral rows
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


# Programs without the solver of all rows, for runs whose active contacts fit into the capacity.
#
# A step gathers its active contacts in a few places. If there are more, all rows are solved together. Above
# `nsjax.linalg.ROW_LIMIT` rows that takes a library's factorisation, which is called in few steps or in
# none, and whose presence alone keeps a time loop from being one kernel. Up to this number its loops are in
# the kernel (`nsjax.contact.branches`) and take time to compile. Joint limits alone hardly are more than
# their capacity: a joint is at one of its two at most.
#
# A run outside transformations therefore begins with a program without that solver. If a step fails in
# it, the steps since the last call are computed again, as are all further ones, by the whole program,
# which is compiled then.


LARGEST_GAPS = 1_500
"""Equations of the gaps of a step up to which it may become one kernel; a humanoid has more."""


def without_overflow(
    system: System, scheme: Scheme, params: PyTree, state: State, closed: Any
) -> Scheme | None:  # fmt: skip
    """The scheme whose solver takes at most as many active contacts as there are places; None where its
    program would not be faster, would compile for long, or would fail at once. ``state``: at its start;
    ``closed``: contacts (nc,) bool that touch at its start.
    """
    if getattr(scheme.options, "few", None) is not False or jax.default_backend() != "cpu":
        return None
    step = step_system(system)
    rough = step.nc - step.frictionless
    if step.changing_contacts or step.islands or not overflows(rough, step.frictionless, step.nt):
        return None
    if crowded(np.shape(closed)[0] - system.frictionless, closed):
        return None
    if _gap_equations(system, *tree_shapes((params, state))) > LARGEST_GAPS:
        return None
    return dataclasses.replace(scheme, options=dataclasses.replace(scheme.options, few=True))


@kept
def _gap_equations(system: System, structure: Any, leaves: tuple[tuple[Any, Any], ...]) -> int:
    """Equations of the gaps that a step evaluates, and of what is refreshed for them."""
    params, state = jax.tree.unflatten(structure, [jax.ShapeDtypeStruct(*x) for x in leaves])

    def gaps(params: PyTree, state: State) -> Any:
        p = refreshed(system, state.t, state.q, prepared(system, params))
        return step_system(system).gap(state.t, state.q, p)

    return equations(jax.make_jaxpr(gaps)(params, state))
