"""Checks of the numbers of parts against the forms of their fields."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np

from nsjax.core import InputError
from nsjax.core.changes import as_number
from nsjax.core.checks import is_traced
from nsjax.forms import ANY, SHAPES, NumberForm, forms_of
from nsjax.multibody import numbers

T = TypeVar("T")

REAL = ("i", "u", "f")
"""Kinds of numpy dtypes that are real numbers."""

ONE, POINT = NumberForm("one"), NumberForm("point")
NEEDED = NumberForm("one", needed=True)
AXIS = NumberForm("vector", needed=True)
LENGTH = NumberForm("one", least=0.0, needed=True)
POSITIVE = NumberForm("one", positive=True, needed=True)

RECORDS = {
    "points": numbers.Points, "corners": numbers.Corners, "box": numbers.Corners, "point": numbers.Ball,
    "sphere": numbers.Ball, "capsule": numbers.Round, "cylinder": numbers.Round, "tube": numbers.Tube,
    "walls": numbers.Walls, "plane": numbers.Plane, "contact": numbers.Contact,
    "spheres": numbers.Contact, "contact_group": numbers.ContactGroup,
}  # fmt: skip
"""Records of the numbers of shapes and contacts."""

FORMS: Mapping[tuple[str, str], NumberForm] = {
    **{(kind, name): form for kind, x in RECORDS.items() for name, form in forms_of(x).items()},
    **{(kind, "half_length"): NEEDED for kind in ("capsule", "cylinder")},
    **{("heightfield", x): NEEDED for x in ("half_length", "half_width")},
    ("heightfield", "at"): POINT,
    ("heightfield", "turned"): NumberForm("turn"),
    ("hull", "points"): NumberForm(needed=True),
}
"""Forms of the numbers of shapes and contacts, by the kind and the name of a number. All other parts pass
their forms to `number`, or their records to `record_of`.
"""


def number(
    kind: str, name: str, what: str, value: Any, least: float = -math.inf, form: NumberForm | None = None
) -> Any:  # fmt: skip
    """A number or array as params hold it, checked; ``form`` defaults to that of the table.

    Raises:
        InputError: for None where a number must be given, and for a value that is not finite, is below
            ``least``, or does not have the form.
    """
    value = as_number(value)
    whole = isinstance(value, int | float) and not isinstance(value, bool)
    if value is not None and not whole and getattr(getattr(value, "dtype", None), "kind", "") not in REAL:
        raise InputError(f"{kind} {name!r}: {what} = {value!r}; give a number or an array of numbers")
    form = form or FORMS.get((kind, what), ANY)
    words = SHAPES[form.shape][0] if form.shape else "an array of numbers"
    if value is None:
        if form.needed:
            raise InputError(f"{kind} {name!r}: {what} = None; it must be given: {words}")
        return None
    if not form.fits(np.shape(value)):
        raise InputError(f"{kind} {name!r}: {what} has shape {np.shape(value)}; give {words}")
    if not is_traced(value):
        plain = np.asarray(value, float)
        if not np.all(np.isfinite(plain)):
            raise InputError(f"{kind} {name!r}: {what} = {plain.tolist()}; it must be finite")
        if form.positive and not np.all(plain > 0.0):
            raise InputError(f"{kind} {name!r}: {what} = {plain.tolist()}; it must be positive")
        least = max(least, -math.inf if form.moments else form.least)
        if not np.all(plain >= least):
            raise InputError(f"{kind} {name!r}: {what} = {plain.tolist()}; it must be at least {least:g}")
        if not np.all(plain <= form.most):
            raise InputError(
                f"{kind} {name!r}: {what} = {plain.tolist()}; it must be at most {form.most:g}"
            )
        return float(plain) if plain.ndim == 0 else plain
    return value


def record_of(kind: type[T], part: str, name: str, **given: Any) -> T:
    """A record of the numbers of a part, checked against the forms of its fields.

    Args:
        kind: class of the record.
        part, name: kind and name of the part, for error sentences.
        given: its fields; those without a form are taken as they are.

    Raises:
        InputError: see `number`.
    """
    forms = forms_of(kind)
    kept = {k: number(part, name, k, x, form=forms[k]) for k, x in given.items() if k in forms}
    return kind(**{**given, **kept})


def limits_of(kind: str, name: str, limits: Any) -> tuple[Any, Any]:
    """Lower and upper limit, checked; None: no limit on that side.

    Raises:
        InputError: for a value that is no pair, and for limits in the wrong order.
    """
    if limits is None:
        return None, None
    pair = isinstance(limits, tuple | list) or getattr(limits, "ndim", 0) == 1
    if not pair or len(limits) != 2:
        raise InputError(
            f"{kind} {name!r}: limits = {limits!r}; give the lower and the upper one, None for none"
        )
    lower, upper = (number(kind, name, k, limits[i], form=ONE) for i, k in enumerate(("lower", "upper")))
    if not is_traced((lower, upper)) and None not in (lower, upper) and not lower < upper:
        raise InputError(f"{kind} {name!r}: limits = {limits}; the lower must be below the upper")
    return lower, upper
