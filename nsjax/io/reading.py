"""Arrays of a file that may be damaged: sizes are bounded before anything is allocated."""

from __future__ import annotations

import contextlib
import math
import os
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from nsjax.core import InputError, System
from nsjax.core.memory import refuse_more
from nsjax.core.quantities import QUANTITIES
from nsjax.io.files import PathLike
from nsjax.trajectory import Impacts, Trajectory

DAMAGE = (
    ArithmeticError, AttributeError, EOFError, LookupError, MemoryError, RuntimeError, StopIteration,
    TypeError, ValueError, struct.error, zipfile.BadZipFile, zlib.error,
)  # fmt: skip
"""What readers of archives, headers and descriptions raise where a byte is wrong."""


@contextlib.contextmanager
def reading(path: PathLike) -> Iterator[None]:
    """Every exception of reading a file as one sentence.

    Raises:
        InputError: for a missing file, one that cannot be read, and a damaged one.
    """
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
    """The sentence for a file that no `save` has written so."""
    return f"{path} is no nsjax archive, or it is damaged; give a file written by nsjax.io.save"


def read_entry(path: PathLike, archive: zipfile.ZipFile, name: str) -> np.ndarray:
    """One array of an archive whose header says what its entry holds.

    Raises:
        InputError: for a header that promises another size, and for what does not fit into memory.
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
    with archive.open(entry) as part:
        found: np.ndarray = np.lib.format.read_array(part, allow_pickle=False)
        if part.read(1):  # reads to the end, where the checksum is looked at
            raise InputError(foreign(path))
    return found


def check_rows(system: System, fields: Mapping[str, Any], old_notes: bool = False) -> None:
    """Refuses rows that do not belong together.

    Args:
        system: what ran.
        fields: of the `Trajectory`, by name; None where they were not saved.
        old_notes: of version 0.1, whose notes are those of all contacts together.

    Raises:
        InputError: naming the first one.
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
    _check_events(system, fields["events"])


def _check_events(system: System, events: Impacts | None) -> None:
    """The impact list: equally many of everything."""
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


def check_state(system: System, traj: Trajectory) -> None:
    """Refuses a continuation that does not fit the model.

    Raises:
        InputError: naming what does not fit.
    """
    state = traj.carry.carry.state
    for name, wanted in (("t", ()), ("q", (system.nq,)), ("v", (system.nv,))):
        found = np.shape(getattr(state, name))
        if found != wanted:
            raise InputError(f"it is damaged: the state to continue from has {name} of shape {found}")
    for name in ("status", *(f"first_failure.{x}" for x in ("step", "time", "status", "contact"))):
        first, _, second = name.partition(".")
        value = getattr(traj, first)
        if np.shape(getattr(value, second) if second else value) != ():
            raise InputError(f"it is damaged: {name} is no single number")
