"""Moreau's midpoint rule, with the constraint on any level and an optional projection of positions."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax.numpy as jnp
from jax import lax

from nsjax.contact import Jump, no_jump, velocity_jump
from nsjax.contact.criteria import Criteria
from nsjax.contact.events import Balance, Formed
from nsjax.contact.projection import Projection, project_position
from nsjax.contact.sensitivity import Stepped
from nsjax.core.inertia import Inertia, constant_inertia, inertia_at
from nsjax.core.operators import Rows, gap_drift
from nsjax.core.scheme import Carry, Output, Scheme
from nsjax.core.system import State, System, add
from nsjax.nonlinear import only_tangent, with_tangent
from nsjax.schemes.at_events import derivatives
from nsjax.schemes.choices import FORMS, METRICS, choose, kinetic_metric, told_by, within
from nsjax.schemes.impulses.frozen_rows import FrozenRowEquations, FrozenRows, frozen_rows, solve_frozen
from nsjax.schemes.impulses.midpoint_contacts import Remembered, contact_init, impulse_step, midpoint
from nsjax.types import Array, PyTree, record


@record()
class Coefficients:
    """Numbers of the scheme: bound on the natural-map residual, on the next update of a position solve
    relative to ``1 + |v|``, the gap below which a contact acts, and the depth that projections leave alone.
    """

    tolerance: Array | float
    stage_tolerance: Array | float
    gap_tolerance: Array | float
    penetration_tolerance: Array | float = 0.0


@dataclasses.dataclass(frozen=True)
class Options:
    """Choices of the family; see `moreau` and `nsjax.schemes.ggl_decoupled`."""

    force_velocity: str
    max_iterations: int
    constraint_form: str = "index_2"
    project_contacts: bool = False
    metric: str = "auto"
    max_passes: int = 20


def moreau_family(name: str, coef: Coefficients, options: Options, criteria: Criteria | None) -> Scheme:
    """A scheme around Moreau's velocity step."""
    choose(name, "force_velocity", options.force_velocity, ("auto", "start", "midpoint"))
    choose(name, "constraint_form", options.constraint_form, FORMS)
    choose(name, "metric", options.metric, METRICS)
    within(name, "max_iterations", options.max_iterations, 1)
    return Scheme(
        name=name,
        coef=coef,
        options=options,
        prepare=_prepare,
        init=_init,
        step=_step,
        gradient="saltation",
        criteria=told_by(name, criteria),
        stores_solutions=options.project_contacts,
        impulses="step",
        joints_inside=options.constraint_form == "index_2" and not options.project_contacts,
        pair_contacts=not options.project_contacts,
    )


def moreau(
    *,
    force_velocity: str = "auto",
    constraint_form: str = "index_2",
    metric: str = "auto",
    tolerance: float = 1e-11,
    max_iterations: int = 50,
    stage_tolerance: float = 1e-12,
    gap_tolerance: float = 1e-12,
    criteria: Criteria | None = None,
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
        constraint_form: how bilateral constraints are enforced; contacts keep their velocity-level laws.
            ``"index_2"``: on velocity level, as above. ``"ggl"``: in addition the position is projected
            onto the constraints (Gear, Gupta, Leimkuhler). ``"index_3"``: on position level,
            ``g_B(q_{i+1}) = 0``. ``"index_1"``: on acceleration level at the midpoint. See Limits.
        metric: of the projection; see `ggl_decoupled`.
        tolerance: bound on the relative natural-map residual of each contact problem.
        max_iterations: plain Newton steps per contact problem, before the fallback begins.
        stage_tolerance: of the position solves; see `ggl_decoupled`.
        gap_tolerance: contacts with ``g_N(q_M)`` up to this value take part [m]. The papers
            have zero; a contact that rests at zero keeps its gap to rounding only. Bodies at rest on
            several contacts rattle where ``a dt^2`` is below it.
        criteria: thresholds that classify events; None: `nsjax.Criteria` with its defaults.

    Returns:
        A `Scheme`.

    Order: 1 in position and velocity, also in smooth motion with ``force_velocity="start"``.

    Limits: forces are explicit, so stiff springs bound dt (about 2 / omega_max). Bodies penetrate by
    up to ``dt/2 |dg|`` before a contact is noticed, and closed contacts drift on position level
    in proportion to dt. Bilateral constraints do not drift with "ggl" and "index_3" (which violates the
    velocity by O(dt)), drift in proportion to dt with "index_2", and uselessly fast with "index_1".

    Source: [S&U&S (8)-(13)]; with rotations forces are taken at the forecast velocity.

    Example:
        >>> import nsjax
        >>> from nsjax import models, schemes
        >>> traj = nsjax.simulate(*models.bouncing_ball(), schemes.moreau(), dt=1e-2, time=1.0)
        >>> traj.q.shape
        (101, 1)
    """
    coef = Coefficients(tolerance=tolerance, stage_tolerance=stage_tolerance, gap_tolerance=gap_tolerance)
    options = Options(
        force_velocity=force_velocity,
        max_iterations=max_iterations,
        constraint_form=constraint_form,
        metric=metric,
    )
    return moreau_family("moreau", coef, options, criteria)


def _prepare(scheme: Scheme, system: System, params: PyTree, dt: Array) -> PyTree:
    return constant_inertia(system, params)


def _init(scheme: Scheme, system: System, params: PyTree, constants: PyTree, state: State) -> Carry:
    """Memory at the start; with changing pairs it keeps their impulses, which start the next solution."""
    carry = contact_init(scheme, system, params, constants, state)
    if system.pairs is None:
        return carry
    none = no_jump(system).contacts
    return dataclasses.replace(carry, memory=Remembered(touch=carry.memory, own=none))


def _needs_forecast(scheme: Scheme, system: System) -> bool:
    choice = scheme.options.force_velocity
    return choice == "midpoint" or (choice == "auto" and system.retract is not add)


@record()
class _Data:
    """Everything live that the velocity step reads: start, midpoint ``at``, mass, force and rows there, and
    the impulses with which the contact solver begins.
    """

    params: PyTree
    state: State
    at: State
    mass: Inertia
    force: Array
    dt: Array
    frozen: FrozenRows
    known: Array | None


@dataclasses.dataclass(frozen=True)
class _PositionLevel(FrozenRowEquations):
    """Moreau's momentum balance with the constraints on position level (index 3)."""

    def residual(self, d: Any, z: Array) -> Array:
        """``M z - dt h``."""
        return d.mass.times(z) - d.dt * d.force

    def rates(self, d: Any, z: Array) -> Array:
        """``u^+ + e u^-`` of the contacts, ``g_B(q_{i+1}) / dt`` of the constraints."""
        q1 = self.system.retract(d.state.q, 0.5 * d.dt * (2.0 * d.state.v + z))
        g = self.system.constraint(d.state.t + d.dt, q1, d.params) / d.dt
        return self.replaced(super().rates(d, z), bilateral=g)


def _position_level(
    scheme: Scheme, system: System, d: _Data, active: Array, contacts: bool
) -> tuple[Array, Jump, Array]:
    """Velocity change, jump and error estimate of index 3."""
    jump, answer = solve_frozen(scheme, _PositionLevel(system, contacts), d, active)
    return answer.z, jump, answer.estimate


def _velocity_level(
    scheme: Scheme, system: System, d: _Data, active: Array, contacts: bool
) -> tuple[Array, Jump, Array]:
    """Velocity change, jump and error estimate (nothing is iterated) of a step."""
    v, dt, none = d.state.v, d.dt, jnp.zeros(())
    push = dt * d.force
    rows, target = d.frozen.rows, None
    if rows.joints is not None:
        response = d.mass.solve(rows.wt.T)
        # joints respond to the forces and to the rates left over from the last step
        still = jnp.zeros(system.nv)
        jump = _jump(
            scheme, system, d.params, rows, response, v, still, active, dt, inertia=d.mass, push=push
        )
        return jump.dv, jump, none
    drift, response = d.mass.answers(push, rows.wt)
    if system.nb and scheme.options.constraint_form == "index_1":
        # W' (v_{i+1} - v_i) + dt gamma = 0
        gamma = gap_drift(system, jnp.asarray(d.at.t), d.at.q, v, d.params, "constraint")
        target = rows.rate(v)[-system.nb :] - dt * gamma
    jump = _jump(scheme, system, d.params, rows, response, v, drift, active, dt, target, start=d.known)
    return drift + jump.dv, jump, none


def _jump(
    scheme: Scheme, system: System, params: PyTree, rows: Rows, response: Array, v: Array, drift: Array,
    active: Array, dt: Array, target: Array | None = None, method: str = "auto_rare", **more: Any,
) -> Jump:  # fmt: skip
    return velocity_jump(
        system, params, rows, response, v, drift, active,
        tolerance=scheme.coef.tolerance, max_iterations=scheme.options.max_iterations,
        constraint_rate=target, duration=dt, method=method, **more,
    )  # fmt: skip


def _weigh(
    kept: PyTree, scheme: Scheme, system: System, params: PyTree, state: State, dt: Array
) -> Balance:
    """Mass and force at the midpoint; the force at the forecast velocity if that option is chosen."""
    at, half = midpoint(system, state, dt), 0.5 * dt
    mass, forecast = inertia_at(system, at.t, at.q, params, kept), _needs_forecast(scheme, system)
    if forecast and scheme.gradient == "discrete":  # asked three times; a derivative costs less without
        mass = mass.inverted()
    push = system.force(at.t, at.q, state.v, params)
    free = mass.solve(push[:, None])[:, 0]
    if not forecast:
        return Balance(at=at, inertia=mass, push=push, free=free, drift=dt * free)
    push = system.force(at.t, at.q, state.v + half * free, params)
    return Balance(at=at, inertia=mass, push=push, free=free, drift=mass.solve((dt * push)[:, None])[:, 0])


def _shares(scheme: Scheme, system: System) -> bool:
    """Whether mass, force and rows that the contact decision forms serve the whole step."""
    frozen = scheme.options.constraint_form in ("index_2", "ggl") or not system.nb
    return frozen and not system.inside


def _project(
    scheme: Scheme, system: System, params: PyTree, at: State, end: State, dt: Array
) -> Projection | None:
    """Projected end position, for the forms that correct positions."""
    options, coef = scheme.options, scheme.coef
    constraints = bool(system.nb) and (options.constraint_form == "ggl" or options.project_contacts)
    contacts = bool(system.nc) and options.project_contacts
    if not constraints and not contacts:
        return None
    return project_position(
        system, params, jnp.asarray(end.t), end.q, (jnp.asarray(at.t), at.q), dt, end.v,
        contacts=contacts, kinetic=kinetic_metric(options.metric, system), tolerance=coef.stage_tolerance,
        contact_tolerance=coef.tolerance, max_passes=options.max_passes,
        max_iterations=options.max_iterations, depth=coef.penetration_tolerance,
    )  # fmt: skip


def _corrected(scheme: Scheme, system: System, projection: Projection, q: Array, active: Array) -> Array:
    """The projected position. A contact that has not yet acted keeps the derivative of its gap: the time
    of its impact, in the next step, depends on it.
    """
    if scheme.gradient == "discrete" or not scheme.options.project_contacts or not system.nc:
        return projection.q
    early = jnp.any((projection.psi[: system.nc] > 0.0) & ~active)
    kept = with_tangent(lax.stop_gradient(projection.q), only_tangent(q, derivatives(scheme)["refuse"]))
    return jnp.where(early, kept, projection.q)


def _respond(
    kept: PyTree, known: Array | None, scheme: Scheme, system: System, params: PyTree, state: State,
    active: Array, dt: Array, contacts: bool, balance: Balance | None, formed: Formed | None,
) -> Stepped:  # fmt: skip
    """The whole step, with or without contact rows; ``known`` are impulses (nc, 1 + nt) to begin with."""
    at = midpoint(system, state, dt)
    if formed is not None and balance is not None:
        drift = balance.drift
        jump = _jump(
            scheme, system, params, formed.rows, formed.response, state.v, drift, active, dt,
            method="auto", start=known,
        )  # fmt: skip
        dv, none = drift + jump.dv, jnp.zeros(())
        return _end(scheme, system, params, state, at, active, dt, dv, jump, none, known)
    b = balance or _weigh(kept, scheme, system, params, state, dt)
    if not contacts and not system.nb:
        jump, none = no_jump(system), jnp.zeros(())
        return _end(scheme, system, params, state, at, active, dt, b.drift, jump, none, known)
    rows = frozen_rows(system, params, jnp.asarray(at.t), at.q, contacts)
    d = _Data(
        params=params, state=state, at=at, mass=b.inertia, force=b.push, dt=dt, frozen=rows, known=known
    )
    position = bool(system.nb) and scheme.options.constraint_form == "index_3"
    solve = _position_level if position else _velocity_level
    dv, jump, estimate = solve(scheme, system, d, active, contacts)
    return _end(scheme, system, params, state, at, active, dt, dv, jump, estimate, known)


def _end(
    scheme: Scheme, system: System, params: PyTree, state: State, at: State, active: Array, dt: Array,
    dv: Array, jump: Jump, estimate: Array, known: Array | None,
) -> Stepped:  # fmt: skip
    """The end of the step with the velocity change ``dv``, and the impulses with which the next begins."""
    q, v1, half = state.q, state.v + dv, 0.5 * dt
    end = State(t=state.t + dt, q=system.retract(q, half * (state.v + v1)), v=v1)
    projection = _project(scheme, system, params, at, end, dt)
    if projection is not None:
        end = dataclasses.replace(end, q=_corrected(scheme, system, projection, end.q, active))
        estimate = jnp.maximum(estimate, projection.estimate)
        jump = dataclasses.replace(
            jump,
            iterations=jump.iterations + projection.iterations,
            residual=jnp.maximum(jump.residual, projection.residual),
        )
    # a contact that hops keeps the impulse with which it was last closed
    more = () if known is None else jnp.where(active[:, None], jump.contacts, known)
    return Stepped(end=end, jump=jump, estimate=estimate, more=more)


def _step(
    scheme: Scheme, system: System, params: PyTree, constants: PyTree, carry: Carry, dt: Array
) -> tuple[Carry, Output]:
    corrects = scheme.options.project_contacts
    known = carry.memory.own if system.pairs is not None else None
    weigh = functools.partial(_weigh, constants) if _shares(scheme, system) else None
    return impulse_step(
        functools.partial(_respond, constants, known), scheme, system, params, carry, dt, corrects=corrects,
        weigh=weigh,
    )  # fmt: skip
