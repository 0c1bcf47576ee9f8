"""Numbers that must not be negative: masses, lengths and coefficients that a record names as such.

A mass matrix may stay positive definite with a small negative mass in it, so that no later check sees it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from nsjax.core.errors import InputError
from nsjax.core.keys import Key, above, child, is_group, names
from nsjax.types import PyTree

ROUNDING = 1e-9
"""Negative values that are accepted, relative to the largest entry of their array: a moment of inertia of a
thin rod whose axes were turned."""


def is_signed(record: Any, name: str) -> bool:
    """Whether the class of a record lists a number in ``not_negative``.

    Example:
        >>> from nsjax.core.signs import is_signed
        >>> from nsjax.multibody.numbers import Body
        >>> is_signed(Body(mass=1.0), "mass"), is_signed(Body(mass=1.0), "com")
        (True, False)
    """
    return name in getattr(type(record), "not_negative", ())


def negative(value: Any, axes: int = 0) -> np.ndarray:
    """Whether values have an entry below zero; of symmetric matrices the diagonal counts.

    Args:
        value: array with ``axes`` leading axes, for which the result has an entry each.
        axes: number of leading axes.
    """
    x = np.asarray(value, float)
    if x.ndim == axes + 2:
        x = np.diagonal(x, axis1=-2, axis2=-1)
    x = x.reshape(*x.shape[:axes], -1)
    size = np.max(np.abs(x), axis=-1, initial=0.0) if x.shape[-1] > 1 else np.zeros(x.shape[:axes])
    below: np.ndarray = np.min(x, axis=-1, initial=0.0) < -ROUNDING * size
    return below


def check_signs(params: PyTree) -> None:
    """Refuses negative values of numbers that their record lists in ``not_negative``.

    Raises:
        InputError: for the first of them.
    """
    for name, value in _signed(params):
        if value is not None and negative(value):
            raise refusal(name, value)


def is_signed_key(base: Mapping[str, PyTree], key: Key) -> bool:
    """Whether a key names a number that must not be negative."""
    return is_signed(above(base, key), key.path[-1])


def refusal(name: str, value: Any) -> InputError:
    """The error for a negative value."""
    return InputError(f"{name} = {np.asarray(value).tolist()}; it must not be negative")


def _signed(node: PyTree, place: str = "") -> Iterator[tuple[str, Any]]:
    own = getattr(type(node), "not_negative", ())
    # `child` looks a name up among all of a mapping: too slow for each part of a large mechanism
    below = (
        node.items() if isinstance(node, Mapping) else ((name, child(node, name)) for name in names(node))
    )
    for name, value in below:
        if name in own:
            yield f"{place}{name}", value
        elif is_group(value) or isinstance(value, list | tuple):
            yield from _signed(value, f"{place}{name}.")
