"""All pairs of shapes that meet: a pair of known shapes is one entry here."""

from __future__ import annotations

from nsjax.multibody import beam_pairs, cylinders, pairs, point_pairs
from nsjax.multibody.pair_kind import PairKind

KINDS: dict[tuple[str, str], PairKind] = {
    x.kinds: x for x in (*point_pairs.KINDS, *pairs.KINDS, *cylinders.KINDS, *beam_pairs.KINDS)
}
"""Kinds of pairs by those of their shapes, first and second."""
