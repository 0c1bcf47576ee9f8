"""A shape on a body, and what is known of all shapes of its kind."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from nsjax.multibody.contacts.pair_kind import PairKind
from nsjax.multibody.coordinates.frames import Scene
from nsjax.shapes import Shape as Drawn
from nsjax.types import PyTree


@dataclasses.dataclass(frozen=True)
class Shape:
    """A shape on a body: what it is, and its numbers.

    Args:
        kind: name of the function that made it; a `point` is a sphere without a radius.
        body: on which it stands.
        numbers: a record of `nsjax.multibody.numbers`.

    Example:
        >>> from nsjax.multibody import sphere
        >>> shape = sphere("ball", 0.1)
        >>> shape.kind, shape.body, shape.numbers.radius
        ('sphere', 'ball', 0.1)
    """

    kind: str
    body: str
    numbers: PyTree


def _always(numbers: Any) -> bool:
    """Shapes of most kinds do."""
    return True


@dataclasses.dataclass(frozen=True)
class ShapeKind:
    """A kind of shapes: one entry of `nsjax.multibody.contacts.all_shapes.KINDS`, and all that is known of
    it.

    Args:
        name: of the kind.
        drawn: ``(scene, name, body, numbers)``, what it looks like.
        pairs: pairs with other kinds that it brings, beside those that
            `nsjax.multibody.contacts.all_pairs` lists.
        instead: what the plane, or space, has in its place, by the dimension that does not know it.
        lacks: ``(body, numbers, dimension)``, what is missing of its numbers and the remedy; None: nothing.
        filled: whether a shape with these numbers shows what its body looks like.

    Example:
        >>> from nsjax.multibody.contacts.all_shapes import KINDS
        >>> [pair.first for pair in KINDS["heightfield"].pairs]
        ['sphere', 'points', 'corners', 'box', 'capsule']
    """

    name: str
    drawn: Callable[[Scene, str, str, Any], tuple[Drawn, ...]]
    pairs: tuple[PairKind, ...] = ()
    instead: tuple[tuple[int, str], ...] = ()
    lacks: Callable[[str, Any, int], str | None] | None = None
    filled: Callable[[Any], bool] = _always
