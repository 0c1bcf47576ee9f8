"""The impact list of a run: impacts that count, and their instants inside their steps."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from nsjax.contact.events import frozen, gap_rates
from nsjax.core.branches import branch
from nsjax.core.scheme import Output
from nsjax.core.step import SystemState
from nsjax.core.system import State, System
from nsjax.nonlinear import with_tangent
from nsjax.trajectory import Impacts
from nsjax.types import Array, PyTree


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
    """Contacts (nc,) bool that touch in the first state of a run: they have no impact in its first step,
    because they were not open before.
    """
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
            "time": with_tangent(end + frozen(instant - dt), shift),
            "contact": np.arange(system.nc),
            "rate_before": event.rate_before,
            "rate_after": event.rate_after,
            "impulse_normal": output.impulse_normal,
            "impulse_tangential": output.impulse_tangential,
        }
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
