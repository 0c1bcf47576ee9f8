"""Moreau's midpoint rule, with the constraint on any level and an optional projection of positions."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax.numpy as jnp
from jax import lax

from nsjax.contact import Jump, StepForces, forced_jump, no_jump, velocity_jump
from nsjax.contact.criteria import Criteria
from nsjax.contact.family import Stepped
from nsjax.contact.projection import Directions, Projection, project_position
from nsjax.contact.solvers import MANY_ROWS, SolverSettings
from nsjax.contact.stage import StageSettings
from nsjax.core.inertia import Inertia, KeptInertia, added_momentum, constant_inertia
from nsjax.core.operators import gap_drift
from nsjax.core.parts import check_damping
from nsjax.core.scheme import Scheme
from nsjax.core.step import Balance
from nsjax.core.system import State, System, add
from nsjax.nonlinear import only_tangent, with_tangent
from nsjax.schemes.at_events import derivatives
from nsjax.schemes.choices import FORMS, METRICS, choose, kinetic_metric, within
from nsjax.schemes.impulses.frozen_rows import FrozenRowEquations, FrozenRows, frozen_rows
from nsjax.schemes.impulses.impulse_scheme import impulse_scheme
from nsjax.schemes.impulses.impulse_step import ImpulseRun
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
class MoreauOptions:
    """Choices of the family; see `moreau`, `nsjax.schemes.ggl_decoupled` and `nsjax.contact.overflow`."""

    force_velocity: str
    max_iterations: int
    constraint_form: str = "index_2"
    project_contacts: bool = False
    metric: str = "auto"
    max_passes: int = 20
    few: bool = False
    joint_damping: str = "explicit"


def moreau_family(
    name: str, coef: Coefficients, options: MoreauOptions, criteria: Criteria | None
) -> Scheme:
    """A scheme around Moreau's velocity step."""
    choose(name, "force_velocity", options.force_velocity, ("auto", "start", "midpoint"))
    choose(name, "constraint_form", options.constraint_form, FORMS)
    choose(name, "metric", options.metric, METRICS)
    choose(name, "joint_damping", options.joint_damping, ("explicit", "implicit"))
    within(name, "max_iterations", options.max_iterations, 1)
    return impulse_scheme(
        name,
        _respond,
        prepare=_prepare,
        balance=_shared_balance,
        remember=_first_impulses,
        corrects=options.project_contacts,
        numbers=coef,
        choices=options,
        gradient="saltation",
        criteria=criteria,
        stores_solutions=options.project_contacts,
        joints_inside=options.constraint_form == "index_2" and not options.project_contacts,
        pair_contacts=not options.project_contacts,
        implicit_damping=options.joint_damping == "implicit",
    )


def moreau(
    *,
    force_velocity: str = "auto",
    constraint_form: str = "index_2",
    metric: str = "auto",
    joint_damping: str = "explicit",
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
        joint_damping: ``"implicit"``: dampers of joints (``D``, `nsjax.System.damping`) act at the velocity
            of the end of the step, ``(M_M + dt D) (v_{i+1} - v_i) = dt h_M + W_M Lambda``, and bound no
            step. For mechanisms in joint coordinates, and systems of yours with ``damping``. See Limits.
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

    Limits: forces are explicit: stiff springs bound dt to about ``2 / omega_max``, and dampers to ``2 m /
    c``. With ``joint_damping="implicit"`` springs with dampers, servos and motors with laws in joints of
    the tree bound it no longer, as far as they resist the rate. Their ``dt D`` is part of the mass in
    impacts, too, and ``dt D / 2`` of that of the accelerations by which derivatives move the times of
    impacts: errors of first order, which are large where a damper stops its joint within a step. Dampers of
    tendons, between bodies and of joints that close loops stay explicit, and so do efforts beyond a limit,
    whose sign may change in every step, at speeds of ``dt limit / (2 m)``. Bodies penetrate by up to ``dt/2
    |dg|`` before a contact is noticed, and closed contacts drift on position level in proportion to dt.
    Bilateral constraints do not drift with "ggl" and "index_3" (which violates the velocity by O(dt)),
    drift in proportion to dt with "index_2", and uselessly fast with "index_1". With 12 or more rows of
    contacts the solver begins with the impulses of the last step: where contacts with friction depend on
    each other (corners of a box that slide in different directions) laws have a family of answers, and the
    one that is found then hangs on that step as well as on the state.

    Source: [S&U&S (8)-(13)]; with rotations forces are taken at the forecast velocity.

    Example:
        >>> import nsjax
        >>> from nsjax import models, schemes
        >>> traj = nsjax.simulate(*models.bouncing_ball(), schemes.moreau(), dt=1e-2, time=1.0)
        >>> traj.q.shape
        (101, 1)
    """
    coef = Coefficients(tolerance=tolerance, stage_tolerance=stage_tolerance, gap_tolerance=gap_tolerance)
    options = MoreauOptions(
        force_velocity=force_velocity,
        max_iterations=max_iterations,
        constraint_form=constraint_form,
        metric=metric,
        joint_damping=joint_damping,
    )
    return moreau_family("moreau", coef, options, criteria)


def _prepare(run: ImpulseRun) -> KeptInertia | None:
    """The inertia, where it is constant over a run."""
    if run.scheme.implicit_damping:
        check_damping(run.system, run.scheme)
        return None  # that of a step holds its damping, too
    return constant_inertia(run.system, run.params)


def _first_impulses(run: ImpulseRun) -> PyTree:
    """Impulses (nc, 1 + nt) with which the first solution begins: with changing pairs, and with many rows,
    those of a step are remembered for the next one.
    """
    return no_jump(run.system).contacts if _remembers(run.system) else ()


def _remembers(system: System) -> bool:
    """Whether the contact solver begins with the impulses of the last step: by the rows that a step has."""
    step = system if system.chosen is None else system.chosen.system
    rows = step.nc + (step.nc - step.smooth) * step.nt
    # islands are solved one by one from zero
    return system.pairs is not None or (rows >= MANY_ROWS and not step.islands)


def _impulses_before(run: ImpulseRun) -> Array | None:
    """Impulses (nc, 1 + nt) with which the contact solver begins, if they are remembered."""
    return run.memory if _remembers(run.system) else None


def _balance(run: ImpulseRun) -> Balance:
    """Mass and force at the midpoint, ``h(t_M, q_M, v_i)`` or at the forecast velocity."""
    at, dt, choice = run.midpoint, run.dt, run.scheme.options.force_velocity
    mass = at.inertia(run.constants)
    forecast = choice == "midpoint" or (choice == "auto" and run.system.retract is not add)
    if forecast and run.scheme.gradient == "discrete":  # three solves; a derivative costs less without
        mass = mass.inverted()
    push = at.force()
    free = mass.solve(push[:, None])[:, 0]
    if not forecast:
        return Balance(at=at, inertia=mass, push=push, free=free, drift=dt * free)
    push = at.moved(v=at.v + 0.5 * dt * free).force()
    if at.added is not None:  # its damping is that of the velocity of the end
        push = push + added_momentum(at.added, 0.5 * free)
    return Balance(at=at, inertia=mass, push=push, free=free, drift=mass.solve((dt * push)[:, None])[:, 0])


def _shared_balance(run: ImpulseRun) -> Balance | None:
    """The same, where it serves the contact decision and the whole step."""
    system, form = run.system, run.scheme.options.constraint_form
    frozen = form in ("index_2", "ggl") or not system.nb
    return _balance(run) if frozen and not system.inside else None


def _respond(run: ImpulseRun) -> Stepped:
    """The whole step, with or without contact rows."""
    options, system, none = run.scheme.options, run.system, jnp.zeros(())
    if run.formed is not None and run.balance is not None:
        drift = run.balance.drift
        forces = StepForces(drift=drift, duration=run.dt)
        # small problems have a program of their own where no derivative is made of it
        method = "auto_few" if options.few else "auto" if run.scheme.gradient == "discrete" else "auto_rare"
        settings = _settings(run, method)
        jump = velocity_jump(run.formed, run.acting, settings, forces, _impulses_before(run))
        return _end(run, drift + jump.dv, jump, none)
    b = run.balance or _balance(run)
    if not run.contacts and not system.nb:
        return _end(run, b.drift, no_jump(system), none)
    frozen = frozen_rows(b.at, run.contacts)
    if system.nb and options.constraint_form == "index_3":
        return _end(run, *run.solve(_PositionLevel, _data(run, b, frozen)))
    rate = None
    if system.nb and options.constraint_form == "index_1":
        # W' (v_{i+1} - v_i) + dt gamma = 0
        gamma = gap_drift(system, b.at.t, b.at.q, b.at.v, run.params, "constraint")
        rate = frozen.rows.rate(b.at.v)[-system.nb :] - run.dt * gamma
    forces = StepForces(push=run.dt * b.push, duration=run.dt, constraint_rate=rate)
    dv, jump = forced_jump(b, frozen.rows, run.acting, _settings(run), forces, _impulses_before(run))
    return _end(run, dv, jump, none)


def _settings(run: ImpulseRun, method: str = "auto_rare") -> SolverSettings:
    """Settings of the contact solver."""
    tolerance, most = run.scheme.coef.tolerance, run.scheme.options.max_iterations
    return SolverSettings(tolerance=tolerance, max_iterations=most, method=method)


@record()
class _MidpointData:
    """What the equations of index 3 read: start of the step, mass, force and rows of the midpoint."""

    params: PyTree
    state: State
    mass: Inertia
    force: Array
    dt: Array
    frozen: FrozenRows


def _data(run: ImpulseRun, b: Balance, frozen: FrozenRows) -> _MidpointData:
    return _MidpointData(
        params=run.params, state=run.state, mass=b.inertia, force=b.push, dt=run.dt, frozen=frozen
    )


@dataclasses.dataclass(frozen=True)
class _PositionLevel(FrozenRowEquations):
    """Moreau's momentum balance with the constraints on position level (index 3)."""

    def residual(self, d: Any, z: Array) -> Array:
        """``M z - dt h``."""
        return d.mass.times(z) - d.dt * d.force

    def rates(self, d: Any, z: Array) -> Array:
        """``u^+ + e u^-`` of the contacts, ``g_B(q_{i+1}) / dt`` of the constraints."""
        q1 = self.system.retract(d.state.q, 0.5 * d.dt * (2.0 * d.state.v + z))
        rates, found = super().rates(d, z), []
        if self.system.nb > self.system.nh:
            found.append(self.system.constraint(d.state.t + d.dt, q1, d.params) / d.dt)
        if self.system.nh:  # they have no position level
            found.append(rates[-self.system.nh :])
        return self.replaced(rates, bilateral=found[0] if len(found) == 1 else jnp.concatenate(found))


def _end(run: ImpulseRun, dv: Array, jump: Jump, estimate: Array) -> Stepped:
    """The end of the step with the velocity change ``dv``, and the impulses with which the next begins."""
    state, v1 = run.state, run.state.v + dv
    q1 = run.system.retract(state.q, 0.5 * run.dt * (state.v + v1))
    end = State(t=state.t + run.dt, q=q1, v=v1)
    projection = _project(run, end)
    if projection is not None:
        end = dataclasses.replace(end, q=_corrected(run, projection, end.q))
        estimate = jnp.maximum(estimate, projection.estimate)
        jump = dataclasses.replace(
            jump,
            iterations=jump.iterations + projection.iterations,
            residual=jnp.maximum(jump.residual, projection.residual),
        )
    # a contact that hops keeps the impulse with which it was last closed
    before = _impulses_before(run)
    more = () if before is None else jnp.where(run.acting[:, None], jump.contacts, before)
    more = lax.stop_gradient(more)  # where an iteration begins does not move its answer
    return Stepped(end=end, jump=jump, estimate=estimate, more=more)


def _project(run: ImpulseRun, end: State) -> Projection | None:
    """Projected end position, for the forms that correct positions."""
    options, coef, system = run.scheme.options, run.scheme.coef, run.system
    constraints = bool(system.nb) and (options.constraint_form == "ggl" or options.project_contacts)
    contacts = bool(system.nc) and options.project_contacts
    if not constraints and not contacts:
        return None
    settings = StageSettings(
        tolerance=coef.stage_tolerance, contact_tolerance=coef.tolerance, max_passes=options.max_passes,
        max_iterations=options.max_iterations,
    )  # fmt: skip
    middle = dataclasses.replace(run.midpoint, added=None)  # a projection takes no time
    along = Directions(at=middle, contacts=contacts, kinetic=kinetic_metric(options.metric, system))
    return project_position(run.at(end), along, run.dt, settings, coef.penetration_tolerance)


def _corrected(run: ImpulseRun, projection: Projection, q: Array) -> Array:
    """The projected position. A contact that has not yet acted keeps the derivative of its gap: the time
    of its impact, in the next step, depends on it.
    """
    scheme, nc = run.scheme, run.system.nc
    if scheme.gradient == "discrete" or not scheme.options.project_contacts or not nc:
        return projection.q
    early = jnp.any((projection.psi[:nc] > 0.0) & ~run.acting)
    kept = with_tangent(lax.stop_gradient(projection.q), only_tangent(q, derivatives(scheme)["refuse"]))
    return jnp.where(early, kept, projection.q)
