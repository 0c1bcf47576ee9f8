"""Moreau's midpoint rule."""

from __future__ import annotations

import dataclasses

import jax.numpy as jnp
from jax import lax

from nsjax.contact import Jump, no_jump, velocity_jump
from nsjax.core.errors import InputError
from nsjax.core.operators import all_rows
from nsjax.core.scheme import Carry, Event, Output, Scheme
from nsjax.core.system import State, System, add
from nsjax.linalg import solve_positive
from nsjax.schemes.books import gated_impacts, step_status
from nsjax.types import Array, PyTree, record


@record()
class Coefficients:
    """Numbers of the scheme: bound on the natural-map residual, gap below which a contact acts."""

    tolerance: Array | float
    gap_tolerance: Array | float


@dataclasses.dataclass(frozen=True)
class Options:
    """Choices of the scheme; see `moreau`."""

    force_velocity: str
    max_iterations: int


def moreau(
    *,
    force_velocity: str = "auto",
    tolerance: float = 1e-11,
    max_iterations: int = 50,
    gap_tolerance: float = 0.0,
) -> Scheme:
    """Moreau's midpoint rule with Newton impacts, Coulomb friction and bilateral constraints.

    One linear step with everything frozen at the midpoint ``q_M = q_i + dt/2 v_i``::

        M_M (v_{i+1} - v_i) = dt h_M + W_M Lambda,      q_{i+1} = q_i + dt/2 (v_i + v_{i+1})
        0 <= dg_{N,i+1} + e_N dg_{N,i}  _|_  Lambda_N >= 0      where g_N(q_M) <= gap_tolerance
        Lambda_T = prox_{mu Lambda_N}(Lambda_T - r (dg_{T,i+1} + e_T dg_{T,i}))
        W_B' v_{i+1} + dg_B/dt = 0                             (constraints on velocity level)

    Args:
        force_velocity: velocity in the force. ``"start"``: ``h(t_M, q_M, v_i)``, the rule of the
            papers. ``"midpoint"``: ``h(t_M, q_M, v_i + dt/2 M^-1 h(t_M, q_M, v_i))``, needed where
            gyroscopic forces act, at the price of a second force evaluation; second order without
            contact. ``"auto"``: start for vector coordinates, midpoint with rotations.
        tolerance: bound on the relative natural-map residual of each contact problem.
        max_iterations: plain Newton steps per contact problem, before the fallback begins.
        gap_tolerance: contacts with ``g_N(q_M)`` up to this value take part [m]. Zero is the rule of
            the papers; a body that is to rest from the start in a gap of rounding size needs 1e-12.

    Returns:
        A `Scheme`.

    Order: 1 in position and velocity, also in smooth motion with ``force_velocity="start"``.

    Limits: forces are explicit, so stiff springs bound dt (about 2 / omega_max). Bodies penetrate by
    up to ``dt/2 |dg|`` before a contact is noticed, and closed contacts and constraints drift on
    position level in proportion to dt. Models with `inertia` instead of `mass` are refused.

    Source: [S&U&S (8)-(13)]; `schemes.md` section 2, `rotations.md` section 5.1.

    Example:
        >>> import nsjax
        >>> from nsjax import models, schemes
        >>> traj = nsjax.simulate(*models.bouncing_ball(), schemes.moreau(), dt=1e-2, time=1.0)
        >>> traj.q.shape
        (101, 1)
    """
    known = ("auto", "start", "midpoint")
    if force_velocity not in known:
        raise InputError(f"moreau: force_velocity = {force_velocity!r}; choose one of {', '.join(known)}")
    if max_iterations < 1:
        raise InputError(f"moreau: max_iterations = {max_iterations}; it must be at least 1")
    return Scheme(
        name="moreau",
        coef=Coefficients(tolerance=tolerance, gap_tolerance=gap_tolerance),
        options=Options(force_velocity=force_velocity, max_iterations=max_iterations),
        prepare=_prepare,
        init=_init,
        step=_step,
    )


def _prepare(scheme: Scheme, system: System, params: PyTree, dt: Array) -> PyTree:
    if system.mass is None:
        raise InputError("moreau: the system gives inertia; this scheme needs mass, a dense matrix")
    return ()


def _init(scheme: Scheme, system: System, params: PyTree, constants: PyTree, state: State) -> Carry:
    return Carry(state=state)


def _needs_forecast(scheme: Scheme, system: System) -> bool:
    choice = scheme.options.force_velocity
    return choice == "midpoint" or (choice == "auto" and system.retract is not add)


def _step(
    scheme: Scheme, system: System, params: PyTree, constants: PyTree, carry: Carry, dt: Array
) -> tuple[Carry, Output]:
    t, q, v = carry.state.t, carry.state.q, carry.state.v
    half = 0.5 * dt
    tm, qm = t + half, system.retract(q, half * v)
    mass = system.mass(qm, params)  # type: ignore[misc]
    force = system.force(tm, qm, v, params)
    if _needs_forecast(scheme, system):
        forecast = v + solve_positive(mass, (half * force)[:, None])[:, 0]
        force = system.force(tm, qm, forecast, params)
    gap = jnp.zeros(0) if system.gap is None else system.gap(tm, qm, params)
    active = gap <= scheme.coef.gap_tolerance

    def respond(contacts: bool) -> tuple[Array, Jump, Array]:
        """Velocity change, jump and impacts with or without the contact rows."""
        if not contacts and not system.nb:
            drift = solve_positive(mass, (dt * force)[:, None])[:, 0]
            return drift, no_jump(system), jnp.zeros(system.nc, bool)
        rows = all_rows(system, tm, qm, params, contacts)
        x = solve_positive(mass, jnp.concatenate([(dt * force)[:, None], rows.wt.T], axis=1))
        drift = x[:, 0]
        jump = velocity_jump(
            system, params, rows, x[:, 1:], v, drift, active,
            tolerance=scheme.coef.tolerance, max_iterations=scheme.options.max_iterations,
        )  # fmt: skip
        if not contacts:
            return drift + jump.dv, jump, jnp.zeros(system.nc, bool)
        at = State(t=tm, q=qm, v=v)
        impact = gated_impacts(system, params, at, rows, drift / dt, jump, active, dt)
        return drift + jump.dv, jump, impact

    if system.nc:
        touching = lax.cond(jnp.any(active), lambda _: respond(True), lambda _: respond(False), None)
        dv, jump, impact = touching
    else:
        dv, jump, impact = respond(False)
    v1 = v + dv
    q1 = system.retract(q, half * (v + v1))
    solved = jump.residual <= scheme.coef.tolerance
    output = Output(
        force_normal=jump.contacts[:, 0] / dt,
        force_tangential=jump.contacts[:, 1:] / dt,
        constraint_force=jump.constraints / dt,
        impulse_normal=jump.contacts[:, 0],
        impulse_tangential=jump.contacts[:, 1:],
        constraint_impulse=jump.constraints,
        event=Event(gap=gap, active=active, impact=impact, rate_before=jump.before, rate_after=jump.after),
        iterations=jump.iterations,
        residual=jump.residual,
        status=step_status(system, params, State(t=tm, q=qm, v=v), gap, v1, q1, solved),
        contact=jump.worst,
    )
    return Carry(state=State(t=t + dt, q=q1, v=v1), memory=carry.memory), output
