"""Memory and progress of long runs: estimates before they are allocated, and what is told of them."""

from __future__ import annotations

import contextlib
import os
import pathlib
import warnings
from collections.abc import Callable, Iterator

import numpy as np

from nsjax.core.errors import InputError, optional
from nsjax.jaxtools import notes_to

# Progress of runs and sweeps, told between compiled calls: a callback inside would split the kernel.


Progress = bool | Callable[[int, int], None] | None


@contextlib.contextmanager
def meter(progress: Progress, total: int, unit: str = "lane") -> Iterator[Callable[[int], None]]:
    """Context with a function that the caller calls with the number of finished lanes or steps.

    Args:
        progress: False or None: silent; True: a bar, which says what compiles meanwhile; a function: called
            with those done and all.
        total: number of all.
        unit: ``"lane"`` or ``"step"``.

    Raises:
        InputError: for ``progress=True`` without tqdm.
    """
    if progress is False or progress is None:
        yield lambda done: None
        return
    if progress is not True:
        yield lambda done: progress(done, total)
        return
    tqdm = optional("progress=True needs", "progress", "tqdm.auto").tqdm
    with (
        tqdm(total=total, unit=unit, unit_scale=unit == "step") as bar,
        notes_to(lambda line, last: bar.set_description_str("" if last else line)),
    ):
        yield lambda done: bar.update(done - bar.n) and None


# Estimates of the memory that a run needs, before it is allocated.


_GROUP = pathlib.Path("/sys/fs/cgroup/memory.max")
"""File in which Linux states the memory limit of a container."""


def machine_bytes() -> float:
    """Memory that this process may use [bytes]; infinite if it cannot be found out."""
    try:
        whole: float = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return np.inf
    try:
        return min(whole, float(_GROUP.read_text()))
    except (OSError, ValueError):  # no such file, or "max"
        return whole


def refuse_more(what: str, needed: float, remedy: str, *, limit: float | None = None) -> None:
    """Refuses a run or array that does not fit into memory.

    Args:
        what: the thing, for the start of the error sentence.
        needed: bytes that it needs.
        remedy: end of the sentence.
        limit: bytes, `machine_bytes` if None.

    Example:
        >>> from nsjax.core.memory import refuse_more
        >>> refuse_more("events = 5", 3 * 2**30, "ask for fewer", limit=2**30)
        Traceback (most recent call last):
            ...
        nsjax.core.errors.InputError: events = 5 would take 3 GiB, of 1 GiB of memory; ask for fewer
    """
    # size [bytes] that every machine has left: it is not asked, which takes longer than a short run
    little = 2.0**24
    if limit is None and needed <= little:
        return
    limit = machine_bytes() if limit is None else limit
    if needed > limit:
        raise InputError(
            f"{what} would take {needed / 2**30:.3g} GiB, of {limit / 2**30:.3g} GiB of memory; {remedy}"
        )


FEW_ROWS = "raise every, or name the quantities to keep, save=[...]"


def check_rows(
    rows: int, row_bytes: int, *, traced: bool, lanes: int = 1, kept: int = 0, limit: float | None = None
) -> None:
    """Refuses, or warns of, a run whose saved rows would not fit into memory.

    Outside transformations a run needs twice the size of its rows while its parts are joined, and is
    refused if that does not fit. In a transformation the rows need twice their size for derivatives, but
    rows that nobody uses fall away: the user is warned, and the run is refused if the times of its rows do
    not fit.

    Args:
        rows, row_bytes: number of rows of a lane, and bytes of a row.
        traced: whether the run is inside a transformation.
        lanes: lanes of all batches around the run, see `lanes_around`.
        kept: bytes that reverse mode stores of a lane in addition to the rows.
        limit: bytes, `machine_bytes` if None.

    Warns:
        UserWarning: for rows that may not fit with the bytes that reverse mode stores.
    """
    whose = f" in each of {lanes} lanes" if lanes > 1 else ""
    what = f"simulate: {rows} rows of {row_bytes} bytes{whose}"
    if not traced:
        refuse_more(f"{what}, while they are joined,", 2.0 * rows * row_bytes, FEW_ROWS, limit=limit)
        return
    limit = machine_bytes() if limit is None else limit
    refuse_more(f"{what}: their times alone", 8.0 * rows * lanes, "raise every", limit=limit)
    needed = lanes * (2.0 * rows * row_bytes + kept)
    if needed > limit:
        fewer = ", or take fewer lanes at a time (jax.lax.map)" if lanes > 1 else ""
        warnings.warn(
            f"{what} and their derivatives may take {needed / 2**30:.3g} GiB, of {limit / 2**30:.3g} GiB "
            f"of memory (batches outside of a jax.jit are not counted); {FEW_ROWS}{fewer}; for few "
            "parameters use forward mode (jax.jacfwd)",
            stacklevel=4,
        )


def check_events(events: int, nt: int) -> None:
    """Refuses an impact list that does not fit into memory; each step of a run reads all of it."""
    refuse_more(f"events = {events}", 8.0 * events * (5 + nt), "ask for fewer, or for none")
