"""Choice of the few contacts that a step evaluates, among many.

A system with `System.chosen` has all of its contacts in everything that a user sees, and in the memory of a
run. A step sees the few that `System.refresh` has chosen at its start; the others are open, and none of
their functions is evaluated.
"""

from __future__ import annotations

import math
from typing import Any, Protocol

import jax
import jax.numpy as jnp

from nsjax.core.errors import InputError
from nsjax.core.system import System
from nsjax.types import Array, PyTree, record


class ContactChoice(Protocol):
    """The few chosen contacts of a step; frozen and hashable. Functions take refreshed parameters ``p``.

    The last ``common`` contacts are the last ones of both systems, in their order. The first laws of
    bounded rows (`System.drag`; one for a row, or for two that share a disc) belong to both systems, too.
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
