"""The compiled program of a sweep: one lane, and many lanes on all devices of the process.

A lane has the form of a single run with trip counts as data. Lanes with different step sizes and numbers of
steps therefore share one program, and a reduction needs one row of a lane at a time unless it asks for all.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, PartitionSpec

from nsjax.core.errors import InputError
from nsjax.core.keys import Key, put
from nsjax.core.quantities import ROWS
from nsjax.core.restart import restarted
from nsjax.core.scheme import Scheme
from nsjax.core.system import State, System
from nsjax.lanes import map_lanes
from nsjax.loop import LoopProgram, begin_run, prepare_run, run_row, trajectory
from nsjax.startup.owned import compiled_for
from nsjax.sweep.reductions import Fold, Reduction
from nsjax.trajectory import FirstFailure, Trajectory
from nsjax.types import Array, PyTree, record

LANES = "lanes"


@dataclasses.dataclass(frozen=True)
class LaneProgram:
    """Static data of a compiled sweep.

    Args:
        system: the system to simulate.
        keys: keys of the numbers that differ between lanes.
        reduce: reduction of a lane to its results.
        rows: number of saved rows after the start; None if the reduction takes the rows one by one.
        events: length of the impact list.
    """

    system: System
    keys: tuple[Key, ...]
    reduce: Reduction
    rows: int | None
    events: int


@record()
class SharedData:
    """Data common to all lanes; ``rows`` is the number of saved rows of a lane."""

    params: PyTree
    state: State
    scheme: Scheme
    rows: Array | int


@record()
class Lane:
    """Data of one lane: varied values, step size, steps between saved rows."""

    values: tuple[Array, ...]
    dt: Array
    every: Array


@record()
class LaneResults:
    """Results of one lane."""

    values: PyTree
    status: Array
    first_failure: FirstFailure


def numbers(
    program: LaneProgram, common: SharedData, values: tuple[Any, ...], closed: bool = True
) -> tuple[PyTree, State, Scheme]:
    """Parameters, initial state and scheme of a lane; ``closed``: the start fulfils its constraints again,
    see `nsjax.core.restart`.
    """
    before = {"params": common.params, "state": common.state, "scheme": common.scheme.coef}
    after, keys = before, [key for key in program.keys if key.path != ("dt",)]
    for key, value in zip(program.keys, values, strict=True):
        after = put(after, key, value) if key in keys else after
    after = restarted(program.system, before, after, keys) if closed else after
    return after["params"], after["state"], dataclasses.replace(common.scheme, coef=after["scheme"])


def traced_row(setup: Any) -> Callable[..., Any]:
    """`run_row` with a cached trace: the shapes of results are computed first, and must not trace it twice.
    The trace goes with the program.
    """
    made: Callable[..., Any] = jax.jit(functools.partial(run_row, setup))
    return made


@compiled_for("program")
def run_lane(program: LaneProgram, common: SharedData, lane: Lane) -> LaneResults:
    """Reduced results of one lane, run from its start."""
    params, state, scheme = numbers(program, common, lane.values)
    book = LoopProgram(system=program.system, keep=ROWS, events=program.events)
    run = begin_run(book, scheme, params, state, lane.dt, None)
    row = traced_row(prepare_run(book, scheme, params, lane.dt))

    def count(k: Array) -> Array:
        return jnp.where(k == 0, 0, lane.every)  # row 0, the start, takes no steps

    if program.rows is not None or not isinstance(program.reduce, Fold):
        counts = count(jnp.arange((program.rows or 0) + 1))
        run, columns = lax.scan(row, run, counts)
        values = program.reduce(trajectory(program.system, params, run, columns))
        return LaneResults(values=values, status=run.status, first_failure=run.first_failure)
    fold = program.reduce

    def one(run: Any, columns: dict[str, Any]) -> Trajectory:
        return trajectory(program.system, params, run, jax.tree.map(lambda x: x[None], columns))

    def step(k: Array, both: tuple[Any, PyTree]) -> tuple[Any, PyTree]:
        run, columns = row(both[0], count(k))
        return run, fold.update(both[1], one(run, columns))

    shapes = jax.eval_shape(row, run, count(jnp.asarray(0)))[1]
    zeros = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes)
    run, kept = lax.fori_loop(0, common.rows + 1, step, (run, fold.start(one(run, zeros))))
    return LaneResults(values=fold.finish(kept), status=run.status, first_failure=run.first_failure)


def lane_shapes(program: LaneProgram, common: SharedData, lane: Lane) -> LaneResults:
    """Shapes and types of the results of one lane, without a run."""
    try:
        shapes: LaneResults = jax.eval_shape(functools.partial(run_lane, program), common, lane)
    except (jax.errors.ConcretizationTypeError, jax.errors.TracerArrayConversionError) as error:
        raise InputError(
            "sweep: reduce, or a function of the model, asks for the value of a traced number (float, int, "
            "if, numpy); compute with jax.numpy, and return arrays"
        ) from error
    if not jax.tree.leaves(shapes.values):
        raise InputError("sweep: reduce returns nothing; return numbers or arrays of the trajectory")
    return shapes


def spread(
    lane: Callable[[Any, Any], PyTree], devices: tuple[Any, ...], common: PyTree, lanes: PyTree,
    counts: Array | None = None,
) -> PyTree:  # fmt: skip
    """Results of ``lane(common, own)`` for lanes distributed over devices: device ``d`` runs the first
    ``counts[d]`` of its share of the ``lanes``, or all of them without counts, see `nsjax.lanes.map_lanes`.
    """

    def share(common: PyTree, lanes: PyTree, *count: Array) -> PyTree:
        return map_lanes(functools.partial(lane, common), lanes, *(n[0] for n in count))

    given = () if counts is None else (counts,)
    if len(devices) == 1:
        return share(common, lanes, *given)
    mesh = Mesh(np.asarray(devices), (LANES,))
    split, copied = PartitionSpec(LANES), PartitionSpec()
    specs = (copied, split, *(split for _ in given))
    spread_out = jax.shard_map(share, mesh=mesh, in_specs=specs, out_specs=split, check_vma=False)
    return spread_out(common, lanes, *given)


@compiled_for("program", "devices")
def call(
    program: LaneProgram, devices: tuple[Any, ...], common: SharedData, lanes: Lane, counts: Array
) -> LaneResults:
    """One compiled call: on each device the first ``counts[d]`` of its share of the lanes."""
    return spread(functools.partial(run_lane, program), devices, common, lanes, counts)
