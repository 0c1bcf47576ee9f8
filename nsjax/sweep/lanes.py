"""Lanes of a sweep computed by workers, by other processes, or earlier: executors and checkpoints."""

from __future__ import annotations

import collections
import contextlib
import functools
import glob
import hashlib
import json
import os
import pathlib
from collections.abc import Generator, Iterator
from concurrent import futures
from typing import Any, BinaryIO

import jax
import jaxlib
import numpy as np

from nsjax.configure import configure
from nsjax.core.arguments import file_path
from nsjax.core.errors import InputError, optional
from nsjax.io.files import PathLike, check_writable
from nsjax.jaxtools.control_flow import tree_bytes
from nsjax.jaxtools.internals import gathered
from nsjax.sweep import program
from nsjax.sweep.program import Plan
from nsjax.types import Array, PyTree
from nsjax.version import __version__

# Sweeps over several processes: each computes its share of the lanes, all get all results.


def share(lanes: np.ndarray) -> np.ndarray:
    """The lanes of this process: lanes are assigned to processes in turn."""
    return lanes[jax.process_index() :: jax.process_count()]


def owners(lanes: np.ndarray, done: np.ndarray) -> np.ndarray:
    """The process that has, or computes, each of the ``lanes``: the first that has the lane already; the
    others are assigned in turn. ``lanes``: (n,) numbers of the lanes to run; ``done``: (all lanes,) mask of
    the lanes that this process has.
    """
    number = jax.process_count()
    has = done[None] if number == 1 else np.asarray(gathered(done))
    owner = np.where(has.any(0), np.argmax(has, axis=0), -1)[lanes]
    missing = np.flatnonzero(owner < 0)
    owner[missing] = np.arange(len(missing)) % number
    return owner


def gather(found: PyTree, lanes: np.ndarray, owner: np.ndarray | None = None) -> PyTree:
    """Results of all lanes, from arrays with the results of this process's lanes.

    Args:
        found: arrays, one entry per lane.
        lanes: (n,) numbers of the lanes that ran.
        owner: (n,) the process that has each lane; None: the assignment of `share`.
    """
    number = jax.process_count()
    if number == 1:
        return found
    owner = np.arange(len(lanes)) % number if owner is None else owner
    own = [lanes[owner == k] for k in range(number)]
    longest, mine = max(len(x) for x in own), own[jax.process_index()]
    places = np.concatenate([mine, np.repeat(lanes[:1], longest - len(mine))])

    def collect(values: np.ndarray) -> np.ndarray:
        parts = gathered(values[places])
        for k in range(number):
            values[own[k]] = np.asarray(parts[k])[: len(own[k])]
        return values

    return jax.tree.map(collect, found)


def releases() -> dict[str, str]:
    """What else determines the bits of a lane: releases, kind of device, options of the compiler."""
    flags = [x for x in os.environ.get("XLA_FLAGS", "").split() if "device_count" not in x]
    return {
        "nsjax": __version__, "jax": jax.__version__, "jaxlib": jaxlib.__version__,
        "device": jax.local_devices()[0].device_kind, "XLA_FLAGS": " ".join(sorted(flags)),
    }  # fmt: skip


# Finished lanes of a sweep in a file, so that a stopped sweep resumes with the missing lanes.


MARK = b"nsjax lanes 1\n"
CHECK = hashlib.sha256().digest_size
NUMBER = np.dtype("<i8")
"""Data type of the counts and of the numbers of lanes in the file."""

MEANING = {
    "releases": "by another release of nsjax or JAX, on another device, or with other options of XLA",
    "program": "with another model, scheme, reduction or code",
    "numbers": "with other parameters, another start or other numbers of the scheme",
    "lanes": "over other keys or values",
    "lengths": "with other step sizes or numbers of steps",
}
"""Properties in which two sweeps may differ, and the text that names the difference in a message."""


def identity(plan: Plan) -> dict[str, str]:
    """Digests of everything that determines the bits of the lanes.

    The digest of the program is that of its lowered text, so that it covers the functions of users.
    """
    lane = jax.tree.map(lambda x: x[0], plan.lanes(np.zeros(1, int)))
    lowered = program.run_lane.lower(plan.one, plan.common, lane).as_text()
    common, axes, lengths = plan.common, plan.axes, plan.lengths
    return {
        "releases": _digest(*releases().values()),
        "program": _digest(lowered),
        "numbers": _digest(*jax.tree.leaves((common.params, common.state, common.scheme.coef))),
        "lanes": _digest(axes.mode, *(key.text for key in axes.keys), *axes.arrays),
        "lengths": _digest(lengths.dt, lengths.every, lengths.rows),
    }


def _digest(*parts: Any) -> str:
    """Digest of strings, numbers and arrays."""
    found = hashlib.sha256()
    for part in parts:
        array = np.asarray(part)
        found.update(f"{array.dtype} {array.shape} ".encode())
        found.update(part.encode() if isinstance(part, str) else array.tobytes())
    return found.hexdigest()


class Checkpoint:
    """A file to which finished lanes are added.

    Args:
        file: file open for reading and writing, positioned at its end; None: nothing is written.
        path: path of the file.
    """

    def __init__(self, file: BinaryIO | None, path: PathLike) -> None:
        self.file, self.path = file, path

    def add(self, lanes: np.ndarray, values: PyTree) -> None:
        """Writes some lanes through to the disk. ``lanes``: (n,) numbers of the lanes; ``values``: results
        of the lanes, with n entries in front.

        Raises:
            OSError: if the file cannot grow; its earlier content stays intact.
        """
        if self.file is None:
            return
        rows = [np.asarray(lanes, NUMBER), *(np.asarray(x) for x in jax.tree.leaves(values))]
        block = np.asarray(len(lanes), NUMBER).tobytes() + b"".join(x.tobytes() for x in rows)
        try:
            write_through(self.file, block + hashlib.sha256(block).digest())
        except OSError as error:
            why = error.strerror or str(error)
            raise OSError(
                f"{os.fspath(self.path)}: finished lanes could not be written ({why}); those before them "
                "are whole: make room, then start the same sweep again"
            ) from error


def write_through(file: BinaryIO, data: bytes) -> None:
    """Writes data to the disk through an unbuffered file."""
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) :]
    os.fsync(file.fileno())


@contextlib.contextmanager
def lanes_of(path: PathLike | None, plan: Plan, found: PyTree) -> Iterator[tuple[np.ndarray, Checkpoint]]:
    """Context with the lanes that earlier sweeps have written, and the file open for more.

    Args:
        path: path of the file; None: nothing is read or written.
        found: results, one entry per lane; the lanes of the file are filled in.

    Yields:
        Mask (lanes,) of the lanes that are filled in, and the `Checkpoint`.

    Raises:
        InputError: for the file of another sweep, another kind of file, or a file that another process
            writes.
    """
    done = np.zeros(plan.axes.count, bool)
    if path is None:
        yield done, Checkpoint(None, "")
        return
    known = identity(plan)
    own = own_file(path)
    check_writable(own)
    beside = {os.fspath(path), *glob.glob(f"{glob.escape(os.fspath(path))}.[0-9]*")}
    for name in beside - {os.fspath(own)}:
        if os.path.exists(name):
            with open(name, "rb") as file:
                _read(file, name, known, found, done)
    with open(own, "ab", buffering=0) as file:
        _lock(file, own)
        with open(own, "rb") as before:
            end = _read(before, os.fspath(own), known, found, done)
        file.truncate(end)  # removes a block cut short by the end of the process
        if end == 0:
            head = json.dumps(known).encode()
            write_through(file, MARK + np.asarray(len(head), NUMBER).tobytes() + head)
        yield done, Checkpoint(file, own)


def own_file(path: PathLike) -> pathlib.Path:
    """The file of this process: each of several processes has its own, ``path.0``, ``path.1``."""
    alone = jax.process_count() == 1
    whole = file_path(path)
    return whole if alone else whole.with_name(f"{whole.name}.{jax.process_index()}")


def _lock(file: BinaryIO, path: PathLike) -> None:
    """Refuses a file that another process writes, on systems that have file locks."""
    try:
        import fcntl
    except ImportError:
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise InputError(
            f"{os.fspath(path)}: another process writes lanes there; wait for it, or name another file"
        ) from None


def _read(file: BinaryIO, name: str, known: dict[str, str], found: PyTree, done: np.ndarray) -> int:
    """Fills in the lanes of a file and returns the end of its last whole block, 0 for an empty file."""
    start = file.read(len(MARK))
    if MARK.startswith(start) and start != MARK:
        return 0
    if start != MARK:
        raise InputError(f"{name} is no file of finished lanes; name another one as checkpoint")
    head = _header(file, name, known)
    if head is None:
        return 0
    _same(name, head, known)
    leaves = jax.tree.leaves(found)
    size = NUMBER.itemsize + sum(x.dtype.itemsize * int(np.prod(x.shape[1:])) for x in leaves)
    end = file.tell()
    while True:
        count = file.read(NUMBER.itemsize)
        number = int(np.frombuffer(count, NUMBER)[0]) if len(count) == NUMBER.itemsize else -1
        if not 0 < number <= len(done):
            return end
        rest = file.read(number * size + CHECK)
        block = count + rest[:-CHECK]
        if len(rest) < number * size + CHECK or hashlib.sha256(block).digest() != rest[-CHECK:]:
            return end
        _fill(block[NUMBER.itemsize :], number, leaves, done)
        end = file.tell()


def _header(file: BinaryIO, name: str, known: dict[str, str]) -> dict[str, str] | None:
    """Digests at the head of a file; None for a file of this sweep that ends within its head. Raises
    `InputError` for a head that no sweep has written.
    """
    whole = json.dumps(known).encode()
    count = file.read(NUMBER.itemsize)
    size = int(np.frombuffer(count, NUMBER)[0]) if len(count) == NUMBER.itemsize else -1
    text = file.read(min(max(size, 0), 2 * len(whole)))
    if (np.asarray(len(whole), NUMBER).tobytes() + whole).startswith(count + text) and text != whole:
        return None
    with contextlib.suppress(ValueError, RecursionError):
        head: Any = json.loads(text) if len(text) == size else None
        if isinstance(head, dict) and head.keys() == known.keys():
            return {part: str(digest) for part, digest in head.items()}
    raise InputError(
        f"{name} is damaged: its head does not tell which sweep its lanes are of. Name another checkpoint, "
        "or remove the file to start anew"
    )


def _same(name: str, head: dict[str, str], known: dict[str, str]) -> None:
    """Refuses the file of another sweep."""
    other = [MEANING[part] for part in known if head[part] != known[part]]
    if other:
        raise InputError(
            f"{name} holds lanes of another sweep, made {'; '.join(other)}. Name another checkpoint, or "
            "remove the file to start anew"
        )


def _fill(block: bytes, number: int, leaves: list[np.ndarray], done: np.ndarray) -> None:
    """Copies the lanes of one block into the results."""
    take = functools.partial(np.frombuffer, block)
    lanes, at = take(NUMBER, number), number * NUMBER.itemsize
    for leaf in leaves:
        entries = number * int(np.prod(leaf.shape[1:]))
        leaf[lanes] = take(leaf.dtype, entries, at).reshape(number, *leaf.shape[1:])
        at += entries * leaf.dtype.itemsize
    done[lanes] = True


# Lanes of a sweep computed by workers of an executor: a pool of processes, or a Dask cluster.


PIECES = 256
"""Least number of tasks of a sweep with enough lanes, so that all workers have tasks."""


def check_executor(executor: Any) -> None:
    """Refuses an object without ``submit``, and a process that cannot export programs."""
    if executor is None:
        return
    if not callable(getattr(executor, "submit", None)) or hasattr(executor, "get_executor"):
        raise InputError(
            f"sweep: executor = {executor!r}; give a concurrent.futures.Executor: a ProcessPoolExecutor, "
            "or client.get_executor() of a Dask client"
        )
    optional("sweep: an executor gets the program as a file, which needs", "cache", "flatbuffers")


def compute(made: bytes, wanted: dict[str, str], leaves: list[np.ndarray], count: int) -> list[np.ndarray]:
    """Runs some lanes in a worker, which needs neither the model's code nor its records. Raises
    `InputError` in a worker with other releases or compiler options, whose lanes could differ in bits.

    Args:
        made: the exported program of a compiled call.
        wanted: `releases` of the process that exported it.
        leaves: arguments of the program.
        count: number of the lanes that are in use.
    """
    configure()
    if releases() != wanted:
        raise InputError(
            f"sweep: a worker of the executor has {releases()}, the calling process {wanted}; install the "
            "same releases on all workers, and start them with the same XLA_FLAGS"
        )
    return [np.asarray(x)[:count] for x in _loaded(made)(*leaves)]


@functools.lru_cache(maxsize=4)
def _loaded(made: bytes) -> Any:
    """An exported program, compiled once in each worker."""
    return jax.jit(jax.export.deserialize(bytearray(made)).call)


def exported(plan: Plan, chunk: int) -> bytes:
    """The exported call of ``chunk`` lanes on one device as bytes; it takes and returns flat arrays."""
    device = (jax.local_devices()[0],)
    leaves, tree = jax.tree.flatten(_arguments(plan, np.zeros(1, int), chunk))

    def flat(*leaves: Array) -> list[Array]:
        common, lanes, counts = jax.tree.unflatten(tree, leaves)
        return jax.tree.leaves(program.call(plan.one, device, common, lanes, counts))

    shapes = [jax.ShapeDtypeStruct(np.shape(x), np.asarray(x).dtype) for x in leaves]
    return bytes(jax.export.export(jax.jit(flat))(*shapes).serialize())


def _arguments(plan: Plan, some: np.ndarray, chunk: int) -> Any:
    """Arguments of `program.call` for some lanes, padded with copies of the last lane, which do not run."""
    table = np.concatenate([some, np.repeat(some[-1:], chunk - len(some))])
    return plan.common, plan.lanes(table), np.asarray([len(some)])


def computed_lanes(
    plan: Plan, left: np.ndarray, size: int, memory_bytes: int, executor: futures.Executor,
    shapes: program.LaneResults,
) -> Generator[tuple[np.ndarray, program.LaneResults], None, None]:  # fmt: skip
    """Lanes with their results, in the order in which workers finish them.

    Args:
        left: (n,) numbers of the lanes to run.
        size: largest number of lanes of a task.
        memory_bytes: bound on the memory of all tasks in flight.
        executor: executor of the tasks.
        shapes: shapes and types of the results of one lane.
    """
    if not len(left):
        return
    size = max(1, min(size, -(-len(left) // PIECES)))
    made, known, tree = exported(plan, size), releases(), jax.tree.structure(shapes)
    waiting = collections.deque(left[k : k + size] for k in range(0, len(left), size))
    most = max(1, memory_bytes // (len(made) + 2 * size * tree_bytes(shapes)))
    running: dict[futures.Future[list[np.ndarray]], np.ndarray] = {}
    try:
        while waiting or running:
            while waiting and len(running) < most:
                some = waiting.popleft()
                leaves = [np.asarray(x) for x in jax.tree.leaves(_arguments(plan, some, size))]
                running[executor.submit(compute, made, known, leaves, len(some))] = some
            done, _ = futures.wait(running, return_when=futures.FIRST_COMPLETED)
            for task in done:
                yield running.pop(task), jax.tree.unflatten(tree, task.result())
    finally:
        for task in running:
            task.cancel()
