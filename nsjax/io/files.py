"""Files that are written whole or not at all, and a check of their path before a long run."""

from __future__ import annotations

import contextlib
import os
import pathlib
import secrets
from collections.abc import Iterator
from typing import BinaryIO

from nsjax.core import InputError
from nsjax.core.arguments import file_path

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
