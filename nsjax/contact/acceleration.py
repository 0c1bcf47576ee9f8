"""Accelerations that fulfil the contact and constraint laws on acceleration level."""

from __future__ import annotations

import jax.numpy as jnp

from nsjax.contact.criteria import DEFAULT, Criteria
from nsjax.contact.problem import ContactProblem
from nsjax.contact.solvers import solve
from nsjax.core.inertia import inertia_at
from nsjax.core.operators import Rows, all_rows, row_drift
from nsjax.core.system import System
from nsjax.linalg import matmul, matvec
from nsjax.types import Array, PyTree


def consistent_forces(
    system: System,
    params: PyTree,
    t: Array,
    q: Array,
    v: Array,
    resting: Array,
    *,
    tolerance: Array | float,
    max_iterations: int,
    method: str = "auto",
    stuck: Array | None = None,
    criteria: Criteria = DEFAULT,
    push: Array | None = None,
    slide: Array | None = None,
) -> tuple[Array, Array]:
    """``a = M^-1 (h + W lambda)`` with ``0 <= ddg_N _|_ lambda_N >= 0`` on the resting contacts, and the
    row forces ``lambda`` [N], contacts first.

    Sticking contacts keep their tangential velocity zero, sliding ones take their friction force from
    the direction of sliding; bilateral constraints hold on acceleration level.

    Args:
        resting: (nc,) bool, contacts that are closed and do not move apart.
        method: of the contact solver.
        stuck: (nc,) bool, contacts known to stick, whatever is left of their tangential velocities;
            None: they are zero to rounding.
        criteria: by which they are zero.
        push: (nv,) further generalized forces.
        slide: (nc, nt) tangential velocities by which contacts slide; None: those of ``(q, v)``.

    Source: [R&S (25)] with the constraint forces that it omits.
    """
    inertia = inertia_at(system, t, q, params)
    force = system.force(t, q, v, params)
    if push is not None:
        force = force + push
    if not system.nc and not system.nb:
        return inertia.solve(force[:, None])[:, 0], jnp.zeros(0)
    rows = all_rows(system, t, q, params)
    drift, turning = rows.apart(row_drift(system, t, q, v, params))
    if rows.joints is None:
        free, response = inertia.answers(force, rows.wt)
    else:
        (free, hold), response = inertia.held(force, -turning), inertia.solve(rows.wt.T)
    friction, given = jnp.zeros(0), None
    if system.nc:
        law = system.law(params)
        friction, given = law.friction_of(system.nc), law.given(system.nc, 1.0)
    problem = ContactProblem(
        nc=system.nc,
        nt=system.nt,
        nb=system.nb - system.inside,
        delassus=matmul(rows.wt, response),
        free=_sliding(criteria, system, rows, v, matvec(rows.wt, free) + drift, stuck, slide),
        friction=friction,
        mask=resting,
        given=given,
    )
    answer = solve(problem, tolerance=tolerance, max_iterations=max_iterations, method=method)
    a, x = free + matvec(response, answer.x), answer.x
    if rows.joints is not None:
        hold = hold + inertia.held(matvec(rows.wt.T, x), jnp.zeros_like(hold))[1]
        x = rows.whole(x, hold)
    return a, x


def _sliding(
    criteria: Criteria, system: System, rows: Rows, v: Array, free: Array, stuck: Array | None,
    slide: Array | None,
) -> Array:  # fmt: skip
    """Tangential rows of sliding contacts: a large free acceleration along the velocity, so that the
    law chooses slip in this direction whatever the accelerations are.
    """
    if not system.nc or not system.nt:
        return free
    d, count = 1 + system.nt, system.nc * (1 + system.nt)
    u = rows.rate(v)[:count].reshape(system.nc, d)[:, 1:] if slide is None else slide
    block = free[:count].reshape(system.nc, d)
    speed = jnp.max(jnp.abs(u), axis=1, keepdims=True)
    scale = 1e6 * (1.0 + jnp.max(jnp.abs(free)))
    safe = jnp.where(speed > 0.0, speed, 1.0)
    slides = speed > criteria.slide * (1.0 + jnp.max(jnp.abs(v)))
    if stuck is not None:
        slides = slides & ~stuck[:, None]
    tangent = jnp.where(slides, scale * u / safe, block[:, 1:])
    block = jnp.concatenate([block[:, :1], tangent], axis=1)
    return jnp.concatenate([block.reshape(-1), free[count:]])
