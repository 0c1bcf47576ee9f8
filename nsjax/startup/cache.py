"""Cache folder of compiled programs, which outlive the process."""

from __future__ import annotations

import contextlib
import hashlib
import os
import pathlib
import platform
import secrets
import sys
import warnings
from importlib import metadata
from typing import Any

import jax

CONFIG: Any = jax.config
"""JAX's settings, as `Any` because JAX does not declare their names."""

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
        >>> from nsjax.startup import use_cache
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
        >>> from nsjax.startup import machine_key
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
    from jax.experimental.compilation_cache import compilation_cache

    jax_least_seconds = 1.0  # JAX's default threshold; only this value is replaced
    if CONFIG.jax_persistent_cache_min_compile_time_secs == jax_least_seconds:
        # least compile time [s] of a cached program: zero, since a first step needs many small programs
        least_seconds = 0.0
        CONFIG.update("jax_persistent_cache_min_compile_time_secs", least_seconds)
    CONFIG.update("jax_enable_compilation_cache", True)
    if CONFIG.jax_compilation_cache_dir != str(folder):
        CONFIG.update("jax_compilation_cache_dir", str(folder))
        compilation_cache.reset_cache()  # an earlier computation may have fixed another folder


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
