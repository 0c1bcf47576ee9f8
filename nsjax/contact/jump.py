"""The velocity jump that contacts and constraints cause: rows, Delassus operator, law, answer."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax.numpy as jnp

from nsjax.contact.certificate import worst_contact
from nsjax.contact.problem import ContactProblem, Factored
from nsjax.contact.solvers import solve
from nsjax.core.branches import branch
from nsjax.core.inertia import Inertia
from nsjax.core.operators import Joints, Rows
from nsjax.core.system import System
from nsjax.linalg import matvec
from nsjax.types import Array, PyTree, record


@record()
class Jump:
    """Answer of the contact problem in the terms of the model.

    Args:
        dv: (nv,) velocity change by the impulses.
        contacts: (nc, 1 + nt) impulses, normal first [N s].
        constraints: (nb,) impulses of the bilateral constraints.
        before, after: (nc,) normal gap rates, zero where the contact does not take part [m/s].
        iterations, residual: of the contact solver.
        worst: contact that fulfils its law worst; -1 if all do to the tolerance.
    """

    dv: Array
    contacts: Array
    constraints: Array
    before: Array
    after: Array
    iterations: Array
    residual: Array
    worst: Array


def no_jump(system: System) -> Jump:
    """The jump of a system on which nothing acts."""
    zero = jnp.zeros(system.nc)
    return Jump(
        dv=jnp.zeros(system.nv),
        contacts=jnp.zeros((system.nc, 1 + system.nt)),
        constraints=jnp.zeros(system.nb),
        before=zero,
        after=zero,
        iterations=jnp.asarray(0),
        residual=jnp.zeros(()),
        worst=jnp.asarray(-1, int),
    )


def jump_problem(
    system: System,
    params: PyTree,
    rows: Rows,
    response: Any,
    before: Array,
    drift: Array,
    active: Array,
    constraint_rate: Array | None = None,
    duration: Array | float = 0.0,
) -> ContactProblem:
    """The contact problem of `velocity_jump`; ``before`` are the rates of the rows before it."""
    nb, nt = system.nb - system.inside, system.nt
    nc = system.nc if rows.wt.shape[0] > nb else 0
    free = before + matvec(rows.wt, drift)
    friction, given = jnp.zeros(0), None
    if nc:
        law = system.law(params)
        friction, given = law.friction_of(nc), law.given(nc, duration)
    smooth, bounded = rows.single
    problem = ContactProblem(
        nc=nc, nt=nt, nb=nb, delassus=Factored(wt=rows.wt, response=response), free=free,
        friction=friction, mask=active[:nc], given=given, smooth=smooth, bounded=bounded,
    )  # fmt: skip
    if nc:
        e = problem.stack(law.row_restitution(nc, nt).reshape(nc, 1 + nt), jnp.zeros(nb))
        free = free + e * before
    if constraint_rate is not None:
        free = free - problem.stack(jnp.zeros((nc, 1 + nt)), constraint_rate)
    return dataclasses.replace(problem, free=free)


def velocity_jump(
    system: System,
    params: PyTree,
    rows: Rows,
    response: Any,
    v: Array,
    drift: Array,
    active: Array,
    *,
    tolerance: Array | float,
    max_iterations: int,
    constraint_rate: Array | None = None,
    duration: Array | float = 0.0,
    method: str = "auto",
    inertia: Inertia | None = None,
    push: Array | None = None,
    start: Array | None = None,
) -> Jump:
    """Impulses and velocity change for which every row fulfils its law.

    With ``u = W' v`` before and ``v + drift + dv`` after, ``dv = M^-1 W Lambda``:
    ``0 <= u_N^+ + e_N u_N^- _|_ Lambda_N >= 0``, Coulomb's law with ``u_T^+ + e_T u_T^-``, and
    ``u_B^+ = 0`` (or ``constraint_rate``).

    Args:
        rows: contact rows, then bilateral rows; only the latter if no contact can act.
        response: ``M^-1 W`` (nv, rows) of those that are no joints inside the inertia.
        v: velocity to which restitution refers.
        drift: velocity change by everything else in the same step (zero at an impact).
        active: (nc,) bool.
        constraint_rate: (nb,) rates that the bilateral rows are to have afterwards, zero if None.
        duration: time over which given forces act [s], zero at an impact.
        method: of the contact solver.
        inertia: where joints are inside it; else it is not read.
        start: (nc, 1 + nt) impulses with which the solver may begin; None: zero.
        push: (nv,) momentum that ``drift`` leaves out, so that the joints answer it [kg m/s]; None: none.

    Source: [S&U&S (8)-(13)]; [R&S (46)-(54)].
    """
    before = rows.rate(v)
    free, lift, hold = drift, None, None
    if rows.joints is not None:
        lift, hold = _joints_answer(rows.joints, inertia, v + drift, push)
        free = drift + lift
    problem = jump_problem(system, params, rows, response, before, free, active, constraint_rate, duration)
    nc = problem.nc
    begin = None if start is None else problem.stack(start, jnp.zeros(problem.nb))
    answer = solve(problem, tolerance=tolerance, max_iterations=max_iterations, method=method, start=begin)
    dv, constraints = matvec(response, answer.x), problem.bilateral(answer.x)
    if hold is not None:
        more = inertia.held(matvec(rows.wt.T, answer.x), jnp.zeros_like(hold))  # type: ignore[union-attr]
        constraints = jnp.concatenate([hold + more[1], constraints])
    none = no_jump(system)
    worst = none.worst
    if problem.free.shape[0]:
        solved, tell = answer.residual <= tolerance, lambda x: worst_contact(problem, x)
        worst = branch(solved, lambda x: none.worst, tell, answer.x)
    if nc:
        normal = [problem.contacts(u)[:, 0] for u in (before, rows.rate(v + free + dv))]
    return Jump(
        dv=dv if lift is None else lift + dv,
        contacts=problem.impulses(answer.x) if nc else none.contacts,
        constraints=constraints,
        before=jnp.where(active, normal[0], 0.0) if nc else none.before,
        after=jnp.where(active, normal[1], 0.0) if nc else none.after,
        iterations=answer.iterations,
        residual=answer.residual,
        worst=worst,
    )


def _joints_answer(joints: Joints, inertia: Any, v: Array, push: Array | None) -> tuple[Array, Array]:
    """Velocity change by ``push`` and by the impulses of the joints inside the inertia, after which their
    rates are zero, and these impulses.
    """
    push = jnp.zeros_like(v) if push is None else push
    change: tuple[Array, Array] = inertia.held(push, -joints.rate(v))
    return change
