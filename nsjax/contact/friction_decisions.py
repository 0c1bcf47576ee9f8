"""Decisions about friction: sticking, sliding that turns or begins, friction that jams."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp

from nsjax import notes
from nsjax.contact.criteria import Criteria
from nsjax.contact.events import Touch, held_or_hopping, normals
from nsjax.core.branches import branch
from nsjax.core.operators import acting
from nsjax.core.step import SystemState, formed
from nsjax.linalg import Blocks, summed
from nsjax.math import direction, norm
from nsjax.types import Array


def sticking(contacts: Array, friction: Array) -> Array:
    """Loaded contacts (nc,) bool whose friction is inside its cone, by their impulses (nc, 1 + nt)."""
    inside = norm(contacts[:, 1:]) < (1.0 - INSIDE) * friction * contacts[:, 0]
    return inside & (contacts[:, 0] > 0.0)


INSIDE = 1e-8
"""Relative distance to the bound from which friction is inside its cone: an answer on the cone may be wrong
by the regularisation of the contact solver, 1e-9 of it."""


def at_border(friction: Array, blow: Sequence[Array], change: Sequence[Array], dt: Array) -> Array:
    """Contacts (nc,) bool whose impact is nearer to the border of sticking and sliding than a step
    resolves. A scheme knows the instant of an impact, and so the state before it, to one step, or to
    several steps after bounces (`instant_uncertainty`). In this time the impulse and the velocity after the
    impact change, and may reach the border::

        sticks:  mu P_N - |P_T|  <=  dt (mu |dP_N/dt| + |dP_T/dt|)
        slides:  |u_T|           <=  dt |du_T/dt|

    Args:
        dt: () or (nc,) uncertainty of the instant [s].
        friction: (nc,) coefficients; without friction there is no border.
        blow: impulses (nc, 1 + nt) and relative velocities (nc, 1 + nt) of the impact.
        change: their rates along the motion before it.
    """
    (p, u), (dp, du) = blow, change
    inside = friction * p[:, 0] - norm(p[:, 1:])
    reach = friction * jnp.abs(dp[:, 0]) + norm(dp[:, 1:])
    near = jnp.where(sticking(p, friction), inside <= dt * reach, norm(u[:, 1:]) <= dt * norm(du[:, 1:]))
    return near & (friction * p[:, 0] > 0.0)


def instant_uncertainty(bounced: Array, restitution: Array, islands: int) -> Array:
    """Uncertainty (nc,) of the instants of impacts of each contact, in steps.

    One step, and more after a bounce. An impact that is found a time ``s`` too late leaves the body
    displaced by ``(1 + e) |r| s``: it has gone ``|r| s`` too far, and has not yet returned by ``e |r| s``.
    It returns at the rate ``e |r|``, so that all its later events are late by ``s (1 + e) / e``. Bounces
    before the last one are not counted: each would add as much again only if all of them were found as late
    as possible.

    Args:
        bounced: (nc,) bool, contacts that have bounced and not come to rest.
        restitution: (nc,) coefficients.
        islands: number of independent groups of contacts; zero: all contacts may move each other.
    """
    rebounds = bounced & (restitution > 0.0)
    late = jnp.where(rebounds, 1.0 + 1.0 / jnp.where(rebounds, restitution, 1.0), 0.0)
    groups = late.reshape(islands or 1, -1)
    most = jnp.broadcast_to(jnp.max(groups, axis=1, keepdims=True), groups.shape)
    return 1.0 + most.reshape(-1)


def jammed(at: SystemState, impulse: Array) -> Array:
    """Notes (nc,) on sliding contacts whose friction is above the jamming limit (Painleve's paradox)::

        W_N' M^-1 (W_N + W_T P_T / P_N)  <=  0,       |P_T| = mu P_N

    a normal force then accelerates the contact towards the other body.

    Args:
        impulse: (nc, 1 + nt) of the last step.
    """
    system = at.system
    nc, d = system.nc, 1 + system.nt

    def look(_: None) -> Array:
        f = formed(at)
        g = _own_rates(normals(system, f.rows.wt), f.response, nc, d)
        force = impulse / jnp.where(impulse[:, :1] > 0.0, impulse[:, :1], 1.0)
        friction = at.friction()
        slides = (impulse[:, 0] > 0.0) & ~sticking(impulse, friction)
        return jnp.where(slides & (jnp.sum(g * force, axis=1) <= 0.0), notes.JAMMED, 0)

    none = jnp.zeros(nc, int)
    return branch(jnp.any(impulse[:, 0] > 0.0), look, lambda _: none, None) if system.nt else none


def _own_rates(normal: Any, response: Any, nc: int, d: int) -> Array:
    """Gap rates (nc, d) of every contact by unit impulses along its own rows."""
    if isinstance(normal, Blocks):
        w, n = normal.values, normal.values.shape[0]
        back = jnp.moveaxis(response.values.reshape(n, w.shape[2], -1, d), 1, 3)
        return summed(w[:, :, None] * back).reshape(nc, d)
    back = response[:, : nc * d].reshape(-1, nc, d)
    return jnp.sum(normal.T[:, :, None] * back, axis=0)


def jammed_at_start(criteria: Criteria, at: SystemState, closed: Array) -> Array:
    """`jammed` for those of the ``closed`` contacts (nc,) that slide at the start of a run."""
    system = at.system
    if not system.nt:
        return jnp.zeros(system.nc, int)
    slip = at.slip()
    closed = acting(system, at.t, at.q, at.params, closed) & sliding(criteria, slip, at.v)
    normal = jnp.where(closed, 1.0, 0.0)[:, None]
    tangential = -normal * at.friction()[:, None] * direction(slip)
    return jammed(at, jnp.concatenate([normal, tangential], axis=1))


def sliding(criteria: Criteria, tangential: Array, v: Array) -> Array:
    """Contacts (nc,) bool that do not stick, by their tangential velocities (nc, nt)."""
    speed = jnp.max(jnp.abs(tangential), axis=1)
    return speed > criteria.slide * (1.0 + jnp.max(jnp.abs(v)))


def slowing(criteria: Criteria, slide: Array, touch: Touch, active: Array) -> Array:
    """Held contacts (nc,) bool that may turn within the step, by the last change of their sliding.

    A contact that opens within the step does not turn: the motion after it is that without the contact.
    """
    slow = norm(slide) <= criteria.slow * norm(slide - touch.slide)
    return held_or_hopping(criteria, touch, active) & slow


def may_turn(criteria: Criteria, slide: Array, touch: Touch, active: Array, v: Array) -> Array:
    """`slowing` contacts (nc,) bool that slide; contacts that stick or stand still have stopped already."""
    slides = ~touch.stuck & sliding(criteria, slide, v)
    return slides & slowing(criteria, slide, touch, active)


def reversal(
    criteria: Criteria, tangential: Array, change: Array, held: Array, v: Array, dt: Array
) -> Array:
    """Contacts (nc,) bool whose sliding passes through rest, or near it, within about a step.

    In space a sliding velocity that does not pass exactly through zero turns quickly: its component along
    its rate of change passes zero. Contacts that stand still have stopped already: the next acceleration
    then decides how they slide.

    Args:
        tangential, change: (nc, nt) velocities at the start of the step and their rates.
        held: (nc,) bool, closed throughout.
    """
    later = tangential + criteria.turn * dt * change
    return held & sliding(criteria, tangential, v) & (jnp.sum(tangential * later, axis=1) < 0.0)


def unresolved_turns(criteria: Criteria, turns: Array, tangential: Array, change: Array, v: Array) -> Array:
    """Notes (nc,) on contacts in space that turn within a step without passing through rest.

    The component of the velocity across its rate of change is then neither zero nor large beside its change
    in a step.
    """
    if tangential.shape[1] < 2:
        return jnp.zeros(turns.shape, int)
    across = tangential[:, 0] * change[:, 1] - tangential[:, 1] * change[:, 0]
    aside = jnp.abs(across) > criteria.slide * (1.0 + jnp.max(jnp.abs(v))) * norm(change)
    return jnp.where(turns & aside, notes.KINK, 0)


def departure(
    criteria: Criteria, tangential: Array, change: Array, held: Array, v: Array, dt: Array
) -> Array:
    """Contacts that stand still and slide off within the step: (nc,) bool.

    The motion is the same before and after, so that a shift changes nothing, except that it keeps
    derivatives of the velocity from a law that holds the contact at the start of the step.
    """
    return held & ~sliding(criteria, tangential, v) & sliding(criteria, dt * change, v)
