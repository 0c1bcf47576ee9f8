"""Table of the forms that numbers of parts may have, and the checks of a number against it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from nsjax.core import InputError
from nsjax.core.changes import as_number
from nsjax.core.checks import is_traced

REAL = ("i", "u", "f")
"""Kinds of numpy dtypes that are real numbers."""

SHAPES = {
    "one": "one number",
    "point": "a number on the x axis, or a vector of 2 or 3",
    "turn": "an angle, or a rotation vector (3,)",
    "vector": "a vector of 3",
    "each": "one number, or one for each contact",
}
"""Kinds of shapes, with their descriptions in error sentences."""


@dataclasses.dataclass(frozen=True)
class NumberForm:
    """Form that a number of a part may have.

    Args:
        shape: one of `SHAPES`; None: any array with entries.
        most: largest value.
        needed: whether the number must be given.
    """

    shape: str | None = None
    most: float = math.inf
    needed: bool = False

    def fits(self, shape: tuple[int, ...]) -> bool:
        """Whether an array of this shape has this form."""
        if self.shape is None or (shape == () and self.shape != "vector"):
            return 0 not in shape
        wide = {"point": ((2,), (3,)), "turn": ((3,),), "vector": ((3,),)}.get(self.shape, ())
        return shape in wide or (self.shape == "each" and len(shape) == 1 and shape[0] > 0)


ANY, ONE, POINT, NEEDED = (
    NumberForm(),
    NumberForm("one"),
    NumberForm("point"),
    NumberForm("one", needed=True),
)
AXIS = NumberForm("vector", needed=True)
OF_ONE_ROW = {"friction": ONE, "restitution": NumberForm("one", most=1.0)}
"""Forms of joints and tendons, which have one bounded row and limits of one coordinate each."""

FORMS: Mapping[str | tuple[str, str], NumberForm] = {
    **dict.fromkeys(("com", "at", "on", "point", "axis", "second_axis", "normal"), POINT),
    **dict.fromkeys(("armature", "effort", "length", "lower", "upper", "half_depth", "pulley"), ONE),
    **dict.fromkeys(("stiffness", "quadratic", "cubic", "damping", "quadratic_damping"), ONE),
    **dict.fromkeys(("position", "velocity", "reach", "offset"), ONE),
    **dict.fromkeys(("mass", "radius", "pitch", "ratio"), NEEDED),
    "turned": NumberForm("turn"),
    **dict.fromkeys(("friction", "torsional", "rolling"), NumberForm("each")),
    "restitution": NumberForm("each", most=1.0),
    "restitution_tangential": NumberForm("each", most=1.0),
    **{(kind, x): NEEDED for kind in ("corners", "box") for x in ("half_length", "half_height")},
    **{(kind, "half_length"): NEEDED for kind in ("capsule", "cylinder")},
    **{(kind, x): NEEDED for kind in ("circular", "rectangular") for x in ("inner", "nu", "E")},
    **{(kind, "rho"): ONE for kind in ("circular", "rectangular")},
    **{("heightfield", x): NEEDED for x in ("half_length", "half_width")},
    ("sensor", "scale"): NEEDED,
    ("points", "at"): NumberForm(needed=True),
    ("hull", "points"): NumberForm(needed=True),
    ("walls", "lower"): NEEDED,
    ("walls", "upper"): NEEDED,
}
"""Forms by the name of a number, or by the kind of a part and this name, which takes precedence. Joints and
loads pass their own forms to `number`.
"""


def form_of(kind: str, name: str, what: str, value: Any, form: NumberForm | None = None) -> NumberForm:
    """The form of a number, after a check of its shape; ``value`` is an array, a number or None. ``form``
    defaults to that of the table.

    Raises:
        InputError: for None where a number must be given, and for another shape.
    """
    form = form or FORMS.get((kind, what)) or FORMS.get(what) or ANY
    words = SHAPES.get(form.shape or "", "an array of numbers")
    if value is None and form.needed:
        raise InputError(f"{kind} {name!r}: {what} = None; it must be given: {words}")
    if value is not None and not form.fits(np.shape(value)):
        raise InputError(f"{kind} {name!r}: {what} has shape {np.shape(value)}; give {words}")
    return form


def number(
    kind: str, name: str, what: str, value: Any, least: float = -math.inf, form: NumberForm | None = None
) -> Any:  # fmt: skip
    """A number or array as params hold it, checked; ``form`` defaults to that of the table.

    Raises:
        InputError: for a value that is not finite, is below ``least``, or does not have the form.
    """
    value = as_number(value)
    whole = isinstance(value, int | float) and not isinstance(value, bool)
    if value is not None and not whole and getattr(getattr(value, "dtype", None), "kind", "") not in REAL:
        raise InputError(f"{kind} {name!r}: {what} = {value!r}; give a number or an array of numbers")
    form = form_of(kind, name, what, value, form)
    if value is None:
        return None
    if not is_traced(value):
        plain = np.asarray(value, float)
        if not np.all(np.isfinite(plain)):
            raise InputError(f"{kind} {name!r}: {what} = {plain.tolist()}; it must be finite")
        if not np.all(plain >= least):
            raise InputError(f"{kind} {name!r}: {what} = {plain.tolist()}; it must be at least {least:g}")
        if not np.all(plain <= form.most):
            raise InputError(
                f"{kind} {name!r}: {what} = {plain.tolist()}; it must be at most {form.most:g}"
            )
        return float(plain) if plain.ndim == 0 else plain
    return value


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
    lower, upper = (number(kind, name, x, y) for x, y in zip(("lower", "upper"), limits, strict=True))
    if not is_traced((lower, upper)) and None not in (lower, upper) and not lower < upper:
        raise InputError(f"{kind} {name!r}: limits = {limits}; the lower must be below the upper")
    return lower, upper
