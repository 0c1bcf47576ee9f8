"""Names of the numbers of a problem: ``"params.friction"``, ``"state.v[1]"``, ``"scheme.rho_inf"``."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.core.errors import InputError, nearest
from nsjax.types import Array, PyTree

ROOTS = ("params", "state", "scheme")
START = {"initial_time": "state.t", "initial_q": "state.q", "initial_v": "state.v"}


@dataclasses.dataclass(frozen=True)
class Key:
    """Place of a varied number: ``params.friction``, ``state.v[1]``, ``scheme.rho_inf`` or ``dt``.

    Args:
        text: as the user wrote it.
        path: root and names of the fields below it.
        index: entry of the array found there, None for all of it.
    """

    text: str
    path: tuple[str, ...]
    index: int | None

    def overlaps(self, other: Key) -> bool:
        """Whether both name the same number, or one a group or an array and the other a part of it."""
        if self.path != other.path:
            whole, part = sorted((self.path, other.path), key=len)
            return part[: len(whole)] == whole
        return self.index == other.index or self.index is None or other.index is None


def parse(text: str, who: str) -> Key:
    """The key of a name; ``who`` is the caller that error sentences name.

    Raises:
        InputError: for a name that does not start with params, state or scheme and is not dt.

    Example:
        >>> from nsjax.core.keys import parse
        >>> key = parse("state.v[1]", "sweep")
        >>> key.path, key.index
        (('state', 'v'), 1)
    """
    found = re.fullmatch(r"([A-Za-z_]\w*(?:\.\w+)*)(?:\[(\d+)\])?", text) if isinstance(text, str) else None
    if found is None:
        raise InputError(f"{who}: {text!r} is no key; write 'params.friction', 'state.v[1]' or 'dt'")
    path = tuple(found[1].split("."))
    index = None if found[2] is None else int(found[2])
    if path == ("dt",) and index is None:
        return Key(text, path, None)
    if path[0] not in ROOTS or len(path) < 2:
        hints = {
            "params": "params.NAME", "state": "state.q", "scheme": "scheme.NAME", "start": "state.q[0]",
            "initial_q": "state.q", "initial_v": "state.v", "initial_time": "state.t",
        }  # fmt: skip
        hint = hints.get(path[0], f"params.{text}")
        raise InputError(
            f"{who}: {text!r} is no key; did you mean {hint!r}? Known: params.*, state.*, scheme.*, dt"
        )
    return Key(text, path, index)


def parse_parameter(text: str, who: str) -> Key:
    """The key of a name that may leave out ``params.``, and may name a start as in
    `Problem.replace`: ``friction`` is ``params.friction``, ``initial_v[0]`` is ``state.v[0]``.

    Raises:
        InputError: see `parse`.

    Example:
        >>> from nsjax.core.keys import parse_parameter
        >>> parse_parameter("initial_v[0]", "identify").path
        ('state', 'v')
    """
    name, *rest = re.split(r"(?=[.\[])", str(text), maxsplit=1)
    root = name if name in ROOTS else START.get(name, f"params.{name}")
    return parse(root + "".join(rest), who)


def refuse_twice(key: Key, seen: list[Key], who: str, remedy: str) -> None:
    """Adds a key to those ``seen``, unless one of them names the same number.

    Raises:
        InputError: if one does.
    """
    for other in seen:
        if key.overlaps(other):
            raise InputError(f"{who}: {other.text} and {key.text} are the same number; {remedy}")
    seen.append(key)


def is_group(node: PyTree) -> bool:
    """Whether a node is a mapping, a record or a named tuple, and no number, array or plain sequence."""
    record = dataclasses.is_dataclass(node) and not isinstance(node, type)
    return isinstance(node, Mapping) or record or hasattr(node, "_fields")


def is_number(node: PyTree) -> bool:
    """Whether a node is a number or an array."""
    return hasattr(node, "dtype") or isinstance(node, int | float)


def dotted(node: PyTree) -> list[str]:
    """Names of all numbers below a node that are not None, through groups at any depth: ``friction``,
    ``rod.mass``.

    Example:
        >>> from nsjax.core.keys import dotted
        >>> dotted({"rod": {"mass": 1.0, "length": 2.0}, "friction": 0.1})
        ['rod.mass', 'rod.length', 'friction']
    """
    found = []
    for name in names(node) if is_group(node) else []:
        below = child(node, name)
        found += [f"{name}.{rest}" for rest in dotted(below)] or ([] if below is None else [name])
    return found


def names(node: PyTree) -> list[str]:
    """Names below a node of a pytree of records, mappings and sequences; none below a number."""
    if isinstance(node, Mapping):
        return [str(name) for name in node]
    if dataclasses.is_dataclass(node) and not isinstance(node, type):
        return [f.name for f in dataclasses.fields(node)]
    if isinstance(node, tuple) and hasattr(node, "_fields"):
        return list(node._fields)
    return [str(i) for i in range(len(node))] if isinstance(node, list | tuple) else []


def child(node: PyTree, name: str) -> PyTree:
    """Child of a node by its name."""
    if isinstance(node, Mapping):
        return next(value for key, value in node.items() if str(key) == name)
    return (
        node[int(name)]
        if isinstance(node, list | tuple) and not hasattr(node, "_fields")
        else getattr(node, name)
    )


def above(base: Mapping[str, PyTree], key: Key) -> PyTree:
    """The group, record or array of groups that holds what a key names."""
    node: Any = base
    for name in key.path[:-1]:
        node = child(node, name)
    return node


def find(base: Mapping[str, PyTree], key: Key, who: str) -> Any:
    """The number or array that a key names; ``who`` is the caller that error sentences name.

    Raises:
        InputError: for an unknown name, with the nearest known one.
    """
    node: Any = base
    above: Any = base
    for depth, name in enumerate(key.path):
        known = names(node)
        if name not in known:
            place = ".".join(key.path[:depth])
            raise InputError(f"{who}: {key.text}: {place} has no {name!r}; {_hint(node, key.path[depth:])}")
        above, node = node, child(node, name)
    if node is None:
        given = ", ".join(x for x in names(above) if child(above, x) is not None)
        raise InputError(f"{who}: {key.text} is not set in this problem; what is set beside it: {given}")
    if names(node) or not is_number(node):
        parts = dotted(node) or names(node)
        raise InputError(
            f"{who}: {key.text} is not a number; choose one of {', '.join(parts) or 'its parts'}"
        )
    if key.index is not None:
        shape = np.shape(node)
        if len(shape) != 1 or key.index >= shape[0]:
            raise InputError(
                f"{who}: {key.text}: {'.'.join(key.path)} has shape {shape}; there is no such entry"
            )
    return node


def number_at(base: Mapping[str, PyTree], key: Key, who: str, name: str) -> float:
    """The one number that a key names; the user wrote it as ``name``.

    Raises:
        InputError: as `find`, and for an array.
    """
    value = np.asarray(find(base, key, who), float)
    if key.index is None and value.ndim:
        raise InputError(f"{who}: {name!r} has shape {value.shape}; name one entry: '{name}[0]'")
    return float(value if key.index is None else value[key.index])


def _hint(node: PyTree, path: tuple[str, ...]) -> str:
    return nearest(".".join(path), dotted(node) if is_group(node) else names(node))


def put(base: dict[str, PyTree], key: Key, value: Array) -> dict[str, PyTree]:
    """The tree ``base`` with the ``value`` at a key."""
    return {**base, key.path[0]: _put(base[key.path[0]], key.path[1:], key.index, value)}


def _put(node: PyTree, path: tuple[str, ...], index: int | None, value: Array) -> PyTree:
    if not path:
        if index is None:
            return value
        # numbers that JAX has not seen keep their precision, whatever it is configured to
        where = jnp.where if any(isinstance(x, jax.Array) for x in (node, value)) else np.where
        return where(np.arange(np.shape(node)[0]) == index, value, node)
    new = _put(child(node, path[0]), path[1:], index, value)
    if isinstance(node, Mapping):
        return {key: new if str(key) == path[0] else part for key, part in node.items()}
    if dataclasses.is_dataclass(node) and not isinstance(node, type):
        return dataclasses.replace(node, **{path[0]: new})
    if hasattr(node, "_fields"):
        return node._replace(**{path[0]: new})
    return type(node)(new if str(i) == path[0] else part for i, part in enumerate(node))
