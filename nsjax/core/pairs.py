"""Contacts between two bodies each, where the bodies change from step to step.

A contact has a slot only as long as its bodies are near each other. The pair of bodies is its identity, by
which the memory of contacts is handed from slot to slot.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import jax
import jax.numpy as jnp

from nsjax.core.errors import InputError
from nsjax.core.parts import check_follower
from nsjax.core.system import System
from nsjax.types import Array, PyTree, record


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
