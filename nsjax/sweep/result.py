"""The numbers that a sweep varies, and its result with its files."""

from __future__ import annotations

import dataclasses
import io
import math
import os
from collections.abc import Mapping
from typing import Any, BinaryIO

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.core.errors import InputError, check_choice, nearest, optional
from nsjax.core.keys import Key, child, find, names, parse, refuse_twice
from nsjax.core.memory import refuse_more
from nsjax.core.system import System
from nsjax.renamed import new_field
from nsjax.trajectory import FirstFailure, RunError, failure_sentence
from nsjax.types import Array, PyTree, as_html, is_traced, record

# The numbers that a sweep varies: keys such as ``"params.friction"`` and the values of every lane.


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
    keys = tuple(_by_present_names(base, parse(key, "sweep")) for key in over)
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


def _by_present_names(base: Mapping[str, PyTree], key: Key) -> Key:
    """The key with new names in place of old ones (`nsjax.renamed.OLD_FIELDS`)."""
    node: Any = base
    path: tuple[str, ...] = ()
    for name in key.path:
        path = (*path, new_field(type(node).__name__, name))
        if path[-1] not in names(node):
            return key
        node = child(node, path[-1])
    return dataclasses.replace(key, path=path)


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


# Result of a sweep, with its files.


@record(static=("system", "mode", "shape", "refused"))
class SweepResult:
    """Reduced results of all lanes, plain arrays.

    Args:
        system: the simulated system.
        mode: ``"zip"`` or ``"product"``.
        shape: ``(lanes,)``, or one length per varied key.
        over: values by key, as given.
        values: results of the reduction, every array with ``shape`` in front. Lanes that did not run
            hold not-a-number (0 in arrays of whole numbers).
        status: ``(*shape)``, bits of `nsjax.status`, its ``REFUSED`` for a lane that could not start, 0 for
            a good lane.
        first_failure: ``(*shape)``, when and where the first bit was set, see `FirstFailure`.
        refused: pairs (flat lane, sentence) of the lanes that could not start.

    ``result[name]`` is ``result.values[name]``.
    """

    system: System
    mode: str
    shape: tuple[int, ...]
    over: dict[str, Any]
    values: PyTree
    status: Array | np.ndarray
    first_failure: FirstFailure
    refused: tuple[tuple[int, str], ...] = ()

    def __getitem__(self, name: str) -> Any:
        if not isinstance(self.values, dict):
            raise KeyError(f"this sweep has one result; take found.values in place of found[{name!r}]")
        if name not in self.values:
            raise KeyError(
                f"this sweep kept no {name!r}; {nearest(name, self.values)}. Others are kept by "
                "reduce=: a function of the trajectory, lambda traj: traj['rod.x'][-1] for one"
            )
        return self.values[name]

    def __str__(self) -> str:
        if is_traced((self.values, self.status)):
            return repr(self)
        failed = int(np.count_nonzero(np.asarray(self.status)))
        lines = [
            f"model     {self.system.name or 'without a name'}",
            f"lanes     {' x '.join(map(str, self.shape))} over {', '.join(self.over)}; {failed} failed",
        ]
        for path, value in jax.tree_util.tree_flatten_with_path(self.values)[0]:
            name = jax.tree_util.keystr(path, simple=True, separator=".") or "values"
            good = np.asarray(value, float)[np.asarray(self.status) == 0]
            ends = f" from {np.min(good):.5g} to {np.max(good):.5g}" if good.size else ""
            lines.append(f"{name:<9} {np.shape(value)}{ends}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return as_html(self)

    @property
    def ok(self) -> Any:
        """Mask ``(*shape)`` of the lanes without failure."""
        return self.status == 0

    @property
    def axes(self) -> Axes:
        """The varied keys and their values."""
        keys = tuple(Key(name, (name,), None) for name in self.over)
        return Axes(keys, tuple(self.over.values()), self.mode)

    def lanes(self) -> dict[str, np.ndarray]:
        """Varied values of every lane by key, with ``shape`` in front."""
        taken = self.axes.take(np.arange(self.axes.count))
        arrays = [np.asarray(x).reshape(*self.shape, *np.shape(x)[1:]) for x in taken]
        return dict(zip(self.over, arrays, strict=True))

    def failures(self) -> dict[int, str]:
        """Sentences of the lanes that failed, by lane number: values, step, time, contact, remedy."""
        status = np.asarray(self.status).reshape(-1)
        refused = dict(self.refused)
        first = jax.tree.map(lambda x: np.asarray(x).reshape(-1), self.first_failure)
        sentences = {}
        for lane in np.flatnonzero(status).tolist():
            at = jax.tree.map(lambda x, k=lane: x[k], first)
            why = refused.get(lane) or failure_sentence(self.system, at)
            sentences[lane] = f"lane {lane} ({describe(self.axes, lane)}): {why}"
        return sentences

    def raise_for_status(self) -> None:
        """Raises `RunError` if a lane failed, with the sentence of the first and their number."""
        bad = np.count_nonzero(np.asarray(self.status))
        if not bad:
            return
        first = next(iter(self.failures().values()))
        raise RunError(first if bad == 1 else f"{bad} of {self.axes.count} lanes failed; {first}")

    def arrays(self) -> dict[str, Any]:
        """All arrays by name, as `save` writes them: ``over.<key>``, ``values.<name>`` (``values``
        if the reduction returned one array), ``status``, ``first_failure.step``, ``.time``, ``.status``,
        ``.contact``, and the text ``failures``.
        """
        found = {f"over.{name}": np.asarray(x) for name, x in self.over.items()}
        for path, leaf in jax.tree_util.tree_flatten_with_path(self.values)[0]:
            parts = [str(getattr(p, "key", getattr(p, "name", getattr(p, "idx", p)))) for p in path]
            found[".".join(["values", *parts])] = np.asarray(leaf)
        found["status"] = np.asarray(self.status)
        for name in ("step", "time", "status", "contact"):
            found[f"first_failure.{name}"] = np.asarray(getattr(self.first_failure, name))
        found["failures"] = np.asarray(list(self.failures().values()), dtype=np.str_)
        found["mode"] = np.asarray(self.mode)
        return found

    def save(self, target: str | os.PathLike[str] | BinaryIO, form: str | None = None) -> None:
        """Writes the result to a file.

        Args:
            target: a path, or a file open for writing in binary mode.
            form: ``"npz"`` (read it with `numpy.load`; names as in `arrays`) or ``"nc"`` (NetCDF with
                named dimensions; extra ``data``); None: by the ending of the path.

        Raises:
            InputError: for another form, and for NetCDF without its extra.
        """
        if form is None:
            name = os.fspath(target) if isinstance(target, str | os.PathLike) else ""
            form = os.path.splitext(name)[1].removeprefix(".")
        check_form(form)
        if is_traced(self):
            raise InputError("save: the result is traced; save outside jit and grad")
        if form == "npz":
            np.savez_compressed(target, **self.arrays())
            return
        # content of a NetCDF file
        dataset = self.to_xarray()
        buffer = io.BytesIO()
        found = dataset.to_netcdf(buffer, engine="h5netcdf")
        content = bytes(found) if found is not None else buffer.getvalue()
        if isinstance(target, str | os.PathLike):
            with open(target, "wb") as file:
                file.write(content)
        else:
            target.write(content)

    def to_xarray(self) -> Any:
        """The result as an `xarray.Dataset`: one dimension per varied key (``lane`` for zip) with the
        values as coordinates, one variable per result.

        Raises:
            InputError: if xarray is missing.
        """
        xarray = _xarray()
        arrays = self.arrays()
        dims = tuple(self.over) if self.mode == "product" else ("lane",)
        coords: dict[str, Any] = {}
        for k, (name, values) in enumerate(self.over.items()):
            values = np.asarray(values)
            dim = dims[k] if self.mode == "product" else "lane"
            inner = tuple(f"{name}.{i}" for i in range(values.ndim - 1))
            # a coordinate of several numbers cannot carry its dimension's name
            coords[name if values.ndim == 1 else f"over.{name}"] = ((dim, *inner), values)
        data = {}
        for name, array in arrays.items():
            if name.startswith("over.") or name in ("failures", "mode"):
                continue
            inner = tuple(f"{name}.{i}" for i in range(array.ndim - len(dims)))
            data[name] = ((*dims, *inner), array)
        attributes = {
            "model": self.system.name,
            "mode": self.mode,
            "failures": "\n".join(arrays["failures"]),
        }
        return xarray.Dataset(data, coords=coords, attrs=attributes)


def check_form(form: str) -> None:
    """Refuses an unknown format of a result's file; call it before a long sweep."""
    if form not in ("npz", "nc"):
        raise InputError(f"save: results are saved as npz or nc (NetCDF), not as {form!r}")
    if form == "nc":
        _xarray()


def _xarray() -> Any:
    return optional("save: NetCDF needs", "data", "h5py", "h5netcdf", "xarray")
