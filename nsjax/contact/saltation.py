"""Derivatives right through impacts: the time shift that a time-stepping scheme misses.

A scheme puts the velocity jump at a time of its grid; the derivative of the step keeps it there, while
the impact of the motion moves with the data, ``dtau = -dg / (dg/dt)``. The motion commutes with time
shifts, so that shifting the state along the motion before the jump by ``dtau`` and back after it gives
the derivative of the motion (the saltation matrix) to first order in the step::

    x -> x + F^- dtau -> jump -> x - F^+ dtau,       F = (v, a), the value of dtau zero

Everything here has a derivative only: values pass through unchanged, and the operations vanish from
programs that are not differentiated. Source: the saltation matrix ``DR + (F^+ - DR F^-) dg / (dg/dt)``
of the theory of hybrid systems; the shifts are the package's own.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from nsjax.contact.dependent import dependent_answer
from nsjax.core.step import Formed, SystemState
from nsjax.core.system import State, System
from nsjax.linalg import Blocks, every, matmul, matvec
from nsjax.nonlinear import only_tangent, with_retract_tangent, with_tangent
from nsjax.types import Array, record


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


def event_shift(function: Array, rate: Array, events: Array, apart: Array, refuse: bool = True) -> Shift:
    """``dtau = -dg / (dg/dt)`` of every event.

    Args:
        function: (nc,) live event function, such as the gap that the scheme tests.
        rate: (nc,) its rate just before the event.
        events: (nc,) bool.
        apart: see `Shift`.
        refuse: whether a second differentiation is refused.
    """
    rate = lax.stop_gradient(jnp.where(events, rate, -1.0))
    tau = jnp.where(events, -only_tangent(function, refuse) / rate, 0.0)
    return shift_of(tau, events, apart)


def shift_of(tau: Array, events: Array, apart: Array) -> Shift:
    """A `Shift` by the times ``tau`` (nc,)."""
    count = jnp.maximum(jnp.sum(events), 1)
    return Shift(tau=tau, mean=jnp.sum(tau) / count, events=events, apart=apart)


def shift_state(system: System, state: State, v: Array, a: Array, tau: Array) -> State:
    """``state`` moved along the motion ``(v, a)`` by ``tau``: the same value, another derivative."""
    v, a = lax.stop_gradient((v, a))
    return State(
        t=with_tangent(jnp.asarray(state.t), tau),
        q=with_retract_tangent(system.retract, state.q, v * tau),
        v=with_tangent(state.v, a * tau),
    )


def shift_apart(system: System, state: State, shift: Shift, along: Array, across: Array) -> State:
    """``state`` moved by ``delta_i = tau_i - mean`` of several independent impacts in one step, along a
    direction each: the part that their mean shift leaves out.

    After the step, impact ``i`` alone having changed the velocity by ``dv_i`` and the acceleration by
    ``da_i``, the state moves by ``-dv_i delta_i`` and ``-da_i delta_i``. Where the scheme corrects
    positions, every gap must be shifted before the step, since the correction annuls its derivative: see
    `nsjax.contact.sensitivity`.

    Args:
        along, across: (nv, nc) directions of position and velocity of every contact.
    """
    delta = jnp.where(shift.events & shift.apart, shift.tau - shift.mean, 0.0)
    along, across = lax.stop_gradient((along, across))
    return State(
        t=state.t,
        q=with_retract_tangent(system.retract, state.q, matvec(along, delta)),
        v=with_tangent(state.v, matvec(across, delta)),
    )


def settle(f: Formed, live: SystemState, resting: Array, refuse: bool = True) -> Array:
    """Position ``q`` (nq,) whose derivative keeps the gaps of contacts that have come to rest.

    The derivative of the last, unresolved bounces leaves a gap derivative of the order of the step that
    no later step removes; this projects it out, ``-M^-1 W_N (W_N' M^-1 W_N)^-1 dg``, with the bilateral
    rows among the ``W_N``, which stay as they are.

    Args:
        f: rows at the position, and ``M^-1 W``, without derivatives.
        live: the system there, with the position ``q``.
        resting: (nc,) bool, contacts that have just come to rest.
    """
    system, rows, response = live.system, f.rows, f.response
    d = 1 + system.nt
    count = system.nc * d
    wt, back = lax.stop_gradient((every(rows.wt, count, d), every(response, count, d, columns=True)))
    gap = jnp.where(resting, only_tangent(live.gap(), refuse), 0.0)
    if not isinstance(rows.wt, Blocks) and rows.wt.shape[0] > count:
        joints, theirs = lax.stop_gradient((rows.wt[count:], response[:, count:]))
        wt, back = jnp.concatenate([wt, joints]), jnp.concatenate([back, theirs], axis=1)
        nb = joints.shape[0]
        resting = jnp.concatenate([resting, jnp.ones(nb, bool)])
        gap = jnp.concatenate([gap, jnp.zeros(nb)])
    g = matmul(wt, back)
    if isinstance(g, Blocks):
        own = [x.reshape(g.values.shape[0], -1) for x in (resting, gap)]
        answer = jax.vmap(_answer)(g.values, *own).reshape(-1)
    else:
        answer = _answer(g, resting, gap)
    return with_retract_tangent(system.retract, live.q, -matvec(back, answer))


def _answer(g: Array, resting: Array, gap: Array) -> Array:
    """``(W_N' M^-1 W_N)^-1 dg`` (nc,) of the ``resting`` contacts, zero elsewhere.

    A contact whose normal moves nothing has no gap to keep: its row is empty and would make the matrix
    singular. Bounded rows (`nsjax.contact.bounded`) are such contacts.
    """
    own = jnp.diagonal(g)
    resting = resting & (own > 0.0)
    scale = 1.0 / jnp.where(resting, own, 1.0)
    g = jnp.where(resting[:, None] & resting[None, :], scale[:, None] * g, jnp.eye(resting.shape[0]))
    return dependent_answer(g, resting, jnp.where(resting, scale * gap, 0.0))
