"""Functions as files: runs, sweeps and gradients that other processes call without their source code."""

from __future__ import annotations

import dataclasses
import json
import zipfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jax import export

from nsjax.core.checks import check_precision
from nsjax.core.errors import InputError, optional
from nsjax.io.files import PathLike, check_writable, replacing
from nsjax.types import Array, PyTree, is_traced
from nsjax.version import __version__

FORM = 1
"""Version of the file's layout."""

PLATFORMS = ("cpu", "cuda", "rocm", "tpu")

Path = tuple[str | int, ...]
"""Path to a number: names in records and dicts, indices in tuples and lists."""


@dataclasses.dataclass(frozen=True)
class Program:
    """A function from a file of `export_program`; call it as the original function.

    Args:
        arguments: example arguments, those of the export. Records are dicts of their fields here; calls
            accept records and dicts.
        platforms: platforms on which it runs, ``("cpu",)`` for instance.
        releases: releases of nsjax and JAX that exported it.
        metadata: metadata given to `export_program`.
        shapes: shape and type of every number of the arguments, by its path.
        results: paths of the numbers of the results.
        run: compiled function of flat lists of numbers.
    """

    arguments: tuple[PyTree, ...]
    platforms: tuple[str, ...]
    releases: Mapping[str, str]
    metadata: Mapping[str, Any]
    shapes: Mapping[Path, tuple[tuple[int, ...], str]]
    results: tuple[Path, ...]
    run: Callable[..., Sequence[Array]]

    def __call__(self, *arguments: PyTree) -> PyTree:
        """The function's result; records in it are dicts of their fields.

        Args:
            arguments: with the names and shapes of ``program.arguments``; the only conversion is that of
                whole numbers to floats.

        Raises:
            InputError: for arguments that do not fit.
        """
        given = _places(arguments)
        missing = [_text(x) for x in self.shapes if x not in given]
        unknown = [_text(x) for x in given if x not in self.shapes]
        if missing or unknown:
            said = [
                f"{', '.join(x)} {what}" for x, what in ((missing, "missing"), (unknown, "unknown")) if x
            ]
            raise InputError(
                f"program: {'; '.join(said)}; give arguments like program.arguments"
            )  # fmt: skip
        leaves = [_fitting(place, given[place], *form) for place, form in self.shapes.items()]
        return _nested(dict(zip(self.results, self.run(*leaves), strict=True)))

    def __str__(self) -> str:
        lines = [
            f"program   for {', '.join(self.platforms)}; nsjax {self.releases['nsjax']}, JAX "
            f"{self.releases['jax']}"
        ]
        for place, (shape, kind) in self.shapes.items():
            lines.append(f"argument  {_text(place)} {kind} {shape}")
        lines += [f"result    {_text(x) or 'the array itself'}" for x in self.results]
        lines += [f"{name:<9} {x}" for name, x in self.metadata.items()]
        return "\n".join(lines)


def export_program(
    path: PathLike, function: Callable[..., PyTree], *arguments: PyTree,
    platforms: Sequence[str] | None = None, **metadata: Any,
) -> None:  # fmt: skip
    """Traces a function and writes it as a file, for calls in other processes by `load_program`.

    The function may be a run, a sweep, or a gradient of one. Calls need neither its code nor that of the
    model, do not trace it, and run on other machines and accelerators.

    Args:
        path: path of the file; it is written whole or not at all.
        function: function of the arguments; all other data that it reads become constants of the program.
            Numbers of steps are fixed.
        arguments: example arguments: numbers, arrays, and tuples, lists, dicts and records of them. The
            arguments of calls have the same names, shapes and types; the file contains the examples.
        platforms: some of ``"cpu"``, ``"cuda"``, ``"rocm"``, ``"tpu"``; None: that of this process.
        metadata: further notes: numbers, strings, lists and dicts of them.

    Raises:
        InputError: for a path that cannot be written, unknown platforms, arguments that are not numbers,
            and without the extra ``cache``.

    Limits: later releases of JAX read the file for at least half a year. A program for several platforms
    takes slightly longer to start. In the calling process, `nsjax.configure` decides whether its loops
    become one kernel, and `nsjax.jaxtools.use_cache` whether each process compiles it again. A program has
    no derivatives: export the gradient. The loop over lanes of a sweep is that of the exporting platform.

    Example:
        >>> import tempfile
        >>> import jax
        >>> import nsjax
        >>> from nsjax import models, schemes
        >>> ball = models.bouncing_ball(height=0.5)
        >>> def height(params):  # after 0.5 s
        ...     traj = nsjax.simulate(
        ...         ball.system, params, ball.state, schemes.moreau(), dt=1e-3, steps=500, every=500
        ...     )
        ...     return traj.q[-1, 0]
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     nsjax.export_program(f"{folder}/ball.nsjax", jax.value_and_grad(height), ball.params)
        ...     program = nsjax.load_program(f"{folder}/ball.nsjax")
        >>> params, = program.arguments
        >>> value, gradient = program({**params, "restitution": 0.5})
        >>> bool(value == height(ball.replace(restitution=0.5).params)), sorted(gradient) == sorted(params)
        (True, True)
    """
    check_writable(path)
    check_precision()
    optional("programs as files need", "cache", "flatbuffers")
    if isinstance(platforms, str) or not set(platforms or ()) <= set(PLATFORMS):
        raise InputError(
            f"export_program: platforms = {platforms!r}; give a list of {', '.join(PLATFORMS)}, or None"
        )
    if is_traced(arguments):
        raise InputError("export_program: an argument is traced; export outside jit, vmap and grad")
    leaves, tree = jax.tree.flatten(arguments)
    places = list(_places(arguments))
    values = [_number(place, x) for place, x in zip(places, leaves, strict=True)]
    results: list[Path] = []

    def flat(*leaves: Array) -> list[Array]:
        found = function(*jax.tree.unflatten(tree, leaves))
        results[:] = _places(found)
        return jax.tree.leaves(found)

    shapes = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in values]
    made = export.export(jax.jit(flat), platforms=platforms)(*shapes)
    content = {
        "form": FORM, "releases": {"nsjax": __version__, "jax": jax.__version__}, "metadata": metadata,
        "arguments": places, "results": results,
    }  # fmt: skip
    try:
        text = json.dumps(content)
    except TypeError as error:
        raise InputError(f"export_program: metadata: {error}; note numbers and strings") from None
    arrays: dict[str, Any] = {f"argument.{k}": x for k, x in enumerate(values)}
    arrays |= {"content": np.asarray(text), "program": np.frombuffer(bytes(made.serialize()), np.uint8)}
    with replacing(path) as file:
        np.savez_compressed(file, **arrays)


def load_program(path: PathLike) -> Program:
    """Reads a file of `export_program`.

    Args:
        path: path of the file.

    Returns:
        A `Program`. Its first call compiles, unless `nsjax.jaxtools.use_cache` has it from another process.

    Raises:
        InputError: for a file that is not a program, has another layout, is of a release of JAX that this
            one cannot read, or is for other platforms; in single precision; without the extra ``cache``.

    Example:
        >>> import nsjax
        >>> nsjax.load_program("none.nsjax")
        Traceback (most recent call last):
            ...
        nsjax.core.errors.InputError: none.nsjax does not exist
    """
    content, program, values = _read(path)
    check_precision()
    optional("programs as files need", "cache", "flatbuffers")
    made = _deserialized(path, content, program)
    here = jax.default_backend().replace("gpu", "cuda")
    if here not in made.platforms:
        raise InputError(
            f"{path} is a program for {', '.join(made.platforms)}, and this process computes on {here}; "
            f"export it with platforms=[..., {here!r}]"
        )
    places = [tuple(x) for x in content["arguments"]]
    arguments = _nested(dict(zip(places, values, strict=True))) if places else ()
    return Program(
        arguments=tuple(arguments), platforms=tuple(made.platforms), releases=content["releases"],
        metadata=content["metadata"], results=tuple(tuple(x) for x in content["results"]),
        shapes={p: (x.shape, str(x.dtype)) for p, x in zip(places, values, strict=True)},
        run=jax.jit(made.call),
    )  # fmt: skip


def _read(path: PathLike) -> tuple[dict[str, Any], bytes, list[np.ndarray]]:
    """Header, program and example numbers of a file."""
    try:
        with np.load(path, allow_pickle=False) as file:
            content = json.loads(str(file["content"]))
            values = [file[f"argument.{k}"] for k in range(len(content["arguments"]))]
            program = file["program"].tobytes()
    except FileNotFoundError:
        raise InputError(f"{path} does not exist") from None
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile):
        raise InputError(f"{path} is no program of nsjax.export_program, or damaged") from None
    return content, program, values


def _deserialized(path: PathLike, content: dict[str, Any], program: bytes) -> export.Exported:
    """The exported program of a file."""
    known = content.get("form") == FORM
    releases = content.get("releases", {})
    try:
        if known:
            return export.deserialize(bytearray(program))
    except Exception:  # JAX raises various exceptions for forms that it cannot read
        pass
    raise InputError(
        f"{path} was exported by nsjax {releases.get('nsjax')} with JAX {releases.get('jax')}, and is not "
        f"read by nsjax {__version__} with JAX {jax.__version__}; export it again with these"
    )


def _number(place: Path, x: Any) -> np.ndarray:
    """Array of a number of the arguments."""
    array = np.asarray(x)
    if array.dtype.kind not in "biufc":
        raise InputError(f"export_program: argument {_text(place)} = {x!r} is no number; leave it out")
    return array


def _fitting(place: Path, x: Any, shape: tuple[int, ...], kind: str) -> Any:
    """A number of a call in the shape and type that the program needs."""
    array = x if isinstance(x, jax.Array) else np.asarray(x)
    whole = array.dtype.kind in "biu" and np.dtype(kind).kind == "f"
    if array.shape != shape or not (array.dtype == kind or whole):
        raise InputError(
            f"program: {_text(place)} has shape {array.shape} and type {array.dtype}; give {shape} and "
            f"{kind}"
        )
    return array.astype(kind) if whole else array


def _places(tree: PyTree) -> dict[Path, Any]:
    """Numbers of a tree by their path."""
    found = jax.tree_util.tree_flatten_with_path(tree)[0]
    return {tuple(_key(k) for k in path): x for path, x in found}


def _key(key: Any) -> str | int:
    """Name or index of an entry of a JAX key path."""
    for attribute in ("name", "key", "idx"):
        if hasattr(key, attribute):
            found = getattr(key, attribute)
            return found if isinstance(found, int) and not isinstance(found, bool) else str(found)
    return str(key)


def _text(place: Path) -> str:
    return ".".join(map(str, place))


def _nested(found: Mapping[Path, Any]) -> PyTree:
    """Tree of dicts and tuples from numbers by their path."""
    if () in found:
        return found[()]
    groups: dict[str | int, dict[Path, Any]] = {}
    for place, x in found.items():
        groups.setdefault(place[0], {})[place[1:]] = x
    parts = {key: _nested(some) for key, some in groups.items()}
    positions = [key for key in parts if isinstance(key, int)]
    if len(positions) < len(parts) or not parts:
        return parts
    return tuple(parts.get(k) for k in range(max(positions) + 1))
