"""Lowered programs that outlive the process, beside the compiled ones: what is kept is not traced again."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import pathlib
import secrets
import zlib
from collections.abc import Callable
from typing import Any

import jax
from jax import export
from jax.custom_batching import custom_vmap

from nsjax.startup.fingerprint import CONFIG, Unknown, fingerprint

FOLDER = "lowered"
"""Below the folder of compiled programs."""

MARK = b"nsjax lowered 1\n"
DIGEST = hashlib.sha256().digest_size

PLAIN = ("jax_disable_jit", "jax_check_tracer_leaks", "jax_debug_nans", "jax_debug_infs")
"""Settings with which somebody wants to see what is traced."""


def kept_call(function: Callable[..., Any], static: Any, *arguments: Any) -> Any:
    """``function(static, *arguments)`` inside a `jax.jit`, from its lowered program where one is kept.

    JAX keeps compiled programs, but finds them by what has been traced and lowered, which is half of the
    time of a first step. Here the lowered program (`jax.export`) is found by `fingerprint`: by all it
    depends on, as far as that can be told for certain. Else, and where nothing is kept (`use_cache`), where
    a file is damaged, where the process has several devices, or where the program cannot be exported, the
    function is traced as ever.

    A kept program has no derivative. Of a batch the function is traced as ever.

    Args:
        function: of the package; returns arguments of the same structure, arrays, None, and tuples and
            dicts of these.
        static: its first argument, not traced.
        arguments: pytrees that are being traced.

    Example:
        >>> import jax
        >>> from nsjax.math import sin_cos
        >>> from nsjax.startup.lowered import kept_call
        >>> def both(_, angle):  # not of the package, so that it is traced
        ...     return sin_cos(angle)
        >>> [round(float(x), 3) for x in jax.jit(lambda angle: kept_call(both, None, angle))(0.5)]
        [0.479, 0.878]
    """
    folder = _folder()
    leaves, tree = jax.tree.flatten(arguments)
    traced = all(isinstance(x, jax.core.Tracer) for x in leaves)
    if folder is None or not traced or any(getattr(CONFIG, name) for name in PLAIN):
        return function(static, *arguments)
    if len(jax.devices()) > 1:  # arrays may lie on several, which a program for one device does not take
        return function(static, *arguments)
    try:
        file = folder / fingerprint(function, static, *arguments)
    except Unknown:
        return function(static, *arguments)
    found = _read(file) or _made(file, function, static, leaves, tree)
    if found is None:
        return function(static, *arguments)
    program, outline = found
    run = custom_vmap(lambda *leaves: tuple(program.call(*leaves)))

    @run.def_vmap
    def lanes(size: int, batched: list[bool], *leaves: Any) -> Any:
        """A batch is traced as ever: a kept program has no lanes."""

        def one(*leaves: Any) -> tuple[Any, ...]:
            return tuple(jax.tree.leaves(function(static, *jax.tree.unflatten(tree, leaves))))

        out = jax.vmap(one, [0 if x else None for x in batched], axis_size=size)(*leaves)
        return out, tuple(True for _ in out)

    return _filled(outline, arguments, iter(run(*leaves)))


def _folder() -> pathlib.Path | None:
    """Where lowered programs are kept; None where none are."""
    chosen = CONFIG.jax_compilation_cache_dir
    if not chosen or not CONFIG.jax_enable_compilation_cache or "://" in str(chosen):
        return None
    return pathlib.Path(chosen) / FOLDER


def _made(file: pathlib.Path, function: Any, static: Any, leaves: Any, tree: Any) -> Any:
    """Traces and saves a program; returns it with its outline, or None if it cannot be exported."""
    said: list[Any] = []

    def flat(*leaves: Any) -> Any:
        arguments = jax.tree.unflatten(tree, leaves)
        out = function(static, *arguments)
        said.append(_outline(out, arguments))
        return jax.tree.leaves(out)

    try:
        shapes = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in leaves]
        program = bytes(export.export(jax.jit(flat))(*shapes).serialize())
    except Exception:  # what it is shows where the function is traced as ever
        return None
    text = json.dumps(said[-1]).encode()
    whole = zlib.compress(len(text).to_bytes(8, "little") + text + program, 1)
    beside = file.with_name(f".{file.name}-{os.getpid()}-{secrets.token_hex(4)}")
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        beside.write_bytes(MARK + hashlib.sha256(whole).digest() + whole)
        beside.replace(file)
    # as another process reads it: JAX finds the compiled program by what it reads
    return _opened(whole)


def _read(file: pathlib.Path) -> Any:
    """Reads what `_made` saved; None if the file is missing or not whole."""
    try:
        data = file.read_bytes()
    except OSError:
        return None
    whole = data[len(MARK) + DIGEST :]
    if data[: len(MARK)] != MARK or data[len(MARK) : len(MARK) + DIGEST] != hashlib.sha256(whole).digest():
        return None
    return _opened(whole)


def _opened(whole: bytes) -> Any:
    whole = zlib.decompress(whole)
    size = int.from_bytes(whole[:8], "little")
    try:
        program = export.deserialize(bytearray(whole[8 + size :]))
    except Exception:  # of another release of the format
        return None
    return program, json.loads(whole[8 : 8 + size])


def _outline(x: Any, arguments: tuple[Any, ...]) -> Any:
    """What a result is made of, so that it can be made again: ``"leaf"``, null, ``{"as": k}`` for the
    structure of an argument, ``{"tuple": [...]}``, ``{"dict": [[name, ...], [...]]}``.
    """
    if x is None:
        return None
    if jax.tree_util.all_leaves([x]):
        return "leaf"
    structure: Any = jax.tree.structure(x)
    for k, argument in enumerate(arguments):
        if structure == jax.tree.structure(argument):
            return {"as": k}
    if type(x) is tuple:
        return {"tuple": [_outline(part, arguments) for part in x]}
    if type(x) is dict and all(type(name) is str for name in x):
        names = sorted(x)
        return {"dict": [names, [_outline(x[name], arguments) for name in names]]}
    raise TypeError(f"a result with a {type(x).__name__}")


def _filled(outline: Any, arguments: tuple[Any, ...], leaves: Any) -> Any:
    """The result of an outline from its leaves, in their order."""
    if outline is None:
        return None
    if outline == "leaf":
        return next(leaves)
    if "as" in outline:
        structure: Any = jax.tree.structure(arguments[outline["as"]])
        return jax.tree.unflatten(structure, [next(leaves) for _ in range(structure.num_leaves)])
    if "tuple" in outline:
        return tuple(_filled(part, arguments, leaves) for part in outline["tuple"])
    names, parts = outline["dict"]
    return {name: _filled(part, arguments, leaves) for name, part in zip(names, parts, strict=True)}
