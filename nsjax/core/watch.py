"""Nearness of a motion to grazing, by the gaps that a scheme tests, without evaluating the model."""

from __future__ import annotations

import dataclasses
import functools
from typing import NamedTuple

import jax.numpy as jnp
from jax import lax

from nsjax import notes
from nsjax.core.scheme import Event, Output
from nsjax.types import Array, record


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
        last=unknown,
        before=unknown,
        ended=unknown,
        moved=unknown,
        bend=jnp.full((span, nc), jnp.inf),
        off=jnp.zeros(nc, int),
        impulse=impulse,
        start=start,
    )


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
            those at the impact, except where the step notes `notes.UNLOCATED`.
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
    own = bits & notes.GRAZING
    located = ~jnp.any(bits & notes.UNLOCATED != 0) if limits.locates else True
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
    grazing = jnp.where((near.missed & (near.turning < limits.resolved)) | inside, notes.GRAZING, 0)
    timed = event.timed & (own == 0)
    if limits.locates:
        timed = timed & (bits & notes.UNLOCATED != 0)
    grazing = grazing | jnp.where(seen & timed & (margin < limits.near), notes.NEAR, 0)
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
