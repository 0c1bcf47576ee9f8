"""Bounds on how far inside walls, and off its constraints, a time-stepping scheme may leave a state."""

from __future__ import annotations

import jax.numpy as jnp

from nsjax.core.inertia import inertia_at
from nsjax.core.operators import (
    Rows,
    contact_rows,
    gap_drift,
    gap_rows,
    kinetic_energy,
    prepared,
    refreshed,
)
from nsjax.core.system import State, System, bordered, is_local
from nsjax.linalg import Local, matvec
from nsjax.linalg.blocks import every, magnitude, product_diagonal
from nsjax.startup.owned import compiled_for
from nsjax.types import Array, PyTree


@compiled_for("system")
def overshoot(system: System, params: PyTree, state: State, dt: Array) -> dict[str, Array]:
    """Depths, residuals and rates that steps of the size ``dt`` may leave at ``state``.

    A scheme tests a gap or a constraint once a step, so that a motion with the rate ``u`` passes it by up
    to ``dt u``. A method of first order has an error of ``dt^2 / 2`` times the acceleration in every step,
    of ``dt t / 2`` times it after ``t / dt`` steps. With ``W'`` the direction of the row, ``w`` the rate of
    moving obstacles, and sums of magnitudes of all terms::

        u0    = sqrt(2 T W' M^-1 W) + |w|       the fastest rate of the kinetic energy T
        a     = |W'| |M^-1 h| + |gamma|         acceleration by loads and along the motion
        depth = dt (u0 + |t| a)
        rate  = dt a                            of constraints, fulfilled at the midpoint of a step

    An impact may have taken away the speed with which the body passed its wall: ``t a`` is the speed that
    the loads have given since ``t = 0``. At ``t = 0`` a body at rest may not be inside a wall.

    Args:
        system, params, state: the problem.
        dt: step size [s].

    Returns:
        ``"beyond gap"`` (nc,) [m], ``"beyond constraint"`` (nb,) and ``"beyond rate"`` (nb,), as far as the
        system has them; zero where they are not finite (a mass without inverse).

    Limits: bodies thrown at a wall that takes all their speed, without loads that could have given it, may
    lie deeper.
    """
    system, t, q = bordered(system), jnp.asarray(state.t), state.q
    p = refreshed(system, t, q, prepared(system, params))
    found: dict[str, Array] = {}
    if system.nc:
        if is_local(system) or system.islands or system.pairs is not None:
            rows, each = contact_rows(system, t, q, p), 1 + system.nt
            normal = Rows(wt=every(rows.wt, system.nc * each, each), offset=rows.offset[::each])
        else:
            normal = gap_rows(system, "gap", t, q, p)
        found["beyond gap"], _ = _row(system, p, state, dt, "gap", normal)
    if system.nb:
        rows = gap_rows(system, "constraint", t, q, p)
        found["beyond constraint"], found["beyond rate"] = _row(system, p, state, dt, "constraint", rows)
    return {name: jnp.where(jnp.isfinite(x), x, 0.0) for name, x in found.items()}


def _row(
    system: System, p: PyTree, state: State, dt: Array, function: str, rows: Rows
) -> tuple[Array, Array]:
    """Depths and rates of the rows of a function of the system."""
    t, q, v = jnp.asarray(state.t), state.q, state.v
    inertia, push = inertia_at(system, t, q, p), system.force(t, q, v, p)
    size = magnitude(rows.wt)
    if isinstance(rows.wt, Local):  # of thousands of nodes: responses are not formed
        free = inertia.solve(push[:, None])[:, 0]
        fastest = matvec(size, jnp.full_like(v, jnp.max(jnp.abs(v))))
    else:
        free, response = inertia.answers(push, rows)
        fastest = jnp.sqrt(2.0 * kinetic_energy(system, q, v, p) * product_diagonal(rows.wt, response))
    load = matvec(size, jnp.abs(free)) + jnp.abs(gap_drift(system, t, q, v, p, function))
    return dt * (fastest + jnp.abs(rows.offset) + jnp.abs(t) * load), dt * load
