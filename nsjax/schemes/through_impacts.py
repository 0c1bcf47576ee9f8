"""What a scheme needs for derivatives through impacts, beside the shift itself: accelerations around the
event, the jump that each contact makes alone, rest after the event.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax

from nsjax.contact import saltation
from nsjax.contact.acceleration import consistent_acceleration
from nsjax.contact.jump import jump_problem
from nsjax.contact.solvers import newton_step
from nsjax.core.inertia import inertia_at
from nsjax.core.operators import all_rows
from nsjax.core.system import State, System
from nsjax.types import Array, PyTree, record

# Accelerations scale shifts; plain Newton steps on few contacts find them to rounding.
ITERATIONS = 20


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
        active: (nc,) bool, contacts that share the impulse.
        impulses: (rows,) their impulses.
    """

    at: State
    a: Array
    aside: Array
    end: State
    resting: Array
    after: Array
    active: Array
    impulses: Array


def accelerate(system: System, p: PyTree, at: State, v: Array, on: Array) -> Array:
    """Acceleration at a position with velocity ``v`` and the contacts ``on`` at rest."""
    return consistent_acceleration(
        system,
        p,
        jnp.asarray(at.t),
        at.q,
        v,
        on,
        tolerance=1e-11,
        max_iterations=ITERATIONS,
        method="newton",
    )


def friction_of(system: System, p: PyTree) -> Array:
    """Coefficients of friction (nc,)."""
    return system.law(p).friction_of(system.nc)  # type: ignore[misc]


def shift_back(
    system: System, p: PyTree, state: State, shift: saltation.Shift, x: Around, *, corrects: bool = False
) -> State:
    """The live end ``state`` of a step, shifted back along the motion after the event.

    ``corrects``: the scheme corrects positions; the state before the step was moved along ``x.aside``.
    """
    nc = system.nc
    dv, rate = _alone(system, p, x)

    def one(k: Array, found: Array) -> Array:
        """Acceleration after all impacts (first), and after each alone."""
        alone = jnp.arange(nc) == k - 1
        first = k == 0
        v = jnp.where(first, x.end.v, x.at.v + jnp.sum(jnp.where(alone, dv, 0.0), axis=1))
        on = jnp.where(first, x.after, x.resting | (alone & x.after))
        where = jax.tree.map(lambda a, b: jnp.where(first, a, b), x.end, x.at)
        a = accelerate(system, p, where, v, on)
        return jnp.where((jnp.arange(nc + 1) == k)[:, None], a, found)

    count = jnp.where(shift.apart, nc + 1, 1)
    a = lax.fori_loop(0, count, one, jnp.zeros((nc + 1, system.nv)))
    back = saltation.shift_state(system, state, x.end.v, a[0], -shift.mean)
    da = a[1:].T - x.a[:, None] - rate
    if not corrects:
        return saltation.shift_apart(system, back, shift, -dv, -da)
    moved = _moved(system, p, x)
    return saltation.shift_apart(system, back, shift, -dv - x.aside, -da - moved)


def _moved(system: System, p: PyTree, x: Around) -> Array:
    """Change (nv, nc) of the whole velocity jump with the position along ``x.aside``."""
    at, jump = x.at, _jumps(system, p, x)

    def one(along: Array) -> Array:
        def whole(s: Array) -> Array:
            return jnp.sum(jump(jnp.asarray(at.t), system.retract(at.q, s * along), at.v), axis=1)

        return jax.jvp(whole, (jnp.zeros(()),), (jnp.ones(()),))[1]

    return jax.vmap(one, in_axes=1, out_axes=1)(x.aside)


def _alone(system: System, p: PyTree, x: Around) -> tuple[Array, Array]:
    """Velocity change (nv, nc) by the impulse of every contact, and its rate along the motion before."""
    jump = _jumps(system, p, x)

    def later(s: Array) -> Array:
        v = x.at.v
        return jump(jnp.asarray(x.at.t) + s, system.retract(x.at.q, s * v), v + s * x.a)

    return jax.jvp(later, (jnp.zeros(()),), (jnp.ones(()),))


def _jumps(system: System, p: PyTree, x: Around) -> Callable[[Array, Array, Array], Array]:
    """Velocity changes (nv, nc) by the impulse of every contact, as functions of ``(t, q, v)``."""

    def jump(t: Array, q: Array, u: Array) -> Array:
        rows = all_rows(system, t, q, p)
        response = inertia_at(system, q, p).solve(rows.wt.T)
        problem = jump_problem(system, p, rows, response, rows.rate(u), jnp.zeros(system.nv), x.active)
        impulses = newton_step(lax.stop_gradient(problem), x.impulses)(problem)
        count = system.nc * (1 + system.nt)
        each = response[:, :count].reshape(system.nv, system.nc, 1 + system.nt)
        return jnp.sum(each * problem.contacts(impulses)[None], axis=2)

    return jump


def settled(system: System, params: PyTree, end: State, fresh: Array) -> State:
    """``end`` whose derivative keeps the gaps of contacts that have just come to rest."""
    t, q = jnp.asarray(end.t), end.q
    p, at_t, at_q = saltation.frozen((params, t, q))
    rows = all_rows(system, at_t, at_q, p)
    response = inertia_at(system, at_q, p).solve(rows.wt.T)
    return State(t=t, q=saltation.settle(system, params, t, q, rows, response, fresh), v=end.v)
