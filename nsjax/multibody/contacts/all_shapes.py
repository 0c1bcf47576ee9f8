"""Tables of all kinds of shapes and of their pairs: a new kind, or a new pair, is one entry."""

from __future__ import annotations

import collections
from collections.abc import Iterator
from typing import Any

from nsjax.multibody import symbols as pictures
from nsjax.multibody.contacts import (
    beam_pairs,
    closest_pairs,
    convex_pairs,
    cylinders,
    distance_fields,
    heightfields,
    hulls,
)
from nsjax.multibody.contacts.shape import PairKind, ShapeKind


def _never(x: Any) -> bool:
    """Borders and points do not fill their body."""
    return False


def _with_radius(x: Any) -> bool:
    """A sphere with a radius fills its body, a point does not."""
    return x.radius is not None


def _box_lacks(kind: str) -> Any:
    def lacks(body: str, x: Any, dimension: int) -> str | None:
        return (
            f"a {kind} in space needs half_depth; give it"
            if dimension == 3 and x.half_depth is None
            else None
        )

    return lacks


def _tube_lacks(body: str, x: Any, dimension: int) -> str | None:
    return f"tube of {body!r}, which is no beam; use a capsule" if x.curve is None else None


KINDS: dict[str, ShapeKind] = {
    x.name: x
    for x in (
        ShapeKind("plane", pictures.of_plane, filled=_never),
        ShapeKind(
            "walls", pictures.of_walls, filled=_never,
            instead=((3, "walls are planar; use a plane each"),),
        ),
        ShapeKind("points", pictures.of_points, filled=_never),
        ShapeKind("sphere", pictures.of_sphere, filled=_with_radius),
        ShapeKind("corners", pictures.of_box, lacks=_box_lacks("corners")),
        ShapeKind("box", pictures.of_box, lacks=_box_lacks("box")),
        ShapeKind("capsule", pictures.of_capsule),
        ShapeKind(
            "cylinder", pictures.of_cylinder,
            instead=((2, "a cylinder is spatial; use a sphere, box or capsule"),),
        ),
        ShapeKind("hole", pictures.of_hole),
        ShapeKind(
            "profile", pictures.of_profile,
            instead=((3, "a profile is planar; use a capsule, cylinder or box"),),
        ),
        ShapeKind("tube", pictures.no_picture, lacks=_tube_lacks),
        ShapeKind(
            "hull", pictures.of_hull, instead=((2, "a hull is spatial; use points, corners or a box"),)
        ),
        heightfields.KIND, distance_fields.KIND,
    )
}  # fmt: skip
"""Kinds of shapes by their names."""


# Table of all kinds of pairs of shapes that meet: a new pair of known shapes is one entry here.


Kinds = tuple[str, str]


class PairTable(collections.UserDict[Kinds, PairKind]):
    """Kinds of pairs by both kinds of shapes: entries of this file, and those of `ShapeKind.pairs`."""

    def _brought(self) -> dict[Kinds, PairKind]:
        return {pair.kinds: pair for shape in KINDS.values() for pair in shape.pairs}

    def __missing__(self, kinds: Kinds) -> PairKind:
        return self._brought()[kinds]

    def __contains__(self, kinds: object) -> bool:
        return kinds in self.data or kinds in self._brought()

    def __iter__(self) -> Iterator[Kinds]:
        return iter({**self.data, **self._brought()})

    def __len__(self) -> int:
        return len({**self.data, **self._brought()})


PAIRS = PairTable(
    {
        x.kinds: x
        for x in (
            *closest_pairs.POINT_PAIRS, *closest_pairs.CLOSEST_PAIRS, *cylinders.CYLINDERS,
            *beam_pairs.KINDS, *hulls.KINDS, *convex_pairs.KINDS, *cylinders.CYLINDERS_ON_HULLS,
        )
    }
)  # fmt: skip
"""Kinds of pairs by the names of the kinds of their first and second shape."""
