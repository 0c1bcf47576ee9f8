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
    """Number of entries of ``q`` of elements without any: 0."""
    return 0


def _unnamed(part: Part) -> list[str]:
    """Names of the entries of ``q`` of elements without any: none."""
    return []


@dataclasses.dataclass(frozen=True, eq=False)
class ElementKind:
    """A kind of elements between the nodes of a beam: an entry of `elements.KINDS` with all that defines
    it.

    Elements between neighbouring nodes (`elements.pieces.Elastic`) need no functions of their own; other
    elements have forces of their own, computed beam by beam.

    Args:
        name: ``element=`` of `nsjax.multibody.beam`.
        piece: ``(numbers, part) -> Piece``, masses of the nodes and numbers of the elements (its ``own``),
            made once per run.
        nodes: numbers of nodes that an element may have, 2 or 3.
        forces: ``(own, points, poses, rates, part) -> (n, 6)``: forces on the nodes in the axes of the
            ground [N], and moments in the axes of the nodes [N m]; ``points`` are the beam's entries of
            ``q``.
        energy: ``(own, points, poses, part)`` [J].
        momenta: ``(own, velocities) -> (n, 3)``: momenta that consistent masses add beyond neighbouring
            nodes, or None.
        line: ``(own, values) -> (n, 3)``: forces on the nodes from a force per length with these values at
            the nodes; None: linear shape functions.
        entries: ``(part)``, number of entries of ``q`` of the elements of a beam.
        labels: ``(part)``, names of these entries.
        moved: ``(points, poses, increments, part)``, the entries after increments of the nodes (n, 6).
        placed: ``(poses, part)``, the entries at the start of a run.

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
