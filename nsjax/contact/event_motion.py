"""The motion around an event, and the state shifted back along it after the step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from nsjax.contact import saltation
from nsjax.contact.acceleration import SlidingRule, consistent_forces
from nsjax.contact.friction_decisions import at_border, sticking
from nsjax.contact.jump import jump_problem
from nsjax.contact.solvers import SolverSettings, newton_step
from nsjax.core.branches import repeat_for
from nsjax.core.step import Formed, SystemState
from nsjax.core.system import State
from nsjax.linalg import Blocks, summed
from nsjax.math import norm
from nsjax.types import Array, record

# Accelerations scale shifts; plain Newton steps on few contacts find them to rounding.
EXACT = SolverSettings(tolerance=1e-11, max_iterations=20, method="newton")

Blow = tuple[Array, Array, Array]
"""What `_jumps` finds of an impact."""


def accelerate(at: SystemState, on: Array, rule: SlidingRule) -> tuple[Array, Array]:
    """Acceleration (nv,) and row forces (rows,) at a state, contacts ``on`` at rest."""
    return consistent_forces(at, on, EXACT, rule)


@record(static=("corrects",))
class EventMotion:
    """The motion around an event, without derivatives.

    Args:
        at: where the event is, with the velocity before it.
        a: (nv,) acceleration before it.
        end: state after the step.
        aside: (nv, nc) approach of every contact alone as motion of the system, zero where the scheme
            does not correct positions.
        resting, after: (nc,) bool, contacts at rest before and after the event.
        rule: by what contacts slide after the step; the law refers to its velocities.
        active: (nc,) bool, contacts that share the impulse.
        impulses: (rows,) their impulses.
        corrects: whether the scheme corrects positions; the state before the step was then moved along
            ``aside``.
    """

    at: SystemState
    a: Array
    aside: Array
    end: State
    resting: Array
    after: Array
    rule: SlidingRule
    active: Array
    impulses: Array
    corrects: bool = False


def shift_back(
    x: EventMotion, state: State, shift: saltation.Shift, dt: Array
) -> tuple[State, Array, Array]:
    """The live end ``state`` of a step, shifted back along the motion after the event, the row forces
    of that motion, and which contacts (nc,) bool are at the border of sticking and sliding, their instants
    known to ``dt``.
    """
    system, at = x.at.system, x.at
    nc = system.nc
    alone = (dv, *_), (rate, *_) = _alone(x)

    def one(k: Array, found: tuple[Array, Array]) -> tuple[Array, Array]:
        """Accelerations after all impacts (first), and after each alone; forces after all."""
        alone = jnp.arange(nc) == k - 1
        first = k == 0
        v = jnp.where(first, x.end.v, at.v + jnp.sum(jnp.where(alone, dv, 0.0), axis=1))
        on = jnp.where(first, x.after, x.resting | (alone & x.after))
        where = jax.tree.map(lambda a, b: jnp.where(first, a, b), x.end, at.state)
        rule = x.rule
        if rule.slide is not None:
            slide = jnp.where(first, rule.slide, at.moved(v=v).slip())
            rule = SlidingRule(criteria=rule.criteria, stuck=rule.stuck, slide=slide)
        there = SystemState(system=system, params=at.params, state=where).moved(v=v)
        a, force = accelerate(there, on, rule)
        here = (jnp.arange(nc + 1) == k)[:, None]
        return jnp.where(here, a, found[0]), jnp.where(first, force, found[1])

    count = jnp.where(shift.apart, nc + 1, 1)
    none = jnp.zeros((nc + 1, system.nv)), jnp.zeros(x.impulses.shape)
    a, force = repeat_for(count, one, none)
    near = _near(x, alone, force, dt)
    back = saltation.shift_state(system, state, x.end.v, a[0], -shift.mean)
    da = a[1:].T - x.a[:, None] - rate
    if not x.corrects:
        return saltation.shift_apart(system, back, shift, -dv, -da), force, near
    return saltation.shift_apart(system, back, shift, -dv - x.aside, -da - _moved(x)), force, near


def near_border(x: EventMotion, dt: Array, second_order: bool) -> Array:
    """Contacts (nc,) bool whose impact is at the border of sticking and sliding, see `at_border`; with
    ``second_order`` the state before it is known to ``dt^2``: to the part of a step that is the
    part of itself by which the answer changes in a step.
    """
    end = SystemState(system=x.at.system, params=x.at.params, state=x.end)
    alone = (_, p, _), (_, dp, _) = _alone(x)
    if second_order:
        bound = x.at.friction() * jnp.abs(p[:, 0])
        change = dt * (x.at.friction() * jnp.abs(dp[:, 0]) + norm(dp[:, 1:]))
        dt = dt * jnp.where(change < bound, change / jnp.where(bound > 0.0, bound, 1.0), 1.0)
    return _near(x, alone, accelerate(end, x.after, x.rule)[1], dt)


def _near(x: EventMotion, alone: tuple[Blow, Blow], force: Array, dt: Array) -> Array:
    """The same, with the row forces after the impact: what sticks at rest then ends there on either side
    of the border.
    """
    system = x.at.system
    nc, d = system.nc, 1 + system.nt
    if not system.nt:
        return jnp.zeros(nc, bool)
    friction = x.at.friction()
    stays = x.after & sticking(force[: nc * d].reshape(nc, d), friction)
    (_, *blow), (_, *change) = alone
    return at_border(friction, blow, change, dt) & ~stays


def _moved(x: EventMotion) -> Array:
    """Change (nv, nc) of the whole velocity jump with the position along ``x.aside``."""
    at, jump = x.at, _jumps(x)

    def one(along: Array) -> Array:
        def whole(s: Array) -> Array:
            return jnp.sum(jump(at.t, at.system.retract(at.q, s * along), at.v)[0], axis=1)

        return jax.jvp(whole, (jnp.zeros(()),), (jnp.ones(()),))[1]

    return jax.vmap(one, in_axes=1, out_axes=1)(x.aside)


def _alone(x: EventMotion) -> tuple[Blow, Blow]:
    """What `_jumps` finds, and its rate along the motion before."""
    at, jump = x.at, _jumps(x)

    def later(s: Array) -> Blow:
        return jump(at.t + s, at.system.retract(at.q, s * at.v), at.v + s * x.a)

    return jax.jvp(later, (jnp.zeros(()),), (jnp.ones(()),))


def _jumps(x: EventMotion) -> Callable[[Array, Array, Array], Blow]:
    """As functions of ``(t, q, v)``: velocity changes (nv, nc) by the impulse of every contact, impulses
    (nc, 1 + nt), and relative velocities (nc, 1 + nt) to which the law refers.
    """

    def jump(t: Array, q: Array, u: Array) -> Blow:
        at = x.at.moved(t=t, q=q)
        rows, inertia = at.rows(), at.inertia()
        f = Formed(at=at, inertia=inertia, rows=rows, response=rows.response(inertia))
        problem = jump_problem(f, rows.rate(u), jnp.zeros(at.system.nv), x.active)
        impulses = newton_step(lax.stop_gradient(problem), rows.apart(x.impulses)[0])(problem)
        contacts = problem.contacts(impulses)
        after = problem.contacts(problem.velocity(impulses))
        return _each(f.response, contacts), contacts, after

    return jump


def _each(response: Any, contacts: Array) -> Array:
    """Velocity changes (nv, nc) by the impulses (nc, d) of every contact."""
    nc, d = contacts.shape
    if isinstance(response, Blocks):
        n, size, _ = response.values.shape
        each = response.values.reshape(n, size, -1, d) * contacts.reshape(n, 1, -1, d)
        return Blocks(values=summed(each)).dense()
    each = response[:, : nc * d].reshape(-1, nc, d)
    return jnp.sum(each * contacts[None], axis=2)
