"""The record of a kind of pair of shapes: number of contacts, gap function and features held in a step."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from nsjax.multibody.contacts.closest_points import ShapeContacts
from nsjax.multibody.coordinates.frames import Scene
from nsjax.multibody.parts import Part


@dataclasses.dataclass(frozen=True)
class PairKind:
    """Contacts of two kinds of shapes: an entry of `nsjax.multibody.contacts.all_pairs.KINDS` with all that
    defines them.

    Args:
        first, second: kinds of the shapes, see `nsjax.multibody.contacts.shape_parts.Shape`.
        meet: ``(scene, part, numbers, near) -> ShapeContacts``, the contacts, from the frames of both
        bodies;
            ``near`` is the result of ``hold``, None: the features are searched for.
        count: number of contacts of a pair; a function ``(part, numbers, dimension) -> int`` where it
            depends on the numbers or on the dimension.
        hold: ``(scene, part, numbers)``, the features that a step holds fixed: closest points, or corners,
            edges and faces; None: none.
        check: ``(name, first, second)``, name of a contact and numbers of its shapes; raises where these
            shapes cannot meet.
        rigid: whether each shape is fixed to one rigid body; the surface of a beam is not.
        follows: whether ``meet`` finds the closest points of held features anew, so that the rate of a gap
            is the relative velocity of its points along the normal.

    Example:
        >>> from nsjax.multibody.contacts.all_pairs import KINDS
        >>> KINDS["capsule", "plane"].count
        2
    """

    first: str
    second: str
    meet: Callable[[Scene, Part, Any, Any], ShapeContacts]
    count: int | Callable[[Part, Any, int], int] = 1
    hold: Callable[[Scene, Part, Any], Any] | None = None
    check: Callable[[str, Any, Any], None] | None = None
    rigid: bool = True
    follows: bool = False

    @property
    def rate_at_points(self) -> bool:
        """Whether the rate of a gap is the relative velocity of its points along the normal."""
        return self.rigid and (self.hold is None or self.follows)

    @property
    def kinds(self) -> tuple[str, str]:
        """The kinds of both shapes."""
        return self.first, self.second
