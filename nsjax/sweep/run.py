"""`sweep`: many variants of a problem in one compiled program."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent import futures
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.core import checks
from nsjax.core.errors import InputError
from nsjax.core.memory import meter, refuse_more
from nsjax.core.scheme import Scheme, row_numbers
from nsjax.core.system import Problem
from nsjax.io.files import PathLike
from nsjax.jaxtools.control_flow import tree_bytes
from nsjax.renamed import renamed_options
from nsjax.simulate import simulate
from nsjax.stability import warn_of_step
from nsjax.status import REFUSED
from nsjax.sweep import lanes as lanes_file
from nsjax.sweep import program, reductions
from nsjax.sweep.lanes import check_executor, computed_lanes, gather, owners
from nsjax.sweep.program import Plan, guards_of_lanes, lay_out, make_plan, refusals
from nsjax.sweep.result import SweepResult
from nsjax.types import Array, is_traced

CHUNK_LANES = 1024
CALL_STEPS = 4_000_000
"""Largest number of lanes, and approximate number of steps, of a compiled call on each device: one or two
seconds, after which progress is shown and the run can be interrupted. They hold where lanes run one after
the other."""


@renamed_options(rows="samples")
def sweep(
    problem: Problem,
    scheme: Scheme,
    over: Mapping[str, Any],
    *,
    mode: str = "zip",
    reduce: Any = reductions.last,
    memory_bytes: int = 2**30,
    progress: bool | Callable[[int, int], None] = False,
    checkpoint: PathLike | None = None,
    dt: Array | float | None = None,
    steps: int | None = None,
    time: float | None = None,
    every: int | None = None,
    samples: int | None = None,
    events: int = 0,
    gradient: str | None = None,
    executor: futures.Executor | None = None,
    stop: Any = None,
    resets: Sequence[tuple[Any, Any]] = (),
) -> SweepResult:
    """Runs a problem once for every combination of values, in one compiled program.

    A *lane* is one run. Lanes may differ in any number of the problem, of the scheme, and in the step
    size. The result of a lane is bitwise that of a sweep over this lane alone; `simulate` is another
    compiled program of the same operations and agrees to rounding. ``reduce`` turns a lane into its results
    while it runs, so that memory depends neither on the number of steps nor, apart from the results, on
    the number of lanes. Another number of lanes, other values, step sizes or numbers of steps do not
    compile again.

    On a CPU the lanes of a device run one after the other inside one kernel, on a GPU side by side. All
    devices of the process are used (``nsjax.configure(host_devices=2)`` splits a CPU), and all
    processes after ``jax.distributed.initialize``: every process calls `sweep` in the same way, computes
    its share and gets the whole result. None of this changes a bit of a lane on a CPU.

    Args:
        problem: system, parameters and initial state common to all lanes.
        scheme: for instance ``schemes.moreau()``.
        over: values by key, lanes first: ``"params.friction"`` (lanes,) or (lanes, nc), ``"state.v"``
            (lanes, nv), ``"state.q[1]"``, ``"params.rod.mass"`` inside nested parameters,
            ``"scheme.rho_inf"``, ``"dt"``. Any number of keys.
        mode: ``"zip"``: lane k takes the k-th value of every key; ``"product"``: all combinations, the
            result has one axis per key.
        reduce: reduction of each run to its results, see `nsjax.reductions`: a fold such as ``last`` or
            ``maximum("q")``, a function of the `Trajectory`, or a mapping of names to these. Define
            functions once, at module level: a new function compiles again.
        memory_bytes: bound on the memory of rows and results of lanes in flight, on all devices of the
            process together.
        progress: True shows a bar (extra ``progress``), and beside it what compiles; a function is called
            with the numbers of lanes done and of all lanes.
        checkpoint: path of a file to which finished lanes are added, every second or two. After a stop or a
            crash the same call resumes with the missing lanes, bit for bit; after the end it returns the
            lanes of the file. Remove the file when the result is saved. Each of several processes has its
            own file, ``checkpoint.0`` and so on, and takes lanes from all files that it sees.
        dt: step size [s], unless it is varied.
        steps: number of steps, a multiple of ``every``, in every lane. Give either steps or time.
        time: duration [s], a whole number of steps in every lane.
        every: save each ``every``-th step (default 1).
        samples: number of saved rows after the start, instead of ``every``: with step sizes varied and
            ``time`` given, each lane saves at the same times (default then: 1).
        events: the trajectories keep a list of their first ``events`` impacts.
        gradient: derivative through impacts under transformations, see `simulate`.
        executor: computes the lanes instead of the devices of this process: a
            ``concurrent.futures.ProcessPoolExecutor`` (started with ``spawn``), ``client.get_executor()``
            of a Dask client (extra ``dask``), or any object with the same ``submit``. Workers need nsjax,
            not the model's code. Dask gives the lanes of a worker that dies to another worker.
        stop, resets: see `simulate`: every lane ends, or is changed, at its own instants; rows after a stop
            repeat it. Numbers that resets change start at those of the lane. Define the functions once, at
            module level.

    Returns:
        A `SweepResult`: ``result.values`` with the lanes' axes first, ``result.status``, ``result.ok``.
        A lane that cannot start or fails is reported in the status and does not affect other lanes;
        ``result.raise_for_status()`` raises an error that describes the failures.

    Raises:
        InputError: before any work, for input that no lane can run, and for a checkpoint of another sweep.
        OSError: if the checkpoint cannot grow; the lanes before are kept.

    Differentiation: `jax.grad`, `jax.jvp` and `jax.jit` over `sweep` work, with any numbers traced;
    lengths are then common to all lanes. In reverse mode every lane is recomputed during its own
    backward pass, so that memory is that of one lane (rows of ``every`` steps, see `simulate`) and of the
    inputs of all. A failed lane makes the derivative of a sum over lanes not a number.

    Limits: `vmap` on GPU agrees with a single run to rounding only. In a function of the trajectory, all
    rows of a lane must fit into ``memory_bytes``. Workers of an executor use one device each, of the
    platform of this process, and every one compiles; inside transformations an executor is refused.

    Example:
        >>> import nsjax
        >>> from nsjax import models, reductions, schemes
        >>> ball = models.bouncing_ball(height=0.1)
        >>> found = nsjax.sweep(
        ...     ball, schemes.moreau(), {"params.restitution": [0.2, 0.5, 0.8]},
        ...     reduce=reductions.total("impacts"), dt=1e-3, steps=400, every=400,
        ... )
        >>> found.values[:, 0].tolist()
        [2, 4, 2]
        >>> bool(found.ok.all())
        True
    """
    if isinstance(scheme, Scheme):
        checks.check_gradient(scheme, gradient)
    if not isinstance(memory_bytes, int | np.integer) or memory_bytes < 1:
        raise InputError(
            f"sweep: memory_bytes = {memory_bytes!r}; give a number of bytes, 2**30 for instance"
        )
    check_executor(executor)
    plan = make_plan(problem, scheme, over, mode, reduce, dt, steps, time, every, samples, events)
    guards = guards_of_lanes(problem, plan.common.scheme, plan.lengths.dt[0], stop, resets)
    plan = dataclasses.replace(plan, one=dataclasses.replace(plan.one, guards=guards))
    if is_traced((plan.common, plan.axes.arrays, plan.lengths.dt)):
        if checkpoint is not None:
            raise InputError(
                f"sweep: checkpoint = {os.fspath(checkpoint)!r} inside jit or grad, where no file is "
                "written; leave it out"
            )
        if executor is not None:
            raise InputError(
                f"sweep: executor = {executor!r} inside jit or grad, where no worker is asked; leave it out"
            )
        return _result(plan, _traced(plan, gradient, stop, resets))
    plan = plan.undifferentiated
    refused = refusals(plan)
    lanes = np.setdiff1d(np.arange(plan.axes.count), list(refused))
    if len(lanes):
        given = plan.common
        warn_of_step(problem.system, given.params, given.state, given.scheme, plan.lengths.dt[lanes])
    return _result(plan, _run(plan, lanes, memory_bytes, progress, checkpoint, executor), refused)


def _chunk(plan: Plan, memory_bytes: int, devices: int) -> tuple[int, program.LaneResults]:
    """Number of lanes of a compiled call on each device, a power of two, and shapes of a lane's results."""
    one = plan.one
    lane = jax.tree.map(lambda x: x[0], plan.lanes(np.zeros(1, int)))
    shapes = program.lane_shapes(one, plan.common, lane)
    size = tree_bytes(shapes)
    refuse_more(
        f"sweep: results of {plan.axes.count} lanes, {size} bytes each,", float(plan.axes.count * size),
        "keep less of a run (reduce), or vary fewer numbers at a time",
    )  # fmt: skip
    work = 0 if one.rows is None else (one.rows + 1) * 8 * row_numbers(one.system)
    together = jax.default_backend() != "cpu"  # on a GPU the rows of all lanes of a call exist at once
    # results exist on the device and, while they are collected, on the host
    free = memory_bytes - (0 if together else devices * work)
    lanes = int(free // (devices * (2 * size + (work if together else 0))))
    if lanes < 1:
        need = devices * (2 * size + work)
        raise InputError(
            f"sweep: memory_bytes = {memory_bytes}, but one lane on each of {devices} devices needs {need}"
            "; raise it, save fewer rows (every, samples), or reduce them by a fold (nsjax.reductions.Fold)"
        )
    fit = 2 ** (lanes.bit_length() - 1)
    if not together:
        return min(fit, CHUNK_LANES), shapes
    asked = -(-plan.axes.count // devices)  # every slot is computed there, whether a lane is in it or not
    together_lanes = 65_536  # largest number of lanes of a call on each device where lanes run side by side
    return min(fit, 2 ** (asked - 1).bit_length(), together_lanes), shapes


def _run(
    plan: Plan, lanes: np.ndarray, memory_bytes: int, progress: bool | Callable[[int, int], None],
    checkpoint: PathLike | None, executor: futures.Executor | None,
) -> program.LaneResults:  # fmt: skip
    """Results of all lanes that can start, from all processes and devices; numpy, one entry per lane."""
    devices = tuple(jax.local_devices())[: None if executor is None else 1]
    chunk, shapes = _chunk(plan, memory_bytes, len(devices))
    count = plan.axes.count
    found = jax.tree.map(  # lanes that do not run: not a number, or zero in types without it
        lambda x: np.full((count, *x.shape), np.nan if x.dtype.kind == "f" else 0, x.dtype), shapes
    )
    cost = max(1, int(np.mean(plan.lengths.every)) * plan.lengths.rows)
    size = chunk if jax.default_backend() != "cpu" else max(1, min(chunk, CALL_STEPS // cost))
    with lanes_file.lanes_of(checkpoint, plan, found) as (done, file):
        owner = owners(lanes, done)
        mine = lanes[owner == jax.process_index()]
        left = mine[~done[mine]]
        if executor is None:
            computed = _parts(plan, left, len(devices) * size, devices, chunk)
        else:
            computed = computed_lanes(plan, left, size, memory_bytes, executor, shapes)
        with meter(progress, len(mine)) as tell, contextlib.closing(computed):
            ready = len(mine) - len(left)
            if ready:
                tell(ready)
            for some, new in computed:
                file.add(some, new)
                for whole, few in zip(jax.tree.leaves(found), jax.tree.leaves(new), strict=True):
                    whole[some] = few
                ready += len(some)
                tell(ready)
    return gather(found, lanes, owner)


def _parts(
    plan: Plan, left: np.ndarray, size: int, devices: tuple[Any, ...], chunk: int
) -> Generator[tuple[np.ndarray, program.LaneResults], None, None]:
    """Lanes with their results, ``size`` at a time, by the devices of this process."""
    for start in range(0, len(left), size):
        some = left[start : start + size]
        part, order = deal(plan, some, devices, chunk)
        yield some, jax.tree.map(lambda x, order=order: np.asarray(x)[order], part)


def deal(
    plan: Plan, some: np.ndarray, devices: tuple[Any, ...], chunk: int
) -> tuple[program.LaneResults, np.ndarray]:
    """Results of some lanes from one compiled call, and their indices in it."""
    table, counts, order = lay_out(some, len(devices), chunk)
    return program.call(plan.one, devices, plan.common, plan.lanes(table), counts), order


def _result(plan: Plan, found: program.LaneResults, refused: dict[int, str] | None = None) -> SweepResult:
    axes = plan.axes
    refused = refused or {}
    if refused:
        found.status[list(refused)] = REFUSED
        found.first_failure.step[list(refused)] = 0
    laid = jax.tree.map(lambda x: x.reshape(*axes.shape, *x.shape[1:]), found)
    return SweepResult(
        system=plan.one.system, mode=axes.mode, shape=axes.shape,
        refused=tuple(sorted(refused.items())),
        over={key.text: x for key, x in zip(axes.keys, axes.arrays, strict=True)},
        values=laid.values, status=laid.status, first_failure=laid.first_failure,
    )  # fmt: skip


def _traced(plan: Plan, gradient: str | None, stop: Any, resets: Any) -> program.LaneResults:
    """The sweep inside a transformation: lengths static, every lane recomputed in its backward pass."""
    one, lengths, count = plan.one, plan.lengths, plan.axes.count
    every = int(lengths.every[0])
    if np.any(lengths.every != every):
        raise InputError(
            "sweep: step sizes with different numbers of steps cannot be traced together; give steps "
            "instead of time, or sweep outside jit and grad"
        )

    def lane(common: program.SharedData, own: program.Lane) -> program.LaneResults:
        return jax.checkpoint(functools.partial(whole, common))(own)

    def whole(common: program.SharedData, own: program.Lane) -> program.LaneResults:
        params, state, scheme = program.numbers(one, common, own.values)
        traj = simulate(
            one.system, params, state, scheme, dt=own.dt, steps=every * lengths.rows, every=every,
            events=one.events, gradient=gradient, stop=stop,
            resets=resets,
        )  # fmt: skip
        return program.LaneResults(
            values=one.reduce(traj), status=traj.status, first_failure=traj.first_failure
        )

    devices = tuple(jax.local_devices())
    full = -(-count // len(devices)) * len(devices)
    lanes = jax.tree.map(jnp.asarray, plan.lanes(np.minimum(np.arange(full), count - 1)))
    found = program.spread(lane, devices, plan.common, lanes)
    return jax.tree.map(lambda x: x[:count], found)
