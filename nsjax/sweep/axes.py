"""What is varied: keys such as ``"params.friction"`` and the values of every lane."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.core.checks import is_traced
from nsjax.core.errors import InputError, nearest
from nsjax.types import Array, PyTree

ROOTS = ("params", "state", "scheme")
MODES = ("zip", "product")


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
        """Whether both name the same number, or one names an array and the other an entry of it."""
        same = self.index == other.index or self.index is None or other.index is None
        return self.path == other.path and same


@dataclasses.dataclass(frozen=True)
class Axes:
    """The lanes of a sweep.

    Args:
        keys: what is varied.
        arrays: the values as given, one array per key, lanes (or steps of the axis) first.
        mode: ``"zip"``: lane k takes the k-th value of every array; ``"product"``: lanes are all
            combinations, the last key fastest.
    """

    keys: tuple[Key, ...]
    arrays: tuple[Any, ...]
    mode: str

    @property
    def shape(self) -> tuple[int, ...]:
        """``(lanes,)`` for zip, one length per key for product."""
        lengths = tuple(int(np.shape(x)[0]) for x in self.arrays)
        return lengths if self.mode == "product" else lengths[:1]

    @property
    def count(self) -> int:
        """Number of lanes."""
        return int(np.prod(self.shape))

    def places(self, lanes: np.ndarray) -> tuple[np.ndarray, ...]:
        """For every key the positions in its array that these lanes (flat numbers) take."""
        if self.mode == "product":
            return tuple(np.unravel_index(lanes, self.shape))
        return (lanes,) * len(self.keys)

    def take(self, lanes: np.ndarray) -> tuple[Any, ...]:
        """The values of these lanes, lanes first."""
        return tuple(x[place] for x, place in zip(self.arrays, self.places(lanes), strict=True))


def read_axes(base: Mapping[str, PyTree], over: Mapping[str, Any], mode: str) -> Axes:
    """Checks what is to be varied.

    Args:
        base: ``params``, ``state`` and ``scheme`` (its numbers) of the problem.
        over: values by key.
        mode: ``"zip"`` or ``"product"``.

    Raises:
        InputError: for an unknown key, values of a wrong shape or type, unequal lengths, an unknown mode.
    """
    if mode not in MODES:
        raise InputError(f"sweep: mode = {mode!r}; {nearest(str(mode), MODES)}")
    if not isinstance(over, Mapping) or not over:
        raise InputError(
            f"sweep: over = {over!r}; give a mapping such as {{'params.friction': [0.0, 0.1, 0.2]}}"
        )
    keys = tuple(parse(key) for key in over)
    arrays = tuple(_values(base, key, over[key.text]) for key in keys)
    for i, key in enumerate(keys):
        for other in keys[:i]:
            if key.overlaps(other):
                raise InputError(f"sweep: {other.text} and {key.text} are the same number; vary it once")
    axes = Axes(keys, arrays, mode)
    lengths = {key.text: int(np.shape(x)[0]) for key, x in zip(keys, arrays, strict=True)}
    if mode == "zip" and len(set(lengths.values())) > 1:
        shown = ", ".join(f"{name} has {n}" for name, n in lengths.items())
        raise InputError(
            f"sweep: {shown} values; give equally many, or mode='product' for all combinations"
        )
    if axes.count < 1:
        raise InputError("sweep: there is no lane; every key needs at least one value")
    return axes


def parse(text: str) -> Key:
    """A key from its name.

    Raises:
        InputError: for a name that does not start with params, state or scheme and is not dt.

    Example:
        >>> from nsjax.sweep.axes import parse
        >>> parse("state.v[1]").path, parse("state.v[1]").index
        (('state', 'v'), 1)
    """
    found = re.fullmatch(r"([A-Za-z_]\w*(?:\.\w+)*)(?:\[(\d+)\])?", text) if isinstance(text, str) else None
    if found is None:
        raise InputError(f"sweep: {text!r} is no key; write 'params.friction', 'state.v[1]' or 'dt'")
    path = tuple(found[1].split("."))
    index = None if found[2] is None else int(found[2])
    if path == ("dt",) and index is None:
        return Key(text, path, None)
    if path[0] not in ROOTS or len(path) < 2:
        hints = {"params": "params.NAME", "state": "state.q", "scheme": "scheme.NAME"}
        hint = hints.get(path[0], f"params.{text}")
        raise InputError(
            f"sweep: {text!r} is no key; did you mean {hint!r}? Known: params.*, state.*, scheme.*, dt"
        )
    return Key(text, path, index)


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
    """What stands below a node under that name."""
    if isinstance(node, Mapping):
        return next(value for key, value in node.items() if str(key) == name)
    return (
        node[int(name)]
        if isinstance(node, list | tuple) and not hasattr(node, "_fields")
        else getattr(node, name)
    )


def find(base: Mapping[str, PyTree], key: Key) -> Any:
    """The number or array that a key names.

    Raises:
        InputError: for an unknown name, with the nearest known one.
    """
    node: Any = base
    for depth, name in enumerate(key.path):
        known = names(node)
        if name not in known:
            place = ".".join(key.path[:depth])
            raise InputError(f"sweep: {key.text}: {place} has no {name!r}; {nearest(name, known)}")
        node = child(node, name)
    if names(node) or not (hasattr(node, "dtype") or isinstance(node, int | float)):
        raise InputError(
            f"sweep: {key.text} is not a number; choose one of {', '.join(names(node)) or 'its parts'}"
        )
    if key.index is not None:
        shape = np.shape(node)
        if len(shape) != 1 or key.index >= shape[0]:
            raise InputError(
                f"sweep: {key.text}: {'.'.join(key.path)} has shape {shape}; there is no such entry"
            )
    return node


def put(base: dict[str, PyTree], key: Key, value: Array) -> dict[str, PyTree]:
    """The same numbers with another value under a key."""
    return {**base, key.path[0]: _put(base[key.path[0]], key.path[1:], key.index, value)}


def _put(node: PyTree, path: tuple[str, ...], index: int | None, value: Array) -> PyTree:
    if not path:
        if index is None:
            return value
        return jnp.where(np.arange(np.shape(node)[0]) == index, value, node)
    new = _put(child(node, path[0]), path[1:], index, value)
    if isinstance(node, Mapping):
        return {key: new if str(key) == path[0] else part for key, part in node.items()}
    if dataclasses.is_dataclass(node) and not isinstance(node, type):
        return dataclasses.replace(node, **{path[0]: new})
    if hasattr(node, "_fields"):
        return node._replace(**{path[0]: new})
    return type(node)(new if str(i) == path[0] else part for i, part in enumerate(node))


def _values(base: Mapping[str, PyTree], key: Key, given: Any) -> Any:
    """The values of one key as a float64 array; numbers that are not finite are left to their lanes."""
    whole = () if key.path == ("dt",) else np.shape(find(base, key))
    shape = () if key.index is not None else whole
    if is_traced(given):
        values: Any = jnp.asarray(given)
    else:
        try:
            values = np.asarray(given)
        except ValueError:
            raise InputError(
                f"sweep: {key.text} = {given!r}; give one value per lane, all of one shape"
            ) from None
    if np.dtype(values.dtype).kind not in "biuf" or values.dtype in (np.float32, np.float16):
        raise InputError(f"sweep: {key.text} has type {values.dtype}; give real numbers in 64 bits")
    inner = values.shape[1:]
    # one number for all contacts or one each: where a single number may be an array, the model decides
    if values.ndim == 0 or (inner != shape and inner != () and shape != ()):
        raise InputError(
            f"sweep: {key.text} has shape {values.shape}; lanes come first, and a lane needs {shape}"
        )
    if (key.path == ("dt",) or key.index is not None) and values.ndim != 1:
        raise InputError(f"sweep: {key.text} has shape {values.shape}; give one number per lane")
    return values.astype(float)


def describe(axes: Axes, lane: int) -> str:
    """``"params.friction = 0.1, dt = 1e-05"`` of one lane, for sentences."""
    parts = []
    for key, value in zip(axes.keys, axes.take(np.asarray([lane])), strict=True):
        plain = np.asarray(value)[0].tolist() if not isinstance(value, jax.core.Tracer) else "?"
        shown = f"{plain:.9g}" if isinstance(plain, float) else plain
        parts.append(f"{key.text} = {shown}")
    return ", ".join(parts)
