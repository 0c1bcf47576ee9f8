"""Accelerations that fulfil the contact and constraint laws on acceleration level."""

from __future__ import annotations

import dataclasses

import jax.numpy as jnp
import numpy as np

from nsjax.contact.criteria import DEFAULT, Criteria
from nsjax.contact.events import frozen
from nsjax.contact.friction_decisions import sliding, sticking
from nsjax.contact.problem import ContactProblem
from nsjax.contact.row_choice import chosen_rows, smooth_contacts
from nsjax.contact.solvers import SolverSettings
from nsjax.core.operators import Rows
from nsjax.core.step import SystemState
from nsjax.linalg import matvec
from nsjax.math import norm
from nsjax.types import Array, record


@record(static=("criteria",))
class SlidingRule:
    """Rule that decides which contacts at rest slide.

    Args:
        criteria: thresholds, among them that of zero tangential velocities.
        stuck: (nc,) bool, contacts known to stick, whatever is left of their tangential velocities;
            None: tangential velocities alone decide.
        slide: (nc, nt) tangential velocities that decide [m/s]; None: those of the state.
        given: () bool, whether ``slide`` decides, else the velocities of the state.
    """

    criteria: Criteria = DEFAULT
    stuck: Array | None = None
    slide: Array | None = None
    given: Array | bool = True


@record()
class LawfulMotion:
    """Accelerations and forces that fulfil the laws.

    Args:
        a: (nv,) acceleration.
        force: (rows,) row forces, contacts first [N].
        rows: (nc (1 + nt),) accelerations of the rows of contacts [m/s^2].
        blows: (nc,) bool, contacts that no force holds through a step.
        jams: those of them that no force holds at all.
    """

    a: Array
    force: Array
    rows: Array
    blows: Array
    jams: Array


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

    Limits: where friction is above the jamming limit no forces may fulfil the laws; see `lasting_forces`.

    Source: [R&S (25)] with the constraint forces that it omits.
    """
    found = lasting_forces(at, resting, settings, rule, push)
    return found.a, found.force


def lasting_forces(
    at: SystemState, resting: Array, settings: SolverSettings, rule: SlidingRule | None = None,
    push: Array | None = None, dt: Array | None = None,
) -> LawfulMotion:  # fmt: skip
    """`consistent_forces` for a step of length ``dt`` [s]. If there are contacts that no force holds
    through it, all row forces are zero.

    Arguments as in `consistent_forces`; without ``dt`` no contact is looked at.
    """
    system, inertia, force = at.system, at.inertia(), at.force()
    blows = jams = jnp.zeros(system.nc, bool)
    if push is not None:
        force = force + push
    if not system.nc and not system.nb:
        none = jnp.zeros(0)
        return LawfulMotion(
            a=inertia.solve(force[:, None])[:, 0], force=none, rows=none, blows=blows, jams=jams
        )
    rows, drift = at.rows_with_drift()
    drift, turning = rows.apart(drift)
    if rows.joints is None:
        free, response = inertia.answers(force, rows)
    else:
        (free, hold), response = inertia.constrained(force, -turning), rows.response(inertia)
    friction, given, smooth = jnp.zeros(0), None, np.zeros(0, bool)
    if system.nc:
        law = system.law(at.params)
        friction, given = law.friction_of(system.nc), law.given(system.nc, 1.0)
        smooth = smooth_contacts(system, law.loads)
    rates = matvec(rows.wt, free) + drift
    whole = ContactProblem(
        nc=system.nc,
        nt=system.nt,
        nb=system.nb - system.inside,
        delassus=rows.delassus(response),
        free=rates,
        friction=friction,
        mask=resting,
        given=given,
    )
    rubs, slide = system.nc > 0 and system.nt > 0, None
    if rubs:
        slide = _sliding(at, rows, rule or SlidingRule())
        whole = dataclasses.replace(whole, free=_with_sliding(whole, *slide))
    problem, own = chosen_rows(whole, smooth)
    x = own.every(problem, settings.solve(problem).x)
    if slide is not None and dt is not None:
        blows, jams = frozen(_blows(whole, rates, x, slide, dt, (rule or SlidingRule()).criteria))
        x = jnp.where(jnp.any(blows), 0.0, x)
    a = free + matvec(response, x)
    along = (matvec(rows.wt, a) + drift)[: system.nc * (1 + system.nt)]
    if rows.joints is not None:
        hold = hold + inertia.constrained(matvec(rows.wt.T, x), jnp.zeros_like(hold))[1]
        x = rows.whole(x, hold)
    return LawfulMotion(a=a, force=x, rows=along, blows=blows, jams=jams)


def _blows(
    problem: ContactProblem, rates: Array, x: Array, slide: tuple[Array, Array], dt: Array,
    criteria: Criteria,
) -> tuple[Array, Array]:  # fmt: skip
    """Sliding contacts (nc,) bool that the forces ``x`` (rows,) do not hold through a step, and those of
    them that no force holds.

    Friction above the jamming limit (Painleve's paradox) presses the contact down the more, the larger the
    normal force is. No force then holds a contact that is pressed down: of the accelerations of
    `_with_sliding`, which are as good as infinite, only an enormous force finds an answer, and this sticks.
    Just below the limit there is a force, so large that sliding ends at once. Either is an impact: forces
    of any size act for any short time, until the contact sticks or slides back. It counts as one if the
    force ends the sliding within half a step, the part in which a scheme takes it as given, and if it then
    changes the velocity by more than a slow approach (`Criteria.gate`)::

        |u_T| < h / 2 |du_T/dt|,        h / 2 |du_T/dt| > gate h |a_free|

    A scheme cannot take such a change back: the contact would have to pull. Friction that only ends a slow
    slide, and does not press the contact down, has accelerations of the size of the free ones.

    Source: F. Génot, B. Brogliato: New results on Painlevé paradoxes. European Journal of Mechanics
    A/Solids 18 (1999) 653-677.
    """
    u, slides = slide
    force, free = problem.contacts(x), problem.contacts(rates)
    after = free + problem.contacts(problem.velocity(x) - problem.free)
    ends = jnp.sum(u * (u + 0.5 * dt * after[:, 1:]), axis=1) < 0.0
    large = 0.5 * norm(after[:, 1:]) > criteria.gate * norm(free)
    rubs = slides & problem.mask & (force[:, 0] > 0.0) & (problem.friction > 0.0)
    if problem.given is not None:
        rubs = rubs & ~jnp.asarray(problem.given.on)
    jams = rubs & sticking(force, problem.friction)
    return jams | (rubs & ends & large), jams


def _sliding(at: SystemState, rows: Rows, rule: SlidingRule) -> tuple[Array, Array]:
    """Tangential velocities (nc, nt) that decide, and the contacts (nc,) bool that slide."""
    system, v = at.system, at.v
    d, count = 1 + system.nt, system.nc * (1 + system.nt)
    u = rows.rate(v)[:count].reshape(system.nc, d)[:, 1:]
    if rule.slide is not None:
        u = jnp.where(rule.given, rule.slide, u)
    slides = sliding(rule.criteria, u, v)
    return u, slides if rule.stuck is None else slides & ~rule.stuck


def _with_sliding(problem: ContactProblem, u: Array, slides: Array) -> Array:
    """Free accelerations (rows,) with a large value along the velocity in the tangential rows of sliding
    contacts, so that the law chooses slip in this direction whatever the accelerations are.
    """
    block = problem.contacts(problem.free)
    speed = jnp.max(jnp.abs(u), axis=1, keepdims=True)
    scale = 1e6 * (1.0 + jnp.max(jnp.abs(problem.free)))
    safe = jnp.where(speed > 0.0, speed, 1.0)
    tangent = jnp.where(slides[:, None], scale * u / safe, block[:, 1:])
    block = jnp.concatenate([block[:, :1], tangent], axis=1)
    return problem.stack(block, problem.bilateral(problem.free))
