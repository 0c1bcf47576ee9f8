"""What all schemes report of a step in the same way."""

from __future__ import annotations

import jax.numpy as jnp
from jax import lax

from nsjax import status
from nsjax.contact import Jump
from nsjax.core.operators import Rows, gap_drift
from nsjax.core.scheme import IMPACT_GATE
from nsjax.core.system import State, System
from nsjax.linalg import matvec, solve_positive
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
        mass = system.mass(at.q, params)  # type: ignore[misc]
        force = system.force(at.t, at.q, at.v, params)
        inputs = broken(mass) | broken(force)
        singular = ~inputs & broken(solve_positive(mass, force[:, None]))
        state = ~inputs & ~singular & (broken(v) | broken(q))
        found = {
            status.GAP_NOT_FINITE: broken(gap) & ~broken(q),
            status.MASS_NOT_FINITE: broken(mass),
            status.FORCE_NOT_FINITE: broken(force),
            status.MASS_SINGULAR: singular,
            status.STATE_NOT_FINITE: state,
            status.CONTACT_UNSOLVED: ~solved,
        }
        return sum((jnp.where(on, bit, 0) for bit, on in found.items()), start=jnp.asarray(0))

    bad = broken(gap) | broken(v) | broken(q) | ~solved
    return lax.cond(bad, causes, lambda _: jnp.asarray(0), None)


def gated_impacts(
    system: System, params: PyTree, at: State, rows: Rows, a: Array, jump: Jump, active: Array, dt: Array
) -> Array:
    """Which active contacts have an impact in this step: see `Event.impact` and `IMPACT_GATE`.

    Args:
        at: state at which the rows were taken.
        a: (nv,) acceleration without impulses, for the scale of the approach.
    """
    normal = rows.wt[: system.nc * (1 + system.nt) : 1 + system.nt]
    curvature = gap_drift(system, jnp.asarray(at.t), at.q, at.v, params)
    # bodies that fall together have no relative acceleration: a tenth of the single ones is the floor
    floor = 0.1 / IMPACT_GATE * matvec(jnp.abs(normal), jnp.abs(a))
    fall = dt * (jnp.abs(matvec(normal, a)) + jnp.abs(curvature) + floor)
    return active & (jump.before < -IMPACT_GATE * fall) & (jump.contacts[:, 0] > 0.0)
