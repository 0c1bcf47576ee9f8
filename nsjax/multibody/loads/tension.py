"""Tension of springs and dampers as a function of their extension, and the energy that they store."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from nsjax.core import InputError
from nsjax.forms import NumberForm, forms_of
from nsjax.multibody.coordinates import planar_vectors as plane
from nsjax.multibody.number_checks import number
from nsjax.multibody.numbers import Spring
from nsjax.multibody.parts import Part
from nsjax.multibody.user_laws import user_value
from nsjax.types import Array, Fn


def kept_numbers(
    kind: str, name: str, law: Fn | None, own: Any, given: dict[str, Any], **forms: NumberForm
) -> dict[str, Any]:  # fmt: skip
    """Numbers of a spring by name, checked.

    Args:
        kind, name: of the spring, for error messages.
        law, own: the user's law and its numbers.
        given: ends, free length and coefficients by name; None where not given.
        forms: forms that differ from those of the record.

    Raises:
        InputError: for a law that is no function, or that is given with coefficients.
    """
    forms = {**forms_of(Spring), **forms}
    kept = {k: number(kind, name, k, v, form=forms[k]) for k, v in given.items()}
    if law is not None and not callable(law):
        raise InputError(f"{kind} {name!r}: law = {law!r}; it must be a function of extension and rate")
    if law is not None and any(kept[k] is not None for k in kept if k not in ("at", "on", "rest")):
        raise InputError(
            f"{kind} {name!r}: a law is given together with stiffness or damping; put all into the law"
        )
    return kept | {"own": own}


def signed_square(x: Array) -> Array:
    """``|x| x``."""
    return jnp.abs(x) * x


def tension(part: Part, numbers: Any, extension: Any, rate: Any) -> Any:
    """Tension of a spring and damper [N] at an extension and its rate, a scalar; None if it has neither."""
    if part.option("law") is not None:
        given = plane.value(extension), plane.value(rate), numbers.own
        return user_value(part, "law", "e, rate, own", *given, shapes=((),))
    terms = (
        (numbers.stiffness, extension, None), (numbers.quadratic, extension, signed_square),
        (numbers.cubic, extension, lambda x: x**3), (numbers.damping, rate, None),
        (numbers.quadratic_damping, rate, signed_square),
    )  # fmt: skip
    total = None
    for factor, x, shape in terms:
        if factor is not None and x is not None:
            total = plane.plus(total, plane.times(factor, x if shape is None else shape(x)))
    return total


def stored(part: Part, numbers: Any, extension: Any) -> Any:
    """Energy stored in a spring [J], a scalar; None for a law without a potential."""
    if part.option("law") is not None:
        if part.option("potential") is None:
            return None
        return user_value(part, "potential", "e, own", plane.value(extension), numbers.own, shapes=((),))
    e, total = plane.value(extension), None
    for factor, energy in (
        (numbers.stiffness, e * e / 2.0), (numbers.quadratic, jnp.abs(e) ** 3 / 3.0),
        (numbers.cubic, e**4 / 4.0),
    ):  # fmt: skip
        total = plane.plus(total, plane.times(factor, energy))
    return total
