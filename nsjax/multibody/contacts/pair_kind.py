"""The record of a pair of shapes: number of contacts, gaps and normals."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from nsjax.multibody.contacts.closest_points import Met
from nsjax.multibody.coordinates.frames import Scene
from nsjax.multibody.parts import Part


@dataclasses.dataclass(frozen=True)
class PairKind:
    """Contacts of two kinds of shapes: one entry of `nsjax.multibody.contacts.all_pairs.KINDS`, and all
    that is known of them.

    Args:
        first, second: kinds of the shapes, see `nsjax.multibody.contacts.shape_parts.Shape`.
        meet: ``(scene, part, numbers, near) -> Met``, where they meet, from the frames of their bodies;
            ``near`` is what ``hold`` has found, None: it is looked for.
        count: contacts of a pair; a function ``(part, numbers, dimension) -> int`` where they depend on the
            numbers or on the dimension.
        hold: ``(scene, part, numbers)``, what a step holds fixed: closest points or features that are
            searched for; None: nothing.
        follows: whether points of what is held are found anew, the nearest ones, so that the rate of a
            gap is the velocity of one of its points against the other along the normal.
        check: ``(name, first, second)`` of a contact and the numbers of its shapes; raises for those that
            do not meet.
        rigid: whether both shapes stand on one body each; beams do not.

    Example:
        >>> from nsjax.multibody.contacts.all_pairs import KINDS
        >>> KINDS["capsule", "plane"].count
        2
    """

    first: str
    second: str
    meet: Callable[[Scene, Part, Any, Any], Met]
    count: int | Callable[[Part, Any, int], int] = 1
    hold: Callable[[Scene, Part, Any], Any] | None = None
    check: Callable[[str, Any, Any], None] | None = None
    rigid: bool = True
    follows: bool = False

    @property
    def rate_at_points(self) -> bool:
        """Whether rates of its gaps are those of its points."""
        return self.rigid and (self.hold is None or self.follows)

    @property
    def kinds(self) -> tuple[str, str]:
        """The kinds of both shapes."""
        return self.first, self.second
