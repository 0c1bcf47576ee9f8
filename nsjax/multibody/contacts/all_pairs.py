"""All pairs of shapes that meet: a pair of known shapes is one entry here."""

from __future__ import annotations

from nsjax.multibody.contacts import beam_pairs, closest_pairs, convex_pairs, cylinders, hulls, point_pairs
from nsjax.multibody.contacts.all_shapes import KINDS as SHAPES
from nsjax.multibody.contacts.pair_kind import PairKind

KINDS: dict[tuple[str, str], PairKind] = {
    x.kinds: x
    for x in (
        *point_pairs.KINDS,
        *closest_pairs.KINDS,
        *cylinders.KINDS,
        *beam_pairs.KINDS,
        *hulls.KINDS,
        *convex_pairs.KINDS,
        *(pair for shape in SHAPES.values() for pair in shape.pairs),
    )
}
"""Kinds of pairs by those of their shapes, first and second."""
