"""The compiled program of an identification: values at the measured times and their derivatives.

A lane is one run of the model for one recording with one set of numbers. Parameters, initial states, step
size, times and numbers of steps are data, so that one program serves all iterations, starts of the search
and seeds of the noise. Derivatives are taken in forward mode, because few numbers are trained.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax.core.keys import Key, put
from nsjax.core.quantities import ROWS, all_notes
from nsjax.core.restart import restarted
from nsjax.core.scheme import Scheme
from nsjax.core.system import State, System
from nsjax.loop import LoopProgram, begin_run, prepare_run, trajectory
from nsjax.startup.owned import compiled_for
from nsjax.sweep.program import spread, traced_row
from nsjax.sweep.run import lay_out
from nsjax.types import Array, PyTree, record


@record()
class InitialState:
    """Initial state of a run without its time; ``xi`` (nv,) increments ``q`` by `System.retract`, zero
    unless trained.
    """

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
    """

    system: System
    entries: tuple[tuple[Key, tuple[int, ...]], ...]
    names: tuple[str, ...]
    needs_rows: bool
    curved: bool = False


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
    start that they move off its constraints is closed again, see `nsjax.core.restart`.
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
    system = program.system
    keep = ROWS if program.needs_rows else ("impacts", "notes", "force_notes")
    book = LoopProgram(system=system, keep=keep, events=0)
    run = begin_run(book, common.scheme, params, start, common.dt, None)
    row = traced_row(prepare_run(book, common.scheme, params, common.dt))
    columns: dict[str, Any]
    run, columns = lax.scan(row, run, track.counts)
    traj = trajectory(system, params, run, columns)
    rows = jnp.stack([traj[name] for name in program.names], axis=1)
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

    Args:
        room: number of lanes of the compiled call, at least L; the same program runs fewer lanes.
    """
    devices = tuple(jax.local_devices())
    pick, counts, order = lay_out(np.arange(len(tracks)), len(devices), -(-room // len(devices)))
    own: dict[str, Any] = {"track": np.asarray(tracks)[pick], "x": np.asarray(x, float)[pick]}
    found = _call(program, devices, common, FitLane(**own), counts)
    return jax.tree.map(lambda a: np.asarray(a)[order], found)
