"""Accelerations that fulfil the contact and constraint laws on acceleration level."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from nsjax.contact.criteria import DEFAULT, Criteria
from nsjax.contact.problem import ContactProblem
from nsjax.contact.row_choice import chosen_rows, smooth_contacts
from nsjax.contact.solvers import SolverSettings
from nsjax.core.operators import Rows
from nsjax.core.step import SystemState
from nsjax.linalg import matvec
from nsjax.types import Array, record


@record(static=("criteria",))
class SlidingRule:
    """Rule that decides which contacts at rest slide.

    Args:
        criteria: thresholds, among them that of zero tangential velocities.
        stuck: (nc,) bool, contacts known to stick, whatever is left of their tangential velocities;
            None: tangential velocities alone decide.
        slide: (nc, nt) tangential velocities that decide [m/s]; None: those of the state.
    """

    criteria: Criteria = DEFAULT
    stuck: Array | None = None
    slide: Array | None = None


def consistent_forces(
    at: SystemState, resting: Array, settings: SolverSettings, rule: SlidingRule | None = None,
    push: Array | None = None,
) -> tuple[Array, Array]:  # fmt: skip
    """Acceleration ``a = M^-1 (h + W lambda)`` (nv,) and row forces ``lambda`` (rows,) [N], contacts first.

    Resting contacts fulfil ``0 <= ddg_N _|_ lambda_N >= 0``. Sticking contacts keep their tangential
    velocity zero, sliding ones take their friction force from the direction of sliding; bilateral
    constraints hold on acceleration level.

    Args:
        resting: (nc,) bool, contacts that are closed and do not move apart.
        settings: of the contact solver.
        rule: decides which of them slide; None: tangential velocities and the default criteria.
        push: (nv,) further generalised forces.

    Source: [R&S (25)] with the constraint forces that it omits.
    """
    system, inertia, force = at.system, at.inertia(), at.force()
    if push is not None:
        force = force + push
    if not system.nc and not system.nb:
        return inertia.solve(force[:, None])[:, 0], jnp.zeros(0)
    rows = at.rows()
    drift, turning = rows.apart(at.drift())
    if rows.joints is None:
        free, response = inertia.answers(force, rows)
    else:
        (free, hold), response = inertia.constrained(force, -turning), rows.response(inertia)
    friction, given, smooth = jnp.zeros(0), None, np.zeros(0, bool)
    if system.nc:
        law = system.law(at.params)
        friction, given = law.friction_of(system.nc), law.given(system.nc, 1.0)
        smooth = smooth_contacts(system, law.loads)
    problem = ContactProblem(
        nc=system.nc,
        nt=system.nt,
        nb=system.nb - system.inside,
        delassus=rows.delassus(response),
        free=_with_sliding(at, rows, matvec(rows.wt, free) + drift, rule or SlidingRule()),
        friction=friction,
        mask=resting,
        given=given,
    )
    problem, own = chosen_rows(problem, smooth)
    x = own.every(problem, settings.solve(problem).x)
    a = free + matvec(response, x)
    if rows.joints is not None:
        hold = hold + inertia.constrained(matvec(rows.wt.T, x), jnp.zeros_like(hold))[1]
        x = rows.whole(x, hold)
    return a, x


def _with_sliding(at: SystemState, rows: Rows, free: Array, rule: SlidingRule) -> Array:
    """Free accelerations (rows,) with a large value along the velocity in the tangential rows of sliding
    contacts, so that the law chooses slip in this direction whatever the accelerations are.
    """
    system, v = at.system, at.v
    if not system.nc or not system.nt:
        return free
    d, count = 1 + system.nt, system.nc * (1 + system.nt)
    u = rows.rate(v)[:count].reshape(system.nc, d)[:, 1:] if rule.slide is None else rule.slide
    block = free[:count].reshape(system.nc, d)
    speed = jnp.max(jnp.abs(u), axis=1, keepdims=True)
    scale = 1e6 * (1.0 + jnp.max(jnp.abs(free)))
    safe = jnp.where(speed > 0.0, speed, 1.0)
    slides = speed > rule.criteria.slide * (1.0 + jnp.max(jnp.abs(v)))
    if rule.stuck is not None:
        slides = slides & ~rule.stuck[:, None]
    tangent = jnp.where(slides, scale * u / safe, block[:, 1:])
    block = jnp.concatenate([block[:, :1], tangent], axis=1)
    return jnp.concatenate([block.reshape(-1), free[count:]])
