"""The pieces in which named contacts are evaluated: one by one, and batches of equal pairs."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from nsjax.multibody.contacts import gap_functions
from nsjax.multibody.contacts.batches import Batch, batched, turning_keys
from nsjax.multibody.contacts.named_contacts import NamedContacts
from nsjax.multibody.parts import Part

AT_ONCE = 4
"""Smallest number of equal pairs that make a batch. Operations of gap, slip and rows on a tree of 17 bodies
for 1, 2, 4, 8, 16 pairs of sphere and plane, the cheapest kind: one by one 620, 791, 1312, 2115, 3566, as a
batch 1048, 1053, 1105, 1105, 1105; for two capsules 1577, 2606, 4581, 8197, 15484 and 1989, 2094, 2094,
2094, 2164. Rows of eight pairs of capsules take 2.3 us as a batch (one by one 3.8), of four, eight and
sixteen pairs of capsule and plane 1.0, 1.6 and 2.0 (0.7, 1.3 and 1.4): program size sets this limit.
"""

SEARCHED_AT_ONCE = 2
"""Smallest batch of pairs whose features are searched for, each a larger program. A run of three stacked
boxes has 10,578 operations in place of 13,791 and compiles in 9.8 s in place of 12.1; a step takes as long.
"""


def _smooth_last(
    contacts: list[Part], counts: list[int], of: dict[str, Batch]
) -> tuple[list[Part], list[int]]:
    """Contacts and their numbers of rows, with the frictionless ones of batches with a group moved to the
    end.
    """

    def smooth(k: int) -> bool:
        piece = of.get(contacts[k].name)
        return piece is not None and piece.group is not None and piece.smooth

    order = sorted(range(len(contacts)), key=smooth)
    return [contacts[k] for k in order], [counts[k] for k in order]


def _enough(batch: Batch, at_once: int) -> bool:
    """Whether a batch has enough pairs to be evaluated as one."""
    return len(batch.names) >= (min(at_once, SEARCHED_AT_ONCE) if batch.searched else at_once)


def named(parts: Sequence[Part], dimension: int, at_once: int | None = AT_ONCE) -> NamedContacts:
    """Named contacts of parts: ``at_once`` or more equal pairs make a batch, or `SEARCHED_AT_ONCE` where
    features are searched for; None: no batches.
    """
    contacts = [x for x in parts if x.kind == "contact"]
    counts = [gap_functions.count(x, x.numbers, dimension) for x in contacts]
    rigid = [x for x in contacts if gap_functions.rigid(x)]
    groups = [] if at_once is None else [x for x in batched(rigid, dimension) if _enough(x, at_once)]
    of = {name: x for x in groups for name in x.names}
    places = dict(zip([x.name for x in contacts], np.cumsum([0, *counts])[:-1], strict=True))
    pieces: list[Part | Batch] = []
    rows, standing, turning, done = [], [], [], set()
    # frictionless contacts of a step come last, see `System.smooth`
    contacts, counts = _smooth_last(contacts, counts, of)
    for part, n in zip(contacts, counts, strict=True):
        if part.name in done:
            continue
        piece = of.get(part.name)
        own = (part.name,) if piece is None else piece.names
        done |= set(own)
        pieces.append(dataclasses.replace(part, numbers=None) if piece is None else piece)
        rows.append(n * len(own))
        turning.append(turning_keys(part))
        standing += [int(places[name]) + k for name in own for k in range(n)]
    order = None if standing == sorted(standing) else tuple(int(k) for k in np.argsort(standing))
    return NamedContacts(dimension, tuple(pieces), tuple(rows), order, tuple(turning))
