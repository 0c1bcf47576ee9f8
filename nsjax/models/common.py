"""Helpers shared by the model constructors."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np

from nsjax.contact import ContactLaw
from nsjax.core import InputError, Problem
from nsjax.core.arguments import check_switches
from nsjax.core.checks import canonical
from nsjax.core.errors import check_known
from nsjax.core.keys import as_number
from nsjax.types import Array, is_traced

OTHER_KINDS = (
    ("flexible_cube", "elements"),
    ("slider_crank_flexible", "modes"),
    *(("flexible_solid", name) for name in ("contact", "fixed")),
)
"""Keywords that accept several kinds of values; `check_given` leaves their check to the models."""

ONE_NUMBER = (
    *((model, name) for model in ("block", "flexible_cube") for name in ("height", "ground")),
    *(("flexible_pendulum", name) for name in ("angle", "speed", "length")),
    ("rubbing_rotor", "speed"),
)
"""Keywords that must be a scalar, because a model computes its initial state from them."""


def constructor(parameters: type[Any]) -> Callable[[Callable[..., Problem]], Callable[..., Problem]]:
    """Decorator that gives a model constructor the fields of its parameter record as keywords.

    The decorated function takes the finished record first, then its own keywords. Callers see all
    keywords in the signature; the error for an unknown keyword names the nearest known one.
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
                check_known(f"{build.__name__}: unknown parameter", name, names)
            given = {k: int(x) if isinstance(x, np.integer) else x for k, x in given.items()}
            check_given(build.__name__, {p.name: p.default for p in (*own, *fields)}, given)
            numbers = {f.name: as_number(given.pop(f.name)) for f in fields if f.name in given}
            return build(parameters(**numbers), *first, **given)

        construct.__signature__ = inspect.Signature([*own, *fields])  # type: ignore[attr-defined]
        return construct

    return decorate


def check_given(who: str, defaults: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Refuses keywords whose value is not of the kind of their default: word, whole number, number."""
    for name, value in given.items():
        default = defaults[name]
        if (who, name) in OTHER_KINDS or value is default or default is inspect.Parameter.empty:
            continue
        if isinstance(default, str):
            if not isinstance(value, str):
                raise InputError(f"{who}: {name} = {value!r}; give a word, {default!r} for instance")
        elif isinstance(default, bool):
            check_switches(who, **{name: value})
        elif isinstance(default, int):
            if not isinstance(value, int) or isinstance(value, bool):
                raise InputError(f"{who}: {name} = {value!r}; give a whole number")
        elif value is None or isinstance(value, Mapping):
            raise InputError(f"{who}: {name} = {value!r}; give numbers, or leave it out")
        else:
            shape = np.shape(canonical(as_number(value), f"{who}: {name}"))
            if 0 in shape or (shape and (who, name) in ONE_NUMBER):
                raise InputError(f"{who}: {name} has shape {shape}; give one number")


def contact_law(p: Any) -> ContactLaw:
    """Impact and friction law of all contacts, from the parameters with the usual names."""
    return ContactLaw(
        restitution=p.restitution, restitution_tangential=p.restitution_tangential, friction=p.friction,
    )  # fmt: skip


def vector(values: Any, size: int | None = None) -> Any:
    """Initial values as a float64 vector. Plain numbers become numpy arrays, so that constructing a model
    touches no device; traced ones become jax arrays. A scalar is repeated ``size`` times.
    """
    if is_traced(values):
        array: Array = jnp.asarray(values, float)
        return array if size is None else jnp.broadcast_to(array, (size,))
    if hasattr(values, "dtype") and size is None:
        return values  # keeps its type: `simulate` refuses single precision
    plain = np.asarray(values, float)
    if size is not None and plain.shape not in ((), (size,)):
        raise InputError(f"a start has {plain.tolist()}; give one number, or {size} of them")
    return plain if size is None else np.broadcast_to(plain, (size,))
