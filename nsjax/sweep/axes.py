"""The numbers that a sweep varies: keys such as ``"params.friction"`` and the values of every lane."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.core.checks import is_traced
from nsjax.core.errors import InputError, check_choice
from nsjax.core.keys import Key, find, parse, refuse_twice
from nsjax.core.memory import refuse_more
from nsjax.types import PyTree

MODES = ("zip", "product")

LANE_BYTES = 64
"""Least memory of a lane [bytes]: its number, step size, counts, status and first failure."""


@dataclasses.dataclass(frozen=True)
class Axes:
    """The lanes of a sweep.

    Args:
        keys: keys of the varied numbers.
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
        return math.prod(self.shape)

    def places(self, lanes: np.ndarray) -> tuple[np.ndarray, ...]:
        """For every key the indices into its array of the given lanes (flat numbers)."""
        if self.mode == "product":
            return tuple(np.unravel_index(lanes, self.shape))
        return (lanes,) * len(self.keys)

    def take(self, lanes: np.ndarray) -> tuple[Any, ...]:
        """Values of the given lanes, lanes first."""
        return tuple(x[place] for x, place in zip(self.arrays, self.places(lanes), strict=True))


def read_axes(base: Mapping[str, PyTree], over: Mapping[str, Any], mode: str) -> Axes:
    """The checked `Axes` of the numbers to vary.

    Args:
        base: ``params``, ``state`` and ``scheme`` (its numbers) of the problem.
        over: values by key.
        mode: ``"zip"`` or ``"product"``.

    Raises:
        InputError: for an unknown key, values of a wrong shape or type, unequal lengths, an unknown mode.
    """
    check_choice("sweep: mode", mode, MODES)
    if not isinstance(over, Mapping) or not over:
        raise InputError(
            f"sweep: over = {over!r}; give a mapping such as {{'params.friction': [0.0, 0.1, 0.2]}}"
        )
    keys = tuple(parse(key, "sweep") for key in over)
    arrays = tuple(_values(base, key, over[key.text]) for key in keys)
    seen: list[Key] = []
    for key in keys:
        refuse_twice(key, seen, "sweep", "vary it once")
    axes = Axes(keys, arrays, mode)
    lengths = {key.text: int(np.shape(x)[0]) for key, x in zip(keys, arrays, strict=True)}
    if mode == "zip" and len(set(lengths.values())) > 1:
        shown = ", ".join(f"{name} has {n}" for name, n in lengths.items())
        raise InputError(
            f"sweep: {shown} values; give equally many, or mode='product' for all combinations"
        )
    if axes.count < 1:
        raise InputError("sweep: there is no lane; every key needs at least one value")
    refuse_more(
        f"sweep: {axes.count} lanes", float(LANE_BYTES * axes.count), "vary fewer numbers at a time"
    )
    return axes


def _values(base: Mapping[str, PyTree], key: Key, given: Any) -> Any:
    """Values of one key as a float64 array; a number that is not finite is refused later, for its lane."""
    whole = () if key.path == ("dt",) else np.shape(find(base, key, "sweep"))
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
    # a parameter may be one number or one per contact: the model accepts or refuses the shape
    if values.ndim == 0 or (inner != shape and inner != () and shape != ()):
        raise InputError(
            f"sweep: {key.text} has shape {values.shape}; lanes come first, and a lane needs {shape}"
        )
    if (key.path == ("dt",) or key.index is not None) and values.ndim != 1:
        raise InputError(f"sweep: {key.text} has shape {values.shape}; give one number per lane")
    return values.astype(float)


def describe(axes: Axes, lane: int) -> str:
    """Text ``"params.friction = 0.1, dt = 1e-05"`` of one lane, for messages."""
    parts = []
    for key, value in zip(axes.keys, axes.take(np.asarray([lane])), strict=True):
        plain = np.asarray(value)[0].tolist() if not isinstance(value, jax.core.Tracer) else "?"
        shown = f"{plain:.9g}" if isinstance(plain, float) else plain
        parts.append(f"{key.text} = {shown}")
    return ", ".join(parts)
