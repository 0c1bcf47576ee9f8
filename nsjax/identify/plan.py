"""Checks of an identification's arguments, their layout as arrays, and the compiled program."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax.core import InputError, Problem, checks
from nsjax.core.arguments import check_is
from nsjax.core.errors import nearest
from nsjax.core.guards import Guards
from nsjax.core.keys import Key, find, parse_parameter, put, refuse_twice, restarted
from nsjax.core.operators import prepared, refreshed
from nsjax.core.scheme import ROWS, Scheme, all_notes
from nsjax.core.system import State, System
from nsjax.identify.records import Recording
from nsjax.identify.transforms import Transform
from nsjax.jaxtools.owned import compiled_for
from nsjax.loop import LoopProgram, begin_run, prepare_run, trajectory
from nsjax.sensors import find as find_quantity
from nsjax.sensors import needed_rows, table
from nsjax.sweep.program import guards_of_lanes, lay_out, spread, traced_row
from nsjax.types import Array, PyTree, record

# The compiled program of an identification: values at the measured times and their derivatives.
#
# A lane is one run of the model for one recording with one set of numbers. Parameters, initial states,
# step size, times and numbers of steps are data, so that one program serves all iterations, starts of the
# search and seeds of the noise. Derivatives are taken in forward mode, because few numbers are trained.


@record()
class InitialState:
    """Initial state of a run without time; ``xi`` (nv,): trained increments of ``q``, else zero."""

    q: Array
    v: Array
    xi: Array


@dataclasses.dataclass(frozen=True)
class RunProgram:
    """Static data of the program of a lane.

    Args:
        system: the system to simulate.
        entries: key and shape of all trained numbers, those common to all recordings first.
        names: names of the observables.
        needs_rows: whether the model's observables depend on forces and impulses.
        curved: whether second derivatives are taken as well, forward over forward: few numbers are trained.
        guards: functions at whose zeros a run stops or is reset; None: none.
    """

    system: System
    entries: tuple[tuple[Key, tuple[int, ...]], ...]
    names: tuple[str, ...]
    needs_rows: bool
    curved: bool = False
    guards: Guards | None = None


@record()
class Tracks:
    """Initial time and state of each recording (first axis), and its rows. ``counts`` (rows,): steps before
    each row; ``place``, ``weight`` (n,): the row before each measured time, and the fraction of the way
    from it to the next row.
    """

    time: Array
    start: InitialState
    counts: Array
    place: Array
    weight: Array


@record()
class FitData:
    """Data common to all lanes."""

    params: PyTree
    scheme: Scheme
    dt: Array
    tracks: Tracks


@record()
class FitLane:
    """Number of the recording, and the trained numbers (p,)."""

    track: Array
    x: Array


@record()
class LaneFit:
    """Results of one lane: ``values`` (n, m) at the measured times, ``jacobian`` (n, m, p), status bits,
    number of impacts, notes about the derivative, and, on request, second derivatives ``second``
    (n, m, p, p).
    """

    values: Array
    jacobian: Array
    status: Array
    impacts: Array
    notes: Array
    second: Array | None = None


def with_numbers(
    program: RunProgram, params: PyTree, time: Array, start: InitialState, x: Any,
    roots: tuple[str, ...] = ("params", "state"),
) -> tuple[PyTree, State]:  # fmt: skip
    """Parameters and start of a run with the trained numbers ``x``, limited to the keys below ``roots``; a
    start that they move off its constraints is closed again, see `nsjax.core.keys`.
    """
    before: dict[str, Any] = {"params": params, "state": start}
    used, new = 0, before
    for key, shape in program.entries:
        size = int(np.prod(shape))
        if key.path[0] in roots:
            new = put(new, key, x[used : used + size].reshape(shape))
        used += size
    q, v = program.system.retract(new["state"].q, new["state"].xi), new["state"].v
    after = {"params": new["params"], "state": State(t=time, q=q, v=v)}
    keys = [key for key, _ in program.entries if key.path[0] in roots]
    after = restarted(program.system, before | {"state": State(t=time, q=start.q, v=start.v)}, after, keys)
    return after["params"], after["state"]


def predict(program: RunProgram, common: FitData, track: Tracks, x: Array) -> tuple[Array, Any]:
    """Values at the measured times (n, m), linear between steps; status, impacts and notes of the run."""
    params, start = with_numbers(program, common.params, track.time, track.start, x)
    system, guards = program.system, program.guards
    if guards is not None:
        system, params, start = guards.opened(Problem(system=system, params=params, state=start))
    keep = ROWS if program.needs_rows else ("impacts", "notes", "force_notes")
    loop = LoopProgram(system=system, keep=keep, events=0, guards=guards)
    run = begin_run(loop, common.scheme, params, start, common.dt, None)
    row = traced_row(prepare_run(loop, common.scheme, params, common.dt))
    columns: dict[str, Any]
    run, columns = lax.scan(row, run, track.counts)
    traj = trajectory(system, params, run, columns)
    found = {name: traj[name] for name in program.names}
    for name, x in found.items():
        if x.ndim > 1:
            raise InputError(
                f"identify: data has the observable {name!r}, which is no single number; name a component, "
                f"{name}.x or {name}.n for instance"
            )
    rows = jnp.stack([*found.values()], axis=1)
    w = track.weight[:, None]
    # a plain product would spoil a value by 0 * inf of a row of weight zero
    after = rows[jnp.minimum(track.place + 1, rows.shape[0] - 1)]
    values = jnp.where(w > 0.0, (1.0 - w) * rows[track.place] + w * after, rows[track.place])
    return values, (values, run.status, jnp.sum(columns["impacts"]), all_notes(columns))


@compiled_for("program")
def run_lane(program: RunProgram, common: FitData, lane: FitLane) -> LaneFit:
    """Values and derivatives of one lane."""
    track = jax.tree.map(lambda x: lax.dynamic_index_in_dim(x, lane.track, keepdims=False), common.tracks)

    def slopes(x: Array) -> tuple[Array, Any]:
        jacobian, found = jax.jacfwd(functools.partial(predict, program, common, track), has_aux=True)(x)
        return jacobian, (jacobian, found)

    second = None
    if program.curved:
        second, (jacobian, found) = jax.jacfwd(slopes, has_aux=True)(lane.x)
    else:
        jacobian, (_, found) = slopes(lane.x)
    values, status, impacts, notes = found
    return LaneFit(
        values=values, jacobian=jacobian, status=status, impacts=impacts, notes=notes, second=second
    )


@compiled_for("program", "devices")
def _call(
    program: RunProgram, devices: tuple[Any, ...], common: FitData, lanes: FitLane, counts: Array
) -> LaneFit:
    return spread(functools.partial(run_lane, program), devices, common, lanes, counts)


def evaluate(program: RunProgram, common: FitData, tracks: np.ndarray, x: np.ndarray, room: int) -> LaneFit:
    """Results of lanes (L,) with numbers (L, p), run on all devices of the process: numpy, lanes first.
    ``room``: number of lanes of the compiled call, at least L; the same program runs fewer lanes.
    """
    devices = tuple(jax.local_devices())
    pick, counts, order = lay_out(np.arange(len(tracks)), len(devices), -(-room // len(devices)))
    own: dict[str, Any] = {"track": np.asarray(tracks)[pick], "x": np.asarray(x, float)[pick]}
    found = _call(program, devices, common, FitLane(**own), counts)
    return jax.tree.map(lambda a: np.asarray(a)[order], found)


# Checks of an identification's arguments, and their layout as arrays: trained numbers, rows to save.


@dataclasses.dataclass(frozen=True)
class TrainedNumber:
    """One trained number of the search.

    Args:
        name: name given by the user; entries of arrays with their index.
        transform: range and coordinate of the number.
        start: value at which the search starts (for a number of the initial state: one per recording).
        own: whether every recording has its own value.
    """

    name: str
    transform: Transform
    start: np.ndarray
    own: bool


@dataclasses.dataclass(frozen=True)
class FitPlan:
    """An identification that has passed all checks.

    Args:
        values, noise, mask: (K, n, m) of all recordings, the fitted ones first; padded entries are masked.
        fitted: number of recordings that are fitted; the others are held out.
        known: whether the noise level is known.
    """

    problem: Problem
    program: RunProgram
    common: FitData
    trained: tuple[TrainedNumber, ...]
    recordings: tuple[Recording, ...]
    fitted: int
    values: np.ndarray
    noise: np.ndarray
    mask: np.ndarray
    known: bool


def make_plan(
    problem: Problem, scheme: Scheme, data: Any, train: Mapping[str, Transform], dt: float,
    gradient: str | None, holdout: Any, stop: Any = None, resets: Any = (),
) -> FitPlan:  # fmt: skip
    """The checked plan of an identification; arguments as in `nsjax.identify`. Raises `InputError` for
    input that cannot be fitted.
    """
    check_is("identify", "problem", problem, Problem)
    checks.check_kind(problem.system, scheme)
    checks.check_precision()
    checks.check_gradient(scheme, gradient)
    size: Any = np.float64(checks.concrete_number(dt, "dt"))
    fitted, held = _recordings(data, "data"), _recordings(holdout, "holdout")
    if not fitted:
        raise InputError("identify: data is empty; give a Recording or several")
    recordings = (*fitted, *held)
    names = _observables(problem, recordings)
    params = checks.canonical(problem.params, "params")
    params, trained, entries = _read_train(problem, params, recordings, train)
    scheme = dataclasses.replace(checks.canonical_scheme(scheme), gradient=gradient or scheme.gradient)
    tracks, shape = _tracks(problem, recordings, float(size))
    for start in (_state(problem, x) for x in recordings):
        checks.check_shapes(problem.system, params, start)
        checks.check_values(problem.system, params, start, scheme, size)
    program = RunProgram(
        problem.system, entries, names, _needs_rows(problem.system, params, names),
        guards=guards_of_lanes(problem, scheme, size, stop, resets),
    )  # fmt: skip
    common = FitData(params=params, scheme=scheme, dt=size, tracks=tracks)
    values, noise, mask, known = _measured(recordings, names, shape)
    return FitPlan(problem, program, common, trained, recordings, len(fitted), values, noise, mask, known)


def with_step(plan: FitPlan, dt: float) -> FitPlan:
    """The same plan with another step size [s]."""
    tracks, _ = _tracks(plan.problem, plan.recordings, dt)
    size: Any = np.float64(dt)
    return dataclasses.replace(plan, common=dataclasses.replace(plan.common, dt=size, tracks=tracks))


def _recordings(given: Any, what: str) -> tuple[Recording, ...]:
    several = () if given is None else tuple(given) if isinstance(given, Sequence) else (given,)
    for x in several:
        if not isinstance(x, Recording):
            raise InputError(f"identify: {what} holds {type(x).__name__}; give nsjax.Recording")
    return several


def _observables(problem: Problem, recordings: Sequence[Recording]) -> tuple[str, ...]:
    """Names of all observables of the data."""
    found = tuple(dict.fromkeys(name for x in recordings for name in x.values))
    for name in found:
        if find_quantity(problem.system, name) is None:
            known = nearest(name, table(problem.system), "traj.keys()")
            raise InputError(f"identify: data has the observable {name!r}; {known}")
    return found


def _needs_rows(system: System, params: Any, names: tuple[str, ...]) -> bool:
    """Whether a measured observable of the model depends on the output of a step."""
    if needed_rows(system, names):
        return True
    observe, found = system.observe, ((name, find_quantity(system, name)) for name in names)
    own = {name for name, x in found if x is not None and x.kind == "observable"}
    if observe is None or not own:
        return False

    def look(p: Any) -> Any:
        t, q = jnp.zeros(()), jnp.zeros(system.nq)
        ready = refreshed(system, t, q, prepared(system, p))
        return observe(t, q, jnp.zeros(system.nv), None, ready)

    try:
        return not own.issubset(jax.eval_shape(look, params))
    except (AttributeError, TypeError):  # it read the output, which is None here
        return True


def _key(text: str) -> Key:
    """Key of a number that can be trained, from its name."""
    key = parse_parameter(text, "identify")
    if key.path[0] == "scheme":
        raise InputError(
            f"identify: {text}: numbers of the scheme are no parameters of the model; train params.* or "
            "state.*"
        )
    if key.path == ("state", "t"):
        raise InputError("identify: state.t cannot be trained; the times of the data refer to it")
    return key


def _read_train(
    problem: Problem, params: Any, recordings: Sequence[Recording], train: Mapping[str, Transform]
) -> tuple[Any, tuple[TrainedNumber, ...], tuple[tuple[Key, tuple[int, ...]], ...]]:
    """Parameters with the fixed ones set; trained numbers, initial states last; keys and shapes."""
    if not isinstance(train, Mapping) or not train:
        listed: list[Any] = (
            [train] if isinstance(train, str) else train if isinstance(train, list | tuple) else []
        )
        first = listed[0] if listed and isinstance(listed, list | tuple) else "friction"
        raise InputError(
            f"identify: train = {train!r}; give names with their ranges, "
            f"{{{first!r}: transforms.positive()}}"
        )
    found: list[tuple[Key, tuple[int, ...], list[TrainedNumber]]] = []
    starts = [_start(problem, x) for x in recordings]
    seen: list[Key] = []
    for text, transform in train.items():
        if not isinstance(transform, Transform):
            raise InputError(
                f"identify: {text}: {transform!r} is no transform; give transforms.interval(0, 1), for "
                f"instance, or transforms.positive()"
            )
        key = _key(text)
        refuse_twice(key, seen, "identify", "train it once")
        values = _values(key, params, starts)
        if transform.kind == "fixed":
            if transform.initial is not None:
                if key.path[0] == "state":
                    raise InputError(
                        f"identify: {key.text}: set a fixed start in the problem or in the recording"
                    )
                number: Any = np.asarray(transform.initial, float)
                params = put({"params": params}, key, number)["params"]
            continue
        shape = values.shape[1:]
        own = key.path[0] == "state"
        flat = values.reshape(len(values), -1)
        name = text.removeprefix("params.")
        entries = [
            _entry(name if not shape else f"{name}[{k}]", transform, flat[:, k], own)
            for k in range(flat.shape[1])
        ]
        found.append((key, shape, entries))
    if not found:
        raise InputError("identify: every number is fixed; train at least one")
    found.sort(key=lambda item: item[0].path[0] == "state")
    trained = tuple(x for _, _, entries in found for x in entries)
    return params, trained, tuple((key, shape) for key, shape, _ in found)


def _values(key: Key, params: Any, starts: Sequence[InitialState]) -> np.ndarray:
    """Values of a key; first axis: one for all recordings, or one per recording."""
    bases: list[dict[str, Any]] = [{"params": params, "state": start} for start in starts]
    found = []
    for base in bases if key.path[0] == "state" else bases[:1]:
        node = find(base, key, "identify")
        found.append(np.asarray(node if key.index is None else node[key.index], float))
    return np.stack(found)


def _entry(name: str, transform: Transform, values: np.ndarray, own: bool) -> TrainedNumber:
    start = values if transform.initial is None else np.full_like(values, transform.initial)
    if not transform.holds(start):
        raise InputError(
            f"identify: {name} starts at {start.reshape(-1)[0]:g}, outside its range {transform.low:g} to "
            f"{transform.high:g} ({transform.kind}); give the transform another initial value"
        )
    return TrainedNumber(name, transform, start, own)


def _state(problem: Problem, recording: Recording) -> Any:
    return checks.canonical(problem.state if recording.start is None else recording.start, "state")


def _start(problem: Problem, recording: Recording) -> InitialState:
    state = _state(problem, recording)
    still: Any = np.zeros(problem.system.nv)
    return InitialState(q=state.q, v=state.v, xi=still)


def padded(size: int, step: int) -> int:
    """The next multiple of ``step``: data of about the same size share a program."""
    return -(-size // step) * step


def _tracks(problem: Problem, recordings: Sequence[Recording], dt: float) -> tuple[Tracks, int]:
    """Steps at which rows are saved, rows around each measured time, padded, and the padded count."""
    size = padded(max(len(x.times) for x in recordings), 32)
    all_rows: list[Any] = []
    places: list[Any] = []
    weights: list[Any] = []
    origins: list[float] = []
    on_grid = 1e-6  # distance in steps within which a measured time counts as the end of a step
    for x in recordings:
        origin = float(np.asarray(_state(problem, x).t))
        exact = (x.times - origin) / dt
        if exact[0] < -on_grid:
            raise InputError(
                f"identify: recording {x.name!r} has data at {x.times[0]:g} s, before its start at "
                f"{origin:g} s; shift its times, or leave these rows out"
            )
        near = np.round(exact)
        before = np.where(np.abs(exact - near) < on_grid, near, np.floor(exact)).astype(int)
        weight = np.where(np.abs(exact - near) < on_grid, 0.0, exact - before)
        rows = np.unique(np.concatenate([before, (before + 1)[weight > 0.0]]))
        all_rows.append(rows)
        places.append(np.searchsorted(rows, before))
        weights.append(weight)
        origins.append(origin)
    length = padded(max(len(rows) for rows in all_rows), 64)
    spare = padded(len(recordings), 4) - len(recordings)  # copies of the last recording, used by no lane
    counts: list[Any] = [np.pad(np.diff(rows, prepend=0), (0, length - len(rows))) for rows in all_rows]
    starts: list[Any] = [_start(problem, x) for x in recordings]
    numbers: dict[str, Any] = {
        "time": np.asarray(origins + origins[-1:] * spare),
        "start": jax.tree.map(lambda *x: np.stack(x), *starts, *starts[-1:] * spare),
        "counts": np.stack(counts + counts[-1:] * spare),
        "place": np.stack([np.pad(x, (0, size - len(x))) for x in places + places[-1:] * spare]),
        "weight": np.stack([np.pad(x, (0, size - len(x))) for x in weights + weights[-1:] * spare]),
    }
    return Tracks(**numbers), size


def _measured(
    recordings: Sequence[Recording], names: tuple[str, ...], size: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, bool]:
    """Values, noise and mask of all recordings."""
    shape = len(recordings), size, len(names)
    values, noise, mask = np.zeros(shape), np.ones(shape), np.zeros(shape, bool)
    given = [x.noise is not None for x in recordings]
    if any(given) and not all(given):
        raise InputError(
            "identify: some recordings have a noise level and some have none; give all or none"
        )
    for k, x in enumerate(recordings):
        n = len(x.times)
        for j, name in enumerate(names):
            if name in x.values:
                on = x.mask[name]
                mask[k, :n, j] = on
                values[k, :n, j] = np.where(on, x.values[name], 0.0)
                if x.noise is not None:
                    noise[k, :n, j] = x.noise[name]
    return values, noise, mask, all(given)
