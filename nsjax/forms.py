"""Forms of the numbers of records: unit, bounds and shape stand with the field of a number.

The checks of parts, of replaced numbers, of runs and of lanes read them there.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping
from typing import Any

SHAPES: dict[str, tuple[str, tuple[tuple[int, ...], ...]]] = {
    "one": ("one number", ((),)),
    "point": ("a number on the x axis, or a vector of 2 or 3", ((), (2,), (3,))),
    "turn": ("an angle, or a rotation vector (3,)", ((), (3,))),
    "vector": ("a vector of 3", ((3,),)),
    "pair": ("one number, or two, for both section axes", ((), (2,))),
    "each": ("one number, or one for each contact", ((),)),
}
"""Kinds of shapes: their descriptions in error sentences, and the shapes."""


@dataclasses.dataclass(frozen=True)
class NumberForm:
    """Form that a number may have.

    Args:
        shape: one of `SHAPES`; None: any array with entries.
        least, most: smallest and largest value; of a symmetric matrix the diagonal counts.
        positive: whether zero is refused, too.
        needed: whether the number must be given.
        moments: whether these are moments of inertia, of which none exceeds the sum of the others.
        members: whether the last axis counts bodies, each with a number of its own.
        unit: for labels; "" for a number without one, or with one that depends on its part.
    """

    shape: str | None = None
    least: float = -math.inf
    most: float = math.inf
    positive: bool = False
    needed: bool = False
    moments: bool = False
    members: bool = False
    unit: str = ""

    def fits(self, shape: tuple[int, ...]) -> bool:
        """Whether an array of this shape has this form."""
        if self.shape is None or (self.shape == "each" and len(shape) == 1):
            return 0 not in shape
        return shape in SHAPES[self.shape][1]


ANY = NumberForm()


def quantity(unit: str = "", default: Any = dataclasses.MISSING, **form: Any) -> Any:
    """A field of a record with the form of its number.

    Args:
        unit: of the number.
        default: of the field; without one the field must be given.
        form: other arguments of `NumberForm`.

    Example:
        >>> from nsjax.forms import form_of, quantity
        >>> from nsjax.types import record
        >>> @record()
        ... class Rod:
        ...     mass: float = quantity("kg", 1.0, least=0.0)
        >>> form_of(Rod, "mass").least, form_of(Rod, "mass").unit
        (0.0, 'kg')
    """
    return dataclasses.field(default=default, metadata={"form": NumberForm(unit=unit, **form)})


def forms_of(kind: Any) -> Mapping[str, NumberForm]:
    """Forms of the numbers of a class of records, by name; fields without a form are left out."""
    return _forms_of(kind)


@functools.cache
def _forms_of(kind: Any) -> Mapping[str, NumberForm]:
    fields = dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else ()
    return {x.name: x.metadata["form"] for x in fields if "form" in x.metadata}


def form_of(kind: Any, name: str) -> NumberForm:
    """Form of a number of a class of records; any array where the class says nothing."""
    return _forms_of(kind).get(name, ANY)
