"""Places of a fixed number that some of many contacts take: the near ones of a step, the active ones of a
solver.

Programs have no arrays whose sizes depend on values. What acts on few of many therefore works in places,
some of which are empty, and `Slots` says which contact is where. ``take`` and ``put`` move values between
the many and the few.
"""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp
import numpy as np

from nsjax.types import Array, PyTree, record

SUMMED = 4096
"""Most products for which entries are moved by masked sums, which keep a small loop one kernel."""


@record(static=("all", "sums"))
class Slots:
    """Which of many contacts stands in which place.

    Args:
        which: (places,) int, number of the contact in each place; any number in an empty one.
        used: (places,) bool, whether a place has a contact.
        place: (many,) int, place of each contact; the number of places for a contact without one.
        all: whether every contact has the place of its own number, so that nothing moves.
        sums: whether entries are moved by masked sums however many they are.

    Example:
        >>> import jax.numpy as jnp
        >>> from nsjax.core.slots import Slots
        >>> slots = Slots.first(jnp.array([False, True, False, True]), 3)
        >>> slots.which.tolist(), slots.used.tolist(), slots.place.tolist()
        ([1, 3, 0], [True, True, False], [3, 0, 3, 1])
        >>> few = slots.take(jnp.array([1.0, 2.0, 3.0, 4.0]))
        >>> few.tolist(), slots.put(few).tolist()
        ([2.0, 4.0, 0.0], [0.0, 2.0, 0.0, 4.0])
    """

    which: Array
    used: Array
    place: Array
    all: bool = False
    sums: bool = False

    @property
    def places(self) -> int:
        """Number of places."""
        return self.which.shape[0]

    @property
    def many(self) -> int:
        """Number of contacts."""
        return self.place.shape[0]

    @classmethod
    def every(cls, count: int, used: Array | None = None) -> Slots:
        """A place for each of ``count`` contacts; ``used`` (count,) bool: those that are there."""
        own = np.arange(count)
        here = np.ones(count, bool) if used is None else used
        return cls(which=own, used=here, place=own, all=True)  # type: ignore[arg-type]

    @classmethod
    def first(cls, mask: Array, places: int, sums: bool = False) -> Slots:
        """Places for the first true entries of ``mask`` (many,)."""
        many = mask.shape[0]
        if places >= many:
            return cls.every(many, mask)
        number = _numbered(mask)
        place = jnp.where(mask & (number < places), number, places)
        # one-hot, not a scatter, which would split the kernel of a time loop
        here = place == np.arange(places)[:, None]
        which = jnp.sum(jnp.where(here, np.arange(many), 0), axis=1)
        return cls(which=which, used=jnp.any(here, axis=1), place=place, sums=sums)

    @classmethod
    def matching(cls, old: Array, new: Array) -> Slots:
        """Places of the identities ``new`` (places,) among ``old`` (many,), both ascending."""

        def search(these: Array, others: Array) -> tuple[Array, Array]:
            found = jnp.clip(jnp.searchsorted(others, these), 0, others.shape[0] - 1)
            return found, others[found] == these

        (which, known), (place, stays) = search(new, old), search(old, new)
        return cls(which=which, used=known, place=jnp.where(stays, place, new.shape[0]))

    def take(self, x: Array, empty: Any = 0) -> Array:
        """Entries (places, ...) of the contacts in the places from those ``x`` of all; else ``empty``."""
        if self.all:
            return x
        return self._moved(x, self.which, self.used, 1, empty)

    def put(self, x: Array, others: Any = 0) -> Array:
        """Entries (many, ...) of all contacts from those (places, ...) of the contacts in the places.

        Args:
            x: values along the first axis.
            others: values of contacts without a place: a number, or an array (many, ...).
        """
        if self.all:
            return x
        return self._moved(x, self.place, self.place < self.places, 0, others)

    def _moved(self, x: Array, source: Array, here: Array, axis: int, none: Any) -> Array:
        """Entries of ``x`` at ``source`` where ``here``, else ``none``; ``axis`` of the one-hot table."""
        beside = (1,) * (x.ndim - 1)
        if self.sums or x.shape[0] * source.shape[0] * math.prod(x.shape[1:]) <= SUMMED:
            table = (self.place == np.arange(self.places)[:, None]).reshape(self.places, self.many, *beside)
            spread = jnp.expand_dims(x, 1 - axis)
            if x.dtype == bool:
                found = jnp.any(table & spread, axis=axis)
            else:
                found = jnp.sum(jnp.where(table, spread, 0), axis=axis, dtype=x.dtype)
            if isinstance(none, int) and not none:
                return found
        else:
            found = x.at[jnp.where(here, source, 0)].get(mode="promise_in_bounds")
        return jnp.where(here.reshape(-1, *beside), found, jnp.asarray(none, x.dtype))

    def rows(self, width: int) -> Slots:
        """The same for the rows of the contacts, ``width`` of each, contact by contact."""
        if width == 1:
            return self
        if self.all:
            return Slots.every(self.many * width, jnp.repeat(self.used, width))
        own, has = np.arange(width), (self.place < self.places)[:, None]
        place = jnp.where(has, self.place[:, None] * width + own, self.places * width)
        return Slots(
            which=(self.which[:, None] * width + own).reshape(-1), used=jnp.repeat(self.used, width),
            place=place.reshape(-1), sums=self.sums,
        )  # fmt: skip


def _numbered(mask: Array) -> Array:
    """Number (n,) of each true entry of ``mask`` (n,) among the true ones, from zero."""
    n = mask.shape[0]
    if n > 64:  # a running sum is a loop of its own on accelerators; few entries are summed with a mask
        return jnp.cumsum(mask) - 1
    return jnp.sum(jnp.where(np.tri(n, dtype=bool), mask[None, :], False), axis=1, dtype=int) - 1


@record(static=("common",))
class ContactSlots:
    """Places of the contacts of a step, in arrays whose entries are: the contacts, the ``common`` ones that
    every step has, laws of bounded rows that every step has, and the laws that follow contacts.

    Args:
        contacts: places of the contacts, without the common ones.
        laws: places of the laws that follow contacts; None: there are none.
        common: number of common contacts.
    """

    contacts: Slots
    laws: Slots | None
    common: int

    @property
    def dropped(self) -> int:
        """Number of the contacts and laws less that of their places."""
        own = self.contacts.many - self.contacts.places
        return own if self.laws is None else own + self.laws.many - self.laws.places

    @property
    def which(self) -> Array:
        """Number (few,) int, among all contacts, of each contact of the step."""
        many = self.contacts.many
        return jnp.concatenate([self.contacts.which, np.arange(many, many + self.common)])

    def take(self, x: Array, width: int = 1, empty: Any = 0) -> Array:
        """Array of the few contacts, with their laws, from that ``x`` of all contacts with theirs.

        Args:
            width: entries of ``x`` for a contact; 0: ``x`` is not over contacts, and returned as it is.
            empty: value of empty places.
        """
        if not width:
            return x
        many = self.contacts.many * width
        own = _wide(self.contacts.take, x[:many], width, empty)
        if self.laws is None:
            return jnp.concatenate([own, x[many:]])
        last = x.shape[0] - self.laws.many * width
        return jnp.concatenate([own, x[many:last], _wide(self.laws.take, x[last:], width, empty)])

    def put(self, x: Array, width: int = 1, others: Any = 0) -> Array:
        """Array of all contacts from that ``x`` of the few, both with or without the laws of bounded rows.

        Args:
            width: see `take`.
            others: values of contacts without a place: a number, or an array of all contacts.
        """
        if not width:
            return x
        few, many = self.contacts.places * width, self.contacts.many * width
        own = _wide(self.contacts.put, x[:few], width, others[:many] if jnp.ndim(others) else others)
        if self.laws is None or x.shape[0] == few + self.common * width:
            return jnp.concatenate([own, x[few:]])
        last, many = x.shape[0] - self.laws.places * width, self.laws.many * width
        end = _wide(self.laws.put, x[last:], width, others[-many:] if jnp.ndim(others) else others)
        return jnp.concatenate([own, x[few:last], end])

    def put_laws(self, x: Array) -> Array:
        """Array (laws, ...) of all laws of bounded rows from that of the few; zero without a place."""
        if self.laws is None:
            return x
        first = x.shape[0] - self.laws.places
        return jnp.concatenate([x[:first], self.laws.put(x[first:])])


def _wide(move: Any, x: Array, width: int, none: Any) -> Array:
    """``move`` of arrays with ``width`` entries of every contact along their first axis."""
    each = lambda y: y.reshape(y.shape[0] // width, width, *y.shape[1:])  # noqa: E731
    found: Array = move(each(x), each(none) if jnp.ndim(none) else none)
    return found.reshape(found.shape[0] * width, *x.shape[1:])  # an axis without entries leaves -1 open


class ContactSet:
    """The contacts of a step: a fixed number of slots, and which contact stands in each. A frozen, hashable
    record that inherits from this class is the `System.contact_set` of a system with more contacts than a
    step evaluates. Its functions take parameters ``p`` as `System.refresh` makes them, which finds the
    contacts.

    Contacts either have names: a run then stores what it remembers of all of them, a step works with those
    in the slots, and the others are open. Or they are between bodies that change from step to step: a run
    stores what it remembers by the two bodies of a slot, and forgets it when their contact has no slot.
    """

    changing = False
    """Whether contacts have no names, and are stored by their identities."""

    def of_step(self, system: Any) -> Any:
        """The system that a step sees; a slot without a contact is never allowed to act."""
        return system

    def slots(self, p: PyTree, stored: Array | None) -> ContactSlots:
        """Places of a step's contacts among those ``stored``, and of the laws that follow them."""
        own = Slots.matching(stored, self.identity(p))  # type: ignore[arg-type]
        return ContactSlots(contacts=own, laws=None, common=0)

    def overflow(self, p: PyTree) -> Array:
        """() bool, whether more contacts were near than there are slots."""
        raise NotImplementedError

    def near_counts(self, q: Array, p: PyTree) -> dict[str, Array]:
        """Capacity () that would hold all contacts near at a position, by the name of what has it."""
        raise NotImplementedError

    # Of contacts without names, whose rows are stored by bodies.

    def identity(self, p: PyTree) -> Array:
        """(nc,) int, one number for each pair of bodies, ascending; empty slots come last."""
        raise NotImplementedError

    def bodies(self, p: PyTree) -> Array:
        """(nc, 2) int, the two bodies of every slot; the number of bodies is the index of the ground."""
        raise NotImplementedError

    def directions(self, t: Array, q: Array, p: PyTree) -> Array:
        """(nc, 2, 1 + nt, block) of gap rate and slips over the velocities of both bodies."""
        raise NotImplementedError
