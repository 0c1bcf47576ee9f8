"""Table of all kinds of pairs of shapes that meet: a new pair of known shapes is one entry here."""

from __future__ import annotations

import collections
from collections.abc import Iterator

from nsjax.multibody.contacts import (
    beam_pairs,
    closest_pairs,
    convex_pairs,
    cylinder_hull,
    cylinders,
    hulls,
    point_pairs,
)
from nsjax.multibody.contacts.all_shapes import KINDS as SHAPES
from nsjax.multibody.contacts.pair_kind import PairKind

Kinds = tuple[str, str]


class PairTable(collections.UserDict[Kinds, PairKind]):
    """Kinds of pairs, by the names of the kinds of both shapes: entries of this file, and the pairs that a
    kind of shape registers itself (`ShapeKind.pairs`).
    """

    def _brought(self) -> dict[Kinds, PairKind]:
        return {pair.kinds: pair for shape in SHAPES.values() for pair in shape.pairs}

    def __missing__(self, kinds: Kinds) -> PairKind:
        return self._brought()[kinds]

    def __contains__(self, kinds: object) -> bool:
        return kinds in self.data or kinds in self._brought()

    def __iter__(self) -> Iterator[Kinds]:
        return iter({**self.data, **self._brought()})

    def __len__(self) -> int:
        return len({**self.data, **self._brought()})


KINDS = PairTable(
    {
        x.kinds: x
        for x in (
            *point_pairs.KINDS, *closest_pairs.KINDS, *cylinders.KINDS, *beam_pairs.KINDS, *hulls.KINDS,
            *convex_pairs.KINDS, *cylinder_hull.KINDS,
        )
    }
)  # fmt: skip
"""Kinds of pairs by the names of the kinds of their first and second shape."""
