"""Long runs into a file: progress, checkpoints, a clean stop, and resumption bit for bit."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import numpy as np

from nsjax.core import InputError, Problem, Scheme, System
from nsjax.core.arguments import check_is
from nsjax.core.guards import with_changing
from nsjax.core.memory import check_rows
from nsjax.core.scheme import ROWS
from nsjax.io.archive import load, read_unfinished, write_run
from nsjax.io.files import PathLike, check_writable
from nsjax.loop import RunState, guards_for, trajectory
from nsjax.simulate import (
    Call,
    checked,
    has_stopped,
    joined_rows,
    most_rows,
    row_bytes,
    some_rows,
    up_to_stop,
)
from nsjax.stability import warn_of_step, with_findings
from nsjax.trajectory import Trajectory
from nsjax.types import Array

PERIOD = 60.0
"""Seconds between two checkpoints."""


class Stopped(KeyboardInterrupt):
    """Interruption of a run that can be resumed; its message says how."""


def simulate_to_file(
    problem: Problem, scheme: Scheme, path: PathLike, *, dt: Array | float, steps: int | None = None,
    time: float | None = None, every: int = 1, save: Sequence[str] | None = None, events: int = 0,
    period: float = PERIOD, progress: Callable[[int, int], None] | None = None, stop: Any = None,
    resets: Sequence[tuple[Any, Any]] = (), **metadata: Any,
) -> Trajectory:  # fmt: skip
    """Runs `nsjax.simulate` into a file, for runs that take long.

    Rows and checkpoints are written during the run. An interruption (Ctrl-C, SIGTERM) ends the run cleanly.
    `resume` continues after an interruption or a crash, and ends with the same file, bit for bit.

    Args:
        problem, scheme: problem and scheme of the run.
        path: path of the file, as for `nsjax.save`; until the run is complete the file holds the last
            checkpoint, which `nsjax.load` reads as a shorter run. An older file is replaced unless it is
            unfinished.
        dt, steps, time, every, save, events: as for `nsjax.simulate`.
        period: time [s] between two checkpoints; longer where writing one takes more than a twentieth of
            it.
        progress: function called as ``progress(steps_done, steps)``.
        stop, resets: as for `nsjax.simulate`; `resume` needs them again.
        metadata: notes for the file, as for `nsjax.save`.

    Returns:
        The `Trajectory` of `nsjax.simulate`, bit for bit.

    Raises:
        InputError: before any work, for input that cannot be run or saved, a path that cannot be written,
            a disk without enough space, or a file that holds an unfinished run.
        Stopped: after an interruption; it is a KeyboardInterrupt.
        OSError: if a checkpoint cannot be written; the previous checkpoint stays intact.

    Example:
        >>> import tempfile
        >>> import nsjax
        >>> from nsjax import models, schemes
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = f"{folder}/ball.npz"
        ...     ball = models.bouncing_ball()
        ...     traj = nsjax.simulate_to_file(ball, schemes.moreau(), file, dt=1e-3, steps=500)
        ...     saved = nsjax.load(file)
        >>> bool((saved.traj.q == traj.q).all())
        True
    """
    if not isinstance(period, int | float) or not period >= 0.0:
        raise InputError(f"simulate_to_file: period = {period!r}; give seconds between two checkpoints")
    check_writable(path)
    # refuses to replace a file with an unfinished run; other files are replaced, as by `save`
    unfinished = None
    if os.path.exists(path):
        with contextlib.suppress(InputError):
            unfinished = read_unfinished(path)
    if unfinished is not None:
        raise InputError(
            f"{path} holds an unfinished run: nsjax.resume({os.fspath(path)!r}) goes on with it; or remove "
            "it"
        )
    made = with_changing(problem, None, resets)
    call = _looked_at(made, scheme, dt, steps, time, every, save, events, progress, stop, resets)
    _check_room(path, call)
    warned = warn_of_step(made.system, call.params, call.state, call.scheme, call.dt)
    file = _File(path, problem, made.system, scheme, call, period, warned, metadata)
    return _drive(file, call.run, [], -1, progress)


def resume(
    path: PathLike, problem: Problem | None = None, *, scheme: Scheme | None = None,
    progress: Callable[[int, int], None] | None = None, stop: Any = None,
    resets: Sequence[tuple[Any, Any]] = (),
) -> Trajectory:  # fmt: skip
    """Continues a run begun by `run` to its end; the trajectory of a finished run is returned unchanged.

    Args:
        path: path of the run's file.
        problem: needed for a system that is not a registered model, as for `nsjax.load`.
        scheme: needed for a scheme that is not one of the package.
        progress: function called as ``progress(steps_done, steps)``.
        stop, resets: those of the run, if it has any: files do not hold functions.

    Returns:
        The whole `Trajectory`, bit for bit that of an uninterrupted run.

    Raises:
        InputError: for a file that is not a saved run, or is of another version or system.
        Stopped, OSError: as `run`.

    Example:
        >>> import nsjax
        >>> nsjax.resume("none.npz")
        Traceback (most recent call last):
            ...
        nsjax.core.errors.InputError: none.npz does not exist
    """
    saved = load(path, problem, scheme=scheme)
    unfinished = read_unfinished(path)
    if unfinished is None:
        return saved.traj
    scheme = saved.scheme if scheme is None else scheme
    if scheme is None:
        raise InputError(f"{path}: {saved.scheme_note}; pass the scheme, resume(path, scheme=...)")
    check_writable(path)
    stops, changes = bool(unfinished.get("stops", False)), int(unfinished.get("resets", 0))
    if stops and stop is None:
        raise InputError(
            f"{path}: the run stops at a function, which files do not hold; give it again, "
            "resume(path, stop=...)"
        )
    if stop is not None and not stops:
        raise InputError(f"{path}: the run has no stop, but stop = {stop!r} is given; leave it out")
    if changes != len(resets):
        raise InputError(
            f"{path}: the run has {changes} resets, which files do not hold, and {len(resets)} are given; "
            "give those of the run, resume(path, resets=...)"
        )
    with _named_if_damaged(path):
        every, length = unfinished["every"], unfinished["rows"] * unfinished["every"]
        made = with_changing(saved.problem, None, resets)
        call = _looked_at(
            made, scheme, unfinished["dt"], length, None, every, tuple(unfinished["keep"]),
            unfinished["events"], progress, stop, resets,
        )  # fmt: skip
        # carry of the time loop at the checkpoint
        leaves = unfinished["run"]
        fresh, tree = jax.tree.flatten(call.run)
        kinds = [[(np.shape(x), np.asarray(x).dtype) for x in some] for some in (fresh, leaves)]
        if kinds[0] != kinds[1]:
            raise InputError(
                f"{path} is a checkpoint of another version or system: what the run carries has other "
                "shapes. Its rows are whole (nsjax.load); start anew from the last of them"
            )
        at: RunState = jax.tree.unflatten(tree, list(leaves))
        period, warned = unfinished["period"], unfinished["warned"]
    _check_room(path, call)
    rows = {name: getattr(saved.traj, name) for name in ("t", "q", "v", *ROWS)}
    file = _File(path, saved.problem, made.system, scheme, call, period, warned, saved.metadata)
    return _drive(file, at, [rows], len(rows["t"]) - 1, progress)


@contextlib.contextmanager
def _named_if_damaged(path: PathLike) -> Iterator[None]:
    """Context that turns a missing entry of a file into an error that names it."""
    try:
        yield
    except KeyError as error:
        raise InputError(f"{path} is damaged: it lacks {error}") from None


def _looked_at(
    problem: Problem, scheme: Scheme, dt: Any, steps: int | None, time: float | None, every: int,
    save: Sequence[str] | None, events: int, progress: Any, stop: Any, resets: Any,
) -> Call:  # fmt: skip
    check_is("simulate_to_file", "problem", problem, Problem)
    call = checked(
        problem.system, problem.params, problem.state, scheme, dt=dt, steps=steps, time=time, every=every,
        save=save, gradient=None, events=events, notes=False, carry=None, progress=progress,
        guards=guards_for(problem.system, stop, resets),
    )  # fmt: skip
    if call.traced:
        raise InputError(
            "simulate_to_file: works on plain numbers; inside jit, vmap and grad use nsjax.simulate"
        )
    check_rows(call.rows, row_bytes(call.program), traced=False)
    return call


def _check_room(path: PathLike, call: Call) -> None:
    """Refuses a file system without space for the last checkpoint and the finished file together."""
    needed = 2 * (call.rows + 1) * row_bytes(call.program)
    free = shutil.disk_usage(os.path.dirname(os.path.abspath(path))).free
    if needed > free:
        raise InputError(
            f"{path}: {call.rows} rows take {needed / 2**20:.4g} MiB with a checkpoint beside them, and "
            f"{free / 2**20:.4g} MiB are free; raise every, name the quantities to keep, save=[...], or "
            "choose another place"
        )


@dataclasses.dataclass(frozen=True)
class _File:
    """File of a run, with the problem, the scheme and the arguments of the run. ``system`` is that of the
    problem, with the numbers that resets change as inputs.
    """

    path: PathLike
    problem: Problem
    system: System
    scheme: Scheme
    call: Call
    period: float
    warned: bool
    metadata: dict[str, Any]

    def checkpoint(self, run: RunState, rows: dict[str, Any]) -> None:
        """Writes the finished rows and the data to resume the run."""
        call = self.call
        unfinished = {
            "run": [np.asarray(x) for x in jax.tree.leaves(run)], "rows": call.rows, "every": call.every,
            "keep": list(call.program.keep), "events": call.program.events, "dt": np.asarray(call.dt),
            "period": self.period, "warned": self.warned,
        }  # fmt: skip
        if (guards := call.program.guards) is not None:
            unfinished |= {"stops": guards.stop is not None, "resets": len(guards.resets)}
        traj = trajectory(self.system, call.params, run, rows)
        write_run(self.path, self.problem, traj, self.scheme, self.metadata, unfinished)

    def finish(self, run: RunState, rows: dict[str, Any]) -> Trajectory:
        """Writes the whole run."""
        call = self.call
        run = with_findings(call, self.warned, rows, run)
        traj = trajectory(self.system, call.params, run, rows)
        write_run(self.path, self.problem, traj, self.scheme, self.metadata)
        return traj


def _drive(
    file: _File, run: RunState, parts: list[dict[str, Any]], done: int,
    progress: Callable[[int, int], None] | None,
) -> Trajectory:  # fmt: skip
    """Runs the remaining rows in pieces, with checkpoints between them, and writes the whole run."""
    call, count = file.call, 1  # the first piece is the row of the start, and compiles
    with _interruptions() as asked:
        written, period = -np.inf, file.period
        # largest share of a run's time for checkpoints; checkpoints that are slow to write come less often
        share = 0.05
        piece = 1.0  # intended duration [s] of a piece of a run; interruptions are noticed between pieces
        growth = 4  # largest ratio of the lengths of successive pieces
        while done < call.rows and not has_stopped(run):
            begin = time.perf_counter()
            fresh = min(count, most_rows(call), call.rows - done)
            run, part = some_rows(call, run, done, fresh)
            parts, done = [*parts, part], done + fresh
            now = time.perf_counter()
            count = max(1, min(growth * fresh, int(fresh * piece / max(now - begin, 1e-9))))
            if progress is not None:
                progress(done * call.every, call.rows * call.every)
            if done < call.rows and (now - written >= period or asked):
                parts = [joined_rows(parts)]
                _write(file, run, parts[0])
                written = time.perf_counter()
                period = max(file.period, (written - now) / share) if file.period else 0.0
                if asked:
                    farewell = (
                        f"stopped after {done * call.every} of {call.rows * call.every} steps; all of them "
                        f"are in {file.path}. nsjax.resume({os.fspath(file.path)!r}), or nsjax resume "
                        f"{file.path}, goes on"
                    )
                    raise Stopped(farewell)
    try:
        return file.finish(run, up_to_stop(run, joined_rows(parts)))
    except OSError as error:
        raise OSError(_lost(file, "the finished run", error)) from error


def _write(file: _File, run: RunState, rows: dict[str, Any]) -> None:
    try:
        file.checkpoint(run, rows)
    except OSError as error:
        what = f"the checkpoint at t = {float(rows['t'][-1]):.6g} s"
        raise OSError(_lost(file, what, error)) from error


def _lost(file: _File, what: str, error: OSError) -> str:
    """Sentence about a failed write and the content of the file."""
    why = error.strerror or str(error)
    kept = "there is none before it"
    with contextlib.suppress(InputError):
        traj = load(file.path, file.problem, scheme=file.scheme).traj
        kept = f"the one at t = {float(traj.t[-1]):.6g} s is whole: make room, then resume {file.path}"
    return f"{file.path}: {what} could not be written ({why}); {kept}"


@contextlib.contextmanager
def _interruptions() -> Iterator[list[int]]:
    """Context that collects signals to stop until the current piece is done; a second signal ends the run
    at once. Signals can be caught in the main thread only.
    """
    asked: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return

    def note(number: int, frame: Any) -> None:
        if asked:
            raise KeyboardInterrupt
        asked.append(number)

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
