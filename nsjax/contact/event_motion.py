"""The motion around an event, and the state shifted back along it after the step."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from nsjax.contact import jump
from nsjax.contact.friction import LawfulMotion, SlidingRule, at_border, lasting_forces, sticking
from nsjax.contact.jump import impulses_of, jump_problem
from nsjax.contact.poisson import PoissonLaw, solve_in_phases
from nsjax.contact.solvers import SolverSettings, newton_step
from nsjax.core.operators import Rows
from nsjax.core.row_groups import RowGroups
from nsjax.core.step import Formed, Inertia, SystemState
from nsjax.core.system import State, System, row_groups
from nsjax.jaxtools.control_flow import repeat_for
from nsjax.linalg import Blocks, matvec, summed
from nsjax.math import norm
from nsjax.types import Array, record

# Accelerations scale shifts; plain Newton steps on few contacts find them to rounding.
EXACT = SolverSettings(tolerance=1e-11, max_iterations=20, method="newton")

Blow = tuple[Array, Array, Array]
"""Velocity changes, impulses and relative velocities of an impact, see `_jump_along`."""


def accelerate(at: SystemState, on: Array, rule: SlidingRule) -> LawfulMotion:
    """Accelerations and row forces at a state, contacts ``on`` at rest. Of the inertia ``dt D`` of implicit
    damping half counts: a shift in time then leaves unchanged what a step of a damped velocity does.
    """
    if at.added is not None:
        at = dataclasses.replace(at, added=0.5 * at.added)
    return lasting_forces(at, on, EXACT, rule)


@record(static=("corrects",))
class EventMotion:
    """Data from which `motion_around` finds the motion around an event, without derivatives.

    Args:
        at: the system at the event, with the velocity before it.
        a: (nv,) acceleration before it, and (rows,) row forces; None: those of ``before``.
        dv: (nv, nc) velocity changes by the impulses of every contact.
        end: state after the step.
        aside: (nv, nc) generalised velocities that move the gap of one contact each with its rate of
            approach; zero where the scheme does not correct positions.
        resting, after: (nc,) bool, contacts at rest before and after the event.
        rule: decides which contacts slide after the step; the law refers to its velocities.
        active: (nc,) bool, contacts that share the impulse.
        impulses: (rows,) their impulses.
        before: state at the start of the step, and the rule that decides which contacts slide there.
        corrects: whether the scheme corrects positions; the state before the step was then moved along
            ``aside``.
    """

    at: SystemState
    a: tuple[Array, Array] | None
    dv: Array
    aside: Array
    end: State
    resting: Array
    after: Array
    rule: SlidingRule
    active: Array
    impulses: Array
    before: tuple[State, SlidingRule] | None = None
    corrects: bool = False


@record()
class MotionAround:
    """The motion before and after an event, without derivatives, and how the motion after each of several
    independent impacts alone differs.

    Args:
        v, a, force: (nv,) velocity and acceleration, (rows,) row forces after it.
        a_before, force_before: the same before it.
        along, across: (nv, nc) directions of `nsjax.contact.jump.shift_apart`.
        near: (nc,) bool, contacts at the border of sticking and sliding.
        turning: (nc, nt) rates of change of sliding velocities before it [m/s^2]; zero where ``a_before``
            was known.
    """

    v: Array
    a: Array
    force: Array
    a_before: Array
    force_before: Array
    along: Array
    across: Array
    near: Array
    turning: Array


def no_motion(system: System) -> MotionAround:
    """`MotionAround` of a step without events: zeros."""
    none, rows = jnp.zeros(system.nv), jnp.zeros(row_groups(system).count)
    each = jnp.zeros((system.nv, 0 if system.changing_contacts else system.nc))
    return MotionAround(
        v=none, a=none, force=rows, a_before=none, force_before=rows, along=each, across=each,
        near=jnp.zeros(system.nc, bool), turning=jnp.zeros((system.nc, system.nt)),
    )  # fmt: skip


def shift_back(system: System, state: State, x: MotionAround, shift: jump.Shift) -> State:
    """The live end ``state`` of a step, shifted back along the motion after the event."""
    back = jump.shift_state(system, state, x.v, x.a, -shift.mean)
    return jump.shift_apart(system, back, shift, x.along, x.across)


def motion_around(x: EventMotion, independent: Array, dt: Array) -> MotionAround:
    """The motion around the events of a step. One loop finds the accelerations of all states: after all
    impacts, before them unless they are known, and after each impact alone, if they are ``independent`` ()
    bool. ``dt``: () or (nc,) uncertainty of their instants [s].
    """
    system = x.at.system
    nc, own = system.nc, 1 if x.a is None else 0

    def one(k: Array, found: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        there, on, rule = _asked(x, k, own)
        m = accelerate(there, on, rule)
        here = [(jnp.arange(n) == k)[:, None] for n in (1 + own + nc, 1 + own)]
        turning = row_groups(system).tangential(m.rows)
        return (
            jnp.where(here[0], m.a, found[0]), jnp.where(here[1], m.force, found[1]),
            jnp.where(k == 1, turning, found[2]),
        )  # fmt: skip

    # number 0: after all impacts; 1: before them, where that is not known; then after each impact alone
    none = jnp.zeros((1 + own + nc, system.nv)), jnp.zeros((1 + own, *x.impulses.shape))
    still = jnp.zeros((nc, system.nt))
    a, force, turning = repeat_for(jnp.where(independent, 1 + own + nc, 1 + own), one, (*none, still))
    a_before, force_before = x.a or (a[1], force[1])
    alone = (dv, *_), (rate, *_) = _jump_along(x, 1.0, x.at.v, a_before)
    # an impact alone, seen later by its own shift: state and acceleration without its change
    along, across = -dv, -(a[1 + own :].T - a_before[:, None] - rate)
    if x.corrects:
        along, across = along - x.aside, across - _moved(x)
    return MotionAround(
        v=x.end.v, a=a[0], force=force[0], a_before=a_before, force_before=force_before, along=along,
        across=across, near=_near(x, alone, force[0], dt), turning=turning if own else still,
    )  # fmt: skip


def _asked(x: EventMotion, k: Array, own: int) -> tuple[SystemState, Array, SlidingRule]:
    """State number ``k`` of the loop in `motion_around`, its contacts at rest, and its rule of sliding."""
    at, nc, first = x.at, x.at.system.nc, k == 0
    alone = jnp.arange(nc) == k - 1 - own
    # after all impacts the velocity of the end; else that before them, with the change by one alone
    v = jnp.where(first, x.end.v, at.v + jnp.sum(jnp.where(alone, x.dv, 0.0), axis=1))
    on = jnp.where(first, x.after, x.resting | (alone & x.after))
    where = jax.tree.map(lambda a, b: jnp.where(first, a, b), x.end, at.state)
    rule = x.rule
    if rule.slide is not None:
        rule = dataclasses.replace(rule, given=first)
    there = dataclasses.replace(at, state=where).moved(v=v)
    if own and x.before is not None:
        state, rule = jax.tree.map(lambda a, b: jnp.where(k == 1, a, b), x.before, (there.state, rule))
        there = dataclasses.replace(there, state=state)
    return there, on, rule


def near_border(x: EventMotion, dt: Array, second_order: bool) -> Array:
    """Contacts (nc,) bool whose impact is at the border of sticking and sliding, see `at_border`. With
    ``second_order`` the state before it is known to ``dt^2``: ``dt`` is then multiplied by the relative
    change of the friction bound and impulse in a step.
    """
    end = dataclasses.replace(x.at, state=x.end)
    assert x.a is not None
    alone = (_, p, _), (_, dp, _) = _jump_along(x, 1.0, x.at.v, x.a[0])
    if second_order:
        bound = x.at.friction() * jnp.abs(p[:, 0])
        change = dt * (x.at.friction() * jnp.abs(dp[:, 0]) + norm(dp[:, 1:]))
        dt = dt * jnp.where(change < bound, change / jnp.where(bound > 0.0, bound, 1.0), 1.0)
    return _near(x, alone, accelerate(end, x.after, x.rule).force, dt)


def _near(x: EventMotion, alone: tuple[Blow, Blow], force: Array, dt: Array) -> Array:
    """`near_border` with the row forces after the impact. Contacts that stick at rest then are left out."""
    system = x.at.system
    if not system.nt:
        return jnp.zeros(system.nc, bool)
    friction = x.at.friction()
    stays = x.after & sticking(impulses_of(system, x.at.params, force, 1.0), friction)
    (_, *blow), (_, *change) = alone
    return at_border(friction, blow, change, dt) & ~stays


def _moved(x: EventMotion) -> Array:
    """Derivative (nv, nc) of the total velocity jump by a motion of the position along ``x.aside``."""

    def one(along: Array) -> Array:
        return jnp.sum(_jump_along(x, 0.0, along, jnp.zeros_like(along))[1][0], axis=1)

    return jax.vmap(one, in_axes=1, out_axes=1)(x.aside)


def _jump_along(x: EventMotion, time: float, way: Array, a: Array) -> tuple[Blow, Blow]:
    """Velocity changes (nv, nc) by the impulse of every contact, impulses (nc, 1 + nt), and relative
    velocities (nc, 1 + nt) to which the law refers; and their rates while the time passes with the rate
    ``time``, the position moves along ``way`` (nv,), and the velocity before the impact changes by ``a``.
    """
    at, p = x.at, x.impulses

    def formed_at(s: Array) -> tuple[tuple[Rows, Any], Inertia]:
        there = at.moved(t=at.t + time * s, q=at.system.retract(at.q, s * way))
        rows, inertia = there.rows(), there.inertia()
        return (rows, rows.response(inertia)), inertia

    both, moved, inertia = jax.jvp(formed_at, (jnp.zeros(()),), (jnp.ones(()),), has_aux=True)
    (rows, response), (turned, bent) = both, moved
    f = Formed(at=at, inertia=inertia, rows=rows, response=response)
    p, none = rows.border_and_joints(p)[0], jnp.zeros(at.system.nv)
    groups = rows.groups
    problem, law = jump_problem(f, rows.rate(at.v), none, x.active)
    # the velocities after the impact change with those before it, and by the impulses in turned directions
    faster = matvec(turned.wt, at.v) + turned.offset + matvec(rows.wt, a)
    change = jump_problem(f, faster, none, x.active)[0].free
    change = change + matvec(turned.wt, matvec(response, p)) + matvec(rows.wt, matvec(bent, p))

    def impulses(s: Array) -> Array:
        if isinstance(law, PoissonLaw):
            both = dataclasses.replace(problem, free=problem.free + s * change)
            return solve_in_phases(law, EXACT, both, both.free, None).x
        # impulses on the branches of the impact, which a shift does not change
        return newton_step(problem, p)(dataclasses.replace(problem, free=problem.free + s * change))

    p, dp = jax.jvp(impulses, (jnp.zeros(()),), (jnp.ones(()),))
    after, later = problem.velocity(p), change + problem.velocity(dp) - problem.free
    p, dp, after, later = (problem.contacts(y) for y in (p, dp, after, later))
    rate = each_alone(groups, bent, p) + each_alone(groups, response, dp)
    return (each_alone(groups, response, p), p, after), (rate, dp, later)


def each_alone(groups: RowGroups, response: Any, contacts: Array) -> Array:
    """Velocity changes (nv, nc) by the impulses (nc, 1 + nt) of every contact."""
    d = contacts.shape[1]
    if isinstance(response, Blocks):
        n, size, _ = response.values.shape
        each = response.values.reshape(n, size, -1, d) * contacts.reshape(n, 1, -1, d)
        return Blocks(values=summed(each)).dense()
    return jnp.sum(groups.contacts(response.T) * contacts[:, :, None], axis=1).T
