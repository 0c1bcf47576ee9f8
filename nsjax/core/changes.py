"""Replacement of numbers of a problem, by the names of `nsjax.core.keys`, for `Problem.replace`."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.core.errors import InputError, nearest
from nsjax.core.keys import (
    START,
    Key,
    above,
    child,
    dotted,
    is_group,
    is_number,
    names,
    parse_parameter,
    put,
    refuse_twice,
)
from nsjax.forms import form_of
from nsjax.types import PyTree

WHO = "replace"


def as_number(value: Any) -> Any:
    """A list or tuple of numbers as one array, so that it is one parameter instead of many; any other value
    unchanged.
    """
    if not isinstance(value, list | tuple):
        return value
    traced = any(isinstance(x, jax.core.Tracer) for x in value)
    with contextlib.suppress(TypeError, ValueError):  # words, None, and rows of several lengths
        return jnp.asarray(value) if traced else np.asarray(value, float)
    return value


def all_changes(numbers: Mapping[str, Any] | None, named: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Pairs of name and value from a mapping and from keywords.

    Raises:
        InputError: for ``numbers`` that are no mapping.
    """
    if not isinstance(numbers, Mapping | None):
        raise InputError(f"{WHO}: {numbers!r} is no mapping; give {{name: value}}, or name=value")
    return [*(numbers or {}).items(), *named.items()]


def changed(
    base: dict[str, PyTree], changes: Iterable[tuple[str, Any]], *, fixed: bool = False
) -> dict[str, PyTree]:
    """The numbers with some of them replaced, by name.

    Args:
        base: ``params`` and ``state`` of a problem.
        changes: pairs of a name, in which ``params.`` may be left out, and a value; ``params`` or ``state``
            for all of them.
        fixed: whether numbers that are None must stay None, and arrays their lengths, as in mechanisms of
            parts, whose equations belong to them.

    Raises:
        InputError: for an unknown name, a name given twice, a value that is no number in place of a
            number, one of another shape, and one that leaves out some of several numbers.

    Example:
        >>> from nsjax.core.changes import changed
        >>> changed({"params": {"rod": {"mass": 1.0, "length": 2.0}}}, [("rod.mass", 0.05)])
        {'params': {'rod': {'mass': 0.05, 'length': 2.0}}}
    """
    seen: list[Key] = []
    for text, value in changes:
        key = key_of(base, text)
        refuse_twice(key, seen, WHO, "give it once")
        node: Any = base
        for name in key.path:
            if name not in names(node):
                raise InputError(f"{WHO}: unknown parameter {key.text!r}; {_hint(base, key.text)}")
            node = child(node, name)
        if fixed and value is None and node is not None:
            raise InputError(f"{WHO}: {text} = None; its equations read it: give a number")
        if fixed and node is None and value is not None:
            raise InputError(f"{WHO}: {text} is not set, and nothing reads it; {_beside(base, key)}")
        if key.index is None:
            value = _fitting(node, value, text)
            if fixed:
                _check_shape(base, key, node, value)
            base = put(base, key, value)
        elif np.ndim(node) == 1 and key.index < np.shape(node)[0]:
            base = put(base, key, value)
        else:
            raise InputError(f"{WHO}: {text}: the array has shape {np.shape(node)}; there is no such entry")
    return base


def _check_shape(base: Mapping[str, PyTree], key: Key, node: Any, value: Any) -> None:
    """Refuses an array in place of one number, and an array of another length.

    A point may be one number or a vector, an inertia a vector or a matrix: the model's functions see these.
    """
    if is_number(node) and isinstance(value, list | tuple):
        raise InputError(
            f"{WHO}: {key.text} = {value!r}; give a number, or an array with rows of one length"
        )
    if not (is_number(node) and is_number(value)):
        return
    old, new = np.shape(node), np.shape(value)
    if form_of(type(above(base, key)), key.path[-1]).shape == "one" and new and not old:
        raise InputError(f"{WHO}: {key.text} has shape {new}; give one number; nsjax.sweep takes several")
    if old and len(old) == len(new) and old != new and "own" not in key.path:
        raise InputError(f"{WHO}: {key.text} has shape {new}; give an array of the shape {old} that it has")


def key_of(base: Mapping[str, PyTree], text: str) -> Key:
    """The key of a name. A parameter with exactly this name comes first, even if the name looks like a
    path; ``params`` and ``state`` mean all of their numbers.
    """
    if text in names(base["params"]):
        return Key(text, ("params", text), None)
    if text in base:
        return Key(text, (text,), None)
    key = parse_parameter(text, WHO)
    if key.path[0] == "scheme":
        raise InputError(f"{WHO}: {text}: numbers of the scheme are given where the scheme is made")
    return dataclasses.replace(key, text=text)


def _beside(base: Mapping[str, PyTree], key: Key) -> str:
    """End of a sentence about a number that is not set; it lists the other numbers of its group."""
    whole = ".".join(key.path[1:-1])
    given = [f"{whole}.{x}".lstrip(".") for x in dotted(above(base, key))]
    return f"give it where the part is made, or change one of {', '.join(given) or 'its other numbers'}"


def _hint(base: Mapping[str, PyTree], text: str) -> str:
    if text.startswith("state."):
        return nearest(text, [f"state.{name}" for name in names(base["state"])])
    return nearest(text.removeprefix("params."), [*dotted(base["params"]), *START])


def _fitting(node: Any, value: Any, place: str) -> Any:
    """``value`` in the form of the ``node`` that it replaces: a group needs exactly the same names."""
    if not is_group(node):
        if is_group(value) and is_number(node):
            raise InputError(f"{WHO}: {place} = {value!r}; it is one number or array, give another one")
        return as_number(value)
    if not isinstance(value, Mapping) and type(value) is type(node):
        return value
    if not is_group(value) or set(names(value)) != set(names(node)):
        given = [name for name in names(value) if name in names(node)] if is_group(value) else []
        wanted = " or ".join(f"{place}.{name}" for name in given or dotted(node))
        raise InputError(f"{WHO}: {place} = {value!r} leaves out some of its numbers; give {wanted}")
    for name in names(node):
        part = _fitting(child(node, name), child(value, name), f"{place}.{name}")
        node = put({"": node}, Key(place, ("", name), None), part)[""]
    return node
