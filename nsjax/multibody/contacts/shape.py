"""Records of a shape on a body, and of a kind of shapes."""

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
    """A shape on a body: its kind and its numbers.

    Args:
        kind: name of the function that made it; a `point` is a sphere without a radius.
        body: name of the body that carries it.
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
    """Default of `ShapeKind.filled`: the shape fills its body."""
    return True


@dataclasses.dataclass(frozen=True)
class ShapeKind:
    """A kind of shapes: an entry of `nsjax.multibody.contacts.all_shapes.KINDS` with all that defines it.

    Args:
        name: of the kind.
        drawn: ``(scene, name, body, numbers)``, the picture of a shape.
        pairs: pairs with other kinds that this kind registers, besides the list of
            `nsjax.multibody.contacts.all_pairs`.
        instead: ``(dimension, text)`` for a dimension without this kind; the text names a replacement.
        lacks: ``(body, numbers, dimension)``, the missing number and the remedy as text; None: complete.
        filled: whether the picture of a shape with these numbers shows the form of its body.

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
