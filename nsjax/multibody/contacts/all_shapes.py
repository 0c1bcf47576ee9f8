"""All kinds of shapes whose file holds all that is known of them: one more is one entry here."""

from __future__ import annotations

from nsjax.multibody.contacts import heightfields
from nsjax.multibody.contacts.shape import ShapeKind

KINDS: dict[str, ShapeKind] = {x.name: x for x in (heightfields.KIND,)}
"""Kinds of shapes by their names."""
