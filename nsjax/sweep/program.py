"""Plan and compiled program of a sweep: lanes, their varied numbers and lengths, and one call for many.

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

from nsjax.core import checks
from nsjax.core.arguments import check_is, refused_values
from nsjax.core.errors import InputError, check_whole
from nsjax.core.guards import Guards, with_changing
from nsjax.core.inputs import check_constants
from nsjax.core.keys import Key, put, restarted
from nsjax.core.memory import check_events
from nsjax.core.scheme import ROWS, Scheme
from nsjax.core.start_checks import overshoot, probe, sound
from nsjax.core.system import Problem, State, System
from nsjax.jaxtools.control_flow import map_lanes
from nsjax.jaxtools.owned import compiled_for
from nsjax.loop import LoopProgram, begin_run, guards_for, prepare_run, run_row, trajectory
from nsjax.sweep import reductions
from nsjax.sweep.reductions import Fold, Reduction
from nsjax.sweep.result import Axes, read_axes
from nsjax.trajectory import FirstFailure, Trajectory
from nsjax.types import Array, PyTree, is_traced, record

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
        guards: functions at whose zeros a lane stops or is reset; None: none.
    """

    system: System
    keys: tuple[Key, ...]
    reduce: Reduction
    rows: int | None
    events: int
    guards: Guards | None = None


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
    """Parameters, initial state, scheme of a lane; ``closed``: the start fulfils its constraints."""
    before = {"params": common.params, "state": common.state, "scheme": common.scheme.coef}
    after, keys = before, [key for key in program.keys if key.path != ("dt",)]
    for key, value in zip(program.keys, values, strict=True):
        after = put(after, key, value) if key in keys else after
    after = restarted(program.system, before, after, keys) if closed else after
    return after["params"], after["state"], dataclasses.replace(common.scheme, coef=after["scheme"])


def traced_row(setup: Any) -> Callable[..., Any]:
    """`run_row` with a cached trace, so that the shapes of results do not cost a second one."""
    return jax.jit(functools.partial(run_row, setup))


@compiled_for("program")
def run_lane(program: LaneProgram, common: SharedData, lane: Lane) -> LaneResults:
    """Reduced results of one lane, run from its start."""
    params, state, scheme = numbers(program, common, lane.values)
    system = program.system
    if program.guards is not None:
        system, params, state = program.guards.opened(Problem(system=system, params=params, state=state))
    loop = LoopProgram(system=system, keep=ROWS, events=program.events, guards=program.guards)
    run = begin_run(loop, scheme, params, state, lane.dt, None)
    row = traced_row(prepare_run(loop, scheme, params, lane.dt))

    def count(k: Array) -> Array:
        return jnp.where(k == 0, 0, lane.every)  # row 0, the start, takes no steps

    if program.rows is not None or not isinstance(program.reduce, Fold):
        counts = count(jnp.arange((program.rows or 0) + 1))
        run, columns = lax.scan(row, run, counts)
        values = program.reduce(trajectory(system, params, run, columns))
        return LaneResults(values=values, status=run.status, first_failure=run.first_failure)
    fold = program.reduce

    def one(run: Any, columns: dict[str, Any]) -> Trajectory:
        return trajectory(system, params, run, jax.tree.map(lambda x: x[None], columns))

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
    ``counts[d]`` of its share of the ``lanes``, or all of them without counts, see
    `nsjax.jaxtools.control_flow.map_lanes`.
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


# Plan of a sweep: lanes, their varied numbers and lengths, and the lanes that cannot start.


OPEN = "constraints have no start: with these numbers no position near that of the problem closes the loops"
"""Sentence about a lane whose start is not a number."""


@dataclasses.dataclass(frozen=True)
class Lengths:
    """Step sizes ``dt`` and steps between rows ``every``, one per lane; each lane saves ``rows`` rows."""

    dt: Any
    every: np.ndarray
    rows: int


@dataclasses.dataclass(frozen=True)
class Plan:
    """A sweep that has passed the checks common to all lanes."""

    one: LaneProgram
    common: SharedData
    axes: Axes
    lengths: Lengths

    @property
    def undifferentiated(self) -> Plan:
        """The same plan for runs outside transformations, with a program without derivatives."""
        plain = dataclasses.replace(self.common.scheme, gradient="discrete")
        return dataclasses.replace(self, common=dataclasses.replace(self.common, scheme=plain))

    def lanes(self, lanes: np.ndarray) -> Lane:
        """Values that differ between these lanes (flat numbers)."""
        lengths = self.lengths
        return Lane(values=self.axes.take(lanes), dt=lengths.dt[lanes], every=lengths.every[lanes])


def guards_of_lanes(problem: Problem, scheme: Scheme, dt: Array, stop: Any, resets: Any) -> Guards | None:
    """The guards of runs with the numbers of a problem or others, checked for these; None without any."""
    if stop is None and isinstance(resets, tuple | list) and not resets:
        return None
    made = with_changing(problem, None, resets)
    guards = guards_for(made.system, stop, resets)
    if made is not problem:
        check_constants(
            made.params,
            lambda p: prepare_run(LoopProgram(made.system, (), 0, guards), scheme, p, dt).constants,
        )
    return guards


def make_plan(
    problem: Problem, scheme: Scheme, over: Any, mode: str, reduce: Any, dt: Any, steps: int | None,
    time: float | None, every: int | None, rows: int | None, events: int,
) -> Plan:  # fmt: skip
    """The plan of a sweep after the checks common to all lanes; arguments as in `nsjax.sweep`. Raises
    `InputError` for input that no lane can run.
    """
    check_is("sweep", "problem", problem, Problem)
    checks.check_kind(problem.system, scheme)
    checks.check_precision()
    kept = reductions.freeze(reduce)
    checks.check_state(problem.state)
    common = SharedData(
        params=checks.canonical(problem.params, "params"),
        state=checks.canonical(problem.state, "state"),
        scheme=checks.canonical_scheme(scheme),
        rows=0,
    )
    check_events(events, problem.system.nt)
    base = {"params": common.params, "state": common.state, "scheme": common.scheme.coef}
    axes = read_axes(base, over, mode)
    lengths = _lengths(axes, dt, steps, time, every, rows, events)
    common = dataclasses.replace(common, rows=lengths.rows)
    one = LaneProgram(
        system=problem.system, keys=axes.keys, reduce=kept, events=events,
        rows=None if isinstance(kept, reductions.Fold) else lengths.rows,
    )  # fmt: skip
    first = tuple(x[0] for x in axes.take(np.asarray([0])))
    params, state, _ = numbers(one, common, first, closed=False)
    try:
        checks.check_shapes(one.system, params, state)
    except (TypeError, IndexError) as error:
        raise InputError(f"sweep: the first lane does not fit the model: {error}") from error
    return Plan(one, common, axes, lengths)


def _lengths(
    axes: Axes,
    dt: Any,
    steps: int | None,
    time: float | None,
    every: int | None,
    rows: int | None,
    events: int,
) -> Lengths:
    """Step size and steps between rows of every lane, and the common number of rows."""
    varied = [place for place, key in enumerate(axes.keys) if key.path == ("dt",)]
    if bool(varied) == (dt is not None):
        raise InputError("sweep: give the step size either as dt or in over, under the key 'dt'")
    if every is not None and rows is not None:
        raise InputError(f"sweep: every = {every} and samples = {rows}; give one of them")
    if rows is not None:
        check_whole("sweep: samples", rows, 1)
    if not varied:
        step = checks.canonical(dt, "dt")
        count = checks.check_lengths(step, steps, time, every or 1, events)
        sizes = np.asarray([step]) if not is_traced(step) else step[None]
        counts = np.asarray([count])
    else:
        sizes = axes.arrays[varied[0]]
        if is_traced(sizes):
            counts = np.asarray([checks.check_lengths(sizes[0], steps, time, every or 1, events)])
        else:
            counts = np.asarray(
                [_count(x, k, steps, time, every or 1, events) for k, x in enumerate(sizes)]
            )
    if rows is None:
        rows = 1 if time is not None and varied and every is None else int(counts[0]) // (every or 1)
    for k, number in enumerate(counts):
        if number % rows or (every is not None and number // every != rows):
            which = f"dt = {float(sizes[k]):g} needs" if varied else "there are"
            raise InputError(
                f"sweep: {which} {number} steps, which do not make {rows} rows of whole steps; lanes save "
                "equally many rows, so choose samples and step sizes that fit"
            )
    places = axes.places(np.arange(axes.count))[varied[0]] if varied else np.zeros(axes.count, int)
    every_lane = (counts // rows)[places] if len(counts) > 1 else np.full(axes.count, counts[0] // rows)
    return Lengths(sizes[places], every_lane, int(rows))


def _count(dt: float, place: int, steps: int | None, time: float | None, every: int, events: int) -> int:
    try:
        return checks.check_lengths(dt, steps, time, every, events)
    except InputError as error:
        raise InputError(f"sweep: value {place} of dt: {error}") from None


def refusals(plan: Plan) -> dict[int, str]:
    """Lanes that cannot start, with the sentence of the error that `simulate` raises."""
    one, common, axes = plan.one, plan.common, plan.axes
    found: dict[int, str] = {}
    lanes = np.arange(axes.count)
    bad: list[dict[int, str]] = []
    base = {"params": common.params}
    for key, values in zip(axes.keys, axes.arrays, strict=True):
        wrong = {int(k): f"{key.text} = {values[k].tolist()}; every number must be finite"
                 for k in np.flatnonzero(~np.isfinite(values.reshape(len(values), -1)).all(1))}  # fmt: skip
        if key.path[0] == "params":
            wrong = refused_values(base, key, values) | wrong
        bad.append(wrong)
    for places, wrong in zip(axes.places(lanes), bad, strict=True):
        if wrong:
            hit = lanes[np.isin(places, list(wrong))]
            found |= {int(k): wrong[int(places[k])] for k in hit if int(k) not in found}
    if not any(key.path[0] in ("params", "state") for key in axes.keys):
        least = np.min(plan.lengths.dt)
        checks.check_values(one.system, common.params, common.state, common.scheme, least)
        return found
    return found | _start_refusals(plan, np.setdiff1d(lanes, list(found)))


@compiled_for("one")
def _probe(one: LaneProgram, common: SharedData, values: tuple[Array, ...]) -> dict[str, Array]:
    """Results of `probe` for each of the given lanes."""

    def found(values: tuple[Array, ...]) -> dict[str, Array]:
        params, state, _ = numbers(one, common, values)
        return probe(one.system, params, state)

    return jax.vmap(found)(values)


@compiled_for("one")
def _beyond(one: LaneProgram, common: SharedData, lanes: Lane) -> dict[str, Array]:
    """Results of `overshoot` for the given lanes: penetration in which a scheme may have left a start."""

    def beyond(lane: Lane) -> dict[str, Array]:
        params, state, _ = numbers(one, common, lane.values)
        return overshoot(one.system, params, state, lane.dt)

    return jax.vmap(beyond)(lanes)


@functools.partial(jax.jit, static_argnames=("singular",))
def _sound(found: dict[str, Array], singular: bool) -> Array:
    """Whether each lane can start, (lanes,) bool."""
    return jax.vmap(functools.partial(sound, singular=singular))(found)


def _start_refusals(plan: Plan, lanes: np.ndarray) -> dict[int, str]:
    one, common = plan.one, plan.common
    refused = {}
    # lanes that are checked in one compiled call, of few and of many: a GPU answers both in the same time
    size = 256 if len(lanes) < 4_096 else 4_096
    for start in range(0, len(lanes), size):
        some = lanes[start : start + size]
        full = np.concatenate([some, np.repeat(some[-1:], size - len(some))])
        found = jax.device_get(_probe(one, common, plan.axes.take(full)))
        fine = np.asarray(_sound(found, common.scheme.traits.singular_mass))
        if not fine.all():
            found |= jax.device_get(_beyond(one, common, plan.lanes(full)))
            fine = np.asarray(_sound(found, common.scheme.traits.singular_mass))
        for k in np.flatnonzero(~fine[: len(some)]):
            if "constraint" in found and np.isnan(found["constraint"][k]).any():
                refused[int(some[k])] = OPEN
                continue
            try:
                checks.check_found(one.system, {name: x[k] for name, x in found.items()}, common.scheme)
            except InputError as error:
                refused[int(some[k])] = str(error)
    return refused


def lay_out(some: np.ndarray, devices: int, chunk: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Assignment of lanes to devices in turn, because neighbouring lanes have similar costs: the lanes in
    ``chunk`` slots per device, the number of used slots of each device, and the slot of every lane.
    """
    table = np.full((devices, chunk), some[-1])
    counts = np.asarray([len(some[d::devices]) for d in range(devices)])
    for d in range(devices):
        table[d, : counts[d]] = some[d::devices]
    k = np.arange(len(some))
    return table.reshape(-1), counts, (k % devices) * chunk + k // devices
