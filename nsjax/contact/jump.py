"""The velocity jump that contacts and constraints cause, and the shift of its time."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
from jax import lax

from nsjax.contact.branches import dependent_answer
from nsjax.contact.poisson import PoissonLaw, solve_in_phases
from nsjax.contact.problem import ContactLaw, ContactProblem, DelassusFactors, with_reserve, worst_contact
from nsjax.contact.solvers import SolverSettings
from nsjax.core.operators import Rows
from nsjax.core.step import Balance, Formed, SystemState
from nsjax.core.system import State, System, row_groups
from nsjax.jaxtools import only_tangent, with_retract_tangent, with_tangent
from nsjax.jaxtools.control_flow import branch
from nsjax.linalg import Blocks, matmul, matvec
from nsjax.types import Array, PyTree, record

# Derivatives right through impacts: the time shift that a time-stepping scheme misses.
#
# A scheme puts the velocity jump at a time of its grid; the derivative of the step keeps it there, while
# the impact of the motion moves with the data, ``dtau = -dg / (dg/dt)``. The motion commutes with time
# shifts, so that shifting the state along the motion before the jump by ``dtau`` and back after it gives
# the derivative of the motion (the saltation matrix) to first order in the step::
#
#     x -> x + F^- dtau -> jump -> x - F^+ dtau,       F = (v, a), the value of dtau zero
#
# Everything here has a derivative only: values pass through unchanged, and the operations vanish from
# programs that are not differentiated. Source: the saltation matrix ``DR + (F^+ - DR F^-) dg / (dg/dt)``
# of the theory of hybrid systems; the shifts are the package's own.


@record()
class Shift:
    """Time shifts of the events of a step: zero, with derivatives.

    Args:
        tau: (nc,) one per contact with an event.
        mean: () over the events of the step, by which the whole step is shifted.
        events: (nc,) bool.
        independent: () bool: several events, none of which moves another.
    """

    tau: Array
    mean: Array
    events: Array
    independent: Array


def event_shift(
    function: Array, rate: Array, events: Array, independent: Array, refuse: bool = True
) -> Shift:
    """``dtau = -dg / (dg/dt)`` of every event.

    Args:
        function: (nc,) live event function, such as the gap that the scheme tests.
        rate: (nc,) its rate just before the event.
        events: (nc,) bool.
        independent: see `Shift`.
        refuse: whether a second differentiation is refused.
    """
    # a shift is of first order: its rate is a number; contacts without an event divide by one
    rate = lax.stop_gradient(jnp.where(events, rate, -1.0))
    tau = jnp.where(events, -only_tangent(function, refuse) / rate, 0.0)
    return shift_of(tau, events, independent)


def shift_of(tau: Array, events: Array, independent: Array) -> Shift:
    """A `Shift` by the times ``tau`` (nc,)."""
    count = jnp.maximum(jnp.sum(events), 1)
    return Shift(tau=tau, mean=jnp.sum(tau) / count, events=events, independent=independent)


def shift_state(system: System, state: State, v: Array, a: Array, tau: Array) -> State:
    """``state`` moved along the motion ``(v, a)`` by ``tau``: the same value, another derivative."""
    v, a = lax.stop_gradient((v, a))
    return State(
        t=with_tangent(jnp.asarray(state.t), tau),
        q=with_retract_tangent(system.retract, state.q, v * tau),
        v=with_tangent(state.v, a * tau),
    )


def shift_apart(system: System, state: State, shift: Shift, along: Array, across: Array) -> State:
    """``state`` moved by ``delta_i = tau_i - mean`` of several independent impacts in one step, along a
    direction each: the part that their mean shift leaves out.

    After the step, impact ``i`` alone having changed the velocity by ``dv_i`` and the acceleration by
    ``da_i``, the state moves by ``-dv_i delta_i`` and ``-da_i delta_i``. Where the scheme corrects
    positions, every gap must be shifted before the step, since the correction annuls its derivative: see
    `nsjax.contact.sensitivity`. ``along``, ``across``: (nv, nc) directions of position and velocity of
    every contact.
    """
    # coupled impacts are shifted by their mean alone
    delta = jnp.where(shift.events & shift.independent, shift.tau - shift.mean, 0.0)
    along, across = lax.stop_gradient((along, across))
    return State(
        t=state.t,
        q=with_retract_tangent(system.retract, state.q, matvec(along, delta)),
        v=with_tangent(state.v, matvec(across, delta)),
    )


def settle(f: Formed, live: SystemState, resting: Array, refuse: bool = True) -> Array:
    """Position ``q`` (nq,) whose derivative keeps the gaps of contacts that have come to rest, ``resting``
    (nc,) bool. The derivative of the last, unresolved bounces leaves a gap derivative of the order of the
    step; this projects it out, ``-M^-1 W_N (W_N' M^-1 W_N)^-1 dg``, with the bilateral rows among the
    ``W_N``. ``f``: rows at the position, and ``M^-1 W``, without derivatives; ``live``: the system there.
    """
    system, rows, response = live.system, f.rows, f.response
    groups = rows.groups
    count = groups.ends[2]
    wt, back = lax.stop_gradient((groups.normals_of(rows.wt), groups.normals_of(response, columns=True)))
    gap = jnp.where(resting, only_tangent(live.gap(), refuse), 0.0)
    if not isinstance(rows.wt, Blocks) and rows.wt.shape[0] > count:
        # closed joints stay closed: their rows hold beside those of the contacts
        joints, theirs = lax.stop_gradient((rows.wt[count:], response[:, count:]))
        wt, back = jnp.concatenate([wt, joints]), jnp.concatenate([back, theirs], axis=1)
        nb = joints.shape[0]
        resting = jnp.concatenate([resting, jnp.ones(nb, bool)])
        gap = jnp.concatenate([gap, jnp.zeros(nb)])
    g = matmul(wt, back)
    if isinstance(g, Blocks):
        own = [x.reshape(g.values.shape[0], -1) for x in (resting, gap)]
        answer = jax.vmap(_answer)(g.values, *own).reshape(-1)
    else:
        answer = _answer(g, resting, gap)
    return with_retract_tangent(system.retract, live.q, -matvec(back, answer))


def _answer(g: Array, resting: Array, gap: Array) -> Array:
    """``(W_N' M^-1 W_N)^-1 dg`` (nc,) of the ``resting`` contacts, zero elsewhere; and of contacts whose
    normal moves nothing, as of bounded rows, whose empty row would make the matrix singular.
    """
    own = jnp.diagonal(g)
    resting = resting & (own > 0.0)
    # a unit diagonal, so that pivots show dependence and not masses
    scale = 1.0 / jnp.where(resting, own, 1.0)
    g = jnp.where(resting[:, None] & resting[None, :], scale[:, None] * g, jnp.eye(resting.shape[0]))
    return dependent_answer(g, resting, jnp.where(resting, scale * gap, 0.0))


# The velocity jump that contacts and constraints cause: rows, Delassus operator, law, answer.


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
        dv=jnp.zeros(system.nv), contacts=jnp.zeros((system.nc, 1 + system.nt)),
        constraints=jnp.zeros(system.nb), before=zero, after=zero, iterations=jnp.asarray(0),
        residual=jnp.zeros(()), worst=jnp.asarray(-1, int),
    )  # fmt: skip


def impulses_of(system: System, p: PyTree, x: Array, duration: Array | float) -> Array:
    """Impulses (nc, 1 + nt) of the contacts from those ``x`` of all rows of a time [s]; forces with one."""
    groups = row_groups(system)
    given = system.law(p).given(duration) if groups.bounded else None
    return groups.impulses(x, given, jnp.ones(groups.nc, bool))


@record()
class StepForces:
    """Forces that act in the same step beside the impulses of contacts and constraints; by default none, as
    in an impact.

    Args:
        drift: (nv,) velocity change by these forces.
        push: (nv,) momentum that ``drift`` leaves out, so that joints inside the inertia respond to it
            [kg m/s].
        duration: time over which given normal forces act [s].
        constraint_rate: (nb,) rates that the bilateral rows are to have afterwards; None: zero.
        settling: (nc,) bool, contacts without restitution of their gap rates; None: none.
    """

    drift: Array | None = None
    push: Array | None = None
    duration: Array | float = 0.0
    constraint_rate: Array | None = None
    settling: Array | None = None


IMPACT = StepForces()


def jump_problem(
    f: Formed, before: Array, drift: Array, active: Array, forces: StepForces = IMPACT
) -> tuple[ContactProblem, ContactLaw]:
    """The contact problem of `velocity_jump`, and its law; by Poisson's law without restitution.
    ``before``: rates of the rows before the jump; ``drift``: (nv,) velocity change without the impulses of
    the rows.
    """
    rows = f.rows
    groups, law = rows.groups, ContactLaw()
    nc = groups.nc
    free = before + matvec(rows.wt, drift)
    if nc:
        law = f.at.law()
        if not isinstance(law, PoissonLaw):
            free = free + law.rebound(groups, before, forces.settling)
    if forces.constraint_rate is not None:
        free = free - jnp.pad(forces.constraint_rate, (groups.ends[2], 0))
    problem = ContactProblem(
        rows=groups, delassus=DelassusFactors(wt=rows.wt, response=f.response), free=free,
        friction=law.friction_of(nc), mask=active[:nc], given=law.given(forces.duration),
    )  # fmt: skip
    return problem, law


def velocity_jump(
    f: Formed, active: Array, settings: SolverSettings, forces: StepForces = IMPACT,
    start: Array | None = None,
) -> Jump:  # fmt: skip
    """Impulses and velocity change for which every row fulfils its law.

    With ``u = W' v`` before and ``v + drift + dv`` after, ``dv = M^-1 W Lambda``:
    ``0 <= u_N^+ + e_N u_N^- _|_ Lambda_N >= 0``, Coulomb's law with ``u_T^+ + e_T u_T^-``, and
    ``u_B^+ = 0`` (or ``constraint_rate``). Poisson's law is that of `nsjax.contact.PoissonLaw`.

    Args:
        f: the system with the velocity ``v`` to which restitution refers, its rows (contacts, then
            constraints; only the latter if no contact can act) and their responses.
        active: (nc,) bool.
        settings: of the contact solver.
        forces: the other forces.
        start: (nc, 1 + nt) impulses with which the solver may begin; None: zero.

    Source: [S&U&S (8)-(13)]; [R&S (46)-(54)].
    """
    rows, v = f.rows, f.at.v
    drift = jnp.zeros_like(v) if forces.drift is None else forces.drift
    before = rows.rate(v)
    free, lift, hold = drift, None, None
    if rows.joints is not None:
        # the joints answer first: responses of contacts are those of a mechanism whose joints hold
        push = jnp.zeros_like(v) if forces.push is None else forces.push
        lift, hold = f.inertia.constrained(push, -rows.joints.rate(v + drift))
        free = drift + lift
    problem, law = jump_problem(f, before, free, active, forces)
    nc = problem.nc
    begin = None if start is None else problem.stack(start, jnp.zeros(problem.nb))
    if isinstance(law, PoissonLaw):
        answer = solve_in_phases(law, settings, problem, before, forces.settling)
    else:
        answer = settings.solve(problem, begin)
    dv, constraints = f.velocity_change(answer.x), problem.bilateral(answer.x)
    if hold is not None:
        more = f.inertia.constrained(matvec(rows.wt.T, answer.x), jnp.zeros_like(hold))
        constraints = jnp.concatenate([hold + more[1], constraints])
    none = no_jump(f.at.system)
    worst = none.worst
    if problem.free.shape[0]:
        # who is to blame is asked only where there is blame: it costs the residual of all rows
        solved, tell = answer.residual <= settings.tolerance, lambda x: worst_contact(problem, x)
        worst = branch(solved, lambda x: none.worst, tell, answer.x)
    contacts = none.contacts
    if nc:
        after = rows.rate(v + free + dv)
        normal = [problem.contacts(u)[:, 0] for u in (before, after)]
        contacts = with_reserve(rows.groups, problem.given, problem.impulses(answer.x), after)
    return Jump(
        dv=dv if lift is None else lift + dv, contacts=contacts, constraints=constraints,
        before=jnp.where(active, normal[0], 0.0) if nc else none.before,
        after=jnp.where(active, normal[1], 0.0) if nc else none.after, iterations=answer.iterations,
        residual=answer.residual, worst=worst,
    )  # fmt: skip


def forced_jump(
    b: Balance, rows: Rows | Formed, active: Array, settings: SolverSettings,
    forces: StepForces = IMPACT, start: Array | None = None,
) -> tuple[Array, Jump]:  # fmt: skip
    """Velocity change (nv,) of a whole step, and its jump: `velocity_jump` with the momentum ``push`` of
    the other forces, to which joints inside the inertia respond, too.

    Args:
        b: mass at the state where contacts are looked at, with the velocity to which restitution refers.
        rows: of contacts (if any may act) and constraints there; with their responses where the step has
            formed them, and then with the ``drift`` of the balance.
        active, settings, start: as in `velocity_jump`.
        forces: the other forces; their ``drift`` is computed here.

    Example:
        Moreau's rule:

        >>> import jax.numpy as jnp
        >>> import nsjax
        >>> from nsjax.schemes import building as b
        >>> def respond(run):
        ...     at, s, dt = run.midpoint, run.state, run.dt
        ...     mass, push = at.inertia(), at.force()
        ...     free = mass.solve(push[:, None])[:, 0]
        ...     balance = b.Balance(at=at, inertia=mass, push=push, free=free, drift=dt * free)
        ...     forces = b.StepForces(push=dt * push, duration=dt)
        ...     rows, settings = at.rows(run.contacts), b.SolverSettings()
        ...     dv, jump = b.forced_jump(balance, rows, run.acting, settings, forces)
        ...     end = b.State(t=s.t + dt, q=s.q + dt * (s.v + 0.5 * dv), v=s.v + dv)
        ...     return b.Stepped(end=end, jump=jump, estimate=jnp.zeros(()))
        >>> own, ball = b.impulse_scheme("own", respond), nsjax.models.bouncing_ball()
        >>> a, c = (nsjax.simulate(ball, x, dt=1e-2, time=1.0) for x in (own, nsjax.schemes.moreau()))
        >>> bool(abs(a.q - c.q).max() < 1e-12)
        True
    """
    push, inertia = forces.push, b.inertia
    if isinstance(rows, Formed):
        forces = dataclasses.replace(forces, drift=b.drift, push=None)
        jump = velocity_jump(rows, active, settings, forces, start)
        return b.drift + jump.dv, jump
    if push is None:
        push = jnp.zeros(b.at.system.nv)
    if rows.joints is not None:
        f = Formed(at=b.at, inertia=inertia, rows=rows, response=rows.response(inertia))
        jump = velocity_jump(f, active, settings, forces, start)
        return jump.dv, jump
    drift, response = inertia.answers(push, rows)
    f = Formed(at=b.at, inertia=inertia, rows=rows, response=response)
    jump = velocity_jump(f, active, settings, dataclasses.replace(forces, drift=drift), start)
    return drift + jump.dv, jump
