"""Rows of contacts and constraints by their laws: groups at fixed offsets, one after the other.

A contact with friction has a row for its normal and one for each tangent; a frictionless one, such as a
limit of a joint, has its normal alone; a bounded force (dry friction) has tangents alone; a bilateral
constraint has one row. All rows of a step are those of the groups in this order, without empty ones.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.core.slots import SUMMED
from nsjax.linalg.blocks import every
from nsjax.types import Array, PyTree, record


@dataclasses.dataclass(frozen=True)
class Coulomb:
    """Contacts ``0 <= u_N _|_ x_N >= 0`` with friction in a disc of ``mu x_N``: normal, tangents."""

    tangents: int

    @property
    def columns(self) -> tuple[int, int]:
        """First and end of the entries of a contact (normal, tangents) that have rows."""
        return 0, 1 + self.tangents


@dataclasses.dataclass(frozen=True)
class Unilateral:
    """Contacts with ``0 <= u_N _|_ x_N >= 0`` alone."""

    columns = 0, 1


class RateLaw(Protocol):
    """A set-valued law of single rows, between a force and the rate that it opposes; a frozen, hashable
    record. `nsjax.System.dry_friction_law` takes it.

    Example:
        A clutch that turns freely in one sense, ``0 <= u _|_ x >= 0``:

        >>> import dataclasses
        >>> import jax.numpy as jnp
        >>> @dataclasses.dataclass(frozen=True)
        ... class OneWay:
        ...     def residual(self, x, u, r, numbers, duration):
        ...         return x - jnp.maximum(x - r * u, 0.0)
        >>> OneWay().residual(jnp.array([2.0, 0.0]), jnp.array([0.0, 3.0]), 0.5, None, 1.0).tolist()
        [0.0, 0.0]
    """

    def residual(self, x: Array, u: Array, r: Array, numbers: PyTree, duration: Array | float) -> Array:
        """Zero exactly where impulses and rates fulfil the law, entry by entry; falls with neither. In the
        units of the impulses.

        Args:
            x: (nd,) impulses of a time ``duration`` [N s], or forces, of a duration of one [N].
            u: (nd,) rates at its end.
            r: (nd,) impulse that changes a rate by one, any positive number for the law.
            numbers: result of `nsjax.System.dry_friction_bound`.
            duration: zero in an impact.

        Limits: derivatives have the slopes at the answer. Where a force is at a kink of its law and another
        one holds the same motion, rounding decides the side; bounds without a law of their own have a rule
        for this (`nsjax.contact.branches`).
        """


@dataclasses.dataclass(frozen=True)
class Bounded:
    """Forces of given bounds, ``|x_T| <= bound``, which always act: friction whose normal impulse is given.

    Args:
        tangents: 1, or 2 that share a disc.
        leads: for each of them, the number of the contact whose normal impulse it shares; -1: the impulse
            is given; (): all are given.
        own: another law of single rows in place of bounds, a `RateLaw`.
        copies: equal sets of forces, one after the other: those of several stages.
    """

    tangents: int = 1
    leads: tuple[int, ...] = ()
    own: Any = None
    copies: int = 1

    @property
    def columns(self) -> tuple[int, int]:
        """First and end of the entries of a contact (normal, tangents) that have rows."""
        return 1, 1 + self.tangents


@dataclasses.dataclass(frozen=True)
class RowGroup:
    """``count`` contacts, or forces like contacts, of one law."""

    law: Any
    count: int

    @property
    def width(self) -> int:
        """Rows of each."""
        first, end = self.law.columns
        return int(end - first)

    @property
    def rows(self) -> int:
        """Rows of all."""
        return self.count * self.width


@record()
class GivenForces:
    """Numbers of the bounded forces of a problem. ``normal``: (nc,) normal impulses [N s], zero for
    contacts; ``numbers``, ``duration``: of a `RateLaw`, see there.
    """

    normal: Array
    numbers: PyTree = None
    duration: Array | float = 0.0


@dataclasses.dataclass(frozen=True)
class RowGroups:
    """All rows of a problem: `Coulomb` contacts, `Unilateral` ones, `Bounded` forces, constraints.

    Args:
        nt: tangents of the arrays (nc, 1 + nt) in which contacts are reported.
        groups: of the contacts, in this order, those without members left out.
        nb: number of bilateral rows, the last ones.

    Example:
        >>> import jax.numpy as jnp
        >>> from nsjax.core.row_groups import RowGroups
        >>> rows = RowGroups.of(nc=2, nt=1, nb=1, frictionless=1)
        >>> rows.contacts(jnp.array([1.0, 2.0, 3.0, 4.0])).tolist()
        [[1.0, 2.0], [3.0, 0.0]]
    """

    nt: int
    groups: tuple[RowGroup, ...] = ()
    nb: int = 0

    @classmethod
    def of(
        cls, nc: int, nt: int, nb: int = 0, frictionless: int = 0, bounded: RowGroup | None = None
    ) -> RowGroups:
        """Rows of ``nc`` contacts, the last ``frictionless``, and ``bounded`` forces after them."""
        made = RowGroup(Coulomb(nt), nc - frictionless), RowGroup(Unilateral(), frictionless), bounded
        return cls(nt, tuple(g for g in made if g is not None and g.count), nb)

    def _counted(self, law: type) -> int:
        return sum(g.count for g in self.groups if isinstance(g.law, law))

    @functools.cached_property
    def nc(self) -> int:
        """Contacts and bounded forces."""
        return sum(g.count for g in self.groups)

    @functools.cached_property
    def rough(self) -> int:
        """Contacts with friction, the first ones."""
        return self._counted(Coulomb)

    @functools.cached_property
    def frictionless(self) -> int:
        """Contacts without friction, the next ones."""
        return self._counted(Unilateral)

    @functools.cached_property
    def bounded(self) -> int:
        """Bounded forces, the last ones."""
        return self._counted(Bounded)

    @functools.cached_property
    def given(self) -> np.ndarray:
        """(nc,) bool, whether the normal impulse is given: that of the bounded forces."""
        return np.arange(self.nc) >= self.nc - self.bounded

    @functools.cached_property
    def _bounded_law(self) -> Bounded:
        return next((g.law for g in self.groups if isinstance(g.law, Bounded)), Bounded())

    @property
    def own(self) -> Any:
        """`RateLaw` of the bounded forces; None: they have bounds."""
        return self._bounded_law.own

    def own_residual(self, given: GivenForces, x: Array, u: Array, r: Array) -> Array:
        """Residual (k,) of the `RateLaw` of all forces, from their impulses, rates and scales (k,)."""

        def each(x: Array, u: Array, r: Array) -> Array:
            return self.own.residual(x, u, r, given.numbers, given.duration)

        copies = self._bounded_law.copies
        if copies == 1:
            return each(x, u, r)
        return jax.vmap(each)(*(y.reshape(copies, -1) for y in (x, u, r))).reshape(-1)

    @property
    def tangents(self) -> int:
        """Tangents of each bounded force."""
        return self._bounded_law.tangents

    @functools.cached_property
    def leads(self) -> tuple[int, ...]:
        """For every contact, the number of that whose normal impulse it shares, or -1; (): none does."""
        own = self._bounded_law.leads
        return (-1,) * (self.nc - self.bounded) + own if own else ()

    @functools.cached_property
    def ends(self) -> tuple[int, int, int]:
        """Ends of the rows of contacts with friction, of those without, and of bounded forces."""
        first = self.rough * (1 + self.nt)
        return first, first + self.frictionless, first + self.frictionless + self.bounded * self.tangents

    @property
    def count(self) -> int:
        """Number of all rows."""
        return self.ends[2] + self.nb

    def with_constraints(self, nb: int) -> RowGroups:
        """The same contacts with another number of bilateral rows."""
        return dataclasses.replace(self, nb=nb)

    def without_forces(self) -> RowGroups:
        """The contacts alone."""
        return RowGroups(self.nt, tuple(g for g in self.groups if not isinstance(g.law, Bounded)))

    def without_friction(self) -> RowGroups:
        """All contacts with a normal row alone, as on position level."""
        return RowGroups.of(self.nc, 0, self.nb)

    def contacts(self, x: Any) -> Array:
        """Entries (nc, 1 + nt, ...) of rows (count, ...), zero for rows that are not there."""
        return self._blocks(x, 0, 1 + self.nt)

    def normals(self, x: Any) -> Array:
        """Entries (nc, ...) of the normal rows, zero for bounded forces."""
        return self._blocks(x, 0, 1)[:, 0]

    def normals_of(self, a: Any, columns: bool = False) -> Any:
        """`normals` of the rows (or ``columns``) of a matrix: an array, or contacts that are all alike."""
        if hasattr(a, "values"):
            return every(a, self.ends[2], 1 + self.nt, columns=columns)
        return self.normals(a.T).T if columns else self.normals(a)

    def tangential(self, x: Any) -> Array:
        """Entries (nc, nt, ...) of the tangent rows, zero for frictionless contacts."""
        return self._blocks(x, 1, 1 + self.nt)

    def _blocks(self, x: Any, first: int, end: int) -> Array:
        """Entries ``first`` to ``end`` of each contact."""
        parts, row, more = [], 0, x.shape[1:]
        for g in self.groups:
            block = x[row : row + g.rows].reshape(g.count, g.width, *more)
            (own, last), row = g.law.columns, row + g.rows
            here = max(own, first), min(last, end)
            if here[0] >= here[1]:
                parts.append(jnp.zeros((g.count, end - first, *more), x.dtype))
                continue
            if here != (own, last):
                block = block[:, here[0] - own : here[1] - own]
            room = here[0] - first, end - here[1]
            parts.append(jnp.pad(block, [(0, 0), room, *[(0, 0)] * len(more)]) if any(room) else block)
        if not parts:
            return jnp.zeros((0, end - first, *more), x.dtype)
        return jnp.concatenate(parts) if len(parts) > 1 else parts[0]

    def bilateral(self, x: Any) -> Array:
        """Entries (nb, ...) of the bilateral rows."""
        return x[self.ends[2] :]

    def stack(self, contacts: Any, bilateral: Any = None) -> Array:
        """Rows (count, ...) from entries (nc, 1 + nt, ...) of contacts, (nb, ...) of constraints."""
        parts, contact = [], 0
        for g in self.groups:
            first, end = g.law.columns
            block = contacts[contact : contact + g.count, first:end]
            parts.append(block.reshape(g.rows, *block.shape[2:]))
            contact += g.count
        if bilateral is not None and (self.nb or not parts):
            parts.append(bilateral)
        if not parts:
            return jnp.zeros((0, *contacts.shape[2:]), contacts.dtype)
        return jnp.concatenate(parts) if len(parts) > 1 else parts[0]

    def normal_impulses(self, given: GivenForces, found: Array, mask: Array) -> Array:
        """Normal impulses (nc,): ``found``, but the ``given`` ones of bounded forces, or those that they
        share with a contact (zero if that one is not in ``mask`` (nc,) bool).
        """
        normal = jnp.where(self.given, given.normal, found)
        if not self.leads:
            return normal
        own, leads = jnp.where(mask, found, 0.0), np.array(self.leads)
        if len(leads) ** 2 > SUMMED:
            others = own[np.where(leads < 0, 0, leads)]
        else:
            others = jnp.sum(jnp.where(leads[:, None] == np.arange(len(leads)), own, 0.0), axis=1)
        return jnp.where(leads >= 0, others, normal)

    def impulses(self, x: Any, given: GivenForces | None, mask: Array) -> Array:
        """`contacts` of impulses, with the normal impulses of bounded forces, see `normal_impulses`."""
        found = self.contacts(x)
        if given is None:
            return found
        normal = self.normal_impulses(given, found[:, 0], mask)
        return jnp.concatenate([normal[:, None], found[:, 1:]], axis=1)

    def per_contact(self, x: Any, bilateral: Array) -> Array:
        """Rows (count,) that repeat the entry ``x`` (nc,) of each contact."""
        return self.stack(jnp.broadcast_to(x[:, None], (self.nc, 1 + self.nt)), bilateral)

    def normal_row(self, contact: int) -> int:
        """Number of the row of the normal of a contact with one."""
        return contact * (1 + self.nt) if contact < self.rough else self.ends[0] + contact - self.rough

    def repeated(self, copies: int) -> RowGroups:
        """Rows of several copies of the contacts and constraints, group by group."""
        if copies == 1:
            return self
        groups = []
        for g in self.groups:
            law = g.law
            if isinstance(law, Bounded):
                law = dataclasses.replace(law, leads=self._led(copies), copies=copies)
            groups.append(RowGroup(law, copies * g.count))
        return RowGroups(self.nt, tuple(groups), copies * self.nb)

    def _led(self, copies: int) -> tuple[int, ...]:
        """Contacts that bounded forces of several copies follow."""
        own = self._bounded_law.leads
        each = [(k, self.rough) if k < self.rough else (k - self.rough, self.frictionless) for k in own]
        starts = [0 if k < self.rough else copies * self.rough for k in own]
        return tuple(
            -1 if k < 0 else start + c * count + place
            for c in range(copies)
            for k, (place, count), start in zip(own, each, starts, strict=True)
        )

    def by_group(self, copies: list[Array]) -> Array:
        """Rows of `repeated` from those of each copy."""
        return self._dealt(copies, [g.rows for g in self.groups] + [self.nb])

    def contacts_by_group(self, copies: list[Array]) -> Array:
        """Entries (copies nc, ...) of the contacts of `repeated` from those (nc, ...) of each copy."""
        return self._dealt(copies, [g.count for g in self.groups])

    def by_copy(self, x: Array, copies: int) -> list[Array]:
        """Rows of each copy from those of `repeated`."""
        return self._collected(x, copies, [g.rows for g in self.groups] + [self.nb])

    def _dealt(self, copies: list[Array], sizes: list[int]) -> Array:
        if len(copies) == 1:
            return copies[0]
        every, ends = jnp.stack(copies), np.cumsum([0, *sizes])
        parts = [every[:, a:b].reshape(-1, *every.shape[2:]) for a, b in itertools.pairwise(ends) if b > a]
        return jnp.concatenate(parts) if parts else every[:, :0].reshape(0, *every.shape[2:])

    def _collected(self, x: Array, copies: int, sizes: list[int]) -> list[Array]:
        if copies == 1:
            return [x]
        ends = copies * np.cumsum([0, *sizes])
        parts = [x[a:b].reshape(copies, -1) for a, b in itertools.pairwise(ends)]
        return list(jnp.concatenate(parts, axis=1))
