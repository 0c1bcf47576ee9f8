"""How near a motion comes to grazing, told from the gaps that a scheme tests: no model is looked at."""

from __future__ import annotations

import jax.numpy as jnp
from jax import lax

from nsjax import notes
from nsjax.core.scheme import Output
from nsjax.types import Array, record


@record()
class Watch:
    """Gaps (nc,) tested in the last two steps, the later first; size of the second difference of gaps in
    the last step; steps since contacts took part; impulses (nc, 1 + nt) of the last step; notes (nc,) on
    the start of the run, until they are in a row.
    """

    last: Array
    before: Array
    bend: Array
    off: Array
    impulse: Array
    start: Array


def begin_watch(nc: int, nt: int, start: Array) -> Watch:
    """Nothing has been seen yet, but ``start``."""
    unknown = jnp.full(nc, jnp.inf)
    impulse = jnp.zeros((nc, 1 + nt))
    return Watch(
        last=unknown, before=unknown, bend=unknown, off=jnp.zeros(nc, int), impulse=impulse, start=start
    )


def watch_gaps(
    watch: Watch, output: Output, dt: Array, *, resolved: float, sequence: float, flight: int
) -> tuple[Watch, Array, Array]:
    """The margin of every contact that came near in this step, and notes on unresolved misses: (nc,) both.

    With the second difference ``c`` of the gap, ``c / dt^2`` its acceleration, a contact that closes with
    the rate ``r`` has the margin ``|r| dt / |c|``; one that turns at the gap ``g`` without closing would
    have needed the rate ``sqrt(2 g c) / dt`` less, and has the margin ``sqrt(2 g / c)``: numbers of
    steps, infinite for contacts that do not come near. Derivatives of an impact are known to about one over
    its margin. ``|c|`` is the smaller of the last two: the gap tested in this step may be corrected, or
    behind a jump, and one of them that spans a jump is the larger. Slow approaches that the step notes as
    grazing have the margin of a hit.

    Args:
        resolved: misses with a margin up to this are noted; with ``|c|`` of this step, so that a contact
            turned by an impact elsewhere just before it closes is.
        sequence: hits whose flight took up to this many times their margin belong to a sequence of bounces
            and are left out. A miss is no bounce, however short its flight: from the surface a ballistic
            flight comes back to it.
        flight: what turns after fewer steps off than this has not left: a corner that pivots hops.
    """
    output, watch = lax.stop_gradient((output, watch))
    event = output.event
    bend = event.gap - 2.0 * watch.last + watch.before
    known = jnp.isfinite(bend) & (bend != 0.0)
    size = jnp.where(known, jnp.abs(bend), 1.0)
    turned = (watch.last > 0.0) & (watch.last <= watch.before) & (watch.last < event.gap) & known
    own = jnp.zeros(size.shape, int) if output.notes is None else output.notes & notes.GRAZING
    hit = event.impact | (event.active & (own != 0))
    smaller = jnp.where(watch.bend < size, watch.bend, size)
    least = watch.last - (event.gap - watch.before) ** 2 / (8.0 * size)
    missed = turned & ~event.active & (watch.off >= flight)
    # less than zero where the contact closes and opens between two steps, unseen
    short = jnp.sqrt(jnp.where(missed & (least > 0.0), 2.0 * least / size, 0.0))
    # of a turn that an impact elsewhere has made the flight before it tells the acceleration
    margin = short * jnp.sqrt(size / smaller)
    margin = jnp.where(hit, jnp.abs(event.rate_before) * dt / smaller, margin)
    near = known & (missed | (hit & ((own != 0) | (sequence * margin < watch.off))))
    grazing = jnp.where(missed & (short < resolved), notes.GRAZING, 0)
    off = jnp.where(event.active, 0, watch.off + 1)
    impulse = jnp.concatenate([output.impulse_normal[:, None], output.impulse_tangential], axis=1)
    bend = jnp.where(known, size, jnp.inf)
    seen = Watch(last=event.gap, before=watch.last, bend=bend, off=off, impulse=impulse, start=watch.start)
    return seen, jnp.where(near, margin, jnp.inf), grazing
