"""The record of a kind of beam elements: shapes, strains and forces between the nodes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from nsjax.multibody.flexible.elements.pieces import Piece
from nsjax.multibody.numbers import Beam
from nsjax.multibody.parts import Part
from nsjax.types import Array


def _nothing(part: Part) -> int:
    """Elements without entries of ``q``."""
    return 0


def _unnamed(part: Part) -> list[str]:
    """Names of no entries."""
    return []


@dataclasses.dataclass(frozen=True, eq=False)
class ElementKind:
    """Elements of one kind between the nodes of a beam: one entry of `elements.KINDS`, all that is known of
    them.

    Elements that stand among the pairs of neighbours (`elements.pieces.Elastic`) need no
    functions of their own; others have forces of their own, beam by beam.

    Args:
        name: ``element=`` of `nsjax.multibody.beam`.
        piece: ``(numbers, part) -> Piece``, masses of the nodes and numbers of the elements (its ``own``),
            made once per run.
        nodes: how many nodes an element may have, 2 or 3.
        forces: ``(own, points, poses, rates, part) -> (n, 6)``: forces on the nodes in the axes of the
            ground, and moments in their own, of ``points``, the beam's entries of ``q``.
        energy: ``(own, points, poses, part)`` [J].
        momenta: ``(own, velocities) -> (n, 3)``: what consistent masses add beyond neighbours, or None.
        line: ``(own, values) -> (n, 3)``: forces on the nodes of a force per length given at them; None:
            that of linear shapes.
        entries: ``(part)``, how many entries of ``q`` the elements of a beam have.
        labels: ``(part)``, their names.
        moved: ``(points, poses, increments, part)``, the entries after increments of the nodes (n, 6).
        placed: ``(poses, part)``, the entries where a run begins.

    Example:
        >>> from nsjax.multibody.flexible.elements import KINDS
        >>> KINDS["objective"].nodes, KINDS["incremental"].nodes
        ((2,), (2, 3))
    """

    name: str
    piece: Callable[[Beam, Part], Piece]
    nodes: tuple[int, ...] = (2,)
    forces: Callable[[Any, Array, Array, Array, Part], Array] | None = None
    energy: Callable[[Any, Array, Array, Part], Array] | None = None
    momenta: Callable[[Any, Array], Array | None] | None = None
    line: Callable[[Any, Array], Array] | None = None
    entries: Callable[[Part], int] = _nothing
    labels: Callable[[Part], list[str]] = _unnamed
    moved: Callable[[Array, Array, Array, Part], Array] | None = None
    placed: Callable[[Array, Part], Array] | None = None
