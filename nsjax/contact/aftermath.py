"""The motion around an event, and the state shifted back along it after the step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from nsjax.contact import saltation
from nsjax.contact.acceleration import consistent_forces
from nsjax.contact.criteria import Criteria
from nsjax.contact.jump import jump_problem
from nsjax.contact.sliding import at_border, sticking
from nsjax.contact.solvers import newton_step
from nsjax.core.branches import repeat_for
from nsjax.core.inertia import inertia_at
from nsjax.core.operators import all_rows
from nsjax.core.system import State, System
from nsjax.linalg import Blocks, summed
from nsjax.types import Array, PyTree, record

# Accelerations scale shifts; plain Newton steps on few contacts find them to rounding.
ITERATIONS = 20

Blow = tuple[Array, Array, Array]
"""Of an impact: what `_jumps` finds."""


def accelerate(
    criteria: Criteria, system: System, p: PyTree, at: State, v: Array, on: Array,
    stuck: Array | None = None, slide: Array | None = None,
) -> tuple[Array, Array]:  # fmt: skip
    """Acceleration (nv,) and row forces (rows,) at a position with velocity ``v``, contacts ``on`` at rest
    and ``stuck`` sticking; ``slide`` as in `consistent_forces`.
    """
    return consistent_forces(
        system, p, jnp.asarray(at.t), at.q, v, on,
        tolerance=1e-11, max_iterations=ITERATIONS, method="newton", stuck=stuck, criteria=criteria,
        slide=slide,
    )  # fmt: skip


@record()
class Around:
    """The motion around an event, without derivatives.

    Args:
        at: where the event is, with the velocity before it.
        a: (nv,) acceleration before it.
        end: state after the step.
        aside: (nv, nc) approach of every contact alone as motion of the system, zero where the scheme
            does not correct positions.
        resting, after: (nc,) bool, contacts at rest before and after the event.
        stuck: (nc,) bool, contacts that stick after it; None: tangential velocities tell.
        slide: (nc, nt) tangential velocities after the step in the law; None: those of ``end``.
        active: (nc,) bool, contacts that share the impulse.
        impulses: (rows,) their impulses.
    """

    at: State
    a: Array
    aside: Array
    end: State
    resting: Array
    after: Array
    stuck: Array | None
    active: Array
    impulses: Array
    slide: Array | None = None


def shift_back(
    criteria: Criteria, system: System, p: PyTree, state: State, shift: saltation.Shift, x: Around,
    dt: Array, *, corrects: bool = False,
) -> tuple[State, Array, Array]:  # fmt: skip
    """The live end ``state`` of a step, shifted back along the motion after the event, the row forces
    of that motion, and which contacts (nc,) bool are at the border of sticking and sliding, their instants
    known to ``dt``.

    ``corrects``: the scheme corrects positions; the state before the step was moved along ``x.aside``.
    """
    nc = system.nc
    alone = (dv, *_), (rate, *_) = _alone(system, p, x)

    def one(k: Array, found: tuple[Array, Array]) -> tuple[Array, Array]:
        """Accelerations after all impacts (first), and after each alone; forces after all."""
        alone = jnp.arange(nc) == k - 1
        first = k == 0
        v = jnp.where(first, x.end.v, x.at.v + jnp.sum(jnp.where(alone, dv, 0.0), axis=1))
        on = jnp.where(first, x.after, x.resting | (alone & x.after))
        where = jax.tree.map(lambda a, b: jnp.where(first, a, b), x.end, x.at)
        slide = None
        if x.slide is not None:
            slide = jnp.where(first, x.slide, system.slip(x.at.t, x.at.q, v, p))
        a, force = accelerate(criteria, system, p, where, v, on, x.stuck, slide)
        here = (jnp.arange(nc + 1) == k)[:, None]
        return jnp.where(here, a, found[0]), jnp.where(first, force, found[1])

    count = jnp.where(shift.apart, nc + 1, 1)
    none = jnp.zeros((nc + 1, system.nv)), jnp.zeros(x.impulses.shape)
    a, force = repeat_for(count, one, none)
    near = _near(system, p, x, alone, force, dt)
    back = saltation.shift_state(system, state, x.end.v, a[0], -shift.mean)
    da = a[1:].T - x.a[:, None] - rate
    if not corrects:
        return saltation.shift_apart(system, back, shift, -dv, -da), force, near
    moved = _moved(system, p, x)
    return saltation.shift_apart(system, back, shift, -dv - x.aside, -da - moved), force, near


def near_border(criteria: Criteria, system: System, p: PyTree, x: Around, dt: Array) -> Array:
    """Contacts (nc,) bool whose impact is at the border of sticking and sliding, see `at_border`."""
    force = accelerate(criteria, system, p, x.end, x.end.v, x.after, x.stuck, x.slide)[1]
    return _near(system, p, x, _alone(system, p, x), force, dt)


def _near(
    system: System, p: PyTree, x: Around, alone: tuple[Blow, Blow], force: Array, dt: Array
) -> Array:  # fmt: skip
    """The same, with the row forces after the impact: what sticks at rest then ends there on either side
    of the border.
    """
    nc, d = system.nc, 1 + system.nt
    if not system.nt:
        return jnp.zeros(nc, bool)
    friction = system.law(p).friction_of(nc)
    stays = x.after & sticking(force[: nc * d].reshape(nc, d), friction)
    (_, *blow), (_, *change) = alone
    return at_border(friction, blow, change, dt) & ~stays


def _moved(system: System, p: PyTree, x: Around) -> Array:
    """Change (nv, nc) of the whole velocity jump with the position along ``x.aside``."""
    at, jump = x.at, _jumps(system, p, x)

    def one(along: Array) -> Array:
        def whole(s: Array) -> Array:
            return jnp.sum(jump(jnp.asarray(at.t), system.retract(at.q, s * along), at.v)[0], axis=1)

        return jax.jvp(whole, (jnp.zeros(()),), (jnp.ones(()),))[1]

    return jax.vmap(one, in_axes=1, out_axes=1)(x.aside)


def _alone(system: System, p: PyTree, x: Around) -> tuple[Blow, Blow]:
    """What `_jumps` finds, and its rate along the motion before."""
    jump = _jumps(system, p, x)

    def later(s: Array) -> Blow:
        v = x.at.v
        return jump(jnp.asarray(x.at.t) + s, system.retract(x.at.q, s * v), v + s * x.a)

    return jax.jvp(later, (jnp.zeros(()),), (jnp.ones(()),))


def _jumps(system: System, p: PyTree, x: Around) -> Callable[[Array, Array, Array], Blow]:
    """As functions of ``(t, q, v)``: velocity changes (nv, nc) by the impulse of every contact, impulses
    (nc, 1 + nt), and relative velocities (nc, 1 + nt) to which the law refers.
    """

    def jump(t: Array, q: Array, u: Array) -> Blow:
        rows = all_rows(system, t, q, p)
        response = inertia_at(system, t, q, p).solve(rows.wt.T)
        problem = jump_problem(system, p, rows, response, rows.rate(u), jnp.zeros(system.nv), x.active)
        impulses = newton_step(lax.stop_gradient(problem), rows.apart(x.impulses)[0])(problem)
        contacts = problem.contacts(impulses)
        after = problem.contacts(problem.velocity(impulses))
        return _each(response, contacts), contacts, after

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
