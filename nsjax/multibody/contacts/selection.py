"""The near contacts of a mechanism, which a step evaluates: a `nsjax.core.chosen.ContactChoice`."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np

from nsjax.core import System
from nsjax.multibody.contacts import turning_friction
from nsjax.multibody.contacts.named_contacts import Choice
from nsjax.multibody.prepared import held
from nsjax.types import Array, PyTree

if TYPE_CHECKING:
    from nsjax.multibody.mechanism import Mechanism


@dataclasses.dataclass(frozen=True)
class Selection:
    """Maps between the few contacts that a step evaluates and all contacts of a mechanism.

    Args:
        mechanism: the mechanism with all contacts.
    """

    mechanism: Mechanism

    @property
    def common(self) -> int:
        """Number of joint limits, which are the last contacts both of all and of the few."""
        return len(self.mechanism.presence.limits)

    @functools.cached_property
    def system(self) -> System:
        """The system of the chosen contacts."""
        return dataclasses.replace(self.mechanism, few=True).system()

    @functools.cached_property
    def followers(self) -> tuple[int, int]:
        """Number of laws of friction against turning, of the few contacts and of all."""
        few, named = self.mechanism.presence.named.of_step, self.mechanism.presence.named
        return turning_friction.laws(few), turning_friction.laws(named)

    def promises(self) -> dict[str, Any]:
        """Arguments of the system, for all contacts or for the few."""
        if self.mechanism.few:
            return {"allowed": self.allowed}
        return {"chosen": self} if self.mechanism.chooses else {}

    def allowed(self, t: Array, q: Array, p: PyTree) -> Array:
        """Mask (nc,) of the slots of the few that hold a contact; true for joint limits."""
        return jnp.concatenate([self.used(p), np.ones(self.common, bool)])

    def _pieces(self, p: PyTree) -> Iterator[tuple[Any, np.ndarray, Choice | None]]:
        """Every piece, the numbers of its contacts, and its choice; None: all pairs are evaluated."""
        named = self.mechanism.presence.named
        few = named.of_step
        for piece, standing in zip(few.pieces, named.numbers, strict=True):
            yield piece, standing, few.choice(piece, p)

    def which(self, p: PyTree) -> Array:
        """Number of the contact in each slot."""
        found = []
        for piece, standing, choice in self._pieces(p):
            own = jnp.asarray(standing)
            found.append(own if choice is None else own.reshape(-1, piece.rows)[choice.which].reshape(-1))
        return jnp.concatenate(found)

    def used(self, p: PyTree) -> Array:
        """Mask of the slots that hold a contact."""
        found = []
        for piece, standing, choice in self._pieces(p):
            own = np.ones(len(standing), bool) if choice is None else jnp.repeat(choice.used, piece.rows)
            found.append(jnp.asarray(own))
        return jnp.concatenate(found)

    def rows(self, p: PyTree) -> tuple[Array, Array, Array]:
        """Law of friction against turning in each place; mask of the places with a law; place of each law,
        the number of places for a law without one.
        """
        named, few = self.mechanism.presence.named, self.followers[0]
        order = turning_friction.order_of(named, [len(keys) for keys in named.turning])
        numbers = np.arange(self.followers[1]) if order is None else np.argsort(order)
        which, used, places, first, place = [], [], [], 0, 0
        for (piece, standing, choice), keys in zip(self._pieces(p), named.turning, strict=True):
            each = len(keys)
            own = numbers[first : first + each * len(standing)]
            first += len(own)
            if choice is None:
                which.append(jnp.asarray(own))
                used.append(jnp.ones(len(own), bool))
                places.append(jnp.asarray(place + np.arange(len(own))))
                place += len(own)
            elif each:
                width = each * piece.rows
                which.append(jnp.asarray(own.reshape(-1, width))[choice.which].reshape(-1))
                used.append(jnp.repeat(choice.used, width))
                here = place + choice.place[:, None] * width + np.arange(width)
                places.append(jnp.where(choice.place[:, None] < piece.places, here, few).reshape(-1))
                place += width * piece.places
        found = jnp.concatenate(places)
        return jnp.concatenate(which), jnp.concatenate(used), found if order is None else found[order]

    def places(self, p: PyTree) -> Array:
        """Slot of each contact among the few; the number of slots for a contact without one."""
        few = self.mechanism.presence.named.of_step
        count, first, found = sum(few.rows), 0, []
        for (piece, standing, choice), rows in zip(self._pieces(p), few.rows, strict=True):
            if choice is None:
                found.append(jnp.asarray(first + np.arange(len(standing))))
            else:
                own = first + choice.place[:, None] * piece.rows + np.arange(piece.rows)
                found.append(jnp.where(choice.place[:, None] < piece.places, own, count).reshape(-1))
            first += rows
        return self.mechanism.presence.named.in_order(found)

    def overflow(self, p: PyTree) -> Array:
        """Whether more pairs of a batch were near than it has slots."""
        chosen = self.mechanism.presence.named.chosen
        return jnp.any(jnp.stack([held(p).chosen[x.names[0]].near > x.places for x in chosen]))

    def near_counts(self, p: PyTree) -> dict[str, Array]:
        """Largest number () of near pairs of a batch, by the name of the group."""
        found: dict[str, Array] = {}
        for piece in self.mechanism.presence.named.chosen:
            near, group = held(p).chosen[piece.names[0]].near, str(piece.group)
            found[group] = jnp.maximum(found[group], near) if group in found else near
        return found
