"""What a run records: values of its saved rows, its impact list, and the nearness to grazing."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax import gradient_notes
from nsjax.contact.contact_set import contacts_of_step, tally_of_step
from nsjax.contact.events import frozen, gap_rates
from nsjax.contact.friction import jammed
from nsjax.core.operators import refreshed
from nsjax.core.scheme import Event, Output
from nsjax.core.step import SystemState
from nsjax.core.system import State, System
from nsjax.jaxtools import with_tangent
from nsjax.jaxtools.control_flow import branch, scan_first
from nsjax.trajectory import Impacts
from nsjax.types import Array, PyTree, record

# Values of a saved row: what its steps have accumulated, and notes and gaps at its end.


def row_values(
    system: System, prepared: PyTree, run: Any, tally: dict[str, Array]
) -> tuple[Any, dict[str, Array]]:
    """The state of a run (`nsjax.loop.RunState`) and the values of its row at the end, without gaps
    (`rows_with_gaps`) but for those of changing pairs, which are searched here in any case.
    """
    if not system.changing_contacts and not ("notes" in tally and run.watch is not None):
        return run, tally
    state = run.next.carry.state
    params = refreshed(system, jnp.asarray(state.t), state.q, prepared)
    if system.changing_contacts:
        slots = contacts_of_step(system, params, run.next.carry)
        values = tally_of_step(system, slots, tally)
        return run, _with_gap(values, system.gap(state.t, state.q, params))
    at = frozen(SystemState(system=system, params=params, state=state))
    notes = tally["notes"] | run.watch.start | jammed(at, run.watch.impulse)
    watch = dataclasses.replace(run.watch, start=jnp.zeros(system.nc, int))
    return dataclasses.replace(run, watch=watch), {**tally, "notes": notes}


def _with_gap(values: dict[str, Any], gap: Array) -> dict[str, Any]:
    """Values of one row or several with their gaps; without a step the least gap is that of the start."""
    least = values.get("gap_min")
    if least is not None:
        least = jnp.where(jnp.isinf(least), gap, least)
    return {**values, "gap": gap, **({} if least is None else {"gap_min": least})}


def rows_with_gaps(
    setup: Any, rows: dict[str, Any], asked: Array | None = None
) -> dict[str, Array | None]:  # fmt: skip
    """Rows of `nsjax.loop.run_steps` with the gaps at their ends, as far as these are kept; zeros after
    the first ``asked`` () rows, without derivatives.

    The gaps get a loop of their own: a single loop for steps and gaps would be one kernel, and its time of
    compilation grows faster than its size. Reverse mode searches them again and stores the states alone.
    """

    def gap(row: tuple[Array, Array]) -> Array:
        return _gap(setup, *row)

    if not _lacks_gaps(setup):
        return rows
    ends = rows["t"], rows["q"]
    if asked is None:
        found = lax.map(jax.checkpoint(gap, prevent_cse=False), ends)
    else:
        _, found = scan_first(lambda _, row: (None, gap(row)), None, ends, asked)
    return _kept(setup, _with_gap(rows, found))


def row_with_gaps(setup: Any, row: dict[str, Any]) -> dict[str, Array | None]:
    """One row with the gaps at its end, as far as these are kept."""
    if not _lacks_gaps(setup):
        return row
    return _kept(setup, _with_gap(row, _gap(setup, row["t"], row["q"])))


def _lacks_gaps(setup: Any) -> bool:
    """Whether rows of `nsjax.loop.run_steps` lack gaps that are kept."""
    program = setup.program
    return not program.system.changing_contacts and bool({"gap", "gap_min"} & set(program.keep))


def _kept(setup: Any, row: dict[str, Any]) -> dict[str, Any]:
    return row if "gap" in setup.program.keep else {**row, "gap": None}


def _gap(setup: Any, t: Array, q: Array) -> Array:
    """Gaps (nc,), for which features of all pairs of bodies may be searched."""
    system = setup.program.system
    params = refreshed(system, t, q, setup.params)
    return jnp.zeros(system.nc) if system.gap is None else system.gap(t, q, params)


# The impact list of a run: impacts that count, and their instants inside their steps.


def no_impacts(system: System, kept: int) -> Impacts | None:
    """An empty list with ``kept`` places; None without places."""
    if not kept:
        return None
    empty = jnp.full(kept, jnp.nan)
    return Impacts(
        count=jnp.asarray(0, int), time=empty, contact=jnp.full(kept, -1), rate_before=empty,
        rate_after=empty, impulse_normal=empty, impulse_tangential=jnp.full((kept, system.nt), jnp.nan),
    )  # fmt: skip


def closed_at_start(system: System, p: PyTree, state: State) -> Array:
    """Contacts (nc,) bool that touch in the first state of a run: no impact in the first step."""
    if system.gap is None:
        return jnp.zeros(system.nc, bool)
    gap = system.gap(jnp.asarray(state.t), state.q, p)
    # gap relative to ``1 + |q|`` up to which a contact is closed at the start of a run, for rounding
    touching = 1e-12
    return frozen(gap) <= touching * (1.0 + jnp.max(jnp.abs(frozen(state.q)), initial=0.0))


def crossings(start: SystemState, rate_before: Array, dt: Array) -> Array:
    """Time (nc,) from the start of a step to the instant at which each gap crosses zero [s].

    With the gap ``g`` and its rate ``r`` at the start of the step, and the rate ``r-`` before the impact,
    the mean rate closes the gap: ``s = -2 g / (r + r-)``. It is exact for a steady acceleration if
    ``r-`` is the rate at the impact itself, else wrong by ``h^2 a / r``. A scheme that tests gaps inside
    its step sees some impacts a part of a step late: ``s`` is then negative, and at least ``-dt``.

    Args:
        start: the system before the step.
        rate_before: (nc,) gap rates before the impact, negative where there is one [m/s].
        dt: step size [s].
    """
    start, rate_before, dt = frozen((start, rate_before, dt))
    gap = start.gap()
    closing = gap_rates(start) + rate_before
    comes = closing < 0.0
    return jnp.clip(jnp.where(comes, -2.0 * gap / jnp.where(comes, closing, 1.0), dt), -dt, dt)


def enter_impacts(
    listed: Impacts | None, start: SystemState, output: Output, dt: Array, end: Array
) -> Impacts | None:
    """The list with the impacts of a step entered, in the order of their instants.

    Args:
        start: the system before the step.
        output: output of the step; ``output.impacts`` are the impacts that count.
        end: time at the end of the step [s].
    """
    system = start.system
    if listed is None or not system.nc:
        return listed
    impact = output.impacts

    def enter(listed: Impacts) -> Impacts:
        event = output.event
        shift = jnp.broadcast_to(event.shift, impact.shape)
        # located instants are known; others follow from gaps and their rates
        known = frozen(shift)
        instant = jnp.where(known < 0.0, dt + known, crossings(start, event.rate_before, dt))
        values: dict[str, Any] = {
            "time": with_tangent(end + frozen(instant - dt), shift), "contact": np.arange(system.nc),
            "rate_before": event.rate_before, "rate_after": event.rate_after,
            "impulse_normal": output.impulse_normal, "impulse_tangential": output.impulse_tangential,
        }  # fmt: skip
        # places of the contacts among the impacts of the step; contacts of one instant keep their order
        # part of a step within which instants count as one: two corners that strike flat differ by rounding
        together = 1e-6
        place_of, order = jnp.round(instant / (together * dt)), np.arange(system.nc)
        same = (place_of[:, None] == place_of) & (order[:, None] > order)
        before = jnp.sum(impact & ((place_of[:, None] > place_of) | same), axis=1)
        # a row of the list takes its impact by a sum over the contacts, at most one of which counts
        rows = np.arange(listed.time.shape[0])
        taken = impact & (rows[:, None] == listed.count + before)
        new: dict[str, Any] = {}
        for name, x in values.items():
            old, more = getattr(listed, name), (1,) * (x.ndim - 1)
            found = jnp.sum(jnp.where(taken.reshape(*taken.shape, *more), x, 0), axis=1)
            new[name] = jnp.where(jnp.any(taken, axis=1).reshape(-1, *more), found, old)
        return Impacts(count=listed.count + jnp.sum(impact), **new)

    return branch(jnp.any(impact), enter, lambda listed: listed, listed)


# Nearness of a motion to grazing, by the gaps that a scheme tests, without evaluating the model.


@record()
class Watch:
    """Gaps (nc,) tested in the last two steps, the later first; gaps (nc,) at the end of the last step with
    the features that it held fixed, and their change in it; second differences (3, nc) of gaps in the
    last steps, the latest first; steps (nc,) since contacts took part; impulses (nc, 1 + nt) of the
    last step; notes (nc,) on the start of the run, until a saved row holds them.
    """

    last: Array
    before: Array
    ended: Array
    moved: Array
    bend: Array
    off: Array
    impulse: Array
    start: Array


def begin_watch(nc: int, nt: int, start: Array) -> Watch:
    """The `Watch` at the start of a run, which holds only the notes ``start``."""
    unknown = jnp.full(nc, jnp.inf)
    impulse = jnp.zeros((nc, 1 + nt))
    # number of second differences that are remembered. A velocity jump spoils two, and a hit right after it
    # one more: of these and the present one, one still gives the acceleration
    span = 3
    return Watch(
        last=unknown, before=unknown, ended=unknown, moved=unknown, bend=jnp.full((span, nc), jnp.inf),
        off=jnp.zeros(nc, int), impulse=impulse, start=start,
    )  # fmt: skip


class WatchLimits(NamedTuple):
    """Thresholds by which misses and hits are noted.

    Args:
        resolved: misses with a smaller margin are noted. This margin is computed with ``|c|`` of the
            present step, so that a contact is noted, too, if an impact elsewhere turns it back just before
            it closes. If the time of that impact is located, the margin of `watch_gaps` decides instead.
        sequence: hits whose flight took up to this many times their margin belong to a sequence of bounces
            and are left out, unless they come ever more slowly. A miss is no bounce, however short
            its flight: a ballistic flight from the surface comes back to it.
        near: hits with a shift in time and a smaller margin are noted.
        locates: whether the scheme finds the times of its impacts inside the step: derivatives are then
            those at the impact, except where the step notes `gradient_notes.UNLOCATED`.
        flight: a contact that turns after fewer open steps has not left: a corner that pivots hops.
    """

    resolved: float
    sequence: float
    flight: int
    near: float
    locates: bool


def watch_gaps(watch: Watch, output: Output, dt: Array, limits: WatchLimits) -> tuple[Watch, Array, Array]:
    """The next `Watch`, margins (nc,) of contacts that came near in this step, and notes (nc,) on
    unresolved misses and on hits that are nearly grazes.

    With the second difference ``c`` of the gap, ``c / dt^2`` its acceleration, a contact that closes with
    the rate ``r`` has the margin ``|r| dt / |c|``; one that turns at the gap ``g`` without closing would
    have needed the rate ``sqrt(2 g c) / dt`` less, and has the margin ``sqrt(2 g / c)``: numbers of
    steps, infinite for contacts that do not come near. Derivatives of an impact are known to about one over
    its margin. ``|c|`` is the smallest of the last four: the gap tested in this step may have been
    corrected, or lie behind a jump, and second differences across a jump are larger. Slow approaches that
    the step notes as grazing have the margin of a hit.
    """
    output, watch = lax.stop_gradient((output, watch))
    event = output.event
    watch = _of_same_features(watch, event)
    bits = jnp.zeros(event.gap.shape, int) if output.notes is None else output.notes
    own = bits & gradient_notes.GRAZING
    located = ~jnp.any(bits & gradient_notes.UNLOCATED != 0) if limits.locates else True
    hit = event.impact | (event.active & (own != 0))
    bend = event.gap - 2.0 * watch.last + watch.before
    near = _approach(watch, event, bend, limits, located)
    closing = jnp.where(near.moves, jnp.abs(event.rate_before) * dt / near.smallest, jnp.inf)
    margin = jnp.where(hit, closing, near.margin)
    # a bounce returns with growing speed; a contact that slows down would have turned a little later
    slows = (watch.bend[0] > 0.0) & jnp.isfinite(watch.bend[0])
    graze = (own != 0) | (slows & (margin < limits.near)) | (limits.sequence * margin < watch.off)
    seen = near.known & (near.missed | (hit & graze))
    # the contact is closed and separates already: it has turned inside the step
    inside = event.active & ~event.impact & (watch.last > 0.0) & jnp.isfinite(watch.last)
    inside = inside & (event.rate_before > 0.0)
    inside = inside & (watch.off >= limits.flight)
    grazing = jnp.where(
        (near.missed & (near.turning < limits.resolved)) | inside, gradient_notes.GRAZING, 0
    )
    timed = event.timed & (own == 0)
    if limits.locates:
        timed = timed & (bits & gradient_notes.UNLOCATED != 0)
    grazing = grazing | jnp.where(seen & timed & (margin < limits.near), gradient_notes.NEAR, 0)
    off = jnp.where(event.active, 0, watch.off + 1)
    impulse = jnp.concatenate([output.impulse_normal[:, None], output.impulse_tangential], axis=1)
    bend = jnp.concatenate([jnp.where(jnp.isfinite(bend), bend, jnp.inf)[None], watch.bend[:-1]])
    after = Watch(
        last=event.gap, before=watch.last, ended=watch.ended, moved=watch.moved, bend=bend, off=off,
        impulse=impulse, start=watch.start,
    )  # fmt: skip
    return after, jnp.where(seen, margin, jnp.inf), grazing


def _of_same_features(watch: Watch, event: Event) -> Watch:
    """The watch without gaps of other features: a contact with the next nearest faces of terrain, or with a
    place among several, changes from face to face, and its gap jumps. A gap that the features of a step and
    those of the step before give for one state differs then by more than it changes in these steps; for
    neighbouring features, between which the closest point moves, by a small part of that.
    """
    if event.begun is None or event.ended is None:
        return watch
    moved = jnp.abs(event.ended - event.begun)
    other = jnp.abs(event.begun - watch.ended) > 2.0 * jnp.maximum(moved, watch.moved)
    last, before, bend = (jnp.where(other, jnp.inf, x) for x in (watch.last, watch.before, watch.bend))
    return dataclasses.replace(
        watch, last=last, before=before, bend=bend, ended=event.ended, moved=moved
    )  # fmt: skip


class _Approach(NamedTuple):
    """How contacts (nc,) came near in a step.

    Args:
        known: whether the second difference of the gap is known.
        moves: whether the second differences of earlier steps are.
        smallest: the smallest second difference of the last four steps.
        missed: whether a contact turned without closing.
        margin: margin of one that did.
        turning: the margin that decides whether such a miss is noted.
    """

    known: Array
    moves: Array
    smallest: Array
    missed: Array
    margin: Array
    turning: Array


def _approach(
    watch: Watch, event: Event, bend: Array, limits: WatchLimits, located: Array | bool
) -> _Approach:
    """Margins of contacts that turned without closing, see `watch_gaps`, by the second differences ``bend``
    of the gaps; ``located``: whether the scheme found the times of all impacts inside the step.
    """
    known = jnp.isfinite(bend) & (bend != 0.0)
    size = jnp.where(known, jnp.abs(bend), 1.0)
    turned = (watch.last > 0.0) & (watch.last <= watch.before) & (watch.last < event.gap) & known
    smallest = functools.reduce(jnp.minimum, jnp.abs(watch.bend))
    moves = smallest > 0.0
    smaller = jnp.where(moves & (smallest < size), smallest, size)
    least = watch.last - (event.gap - watch.before) ** 2 / (8.0 * size)
    if limits.locates:
        # a contact that is turned within the step has gone on as before until then
        coming = 2.0 * watch.last - watch.before - smaller
        least = jnp.where(located & (coming > least), coming, least)
    missed = turned & ~event.active & (watch.off >= limits.flight)
    # less than zero where the contact closes and opens between two steps, unseen
    turning = jnp.sqrt(jnp.where(missed & (least > 0.0), 2.0 * least / size, 0.0))
    # where an impact elsewhere turns the motion, the acceleration is that of the flight before it
    margin = turning * jnp.sqrt(size / smaller)
    if limits.locates:
        # by the acceleration of the flight, not by the jump that turned the contact
        turning = jnp.where(located, margin, turning)
    return _Approach(known, moves, smaller, missed, margin, turning)
