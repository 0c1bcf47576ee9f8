"""Files that are written whole or not at all, and arrays of files that may be damaged."""

from __future__ import annotations

import contextlib
import json
import math
import os
import pathlib
import secrets
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, BinaryIO

import jax
import numpy as np

from nsjax.core import InputError, Problem, System
from nsjax.core.arguments import file_path
from nsjax.core.checks import check_shapes
from nsjax.core.memory import refuse_more
from nsjax.core.scheme import QUANTITIES
from nsjax.io.codec import entries_of
from nsjax.renamed import OLD_FIELDS
from nsjax.trajectory import Impacts, Trajectory
from nsjax.version import __version__

PathLike = str | os.PathLike[str]


def check_writable(path: PathLike) -> None:
    """Refuses a path where no file can be written; call it before the run that the file is for.

    A file is made in the folder and removed again: permission bits do not show what root may write, nor
    whether a file system is read-only or full.

    Args:
        path: path of the file to be written later; an existing regular file will be replaced.

    Raises:
        InputError: if the folder is missing or not writable, or ``path`` cannot be a file.

    Example:
        >>> from nsjax.io import check_writable
        >>> check_writable("no_such_folder/run.npz")
        Traceback (most recent call last):
            ...
        nsjax.core.errors.InputError: no_such_folder/run.npz: the folder no_such_folder does not \
exist; create it first
    """
    with _refused(path):
        temporary, handle = _temporary(_target(path))
        handle.close()
        temporary.unlink()


@contextlib.contextmanager
def replacing(path: PathLike) -> Iterator[BinaryIO]:
    """Context with a file open for writing that replaces ``path`` when the block ends without an error.

    Until then, and after a failure, ``path`` is unchanged and no other file remains.

    Args:
        path: path of the file to be written or replaced.

    Raises:
        InputError: as `check_writable`.
        OSError: if writing fails later, because the disk is full for instance.

    Example:
        >>> import os, tempfile
        >>> from nsjax.io import replacing
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with replacing(f"{folder}/a.txt") as file:
        ...         _ = file.write(b"whole")
        ...     os.listdir(folder)
        ['a.txt']
    """
    with _refused(path):
        target = _target(path)
        temporary, handle = _temporary(target)
    try:
        with handle:
            yield handle
            handle.flush()
            os.fsync(handle.fileno())  # else a crash could leave the new name with the old disk blocks
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def _refused(path: PathLike) -> Iterator[None]:
    """Context that turns the operating system's refusal to write into an `InputError`."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}; choose another place") from None


def _target(path: PathLike) -> pathlib.Path:
    """The file behind ``path`` (links followed); refuses paths that cannot be a regular file."""
    target = file_path(path).resolve()
    if target.is_dir():
        raise InputError(f"{path} is a folder; give the name of a file in it")
    if target.exists() and not target.is_file():
        raise InputError(f"{path} is no regular file; choose another place")
    if not target.parent.is_dir():
        raise InputError(f"{path}: the folder {pathlib.Path(path).parent} does not exist; create it first")
    return target


def _temporary(target: pathlib.Path) -> tuple[pathlib.Path, BinaryIO]:
    """A new file beside the target, where a rename cannot cross file systems."""
    name = target.parent / f".nsjax-{os.getpid()}-{secrets.token_hex(4)}.tmp"
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0)
    return name, open(os.open(name, flags, 0o666), "wb")  # the umask restricts the mode


# Arrays of a file that may be damaged: sizes are checked before memory is allocated.


DAMAGE = (
    ArithmeticError, AttributeError, EOFError, LookupError, MemoryError, RuntimeError, StopIteration,
    SyntaxError, TypeError, ValueError, struct.error, tokenize.TokenError, zipfile.BadZipFile, zlib.error,
)  # fmt: skip
"""Exceptions that readers of archives raise for damaged files."""


SCHEMA = 2
"""Version of the file's layout: 2 has public names of records, 1 (of version 0.1) class paths."""

READABLE = (1, 2)
"""Versions that `load` reads."""

SMALL = 2**20
"""Size of arrays that are read before all shapes are checked [bytes]."""


@contextlib.contextmanager
def reading(path: PathLike) -> Iterator[None]:
    """Context that turns every exception of reading a file into one `InputError`. Raises `InputError` for a
    missing file, one that cannot be read, and a damaged one.
    """
    file_path(path)
    try:
        yield
    except FileNotFoundError:
        raise InputError(f"{path} does not exist") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from None
    except InputError:
        raise
    except DAMAGE:
        raise InputError(foreign(path)) from None


def foreign(path: PathLike) -> str:
    """Sentence for a file whose content `save` cannot have written."""
    return f"{path} is no nsjax archive, or it is damaged; give a file written by nsjax.io.save"


def read_entry(path: PathLike, archive: zipfile.ZipFile, name: str, most: float = math.inf) -> np.ndarray:
    """One array of an archive, after a comparison of its header with the size of its entry.

    Args:
        path, archive, name: of the file and its entry.
        most: size up to which the array is read [bytes]; a larger one is an array of zeros of the same
            shape that takes no memory.

    Raises:
        InputError: for a header with another size, and for an array that does not fit into memory.
    """
    entry = archive.getinfo(name)
    if entry.compress_type == zipfile.ZIP_STORED and entry.file_size > os.path.getsize(path):
        raise InputError(foreign(path))
    refuse_more(f"{path}: {name.removesuffix('.npy')}", float(entry.file_size), "it may be damaged")
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    with archive.open(entry) as part:
        shape, _, dtype = readers[np.lib.format.read_magic(part)](part)
        if dtype.hasobject or math.prod(shape) * dtype.itemsize != entry.file_size - part.tell():
            raise InputError(foreign(path))
    if entry.file_size > most:
        return np.broadcast_to(np.zeros((), dtype), shape)
    with archive.open(entry) as part:
        found: np.ndarray = np.lib.format.read_array(part, allow_pickle=False)
        if part.read(1):  # reading to the end checks the checksum
            raise InputError(foreign(path))
    return found


def read_arrays(
    path: PathLike, parts: Sequence[str], most: float = math.inf
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Header of a saved run of a readable schema, and the arrays of some of its parts. ``parts``: keys of
    the header whose arrays are read; ``most``: size of an array that is read [bytes], see `read_entry`.
    """
    arrays: dict[str, np.ndarray] = {}
    with reading(path), zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        if "nsjax_schema.npy" not in names or "nsjax_header.npy" not in names:
            raise InputError(foreign(path))
        # size of the longest description of a run that is read [bytes], a thousand times that of a robot
        longest = 2**26
        if archive.getinfo("nsjax_header.npy").file_size > longest:
            raise InputError(foreign(path))

        def take(name: str, most: float) -> None:
            if f"{name}.npy" in names:  # what is missing is named where it is needed
                arrays[name] = read_entry(path, archive, f"{name}.npy", most)

        for name in ("nsjax_schema", "nsjax_version", "dt"):
            take(name, SMALL)
            # refuses a file of another schema before its other arrays are read
            found = int(arrays["nsjax_schema"])
            if found not in READABLE and "nsjax_version" in arrays:
                raise InputError(
                    f"{path} has schema {found} (written by nsjax {arrays['nsjax_version']}); this nsjax "
                    f"{__version__} reads schemas {' and '.join(map(str, READABLE))}. Read it with the "
                    "version that wrote it"
                )
        take("nsjax_header", longest)
        content = json.loads(str(arrays["nsjax_header"]))
        if not isinstance(content, dict):
            raise InputError(foreign(path))
        content = {OLD_FIELDS["RowQuantities"].get(key, key): part for key, part in content.items()}
        for part in parts:
            for name in entries_of(content.get(part)):
                take(name, most)
    return arrays, content


def check_rows(system: System, fields: Mapping[str, Any], old_notes: bool = False) -> None:
    """Refuses rows whose shapes do not fit together or the system.

    Args:
        fields: fields of the `Trajectory` by name; None where they were not saved.
        old_notes: whether the file is of version 0.1, whose notes are those of all contacts together.
    """
    widths = {"t": (), "q": (system.nq,), "v": (system.nv,)}
    widths |= {name: x.shape(system) for name, x in QUANTITIES.items()}
    if old_notes:
        widths["notes"] = ()
    rows = np.shape(fields["t"])[:1]
    for name, width in widths.items():
        found = np.shape(fields[name])
        if fields[name] is not None and (found != (*rows, *width) or rows in ((), (0,))):
            raise InputError(
                f"it is damaged: {name} has shape {found}; {rows[0] if rows else 'no'} rows of this model "
                f"have {(*rows, *width)}"
            )
        _check_kind(name, fields[name], QUANTITIES[name].kind if name in QUANTITIES else float)
    _check_events(system, fields["events"])


def _check_kind(name: str, value: Any, kind: type) -> None:
    found = np.asarray(value).dtype
    if value is not None and (found != np.float64 if kind is float else found.kind not in "biu"):
        raise InputError(f"it is damaged: {name} has type {found}")


def _check_events(system: System, events: Impacts | None) -> None:
    """Refuses an impact list whose columns differ in length."""
    if events is None:
        return
    if not isinstance(events, Impacts):
        raise InputError(f"it is damaged: events is a {type(events).__name__}")
    length = np.shape(events.time)
    for name in ("contact", "rate_before", "rate_after", "impulse_normal", "impulse_tangential"):
        wanted = (*length, system.nt) if name == "impulse_tangential" else length
        found = np.shape(getattr(events, name))
        if found != wanted or len(length) != 1:
            raise InputError(f"it is damaged: events.{name} has shape {found} beside times {length}")


def check_state(problem: Problem, traj: Trajectory) -> None:
    """Refuses parameters, a state and a continuation that do not fit the model."""
    system, state = problem.system, traj.carry.carry.state
    for name, wanted in (("t", ()), ("q", (system.nq,)), ("v", (system.nv,))):
        found = np.shape(getattr(state, name))
        if found != wanted:
            raise InputError(f"it is damaged: the state to continue from has {name} of shape {found}")
    first = ("step", "time", "status", "contact")
    numbers = {
        "status": traj.status,
        **{f"first_failure.{x}": getattr(traj.first_failure, x) for x in first},
    }
    numbers |= {f"carry.{x}": getattr(traj.carry, x) for x in ("origin", "index", "dt")}
    for name, value in numbers.items():
        if value is None or np.shape(value) != ():
            raise InputError(f"it is damaged: {name} is no single number")
    for path, value in jax.tree_util.tree_leaves_with_path((problem.params, problem.state, traj)):
        if np.asarray(value).dtype.kind not in "biuf":
            raise InputError(
                f"it is damaged: the entry {jax.tree_util.keystr(path)} of parameters, start and run holds "
                "no real numbers"
            )
    check_shapes(system, problem.params, problem.state)
