"""What all schemes report of a step in the same way."""

from __future__ import annotations

import jax.numpy as jnp
from jax import lax

from nsjax import status
from nsjax.contact import Jump, no_jump
from nsjax.contact.stage import StageAnswer
from nsjax.core.inertia import inertia_at
from nsjax.core.operators import Rows, gap_drift
from nsjax.core.scheme import IMPACT_GATE, Event, Output
from nsjax.core.system import State, System
from nsjax.linalg import matvec
from nsjax.types import Array, PyTree


def step_status(
    system: System, params: PyTree, at: State, gap: Array, v: Array, q: Array, solved: Array
) -> Array:
    """Status bits of a step. Causes are told apart only when something is wrong.

    Args:
        at: a finite state inside the step at which mass and force are looked at to find the cause.
        gap: as tested by the scheme.
        v, q: the new state.
        solved: whether the contact problems met their tolerance.
    """

    def broken(x: Array) -> Array:
        return ~jnp.isfinite(jnp.sum(x))

    def causes(_: None) -> Array:
        mass = inertia_at(system, at.q, params)
        force = system.force(at.t, at.q, at.v, params)
        heavy = broken(mass.times(jnp.ones(system.nv)))
        inputs = heavy | broken(force)
        singular = ~inputs & broken(mass.solve(force[:, None]))
        state = ~inputs & ~singular & (broken(v) | broken(q))
        found = {
            status.GAP_NOT_FINITE: broken(gap) & ~broken(q),
            status.MASS_NOT_FINITE: heavy,
            status.FORCE_NOT_FINITE: broken(force),
            status.MASS_SINGULAR: singular,
            status.STATE_NOT_FINITE: state,
            status.CONTACT_UNSOLVED: ~solved,
        }
        return sum((jnp.where(on, bit, 0) for bit, on in found.items()), start=jnp.asarray(0))

    bad = broken(gap) | broken(v) | broken(q) | ~solved
    return lax.cond(bad, causes, lambda _: jnp.asarray(0), None)


def _normal_accelerations(
    system: System, params: PyTree, at: State, rows: Rows, a: Array
) -> tuple[Array, Array]:
    """Free normal accelerations (nc,), and the sums of the magnitudes of their parts: from forces and
    from curvature.
    """
    normal = rows.wt[: system.nc * (1 + system.nt) : 1 + system.nt]
    curvature = gap_drift(system, jnp.asarray(at.t), at.q, at.v, params)
    forced = matvec(normal, a)
    # bodies that fall together have no relative acceleration: a tenth of the single ones is the floor
    floor = 0.1 / IMPACT_GATE * matvec(jnp.abs(normal), jnp.abs(a))
    return forced + curvature, jnp.abs(forced) + jnp.abs(curvature) + floor


def approach_limit(system: System, params: PyTree, at: State, rows: Rows, a: Array, dt: Array) -> Array:
    """Gap rates (nc,) up to which an approach is not counted as an impact: see `IMPACT_GATE`.

    Args:
        at: state at which the rows were taken.
        a: (nv,) acceleration without contact forces, for the scale of the approach.
    """
    return IMPACT_GATE * dt * _normal_accelerations(system, params, at, rows, a)[1]


# Part of the magnitudes below which the parts of the normal acceleration do not cancel in `event_limit`:
# a contact about to be released has no normal acceleration, and bounces of rounding size.
CANCELLATION = 0.02


def event_limit(system: System, params: PyTree, at: State, rows: Rows, a: Array, dt: Array) -> Array:
    """Gap rates (nc,) up to which an approach shifts no event: steps of the free normal acceleration.

    Slower ones are the end of a sequence of bounces, whose shifts vanish with the step. Much tighter
    than `approach_limit` where curvature and forces cancel. Source: `saltation.md` sections 1 and 6.1.
    """
    free, size = _normal_accelerations(system, params, at, rows, a)
    free = jnp.abs(free)
    return IMPACT_GATE * dt * jnp.where(free > CANCELLATION * size, free, CANCELLATION * size)


def loaded(jump: Jump, active: Array) -> Array:
    """Contacts (nc,) bool that carry an impulse."""
    return active & (jump.contacts[:, 0] > 0.0)


def impacts_of(jump: Jump, active: Array, limit: Array) -> Array:
    """Contacts (nc,) bool with an impact in this step; see `Event.impact`."""
    return loaded(jump, active) & (jump.before < -limit)


def stage_jump(
    system: System,
    answer: StageAnswer,
    dv: Array,
    before: Array,
    after: Array,
    active: Array,
    contacts: bool,
) -> Jump:
    """What the stage solver found, as a `Jump`.

    Args:
        dv: (nv,) velocity change of the step.
        before, after: rates of the rows around the step, contacts (if any) first.
    """
    none = no_jump(system)
    count = system.nc * (1 + system.nt) if contacts else 0
    impulses, *rates = (x[:count].reshape(-1, 1 + system.nt) for x in (answer.impulses, before, after))
    return Jump(
        dv=dv,
        contacts=impulses if contacts else none.contacts,
        constraints=answer.impulses[count : count + system.nb],
        before=jnp.where(active, rates[0][:, 0], 0.0) if contacts else none.before,
        after=jnp.where(active, rates[1][:, 0], 0.0) if contacts else none.after,
        iterations=answer.iterations,
        residual=answer.residual,
        worst=none.worst,
    )


def impulse_output(
    system: System,
    params: PyTree,
    at: State,
    end: State,
    gap: Array,
    active: Array,
    impact: Array,
    jump: Jump,
    dt: Array,
    solved: Array,
    notes: Array,
) -> Output:
    """Output of a step whose contact and constraint forces are all impulses.

    Args:
        at: state inside the step, see `step_status`.
        end: the new state.
    """
    return Output(
        force_normal=jump.contacts[:, 0] / dt,
        force_tangential=jump.contacts[:, 1:] / dt,
        constraint_force=jump.constraints / dt,
        impulse_normal=jump.contacts[:, 0],
        impulse_tangential=jump.contacts[:, 1:],
        constraint_impulse=jump.constraints,
        event=Event(gap=gap, active=active, impact=impact, rate_before=jump.before, rate_after=jump.after),
        iterations=jump.iterations,
        residual=jump.residual,
        status=step_status(system, params, at, gap, end.v, end.q, solved),
        contact=jump.worst,
        notes=notes,
    )
