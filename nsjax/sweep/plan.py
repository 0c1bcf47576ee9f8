"""Plan of a sweep: lanes, their varied numbers and lengths, and the lanes that cannot start."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import numpy as np

from nsjax.core import checks
from nsjax.core.arguments import check_is
from nsjax.core.errors import InputError, check_whole
from nsjax.core.memory import check_events
from nsjax.core.overshoot import overshoot
from nsjax.core.probe import probe
from nsjax.core.ranges import sound
from nsjax.core.scheme import Scheme
from nsjax.core.signs import refused_values
from nsjax.core.system import Problem
from nsjax.startup.owned import compiled_for
from nsjax.sweep import program, reductions
from nsjax.sweep.axes import Axes, read_axes
from nsjax.types import Array

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

    one: program.LaneProgram
    common: program.SharedData
    axes: Axes
    lengths: Lengths

    @property
    def undifferentiated(self) -> Plan:
        """The same plan for runs outside transformations, with a program without derivatives."""
        plain = dataclasses.replace(self.common.scheme, gradient="discrete")
        return dataclasses.replace(self, common=dataclasses.replace(self.common, scheme=plain))

    def lanes(self, lanes: np.ndarray) -> program.Lane:
        """Values that differ between these lanes (flat numbers)."""
        lengths = self.lengths
        return program.Lane(values=self.axes.take(lanes), dt=lengths.dt[lanes], every=lengths.every[lanes])


def make_plan(
    problem: Problem, scheme: Scheme, over: Any, mode: str, reduce: Any, dt: Any, steps: int | None,
    time: float | None, every: int | None, rows: int | None, events: int,
) -> Plan:  # fmt: skip
    """The plan of a sweep after the checks common to all lanes; arguments as in `nsjax.sweep`.

    Raises:
        InputError: for input that no lane can run.
    """
    check_is("sweep", "problem", problem, Problem)
    checks.check_kind(problem.system, scheme)
    checks.check_precision()
    kept = reductions.freeze(reduce)
    checks.check_state(problem.state)
    common = program.SharedData(
        params=checks.canonical(problem.params, "params"),
        state=checks.canonical(problem.state, "state"),
        scheme=dataclasses.replace(scheme, coef=checks.canonical(scheme.coef, "scheme")),
        rows=0,
    )
    checks.check_tolerances(common.scheme)
    check_events(events, problem.system.nt)
    base = {"params": common.params, "state": common.state, "scheme": common.scheme.coef}
    axes = read_axes(base, over, mode)
    lengths = _lengths(axes, dt, steps, time, every, rows, events)
    common = dataclasses.replace(common, rows=lengths.rows)
    one = program.LaneProgram(
        system=problem.system, keys=axes.keys, reduce=kept, events=events,
        rows=None if isinstance(kept, reductions.Fold) else lengths.rows,
    )  # fmt: skip
    first = tuple(x[0] for x in axes.take(np.asarray([0])))
    params, state, _ = program.numbers(one, common, first, closed=False)
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
        raise InputError(f"sweep: every = {every} and rows = {rows}; give one of them")
    if rows is not None:
        check_whole("sweep: rows", rows, 1)
    if not varied:
        step = checks.canonical(dt, "dt")
        count = checks.check_lengths(step, steps, time, every or 1, events)
        sizes, counts = (
            np.asarray([step]) if not checks.is_traced(step) else step[None],
            np.asarray([count]),
        )
    else:
        sizes = axes.arrays[varied[0]]
        if checks.is_traced(sizes):
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
                "equally many rows, so choose rows and step sizes that fit"
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
def _probe(
    one: program.LaneProgram, common: program.SharedData, values: tuple[Array, ...]
) -> dict[str, Array]:
    """Results of `probe` for each of the given lanes."""

    def found(values: tuple[Array, ...]) -> dict[str, Array]:
        params, state, _ = program.numbers(one, common, values)
        return probe(one.system, params, state)

    return jax.vmap(found)(values)


@compiled_for("one")
def _beyond(one: program.LaneProgram, common: program.SharedData, lanes: program.Lane) -> dict[str, Array]:
    """Results of `overshoot` for the given lanes: penetration in which a scheme may have left a start."""

    def beyond(lane: program.Lane) -> dict[str, Array]:
        params, state, _ = program.numbers(one, common, lane.values)
        found: dict[str, Array] = overshoot(one.system, params, state, lane.dt)
        return found

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
        fine = np.asarray(_sound(found, common.scheme.singular_mass))
        if not fine.all():
            found |= jax.device_get(_beyond(one, common, plan.lanes(full)))
            fine = np.asarray(_sound(found, common.scheme.singular_mass))
        for k in np.flatnonzero(~fine[: len(some)]):
            if "constraint" in found and np.isnan(found["constraint"][k]).any():
                refused[int(some[k])] = OPEN
                continue
            try:
                checks.check_found(one.system, {name: x[k] for name, x in found.items()}, common.scheme)
            except InputError as error:
                refused[int(some[k])] = str(error)
    return refused
