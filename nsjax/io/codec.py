"""Trees of records and numbers, encoded without pickles as named arrays and a description."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import jax
import numpy as np

from nsjax.core import InputError
from nsjax.io.names import find_record, is_record, public_name
from nsjax.types import PyTree

Description = dict[str, Any] | None


def describe(name: str, value: PyTree, arrays: dict[str, np.ndarray]) -> Description:
    """Puts every number of ``value`` into ``arrays`` under a dotted name and returns a description of their
    structure in types of JSON.

    Args:
        name: first part of the dotted names, such as ``"params"``.
        value: numbers, arrays, strings, None, and tuples, lists, dicts and records of them.
        arrays: dict that receives the arrays.

    Raises:
        InputError: for other values, functions for instance.

    Example:
        >>> from nsjax.io.codec import describe
        >>> arrays = {}
        >>> describe("p", {"k": 2.0}, arrays), arrays
        ({'dict': {'k': {'number': 'p.k'}}}, {'p.k': array(2.)})
    """
    if value is None:
        return None
    if isinstance(value, str):
        return {"text": value}
    if isinstance(value, bool | int | float):
        return {"number": _put(name, value, arrays)}
    if isinstance(value, np.ndarray | np.generic | jax.Array):
        return {"array": _put(name, value, arrays)}
    if isinstance(value, Mapping):
        return {"dict": _describe_all(name, value, arrays)}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
        return {"record": public_name(type(value)), "fields": _describe_all(name, fields, arrays)}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        fields = {field: getattr(value, field) for field in value._fields}
        return {"record": public_name(type(value)), "fields": _describe_all(name, fields, arrays)}
    if isinstance(value, tuple | list):
        parts = [describe(f"{name}.{i}", part, arrays) for i, part in enumerate(value)]
        return {"tuple" if isinstance(value, tuple) else "list": parts}
    raise InputError(f"{name} = {value!r} cannot be saved; numbers, strings and records of them only")


def _describe_all(
    name: str, values: Mapping[Any, PyTree], arrays: dict[str, np.ndarray]
) -> dict[str, Description]:
    for key in values:
        if not isinstance(key, str):
            raise InputError(f"{name} has the key {key!r}, which cannot be saved; use strings")
    return {key: describe(f"{name}.{key}", part, arrays) for key, part in values.items()}


def _put(name: str, value: Any, arrays: dict[str, np.ndarray]) -> str:
    if isinstance(value, jax.core.Tracer):
        raise InputError(f"{name} is traced; save outside jit, vmap and grad")
    array = np.asarray(value)
    if array.dtype.kind not in "biufc":
        raise InputError(f"{name} has type {array.dtype}, which cannot be saved; use plain numbers")
    if name in arrays:
        raise InputError(f"two numbers would be saved as {name}; give their keys names without dots")
    arrays[name] = array
    return name


def entries_of(description: Any) -> Iterator[str]:
    """Names of the arrays of a description."""
    if isinstance(description, list):
        description = dict(enumerate(description))
    for kind, content in description.items() if isinstance(description, dict) else ():
        if kind in ("number", "array") and isinstance(content, str):
            yield content
        else:
            yield from entries_of(content)


class ChangedRecordError(InputError):
    """A saved record lacks fields that this version needs, or has fields that it does not know."""


def rebuild(
    description: Description, arrays: Mapping[str, np.ndarray], known: Mapping[str, type[Any]]
) -> PyTree:
    """The value that `describe` described.

    Args:
        description, arrays: from `describe`.
        known: record types by name, for records that are not nsjax's: the module in which a type was
            defined when it was saved (a script, for instance) need not be importable now.

    Raises:
        InputError: for a record type that does not exist (any more).
        ChangedRecordError: for a record whose fields changed; new fields take their default value.
        KeyError: for a missing array.
    """
    if description is None:
        return None
    (kind, content) = next(iter(description.items()))
    if kind == "text":
        return content
    if kind == "number":
        return arrays[content].item()
    if kind == "array":
        return arrays[content]
    if kind in ("tuple", "list"):
        parts = [rebuild(part, arrays, known) for part in content]
        return tuple(parts) if kind == "tuple" else parts
    if kind == "dict":
        return {key: rebuild(part, arrays, known) for key, part in content.items()}
    fields = {key: rebuild(part, arrays, known) for key, part in description["fields"].items()}
    own = content.startswith("nsjax.") or ":" not in content
    cls = find_record(content) if own else known.get(content.partition(":")[2]) or _find(content)
    _check_fields(content, cls, fields)
    return cls(**fields)


def _check_fields(name: str, cls: type[Any], fields: Mapping[str, Any]) -> None:
    """Refuses fields that do not fit the record; a field with a default value may be absent."""
    if dataclasses.is_dataclass(cls):
        missing = dataclasses.MISSING
        known = {
            f.name: f.default is missing and f.default_factory is missing for f in dataclasses.fields(cls)
        }
    else:
        known = {field: field not in cls._field_defaults for field in cls._fields}
    faults = [f"lacks {field}" for field, needed in known.items() if needed and field not in fields]
    faults += [f"has {field}, which is unknown now" for field in fields if field not in known]
    if faults:
        raise ChangedRecordError(
            f"the saved record {name} does not fit this version: it {', '.join(faults)}"
        )


def _find(name: str) -> type[Any]:
    """A user's record type by its class path, from a module that is already imported."""
    module_name, _, qualified = name.partition(":")
    found: Any = sys.modules.get(module_name)
    if found is None:
        raise InputError(f"the saved record {name} is unknown; import {module_name} before loading")
    for part in qualified.split("."):
        found = getattr(found, part, None)
    if not is_record(found):
        raise InputError(f"the saved record {name} does not exist in {module_name}; put the class there")
    cls: type[Any] = found
    return cls


def record_types(tree: PyTree) -> dict[str, type[Any]]:
    """The record types that occur in a tree, by name."""
    found: dict[str, type[Any]] = {}
    parts: list[PyTree] = []
    if dataclasses.is_dataclass(tree) and not isinstance(tree, type):
        found[type(tree).__qualname__] = type(tree)
        parts = [getattr(tree, f.name) for f in dataclasses.fields(tree)]
    elif isinstance(tree, Mapping):
        parts = list(tree.values())
    elif isinstance(tree, tuple | list):
        if hasattr(tree, "_fields"):
            found[type(tree).__qualname__] = type(tree)
        parts = list(tree)
    for part in parts:
        found |= record_types(part)
    return found
