"""Friction in motion: sticking, sliding that turns or begins, and accelerations under the laws."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from nsjax import gradient_notes
from nsjax.contact.events import DEFAULT, Criteria, Touch, frozen, held_or_hopping
from nsjax.contact.problem import ContactLaw, ContactProblem
from nsjax.contact.solvers import SolverSettings
from nsjax.core.operators import Rows, acting
from nsjax.core.row_groups import RowGroups
from nsjax.core.step import SystemState, formed
from nsjax.jaxtools.control_flow import branch
from nsjax.linalg import Blocks, matvec, summed
from nsjax.math import direction, norm
from nsjax.types import Array, record

# Decisions about friction: sticking, sliding that turns or begins, friction that jams.


def sticking(contacts: Array, friction: Array) -> Array:
    """Loaded contacts (nc,) bool whose friction is inside its cone, by their impulses (nc, 1 + nt)."""
    # relative distance to the bound from which friction is inside its cone: an answer on the cone may be
    # wrong by the regularisation of the contact solver, 1e-9 of it
    inside = norm(contacts[:, 1:]) < (1.0 - 1e-8) * friction * contacts[:, 0]
    return inside & (contacts[:, 0] > 0.0)


def at_border(friction: Array, blow: Sequence[Array], change: Sequence[Array], dt: Array) -> Array:
    """Contacts (nc,) bool whose impact is nearer to the border of sticking and sliding than a step
    resolves. A scheme knows the instant of an impact, and so the state before it, to one step, or to
    several steps after bounces (`instant_uncertainty`). In this time the impulse and the velocity after the
    impact change, and may reach the border::

        sticks:  mu P_N - |P_T|  <=  dt (mu |dP_N/dt| + |dP_T/dt|)
        slides:  |u_T|           <=  dt |du_T/dt|

    Args:
        dt: () or (nc,) uncertainty of the instant [s].
        friction: (nc,) coefficients; without friction there is no border.
        blow: impulses (nc, 1 + nt) and relative velocities (nc, 1 + nt) of the impact.
        change: their rates along the motion before it.
    """
    (p, u), (dp, du) = blow, change
    # distance to the cone, and what the motion changes of it in the time that is not known
    inside = friction * p[:, 0] - norm(p[:, 1:])
    reach = friction * jnp.abs(dp[:, 0]) + norm(dp[:, 1:])
    near = jnp.where(sticking(p, friction), inside <= dt * reach, norm(u[:, 1:]) <= dt * norm(du[:, 1:]))
    return near & (friction * p[:, 0] > 0.0)


def instant_uncertainty(bounced: Array, restitution: Array, islands: int) -> Array:
    """Uncertainty (nc,) of the instants of impacts of each contact: one step, and more after a bounce.

    An impact that is found a time ``s`` too late leaves the body displaced by ``(1 + e) |r| s``. It returns
    at the rate ``e |r|``, so that all its later events are late by ``s (1 + e) / e``. Bounces before the
    last one are not counted.

    Args:
        bounced: (nc,) bool, contacts that have bounced and not come to rest.
        restitution: (nc,) coefficients.
        islands: number of independent groups of contacts; zero: all contacts may move each other.
    """
    rebounds = bounced & (restitution > 0.0)
    late = jnp.where(rebounds, 1.0 + 1.0 / jnp.where(rebounds, restitution, 1.0), 0.0)
    groups = late.reshape(islands or 1, -1)
    # a contact that is late makes those of its part late
    most = jnp.broadcast_to(jnp.max(groups, axis=1, keepdims=True), groups.shape)
    return 1.0 + most.reshape(-1)


def jammed(at: SystemState, impulse: Array) -> Array:
    """Notes (nc,) on sliding contacts whose friction is above the jamming limit (Painleve's paradox)::

        W_N' M^-1 (W_N + W_T P_T / P_N)  <=  0,       |P_T| = mu P_N

    a normal force then accelerates the contact towards the other body.

    Args:
        impulse: (nc, 1 + nt) of the last step.
    """
    system = at.system
    nc = system.nc

    def look(_: None) -> Array:
        f = formed(at)
        g = _own_rates(f.rows.groups, f.rows.wt, f.response)
        force = impulse / jnp.where(impulse[:, :1] > 0.0, impulse[:, :1], 1.0)
        friction = at.friction()
        slides = (impulse[:, 0] > 0.0) & ~sticking(impulse, friction)
        return jnp.where(slides & (jnp.sum(g * force, axis=1) <= 0.0), gradient_notes.JAMMED, 0)

    none = jnp.zeros(nc, int)
    return branch(jnp.any(impulse[:, 0] > 0.0), look, lambda _: none, None) if system.nt else none


def _own_rates(groups: RowGroups, wt: Any, response: Any) -> Array:
    """Gap rates (nc, 1 + nt) of every contact by unit impulses along its own rows."""
    nc, d, normal = groups.nc, 1 + groups.nt, groups.normals_of(wt)
    if isinstance(normal, Blocks):
        w, n = normal.values, normal.values.shape[0]
        back = jnp.moveaxis(response.values.reshape(n, w.shape[2], -1, d), 1, 3)
        return summed(w[:, :, None] * back).reshape(nc, d)
    return jnp.sum(normal[:, None] * groups.contacts(response.T), axis=2)


def jammed_at_start(criteria: Criteria, at: SystemState, closed: Array) -> Array:
    """`jammed` for those of the ``closed`` contacts (nc,) that slide at the start of a run."""
    system = at.system
    if not system.nt:
        return jnp.zeros(system.nc, int)
    slip = at.slip()
    closed = acting(system, at.t, at.q, at.params, closed) & sliding(criteria, slip, at.v)
    normal = jnp.where(closed, 1.0, 0.0)[:, None]
    # a unit normal force with the friction of sliding: the limit does not depend on its size
    tangential = -normal * at.friction()[:, None] * direction(slip)
    return jammed(at, jnp.concatenate([normal, tangential], axis=1))


def sliding(criteria: Criteria, tangential: Array, v: Array) -> Array:
    """Contacts (nc,) bool that do not stick, by their tangential velocities (nc, nt)."""
    speed = jnp.max(jnp.abs(tangential), axis=1)
    return speed > criteria.slide * (1.0 + jnp.max(jnp.abs(v)))


def slowing(criteria: Criteria, slide: Array, touch: Touch, active: Array) -> Array:
    """Held contacts (nc,) bool that may turn within the step, by the last change of their sliding.

    A contact that opens within the step does not turn: the motion after it is that without the contact.
    """
    slow = norm(slide) <= criteria.slow * norm(slide - touch.slide)
    return held_or_hopping(criteria, touch, active) & slow


def may_turn(criteria: Criteria, slide: Array, touch: Touch, active: Array, v: Array) -> Array:
    """`slowing` contacts (nc,) bool that slide; contacts that stick or stand still have stopped already."""
    slides = ~touch.stuck & sliding(criteria, slide, v)
    return slides & slowing(criteria, slide, touch, active)


def reversal(
    criteria: Criteria, tangential: Array, change: Array, held: Array, v: Array, dt: Array
) -> Array:
    """Contacts (nc,) bool, of those ``held``, whose sliding passes through rest, or near it, within about a
    step, by ``tangential`` velocities (nc, nt) at its start and their rates ``change``. In space the
    component along the rate passes zero. Contacts that stand still have stopped already: the next
    acceleration decides.
    """
    later = tangential + criteria.turn * dt * change
    return held & sliding(criteria, tangential, v) & (jnp.sum(tangential * later, axis=1) < 0.0)


def unresolved_turns(criteria: Criteria, turns: Array, tangential: Array, change: Array, v: Array) -> Array:
    """Notes (nc,) on contacts in space that turn within a step without passing through rest: the velocity
    across its rate of change is then neither zero nor large beside its change in a step.
    """
    if tangential.shape[1] < 2:
        return jnp.zeros(turns.shape, int)
    across = tangential[:, 0] * change[:, 1] - tangential[:, 1] * change[:, 0]
    aside = jnp.abs(across) > criteria.slide * (1.0 + jnp.max(jnp.abs(v))) * norm(change)
    return jnp.where(turns & aside, gradient_notes.KINK, 0)


def departure(
    criteria: Criteria, tangential: Array, change: Array, held: Array, v: Array, dt: Array
) -> Array:
    """Contacts (nc,) bool that stand still and slide off within the step. A shift changes nothing there,
    but keeps derivatives of the velocity from a law that holds the contact at the start of the step.
    """
    return held & ~sliding(criteria, tangential, v) & sliding(criteria, dt * change, v)


# Accelerations that fulfil the contact and constraint laws on acceleration level.


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
        rows: accelerations of the rows of contacts [m/s^2].
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
    drift, turning = rows.border_and_joints(drift)
    if rows.joints is None:
        free, response = inertia.answers(force, rows)
    else:
        (free, hold), response = inertia.constrained(force, -turning), rows.response(inertia)
    law = at.law() if system.nc else ContactLaw()
    # laws on acceleration level: accelerations of the rows stand for velocities, forces for impulses
    rates = matvec(rows.wt, free) + drift
    problem = ContactProblem(
        rows=rows.groups, delassus=rows.delassus(response), free=rates,
        friction=law.friction_of(system.nc), mask=resting, given=law.given(1.0),
    )  # fmt: skip
    slide = None
    if system.nc and system.nt:
        slide = _sliding(at, rows, rule or SlidingRule())
        problem = dataclasses.replace(problem, free=_with_sliding(problem, *slide))
        problem = _at_rates(problem, rates, *slide)
    x = settings.solve(problem).x
    if slide is not None and dt is not None:
        blows, jams = frozen(_blows(problem, rates, x, slide, dt, (rule or SlidingRule()).criteria))
        # an impact ends the step of a contact that no force holds: what the others carry is then not known
        x = jnp.where(jnp.any(blows), 0.0, x)
    a = free + matvec(response, x)
    along = (matvec(rows.wt, a) + drift)[: rows.groups.ends[2]]
    if rows.joints is not None:
        hold = hold + inertia.constrained(matvec(rows.wt.T, x), jnp.zeros_like(hold))[1]
        x = rows.whole(x, hold)
    return LawfulMotion(a=a, force=x, rows=along, blows=blows, jams=jams)


def _at_rates(problem: ContactProblem, rates: Array, u: Array, slides: Array) -> ContactProblem:
    """The problem with forces of a `RateLaw` at their rates ``u`` (nc, nt), zero without sliding, and after
    an instant of the accelerations, of which ``rates`` (rows,) are the free ones.
    """
    groups = problem.rows
    if groups.own is None:
        return problem
    _, first, end = groups.ends
    place = np.arange(groups.count)
    forces = (place >= first) & (place < end)
    instant = 1e-12  # [s], after which rates have changed by nothing, and show their sign
    moving = jnp.pad(jnp.where(slides[:, None], u, 0.0), [(0, 0), (1, 0)])
    moving = groups.stack(moving, jnp.zeros(groups.nb)) + instant * rates
    return dataclasses.replace(
        problem, delassus=jnp.where(forces, instant, 1.0)[:, None] * problem.delassus,
        free=jnp.where(forces, moving, problem.free),
    )  # fmt: skip


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
    force, free = problem.impulses(x), problem.contacts(rates)
    after = free + problem.contacts(problem.velocity(x) - problem.free)
    ends = jnp.sum(u * (u + 0.5 * dt * after[:, 1:]), axis=1) < 0.0
    large = 0.5 * norm(after[:, 1:]) > criteria.gate * norm(free)
    rubs = slides & problem.mask & (force[:, 0] > 0.0) & (problem.friction > 0.0)
    if problem.given is not None:
        rubs = rubs & ~problem.rows.given
    jams = rubs & sticking(force, problem.friction)
    return jams | (rubs & ends & large), jams


def _sliding(at: SystemState, rows: Rows, rule: SlidingRule) -> tuple[Array, Array]:
    """Tangential velocities (nc, nt) that decide, and the contacts (nc,) bool that slide."""
    v = at.v
    u = rows.groups.tangential(rows.rate(v))
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
    # as good as infinite beside the accelerations, and far from overflow
    scale = 1e6 * (1.0 + jnp.max(jnp.abs(problem.free)))
    safe = jnp.where(speed > 0.0, speed, 1.0)
    tangent = jnp.where(slides[:, None], scale * u / safe, block[:, 1:])
    block = jnp.concatenate([block[:, :1], tangent], axis=1)
    return problem.stack(block, problem.bilateral(problem.free))
