"""Lanes of a sweep computed by workers of an executor: a pool of processes, or a Dask cluster."""

from __future__ import annotations

import collections
import functools
from collections.abc import Generator
from concurrent import futures
from typing import Any

import jax
import numpy as np

from nsjax.configure import configure
from nsjax.core.errors import InputError, optional
from nsjax.core.memory import tree_bytes
from nsjax.sweep import program
from nsjax.sweep.plan import Plan
from nsjax.sweep.processes import releases
from nsjax.types import Array

PIECES = 256
"""Least number of tasks of a sweep with enough lanes, so that all workers have tasks."""


def check_executor(executor: Any) -> None:
    """Refuses an object without ``submit``, and a process that cannot export programs.

    Raises:
        InputError: names an executor to give, or the missing extra.
    """
    if executor is None:
        return
    if not callable(getattr(executor, "submit", None)) or hasattr(executor, "get_executor"):
        raise InputError(
            f"sweep: executor = {executor!r}; give a concurrent.futures.Executor: a ProcessPoolExecutor, "
            "or client.get_executor() of a Dask client"
        )
    optional("sweep: an executor gets the program as a file, which needs", "cache", "flatbuffers")


def compute(made: bytes, wanted: dict[str, str], leaves: list[np.ndarray], count: int) -> list[np.ndarray]:
    """Runs some lanes in a worker, which needs neither the model's code nor its records.

    Args:
        made: the exported program of a compiled call.
        wanted: `releases` of the process that exported it.
        leaves: arguments of the program.
        count: number of the lanes that are in use.

    Returns:
        Arrays with ``count`` entries in front.

    Raises:
        InputError: in a worker with other releases or compiler options, whose lanes could differ in bits.
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


def parts(
    plan: Plan, left: np.ndarray, size: int, memory_bytes: int, executor: futures.Executor,
    shapes: program.LaneResults,
) -> Generator[tuple[np.ndarray, program.LaneResults], None, None]:  # fmt: skip
    """Lanes with their results, in the order in which workers finish them.

    Args:
        plan: the sweep.
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
