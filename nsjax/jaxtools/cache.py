"""Cache folder of compiled programs, which outlive the process, and of lowered ones beside them."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import pathlib
import platform
import re
import secrets
import sys
import warnings
import zlib
from collections.abc import Callable
from importlib import metadata
from typing import Any

import jax
from jax import export
from jax.custom_batching import custom_vmap

from nsjax.jaxtools.fingerprint import CONFIG, UnknownValueError, fingerprint
from nsjax.jaxtools.internals import ClosedJaxpr, Jaxpr, Literal, forget_cache_folder, jaxpr_as_fun

CacheChoice = str | os.PathLike[str] | bool | None


def use_cache(choice: CacheChoice = None) -> pathlib.Path | None:
    """Makes JAX keep compiled programs in a folder, for this process and later ones.

    Programs are machine code. JAX's key of a program contains the release of jaxlib and the options; the
    folder's last part (`machine_key`) adds the instructions of the processor, so that a folder shared by
    several machines, a home on the network for instance, never mixes their programs. Several processes may
    use one folder at the same time: a program that another process is writing is compiled again.

    Args:
        choice: a folder; None or True: the user's cache folder (``$XDG_CACHE_HOME/nsjax`` or
            ``~/.cache/nsjax``; on macOS ``~/Library/Caches/nsjax``, on Windows in ``%LOCALAPPDATA%``),
            unless the process has chosen already (``JAX_COMPILATION_CACHE_DIR``, an earlier call);
            False: no cache.

    Returns:
        The folder in use; None if programs are not kept. If the user's cache folder cannot be written, each
        process compiles for itself, without an error.

    Warns:
        RuntimeWarning: for a chosen folder that cannot be written.

    Example:
        >>> from nsjax.jaxtools import use_cache
        >>> folder = use_cache()  # None where nothing can be kept
    """
    if choice is False:
        CONFIG.update("jax_enable_compilation_cache", False)
        return None
    chosen = None if choice is None or choice is True else pathlib.Path(choice).expanduser()
    if chosen is None:
        present = CONFIG.jax_compilation_cache_dir
        if not CONFIG.jax_enable_compilation_cache:
            if choice is None:
                return None
            CONFIG.update("jax_enable_compilation_cache", True)
        if present is not None:
            return pathlib.Path(present)
    base = chosen or user_folder()
    folder = None if base is None else base / machine_key()
    if folder is None or not _takes_files(folder):
        if chosen is not None:
            warnings.warn(
                f"configure: cache = {str(chosen)!r} cannot be written, so that every process compiles for "
                "itself; choose another folder",
                RuntimeWarning,
                stacklevel=3,
            )
        return None
    if chosen is None:
        _thin_out(folder.parent)
    _set_folder(folder)
    return folder


def user_folder() -> pathlib.Path | None:
    """Folder of nsjax's cache files in the user's cache folder; None for a user without a home."""
    try:
        if os.environ.get("XDG_CACHE_HOME"):
            return pathlib.Path(os.environ["XDG_CACHE_HOME"]) / "nsjax"
        if sys.platform == "darwin":
            return pathlib.Path.home() / "Library" / "Caches" / "nsjax"
        if sys.platform == "win32" and os.environ.get("LOCALAPPDATA"):
            return pathlib.Path(os.environ["LOCALAPPDATA"]) / "nsjax"
        return pathlib.Path.home() / ".cache" / "nsjax"
    except RuntimeError:  # no home
        return None


def machine_key() -> str:
    """Name of this kind of machine for cached programs: release of jaxlib, architecture, and a digest of
    the processor's instructions.

    Example:
        >>> from nsjax.jaxtools import machine_key
        >>> machine_key().startswith("jaxlib-")
        True
    """
    digest = hashlib.sha256(f"{platform.system()} {_instructions()}".encode()).hexdigest()[:12]
    return f"jaxlib-{metadata.version('jaxlib')}-{platform.machine() or 'unknown'}-{digest}"


def _instructions(source: str = "/proc/cpuinfo") -> str:
    """Instruction sets of the processor, as the operating system lists them."""
    try:
        with open(source, encoding="utf-8", errors="replace") as file:
            for line in file:
                name, _, value = line.partition(":")
                if name.strip().lower() in ("flags", "features"):
                    return " ".join(sorted(value.split()))
    except OSError:
        pass
    return f"{platform.processor()} {os.environ.get('PROCESSOR_IDENTIFIER', '')}"


def _takes_files(folder: pathlib.Path) -> bool:
    """Whether files can be made in a folder, by trial: permission bits are not reliable."""
    probe = folder / f".probe-{os.getpid()}-{secrets.token_hex(4)}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe.write_bytes(b"")
        probe.unlink()
    except OSError:
        return False
    return True


def _set_folder(folder: pathlib.Path) -> None:
    """Points JAX to the folder."""
    jax_least_seconds = 1.0  # JAX's default threshold; only this value is replaced
    if CONFIG.jax_persistent_cache_min_compile_time_secs == jax_least_seconds:
        # least compile time [s] of a cached program: zero, since a first step needs many small programs
        least_seconds = 0.0
        CONFIG.update("jax_persistent_cache_min_compile_time_secs", least_seconds)
    CONFIG.update("jax_enable_compilation_cache", True)
    if CONFIG.jax_compilation_cache_dir != str(folder):
        CONFIG.update("jax_compilation_cache_dir", str(folder))
        forget_cache_folder()


def _thin_out(base: pathlib.Path, most: int = 2**30) -> None:
    """Deletes the oldest programs of all machines and releases beyond ``most`` bytes down to half of them,
    and empty files left by a crash.
    """
    with contextlib.suppress(OSError):  # another process may do the same
        kept = [*base.glob("*/*-cache"), *base.glob("*/lowered/*")]
        found = [(file, file.stat()) for file in kept]
        for file, facts in found:
            if facts.st_size == 0:
                file.unlink(missing_ok=True)
        total = sum(facts.st_size for _, facts in found)
        if total <= most:
            return
        for file, facts in sorted(found, key=lambda one: max(one[1].st_mtime, one[1].st_atime)):
            file.unlink(missing_ok=True)
            total -= facts.st_size
            if total <= most // 2:
                return


# Cache of lowered programs, stored with the compiled ones, so that later processes do not trace again.


FOLDER = "lowered"
"""Name of the folder of lowered programs in the folder of compiled programs."""

MARK = b"nsjax lowered 1\n"
DIGEST = hashlib.sha256().digest_size

PLAIN = ("jax_disable_jit", "jax_check_tracer_leaks", "jax_debug_nans", "jax_debug_infs")
"""Settings of JAX for debugging, with which functions are always traced."""


def kept_call(function: Callable[..., Any], static: Any, *arguments: Any) -> Any:
    """``function(static, *arguments)`` inside a `jax.jit`, from its lowered program where one is cached.

    JAX finds cached compiled programs by their lowered form, so that it must trace and lower first, which
    is half of the time of a first step. Here the lowered program (`jax.export`) is found by `fingerprint`,
    the digest of everything that it depends on. The function is traced as usual where the digest is
    unknown, without a cache (`use_cache`), for a damaged file, in a process with several devices, for a
    batch, and where the program cannot be exported.

    A cached program has no derivative.

    Args:
        function: function of the package; its result consists of arrays, None, values with the structure of
            an argument, and tuples and dicts of these.
        static: first argument of the function, not traced.
        arguments: further arguments, traced pytrees.

    Example:
        >>> import jax
        >>> from nsjax.math import sin_cos
        >>> from nsjax.jaxtools.cache import kept_call
        >>> def both(_, angle):  # not of the package, so that it is traced
        ...     return sin_cos(angle)
        >>> [round(float(x), 3) for x in jax.jit(lambda angle: kept_call(both, None, angle))(0.5)]
        [0.479, 0.878]
    """
    leaves, tree = jax.tree.flatten(arguments)
    file = file_of(function, static, *arguments)
    if file is None:
        return function(static, *arguments)
    found = _read(file) or _exported(file, function, static, leaves, tree)
    if found is None:
        return function(static, *arguments)
    program, form = found
    run = custom_vmap(lambda *leaves: tuple(program.call(*leaves)))

    @run.def_vmap
    def lanes(size: int, batched: list[bool], *leaves: Any) -> Any:
        """Results for a batch, traced as usual: a cached program has no lanes."""

        def one(*leaves: Any) -> tuple[Any, ...]:
            return tuple(jax.tree.leaves(function(static, *jax.tree.unflatten(tree, leaves))))

        out = jax.vmap(one, [0 if x else None for x in batched], axis_size=size)(*leaves)
        return out, tuple(True for _ in out)

    return filled(form, arguments, iter(run(*leaves)))


def file_of(function: Callable[..., Any], static: Any, *arguments: Any) -> pathlib.Path | None:
    """File of the lowered program of ``function(static, *arguments)``; None where it is traced as usual."""
    folder, leaves = _folder(), jax.tree.leaves(arguments)
    traced = all(isinstance(x, jax.core.Tracer) for x in leaves)
    if folder is None or not traced or any(getattr(CONFIG, name) for name in PLAIN):
        return None
    if len(jax.devices()) > 1:  # a program for one device does not accept arrays on several
        return None
    try:
        return folder / fingerprint(function, static, *arguments)
    except UnknownValueError:
        return None


def conditions() -> tuple[Any, ...]:
    """What decides whether a program is kept, and where, beside the program."""
    return _folder(), *(bool(getattr(CONFIG, name)) for name in PLAIN)


def _folder() -> pathlib.Path | None:
    """Folder of lowered programs; None without a cache."""
    chosen = CONFIG.jax_compilation_cache_dir
    if not chosen or not CONFIG.jax_enable_compilation_cache or "://" in str(chosen):
        return None
    return pathlib.Path(chosen) / FOLDER


def _exported(file: pathlib.Path, function: Any, static: Any, leaves: Any, tree: Any) -> Any:
    """Traces and saves a program; returns it with its outline, or None if it cannot be exported."""
    said: list[Any] = []

    def flat(*leaves: Any) -> Any:
        arguments = jax.tree.unflatten(tree, leaves)
        out = function(static, *arguments)
        said.append(outline(out, arguments))
        return jax.tree.leaves(out)

    try:
        shapes = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in leaves]
        program = bytes(export.export(jax.jit(flat))(*shapes).serialize())
    except Exception:  # tracing as usual raises the same error
        return None
    return _saved(file, said[-1], program)


def program_of(file: pathlib.Path, made: Callable[[], ClosedJaxpr], digest: Callable[[], str]) -> Any:
    """The lowered program of a traced function with a digest, from their file, or made and saved; None if
    it cannot be exported.
    """
    found = _read(file)
    if found is None:
        traced = made()
        types = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in traced.in_avals]
        try:
            program = bytes(export.export(jax.jit(jaxpr_as_fun(traced)))(*types).serialize())
        except Exception:  # without the extra, for instance
            return None
        found = _saved(file, digest(), program)
    return found


def operations_digest(made: ClosedJaxpr) -> str:
    """Digest of the operations of a traced function, without names of variables and places in memory.

    Example:
        >>> import jax
        >>> from nsjax.jaxtools.cache import operations_digest
        >>> one, same, other = (jax.make_jaxpr(lambda x, k=k: k * x)(1.0) for k in (2.0, 2.0, 3.0))
        >>> [operations_digest(x) == operations_digest(one) for x in (same, other)]
        [True, False]
    """
    known: dict[int, str] = {}

    def text(x: Any) -> str:
        if isinstance(x, ClosedJaxpr | Jaxpr):
            lines = x.jaxpr if isinstance(x, ClosedJaxpr) else x
            if id(lines) not in known:
                known[id(lines)] = of(lines)
            return known[id(lines)]
        if isinstance(x, tuple | list):
            return f"({' '.join(map(text, x))})"
        return re.sub("0x[0-9a-f]+", "", str(x))

    def of(lines: Jaxpr) -> str:
        names: dict[Any, int] = {}
        # JAX names the variables of a function by those around it where both share them
        name = lambda x: text(x) if isinstance(x, Literal) else f"{names.setdefault(x, len(names))}"  # noqa: E731
        said = [" ".join(f"{name(x)}:{x.aval}" for x in (*lines.constvars, *lines.invars))]
        for line in lines.eqns:
            given = " ".join(f"{key}={text(value)}" for key, value in sorted(line.params.items()))
            ends = " ".join(f"{name(x)}:{x.aval}" for x in line.outvars)
            said.append(f"{ends} = {line.primitive} {given} {' '.join(map(name, line.invars))}")
        said.append(" ".join(map(name, lines.outvars)))
        return hashlib.sha256("\n".join(said).encode()).hexdigest()

    return text(made)


def note_of(file: pathlib.Path, make: Callable[[], Any]) -> Any:
    """What a file says in types of JSON, or what is made and saved."""
    found = _read(file)
    if found is None:
        note = make()
        _saved(file, note, b"")
        return note
    return found[1]


def _saved(file: pathlib.Path, said: Any, program: bytes) -> Any:
    """A program and its outline, written to a file and read back."""
    text = json.dumps(said).encode()
    whole = zlib.compress(len(text).to_bytes(8, "little") + text + program, 1)
    beside = file.with_name(f".{file.name}-{os.getpid()}-{secrets.token_hex(4)}")
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        beside.write_bytes(MARK + hashlib.sha256(whole).digest() + whole)
        beside.replace(file)
    # read back as in another process: JAX finds the compiled program by the program that is read
    return _opened(whole)


def _read(file: pathlib.Path) -> Any:
    """Program and outline from a file of `_exported`; None if the file is missing or damaged."""
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
        text = whole[8 + size :]
        program = export.deserialize(bytearray(text)) if text else None
    except Exception:  # of another release of the format
        return None
    return program, json.loads(whole[8 : 8 + size])


def outline(x: Any, arguments: tuple[Any, ...]) -> Any:
    """Structure of a result in types of JSON, to rebuild it from leaves: ``"leaf"``, null, ``{"as": k}``
    for the structure of argument ``k``, ``{"tuple": [...]}``, ``{"dict": [[name, ...], [...]]}``.
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
        return {"tuple": [outline(part, arguments) for part in x]}
    if type(x) is dict and all(type(name) is str for name in x):
        names = sorted(x)
        return {"dict": [names, [outline(x[name], arguments) for name in names]]}
    raise TypeError(f"a result with a {type(x).__name__}")


def filled(form: Any, arguments: tuple[Any, ...], leaves: Any) -> Any:
    """Result with the structure of an outline from an iterator of its leaves."""
    if form is None:
        return None
    if form == "leaf":
        return next(leaves)
    if "as" in form:
        structure: Any = jax.tree.structure(arguments[form["as"]])
        return jax.tree.unflatten(structure, [next(leaves) for _ in range(structure.num_leaves)])
    if "tuple" in form:
        return tuple(filled(part, arguments, leaves) for part in form["tuple"])
    names, parts = form["dict"]
    return {name: filled(part, arguments, leaves) for name, part in zip(names, parts, strict=True)}
