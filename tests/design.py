"""Designs of tests: which options meet in place of all products."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

FAMILIES = (
    ("moreau", "moreau_theta", "ggl_decoupled", "ggl_unified"),
    ("half_explicit", "generalized_alpha", "hht", "newmark", "bathe", "ed_alpha"),
    ("nsga_decoupled", "nsga_neglected", "nsga_coupled"),
)
"""Registered schemes by what steps are made of: impulses, the mixed framework, velocity jumps."""


def drawn(key: str, shift: int = 0) -> tuple[str, ...]:
    """One scheme of each family; other keys and shifts draw others, the next shift the next of a family."""
    start = zlib.crc32(key.encode()) + shift
    return tuple(family[start % len(family)] for family in FAMILIES)


def each_family(axis: str, *quick: str, beside: Sequence[str] = ()) -> Callable[[Any], Any]:
    """Parametrises a test by one scheme of each family, drawn by its name, with ``-m slow``.

    Those in ``quick`` stand for their families and run always; those ``beside`` belong to none.
    """

    def mark(test: Any) -> Any:
        pairs = zip(FAMILIES, drawn(test.__name__), strict=True)
        others = [name for family, name in pairs if not set(family) & set(quick)]
        slow = [pytest.param(x, marks=pytest.mark.slow) for x in (*others, *beside)]
        return pytest.mark.parametrize(axis, [*quick, *slow])(test)

    return mark


def slow_but(values: Iterable[Any], *quick: Any) -> list[Any]:
    """Values of a parametrisation of which all but ``quick`` ones run with ``-m slow`` alone."""
    return [x if x in quick else pytest.param(x, marks=pytest.mark.slow) for x in values]


def in_turn(names: Iterable[Any], *others: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Every name with one value of each other option, the next name with the next: families stand together
    in lists of schemes, so that each meets every value.
    """
    return [(x, *(other[k % len(other)] for other in others)) for k, x in enumerate(names)]
