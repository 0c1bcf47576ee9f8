"""Modes of closed contacts: which stick, slide or leave; a system that keeps to them, and when they end."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from nsjax.contact.acceleration import SlidingRule, consistent_forces
from nsjax.contact.criteria import Criteria, criteria_of
from nsjax.contact.event_motion import EXACT
from nsjax.contact.events import frozen
from nsjax.core.branches import branch
from nsjax.core.operators import row_forces
from nsjax.core.scheme import Scheme
from nsjax.core.step import SystemState
from nsjax.core.system import System, at_nodes_alone
from nsjax.linalg import matvec, solve
from nsjax.math import norm
from nsjax.types import Array, PyTree, record

GRIP = 1e3
"""Friction of contacts that stick, as long as their mode lasts."""

PRESS = 10.0
"""Force that keeps contacts closed as long as their mode lasts, over the greatest contact force."""

SLIP_SCALE = 1e-2
"""A sliding velocity [m/s] beside a gap [m]: one is zero at 1e-11 m/s where the other is at 1e-13 m."""

FORCE_SCALE = 1e-4
"""A force, over the greatest contact force, beside a gap: it is zero at 1e-9."""

REGULAR = 1e-12
"""Part of its diagonal that is added to the matrix of contact forces: rows may depend on each other."""


@record()
class Modes:
    """What closed contacts do until the next event.

    Args:
        held: (nc,) bool, closed; neither leaves nor comes.
        slide: (nc,) sign of the sliding velocity, zero of contacts that do not slide.
        stuck: (nc,) bool, held by friction.
        size: () the greatest contact force at the start, plus one [N].
        reach: () a velocity that sliding does not reach in a step [m/s].
    """

    held: Array
    slide: Array
    stuck: Array
    size: Array
    reach: Array


def kept(scheme: Scheme, system: System, params: PyTree) -> bool:
    """Whether changes of closed contacts are located: in the plane, around a scheme that starts each step
    from position and velocity alone.
    """
    told = scheme.accelerations is not None and scheme.accelerations.carries == "none"
    told = told and scheme.options.changes and not scheme.options.inner.options.leaving_is_open
    plain = system.structure.dense and not system.islands and system.pairs is None and not system.inside
    local = at_nodes_alone(system) is not system
    return told and plain and not local and system.nt < 2 and not system.law(params).loads


def no_modes(nc: int) -> Modes:
    """No contact is closed."""
    none, one = jnp.zeros(nc, bool), jnp.ones(())
    return Modes(held=none, slide=jnp.zeros(nc), stuck=none, size=one, reach=one)


def pushed(system: System, t: Array, q: Array, p: PyTree, modes: Modes) -> Array:
    """Generalized force (nv,) that keeps contacts closed, in the directions of their own forces."""
    normal = jnp.where(modes.held, -PRESS * modes.size, 0.0)[:, None]
    return row_forces(system, t, q, _joined(system, _with_friction(system, p, normal, modes)), p)


def _with_friction(system: System, p: PyTree, normal: Array, modes: Modes) -> Array:
    """Row forces (nc, 1 + nt) of normal forces (nc, 1) and of the friction of sliding."""
    if not system.nt:
        return normal
    friction = system.law(p).friction_of(system.nc)
    return jnp.concatenate([normal, -(modes.slide * friction)[:, None] * normal], axis=1)


def _joined(system: System, contacts: Array) -> Array:
    return jnp.concatenate([contacts.reshape(-1), jnp.zeros(system.nb)])


def own_forces(system: System, p: PyTree, forces: Array, modes: Modes) -> Array:
    """Forces (nc, 1 + nt) of contacts without those that answer `pushed`."""
    extra = jnp.where(modes.held, PRESS * modes.size, 0.0)[:, None]
    return forces - _with_friction(system, p, extra, modes)


def forces_in(at: SystemState, modes: Modes) -> tuple[Array, Array]:
    """Forces (nc, 1 + nt) of the held contacts as long as modes last, of either sign, and the accelerations
    of the contact rows (nc, 1 + nt).
    """
    system = at.system
    nc, d = system.nc, 1 + system.nt
    rows, inertia = at.rows(), at.inertia()
    free, response = inertia.answers(at.force(), rows)
    g, c = rows.delassus(response), matvec(rows.jacobian(), free) + at.drift()
    friction = at.friction()
    kinds = [modes.held, modes.stuck][:d]
    fixed = jnp.concatenate([jnp.stack(kinds, axis=1).reshape(-1), jnp.ones(system.nb, bool)])
    n, m = nc * d, fixed.shape[0]
    own = jnp.diagonal(g)
    scale = 1.0 / jnp.where(fixed & (own > 0.0), own, 1.0)
    a = jnp.where(fixed[:, None], scale[:, None] * g + REGULAR * np.eye(m), np.eye(m))
    if system.nt:
        # a sliding contact: tangential force = -mu sign normal force
        below = np.eye(m, k=-1) * (np.arange(m) < n)[:, None] * (np.arange(m) % d == 1)[:, None]
        share = jnp.concatenate([jnp.repeat(modes.slide * friction, d), jnp.zeros(system.nb)])
        a = a + below * share[:, None]
    x = solve(a, jnp.where(fixed, -scale * c, 0.0)[:, None])[:, 0]
    return x[:n].reshape(nc, d), (c + matvec(g, x))[:n].reshape(nc, d)


def signals(at: SystemState, modes: Modes) -> Array:
    """Positive as long as modes last, (1, nc), in the plane with friction (3, nc): the normal force, the
    sliding velocity in its own direction, and what is left of the bound of friction; one elsewhere.
    """
    force, _ = forces_in(at, modes)
    loaded = jnp.where(modes.held, FORCE_SCALE * force[:, 0] / modes.size, 1.0)
    if not at.system.nt:
        return loaded[None]
    slides = modes.slide != 0.0
    slip = jnp.where(slides, SLIP_SCALE * modes.slide * at.slip()[:, 0], 1.0)
    spare = at.friction() * force[:, 0] - norm(force[:, 1:])
    grip = jnp.where(modes.stuck, FORCE_SCALE * spare / modes.size, 1.0)
    return jnp.stack([loaded, slip, grip])


def modes_at(scheme: Scheme, at: SystemState, held: Array, begun: Array) -> Modes:
    """Modes in which the motion goes on from a state, without derivatives.

    Args:
        held: (nc,) bool, closed contacts whose gap rate is zero.
        begun: (nc,) sign in which contacts at rest begin to slide, where that is known already.
    """
    criteria, at = criteria_of(scheme), frozen(at)

    def closed(_: None) -> Modes:
        first = _guess(criteria, at, held, begun)
        force, _a = forces_in(at, first)
        grip = at.friction() * force[:, 0] >= norm(force[:, 1:])
        stays = (force[:, 0] >= 0.0) & (~first.stuck | grip)
        lasting = jnp.all(stays | ~held)
        size = 1.0 + jnp.max(jnp.abs(jnp.where(held[:, None], force, 0.0)))
        chosen = branch(lasting, lambda _: first, lambda _: _solved(at, first, held), None)
        reach = PRESS * (1.0 + jnp.max(jnp.abs(at.v)))
        return Modes(held=chosen.held, slide=chosen.slide, stuck=chosen.stuck, size=size, reach=reach)

    return branch(jnp.any(held), closed, lambda _: no_modes(at.system.nc), None)


def _guess(criteria: Criteria, at: SystemState, held: Array, begun: Array) -> Modes:
    """Contacts slide as they do, and stick where they are at rest."""
    none = no_modes(at.system.nc)
    if not at.system.nt:
        return Modes(held=held, slide=none.slide, stuck=none.stuck, size=none.size, reach=none.reach)
    slip = at.slip()[:, 0]
    moves = jnp.abs(slip) > criteria.slide * (1.0 + jnp.max(jnp.abs(at.v)))
    slide = jnp.where(held, jnp.where(moves, jnp.sign(slip), begun), 0.0)
    stuck = held & (slide == 0.0) & (at.friction() > 0.0)
    return Modes(held=held, slide=slide, stuck=stuck, size=none.size, reach=none.reach)


def _solved(at: SystemState, first: Modes, held: Array) -> Modes:
    """Modes by the laws on acceleration level, where not all contacts go on as they are."""
    system = at.system
    nc, d = system.nc, 1 + system.nt
    slide = None if not system.nt else (1.0 * first.slide)[:, None]
    rule = SlidingRule(stuck=first.stuck, slide=slide)
    force = consistent_forces(at, held, EXACT, rule)[1][: nc * d].reshape(nc, d)
    held = held & (force[:, 0] > 0.0)
    if not system.nt:
        return Modes(held=held, slide=first.slide, stuck=first.stuck, size=first.size, reach=first.reach)
    bound = at.friction() * force[:, 0]
    sticks = held & first.stuck & (norm(force[:, 1:]) < (1.0 - 1e-8) * bound)
    begins = jnp.where(first.stuck, -jnp.sign(force[:, 1]), first.slide)
    slide = jnp.where(held & ~sticks, begins, 0.0)
    return Modes(held=held, slide=slide, stuck=sticks, size=first.size, reach=first.reach)


def with_offset(rows: Any, modes: Modes) -> Any:
    """`System.rows` whose sliding contacts slide in their direction, whatever their velocity."""
    w, offset = rows
    ahead = jnp.concatenate([jnp.zeros_like(modes.slide)[:, None], (modes.slide * modes.reach)[:, None]], 1)
    return w, offset + ahead[:, : offset.shape[1]]
