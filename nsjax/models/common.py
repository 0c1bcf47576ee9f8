"""Helpers shared by the model constructors."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from nsjax.contact import ContactLaw
from nsjax.core import InputError, Problem, nearest
from nsjax.core.changes import as_number
from nsjax.core.checks import is_traced
from nsjax.types import Array


def constructor(parameters: type[Any]) -> Callable[[Callable[..., Problem]], Callable[..., Problem]]:
    """Gives a model constructor the fields of its parameter record as keywords.

    The decorated function takes the finished record first, then its own keywords. Callers see all
    of them in the signature, and an unknown name is answered with the nearest known one.
    """

    def decorate(build: Callable[..., Problem]) -> Callable[..., Problem]:
        own = list(inspect.signature(build).parameters.values())[1:]
        fields = [
            inspect.Parameter(f.name, inspect.Parameter.KEYWORD_ONLY, default=f.default)
            for f in dataclasses.fields(parameters)
        ]
        names = [p.name for p in (*own, *fields)]

        @functools.wraps(build)
        def construct(*first: Any, **given: Any) -> Problem:
            for name in given:
                if name not in names:
                    raise InputError(
                        f"{build.__name__}: unknown parameter {name!r}; {nearest(name, names)}"
                    )
            numbers = {f.name: as_number(given.pop(f.name)) for f in fields if f.name in given}
            return build(parameters(**numbers), *first, **given)

        construct.__signature__ = inspect.Signature([*own, *fields])  # type: ignore[attr-defined]
        return construct

    return decorate


def contact_law(p: Any) -> ContactLaw:
    """Impact and friction law of all contacts of a model whose parameters have their usual names."""
    return ContactLaw(
        restitution=p.restitution,
        restitution_tangential=p.restitution_tangential,
        friction=p.friction,
    )


def vector(values: Any, size: int | None = None) -> Any:
    """Start values as a float64 vector: numpy for plain numbers, so that constructing a model
    touches no device, jax for traced ones. A scalar is repeated ``size`` times.
    """
    if is_traced(values):
        array: Array = jnp.asarray(values, float)
        return array if size is None else jnp.broadcast_to(array, (size,))
    if hasattr(values, "dtype") and size is None:
        return values  # keeps its type: single precision is refused later, not widened here
    plain = np.asarray(values, float)
    return plain if size is None else np.broadcast_to(plain, (size,))
