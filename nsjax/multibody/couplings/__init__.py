"""Kinds of couplings between coordinates of joints. A new one is a `CouplingKind` and an entry here."""

from __future__ import annotations

from nsjax.multibody.couplings.coupling_kind import (
    COUPLING,
    GEAR,
    RACK_PINION,
    CouplingKind,
    coupling,
    gear,
    rack_pinion,
)
from nsjax.multibody.parts import Part, registered

KINDS: dict[str, CouplingKind] = {x.name: x for x in (GEAR, COUPLING, RACK_PINION)}
"""Kinds of couplings by the kinds of their parts."""

__all__ = ["KINDS", "CouplingKind", "coupling", "gear", "kind_of", "rack_pinion"]


def kind_of(part: Part) -> CouplingKind:
    """The kind of a coupling."""
    return registered(KINDS, part.kind)
