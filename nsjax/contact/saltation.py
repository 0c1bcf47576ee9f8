"""Derivatives right through impacts: the time shift that a time-stepping scheme misses.

A scheme puts the velocity jump at a time of its grid; the derivative of the step keeps it there, while
the impact of the motion moves with the data, ``dtau = -dg / (dg/dt)``. The motion commutes with time
shifts, so that shifting the state along the motion before the jump by ``dtau`` and back after it gives
the derivative of the motion (the saltation matrix) to first order in the step::

    x -> x + F^- dtau -> jump -> x - F^+ dtau,       F = (v, a), the value of dtau zero

Everything here has a derivative only: values pass through unchanged, and the operations vanish from
programs that are not differentiated. Source: `saltation.md` sections 2 to 6, `mixed_framework.md` 3.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax.contact.acceleration import SLIDING
from nsjax.contact.branches import REGULARISATION
from nsjax.core.operators import Rows
from nsjax.core.system import State, System
from nsjax.linalg import matmul, matvec, solve
from nsjax.nonlinear import moved, only_tangent, with_tangent
from nsjax.types import Array, PyTree, record

# Notes on the derivative of a step; see `Shift.notes`.
GATED = 1
COUPLED = 2

# New impacts are coupled if the impulse of one moves the other by more than this part of itself.
COUPLING = 1e-9


@record()
class Shift:
    """Time shifts of the events of a step: zero, with derivatives.

    Args:
        tau: (nc,) one per contact with an event.
        mean: () over the events of the step, by which the whole step is shifted.
        events: (nc,) bool.
        apart: () bool: several events, none of which moves another.
    """

    tau: Array
    mean: Array
    events: Array
    apart: Array


def event_shift(function: Array, rate: Array, events: Array, apart: Array) -> Shift:
    """``dtau = -dg / (dg/dt)`` of every event.

    Args:
        function: (nc,) live event function, such as the gap that the scheme tests.
        rate: (nc,) its rate just before the event.
        events: (nc,) bool.
        apart: see `Shift`.
    """
    rate = lax.stop_gradient(jnp.where(events, rate, -1.0))
    tau = jnp.where(events, -only_tangent(function) / rate, 0.0)
    count = jnp.maximum(jnp.sum(events), 1)
    return Shift(tau=tau, mean=jnp.sum(tau) / count, events=events, apart=apart)


def shift_state(system: System, state: State, v: Array, a: Array, tau: Array) -> State:
    """``state`` moved along the motion ``(v, a)`` by ``tau``: the same value, another derivative."""
    v, a = lax.stop_gradient((v, a))
    return State(
        t=with_tangent(jnp.asarray(state.t), tau),
        q=moved(system.retract, state.q, v * tau),
        v=with_tangent(state.v, a * tau),
    )


def impact_coupling(
    rows: Rows, response: Array, events: Array, held: Array, friction: Array, nt: int
) -> Array:
    """Whether several events move each other, be it through contacts at rest or constraints: () bool.

    Args:
        rows, response: of contacts and constraints, and ``M^-1 W``.
        events, held: (nc,) bool, impacts of the step, and contacts at rest before it.
        friction: (nc,) coefficients; tangents without friction carry no impulse.
    """
    nc, d = events.shape[0], 1 + nt
    g = jnp.abs(matmul(rows.wt, response))
    diagonal = jnp.diagonal(g)
    size = jnp.sqrt(diagonal[:, None] * diagonal[None, :])
    nb = g.shape[0] - nc * d
    home = np.concatenate([np.repeat(np.arange(nc), d), nc + np.arange(nb)])
    rough = jnp.concatenate(
        [jnp.ones((nc, 1), bool), jnp.repeat(friction[:, None] > 0.0, nt, axis=1)], axis=1
    )

    def in_rows(contacts: Array, joints: bool) -> Array:
        return jnp.concatenate([(contacts[:, None] & rough).reshape(-1), jnp.full(nb, joints)])

    event, present = in_rows(events, False), in_rows(events | held, True)
    other = event[:, None] & present[None, :] & (home[:, None] != home[None, :])
    return (jnp.sum(events) > 1) & jnp.any(other & (g > COUPLING * size))


def shift_apart(system: System, state: State, shift: Shift, along: Array, across: Array) -> State:
    """``state`` moved by ``delta_i = tau_i - mean`` of several independent impacts in one step, along a
    direction each: the part that their mean shift leaves out.

    After the step, impact ``i`` alone having changed the velocity by ``dv_i`` and the acceleration by
    ``da_i``, the state moves by ``-dv_i delta_i`` and ``-da_i delta_i``. Where the scheme corrects
    positions, every gap must be shifted before the step, lest the correction annul its derivative: see
    `nsjax.schemes.through_impacts`.

    Args:
        along, across: (nv, nc) directions of position and velocity of every contact.

    Source: `saltation.md` section 5.
    """
    delta = jnp.where(shift.events & shift.apart, shift.tau - shift.mean, 0.0)
    along, across = lax.stop_gradient((along, across))
    return State(
        t=state.t,
        q=moved(system.retract, state.q, matvec(along, delta)),
        v=with_tangent(state.v, matvec(across, delta)),
    )


def settle(
    system: System, params: PyTree, t: Array, q: Array, rows: Rows, response: Array, resting: Array
) -> Array:
    """``q`` whose derivative keeps the gaps of contacts that have come to rest.

    The derivative of the last, unresolved bounces leaves a gap derivative of the order of the step that
    no later step removes; this projects it out, ``-M^-1 W_N (W_N' M^-1 W_N)^-1 dg``.

    Args:
        rows, response: rows at ``q``, and ``M^-1 W``.
        resting: (nc,) bool, contacts that have just come to rest.

    Source: `saltation.md` section 6.1.
    """
    d = 1 + system.nt
    count = system.nc * d
    wt, back = lax.stop_gradient((rows.wt[:count:d], response[:, :count:d]))
    both = resting[:, None] & resting[None, :]
    g = jnp.where(both, matmul(wt, back), 0.0)
    # dependent contacts: as in the contact solver
    g = g + jnp.where(resting, REGULARISATION * jnp.diagonal(g), 1.0) * jnp.eye(system.nc)
    gap = jnp.where(resting, only_tangent(system.gap(t, q, params)), 0.0)  # type: ignore[misc]
    correction = -matvec(back, solve(g, gap[:, None])[:, 0])
    return moved(system.retract, q, correction)


def slides(rates: Array) -> Array:
    """Planar contacts (nc,) bool that do not stick, by their row velocities (2 nc,)."""
    return jnp.abs(rates.reshape(-1, 2)[:, 1]) > SLIDING * (1.0 + jnp.max(jnp.abs(rates)))


def departure(rates: Array, accelerations: Array, resting: Array, dt: Array) -> Array:
    """Planar contacts that stand still and slide off within the step: (nc,) bool.

    The motion is the same before and after, so that a shift changes nothing, except that it keeps
    derivatives of the velocity from a law that holds the contact at the start of the step.
    """
    gain = dt * jnp.abs(accelerations.reshape(-1, 2)[:, 1])
    return resting & ~slides(rates) & (gain > SLIDING * (1.0 + jnp.max(jnp.abs(rates))))


def reversal(rates: Array, accelerations: Array, resting: Array, dt: Array, nt: int) -> Array:
    """Planar contacts whose sliding velocity passes through zero within about a step: (nc,) bool.

    Within two steps, to be sure: a shift forth and back along one and the same motion cancels, so that
    an event seen too early does no harm, while one that is missed would. Contacts that stand still have
    stopped already: turning is then a matter of the next acceleration.

    Args:
        rates, accelerations: (rows,) contact rows at the start of the step.
        resting: (nc,) bool, contacts closed throughout.
    """
    if nt != 1:
        return jnp.zeros_like(resting)
    slide, change = rates.reshape(-1, 2)[:, 1], accelerations.reshape(-1, 2)[:, 1]
    return resting & slides(rates) & (slide * (slide + 2.0 * dt * change) < 0.0)


def notes(gated: Array, coupled: Array) -> Array:
    """Bits that say where the derivative of a step is one-sided, a selection or undefined."""
    return jnp.where(jnp.any(gated), GATED, 0) | jnp.where(coupled, COUPLED, 0)


def frozen(tree: Any) -> Any:
    """``tree`` without derivatives: everything that decides or scales a shift."""
    return lax.stop_gradient(tree)
