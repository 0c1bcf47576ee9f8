"""Kinds of elements between the nodes of beams, one file for each. A new kind is a file with an
`ElementKind`, and an entry here.
"""

from __future__ import annotations

from nsjax.multibody.flexible.elements.element_kind import ElementKind
from nsjax.multibody.flexible.elements.incremental import INCREMENTAL
from nsjax.multibody.flexible.elements.objective import OBJECTIVE
from nsjax.multibody.parts import Part, registered

KINDS: dict[str, ElementKind] = {x.name: x for x in (OBJECTIVE, INCREMENTAL)}
"""Kinds of elements by the ``element`` of a beam."""

__all__ = ["KINDS", "ElementKind", "kind_of"]


def kind_of(part: Part) -> ElementKind:
    """The kind of the elements of a beam."""
    return registered(KINDS, str(part.option("element")))
