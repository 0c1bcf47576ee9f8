"""Contacts of a mechanism of which a step looks at those that are near: its `nsjax.core.chosen.Chosen`."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np

from nsjax.core import System
from nsjax.multibody.contacts.named_contacts import CHOSEN, Choice
from nsjax.types import Array, PyTree

if TYPE_CHECKING:
    from nsjax.multibody.mechanism import Mechanism


@dataclasses.dataclass(frozen=True)
class Selection:
    """What tells the few contacts of a step from all.

    Args:
        mechanism: with all of them.
    """

    mechanism: Mechanism

    @property
    def common(self) -> int:
        """Limits of joints, the last ones of all contacts, stand last among the few, too."""
        return len(self.mechanism.presence.limits)

    @functools.cached_property
    def system(self) -> System:
        """The system of the chosen contacts."""
        return dataclasses.replace(self.mechanism, few=True).system()

    @functools.cached_property
    def _standing(self) -> list[np.ndarray]:
        """Which contact each of a piece is, piece by piece."""
        named = self.mechanism.presence.named
        count = sum(named.rows)
        standing = np.arange(count) if named.order is None else np.argsort(np.array(named.order))
        return np.split(standing, np.cumsum(named.rows)[:-1])

    def promises(self) -> dict[str, Any]:
        """What the system is told, of all contacts or of the few."""
        if self.mechanism.few:
            return {"allowed": self.allowed}
        return {"chosen": self} if self.mechanism.chooses else {}

    def allowed(self, t: Array, q: Array, p: PyTree) -> Array:
        """Places (nc,) of the few with a contact; limits always."""
        return jnp.concatenate([self.used(p), np.ones(self.common, bool)])

    def _pieces(self, p: PyTree) -> Iterator[tuple[Any, np.ndarray, Choice | None]]:
        """Every piece, its contacts, and its choice; None: all."""
        few = self.mechanism.presence.named.of_step
        for piece, standing in zip(few.pieces, self._standing, strict=True):
            yield piece, standing, few.choice(piece, p)

    def which(self, p: PyTree) -> Array:
        """Contact that stands in each place."""
        found = []
        for piece, standing, choice in self._pieces(p):
            own = jnp.asarray(standing)
            found.append(own if choice is None else own.reshape(-1, piece.rows)[choice.which].reshape(-1))
        return jnp.concatenate(found)

    def used(self, p: PyTree) -> Array:
        """Places with a contact."""
        found = []
        for piece, standing, choice in self._pieces(p):
            own = np.ones(len(standing), bool) if choice is None else jnp.repeat(choice.used, piece.rows)
            found.append(jnp.asarray(own))
        return jnp.concatenate(found)

    def places(self, p: PyTree) -> Array:
        """Place of each contact among the few."""
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
        """Whether more pairs of a kind were near than there are places."""
        chosen = self.mechanism.presence.named.chosen
        return jnp.any(jnp.stack([p[CHOSEN][x.names[0]].near > x.places for x in chosen]))

    def lost(self, p: PyTree) -> dict[str, Array]:
        """By the name of a group the largest number () of pairs alike that are near."""
        found: dict[str, Array] = {}
        for piece in self.mechanism.presence.named.chosen:
            near, group = p[CHOSEN][piece.names[0]].near, str(piece.group)
            found[group] = jnp.maximum(found[group], near) if group in found else near
        return found
