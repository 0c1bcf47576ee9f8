"""Moreau's midpoint rule, with constraints on any level and an optional projection of positions."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax.numpy as jnp
from jax import lax

from nsjax.contact import Jump, StepForces, forced_jump, no_jump
from nsjax.contact.events import Criteria
from nsjax.contact.projection import Directions, Projection, chosen, project_position
from nsjax.contact.sensitivity import Stepped
from nsjax.contact.solvers import SolverSettings
from nsjax.contact.stage import StageSettings
from nsjax.core.operators import gap_drift
from nsjax.core.scheme import Scheme, Traits
from nsjax.core.step import (
    Balance,
    ConstantInertia,
    Inertia,
    SystemState,
    added_momentum,
    constant_inertia,
)
from nsjax.core.system import State, System, row_groups, step_system
from nsjax.core.system_parts import check_damping
from nsjax.jaxtools import only_tangent, with_tangent
from nsjax.renamed import renamed_fields, renamed_options
from nsjax.schemes.common import FORMS, METRICS, choose, derivatives, kinetic_metric, with_rotations, within
from nsjax.schemes.impulses.impulse_scheme import impulse_scheme
from nsjax.schemes.impulses.impulse_step import FrozenRowEquations, FrozenRows, ImpulseRun, frozen_rows
from nsjax.types import Array, PyTree, record


@renamed_fields
@record()
class MoreauCoefficients:
    """Numbers of the family, by the names of arguments of `moreau` and `nsjax.schemes.ggl_decoupled`."""

    contact_tolerance: Array | float
    stage_tolerance: Array | float
    gap_tolerance: Array | float
    penetration_tolerance: Array | float = 0.0
    stabilisation: Array | float = 0.0


@dataclasses.dataclass(frozen=True)
class MoreauOptions:
    """Choices of the family; see `moreau`, `nsjax.schemes.ggl_decoupled` and `nsjax.contact.active_set`."""

    force_velocity: str
    max_iterations: int
    constraint_form: str = "index_2"
    project_contacts: bool = False
    metric: str = "auto"
    max_passes: int = 20
    few: bool = False
    joint_damping: str = "explicit"


def moreau_family(
    name: str, coef: MoreauCoefficients, options: MoreauOptions, criteria: Criteria | None
) -> Scheme:
    """A scheme of the family of Moreau's velocity step: `moreau` or `nsjax.schemes.ggl_decoupled`. Raises
    `InputError` for an unknown choice, and for less than one iteration.
    """
    choose(name, "force_velocity", options.force_velocity, ("auto", "start", "midpoint"))
    choose(name, "constraint_form", options.constraint_form, (*FORMS, "baumgarte"))
    choose(name, "metric", options.metric, METRICS)
    choose(name, "joint_damping", options.joint_damping, ("explicit", "implicit"))
    within(name, "max_iterations", options.max_iterations, 1)
    return impulse_scheme(
        name, _respond, prepare=_prepare, balance=_shared_balance, remember=_first_impulses,
        corrects=options.project_contacts, numbers=coef, choices=options, gradient="saltation",
        criteria=criteria,
        traits=Traits(
            joints_inside=options.constraint_form == "index_2" and not options.project_contacts,
            pair_contacts=not options.project_contacts,
            implicit_damping=options.joint_damping == "implicit",
            stores_solutions=options.project_contacts,
        ),
    )  # fmt: skip


@renamed_options(tolerance="contact_tolerance")
def moreau(
    *, force_velocity: str = "auto", constraint_form: str = "index_2", metric: str = "auto",
    joint_damping: str = "explicit", stabilisation: float = 0.1, contact_tolerance: float = 1e-11,
    max_iterations: int = 50, stage_tolerance: float = 1e-12, gap_tolerance: float = 1e-12,
    criteria: Criteria | None = None,
) -> Scheme:  # fmt: skip
    """Moreau's midpoint rule with Newton impacts, Coulomb friction and bilateral constraints.

    Mass, forces and contact directions are evaluated once, at the midpoint ``q_M = q_i + dt/2 v_i``; the
    step is then linear in the velocity::

        M_M (v_{i+1} - v_i) = dt h_M + W_M Lambda,      q_{i+1} = q_i + dt/2 (v_i + v_{i+1})
        0 <= dg_{N,i+1} + e_N dg_{N,i}  _|_  Lambda_N >= 0      where g_N(q_M) <= gap_tolerance
        Lambda_T = prox_{mu Lambda_N}(Lambda_T - r (dg_{T,i+1} + e_T dg_{T,i}))
        W_B' v_{i+1} + dg_B/dt = 0                             (constraints on velocity level)

    Args:
        force_velocity: velocity at which forces are evaluated. ``"start"``: ``h(t_M, q_M, v_i)``, the rule
            of the papers. ``"midpoint"``: ``h(t_M, q_M, v_i + dt/2 M^-1 h(t_M, q_M, v_i))``, needed for
            gyroscopic forces; it costs a second evaluation of the force and is of second order without
            contact. ``"auto"``: midpoint for models with rotations, else start.
        constraint_form: how bilateral constraints are enforced; contacts keep their velocity-level laws.
            ``"index_2"``: on velocity level, as above. ``"ggl"``: in addition the position is projected
            onto the constraints (Gear, Gupta, Leimkuhler). ``"index_3"``: on position level,
            ``g_B(q_{i+1}) = 0``. ``"index_1"``: on acceleration level at the midpoint. ``"baumgarte"``:
            the same with ``d2g/dt2 + 2 alpha dg/dt + alpha^2 g = 0``. See Limits.
        metric: metric of the projection with ``"ggl"``; see `ggl_decoupled`.
        joint_damping: ``"explicit"``, or ``"implicit"``: dampers of joints (``D``, `nsjax.System.damping`)
            act at the velocity of the end of the step, ``(M_M + dt D) (v_{i+1} - v_i) = dt h_M + W_M
            Lambda``, and do not bound the step. For mechanisms in joint coordinates, and for systems of
            your own with ``damping``. See Limits.
        stabilisation: ``alpha dt`` of ``"baumgarte"``, between 0 and 1: errors of constraints decay within
            ``1 / stabilisation`` steps.
        contact_tolerance: bound on the relative natural-map residual of each contact problem.
        max_iterations: largest number of plain Newton steps per contact problem, before the fallback.
        stage_tolerance: bound of the position solves; see `ggl_decoupled`.
        gap_tolerance: contacts with ``g_N(q_M)`` up to this value take part [m]. It is zero in the papers;
            a contact at rest keeps its gap to rounding only. Bodies at rest on several contacts rattle
            where ``a dt^2`` is below this value.
        criteria: thresholds that classify events; None: `nsjax.Criteria` with its defaults.

    Order: 1 in position and velocity, also in smooth motion with ``force_velocity="start"``.

    Limits:
        Forces are explicit: stiff springs bound dt to about ``2 / omega_max``, dampers to ``2 m / c``.

        ``joint_damping="implicit"`` removes this bound for springs with dampers, servos, and motors with
        laws in joints of the tree, as far as their efforts resist the rate. Dampers of tendons, between
        bodies, and of joints that close loops stay explicit. So do efforts at a limit, whose sign may
        change in every step at speeds of ``dt limit / (2 m)``. The mass in impacts contains ``dt D``, too.
        Derivatives move the times of impacts by accelerations whose mass contains ``dt D / 2``. Both are
        errors of first order; they are large where a damper stops its joint within a step.

        A contact takes part in the first step whose midpoint it has passed. A body penetrates by up to
        ``dt |dg|`` there, and by up to ``(1 - e/2) dt |dg|`` at the end of the step, with restitution
        ``e``. Closed contacts drift on position level in proportion to dt. Bilateral constraints do not
        drift with "ggl" and "index_3"; "index_3" violates the constraint on velocity level by O(dt). They
        drift in proportion to dt with "index_2", and with "index_1" so fast that it is of no practical use;
        "baumgarte" keeps them bounded.

        With 12 or more contact rows the solver begins with the impulses of the last step. Where contacts
        with friction depend on each other (corners of a box that slide in different directions), the
        contact laws have many solutions. The one that is found then depends on that step as well as on the
        state.

    Source: [S&U&S (8)-(13)]; with rotations, forces are evaluated at the predicted midpoint velocity.

    Example:
        >>> import nsjax
        >>> from nsjax import models, schemes
        >>> traj = nsjax.simulate(models.bouncing_ball(), schemes.moreau(), dt=1e-2, time=1.0)
        >>> traj.q.shape
        (101, 1)
    """
    within("moreau", "stabilisation", stabilisation, 0.0, 1.0)
    coef = MoreauCoefficients(
        contact_tolerance=contact_tolerance, stage_tolerance=stage_tolerance, gap_tolerance=gap_tolerance,
        stabilisation=stabilisation,
    )  # fmt: skip
    options = MoreauOptions(
        force_velocity=force_velocity, max_iterations=max_iterations, constraint_form=constraint_form,
        metric=metric, joint_damping=joint_damping,
    )  # fmt: skip
    return moreau_family("moreau", coef, options, criteria)


def _prepare(run: ImpulseRun) -> ConstantInertia | None:
    """The inertia, if it is constant over a run; else None."""
    if run.scheme.traits.implicit_damping:
        check_damping(run.system, run.scheme)
        return None  # the mass of a step contains its damping
    return constant_inertia(run.system, run.params)


def _first_impulses(run: ImpulseRun) -> PyTree:
    """Memory at the start of a run: zero impulses (nc, 1 + nt) if they are remembered, else ``()``."""
    return no_jump(run.system).contacts if _remembers(run.system) else ()


def _remembers(system: System) -> bool:
    """Whether the contact solver begins with the last impulses: changing contacts, or many rows."""
    step = step_system(system)
    rows = row_groups(step).ends[2]
    many = 12  # from this number of rows on a start pays
    # islands are solved one by one from zero
    return system.changing_contacts or (rows >= many and not step.islands)


def _impulses_before(run: ImpulseRun) -> Array | None:
    """Impulses (nc, 1 + nt) with which the contact solver begins, if they are remembered."""
    return run.memory if _remembers(run.system) else None


def _balance(run: ImpulseRun) -> Balance:
    """Mass and force at the midpoint, the force at the velocity that ``force_velocity`` chooses."""
    at, dt, choice = run.midpoint, run.dt, run.scheme.options.force_velocity
    mass = at.inertia(run.constants)
    # velocities enter the force of rotating bodies: a first solve predicts that of the midpoint
    forecast = choice == "midpoint" or (choice == "auto" and with_rotations(run.system, run.params))
    # three solves share the inverse; derivatives cost less without it
    if forecast is not False and run.scheme.gradient == "discrete":
        mass = mass.inverted()
    push = at.force()
    free = mass.solve(push[:, None])[:, 0]
    if forecast is False:
        return Balance(at=at, inertia=mass, push=push, free=free, drift=dt * free)
    push = at.moved(v=chosen(forecast, lambda: at.v + 0.5 * dt * free, at.v)).force()
    if at.added is not None:  # implicit damping acts at the velocity of the end
        push = push + added_momentum(at.added, 0.5 * free)
    return Balance(at=at, inertia=mass, push=push, free=free, drift=mass.solve((dt * push)[:, None])[:, 0])


def _shared_balance(run: ImpulseRun) -> Balance | None:
    """Mass and force at the midpoint, if the step needs no others; else None."""
    system, form = run.system, run.scheme.options.constraint_form
    frozen = form in ("index_2", "ggl") or not system.nb
    return _balance(run) if frozen and not system.inside else None


def _respond(run: ImpulseRun) -> Stepped:
    """One step: mass, force and rows at the midpoint, one contact problem, the state of the end."""
    form, system = run.scheme.options.constraint_form, run.system
    balance = run.balance or _balance(run)
    if not run.contacts and not system.nb:
        return _end(run, balance.drift, no_jump(system))
    # constraints at the end are nonlinear in its velocity: equations, not one linear jump
    if system.nb and form == "index_3":
        dv, jump, estimate = run.solve(_PositionLevel, _data(run, balance))
        return _end(run, dv, jump, estimate)
    forces = StepForces(push=run.dt * balance.push, duration=run.dt)
    if system.nb and form in ("index_1", "baumgarte"):
        forces = dataclasses.replace(forces, constraint_rate=_constraint_rates(run, balance.at))
    rows = run.formed or balance.at.rows(run.contacts)
    # small contact problems have a program of their own where the step has formed its rows before, in runs
    # without derivatives
    scheme, method = run.scheme, "auto_rare"
    if run.formed is not None:
        method = "auto_few" if scheme.options.few else "auto" if scheme.gradient == "discrete" else method
    tolerance, most = scheme.coef.contact_tolerance, scheme.options.max_iterations
    settings = SolverSettings(tolerance=tolerance, max_iterations=most, method=method)
    dv, jump = forced_jump(balance, rows, run.acting, settings, forces, _impulses_before(run))
    return _end(run, dv, jump)


def _constraint_rates(run: ImpulseRun, at: SystemState) -> Array:
    """Rates (nb,) that constraints on acceleration level have after the step: from
    ``W' (v_{i+1} - v_i) + dt gamma = 0``, where Baumgarte's stabilisation adds
    ``-dt (2 alpha dg/dt + alpha^2 g)``.
    """
    system, scheme = run.system, run.scheme
    before = at.rows(run.contacts).rate(at.v)[-system.nb :]
    rates = before - run.dt * gap_drift(system, at.t, at.q, at.v, run.params, "constraint")
    if scheme.options.constraint_form == "baumgarte":
        decay, off = scheme.coef.stabilisation, jnp.zeros(system.nb)
        if system.nb > system.nh:  # constraints on velocities alone have no position
            off = jnp.pad(system.constraint(at.t, at.q, run.params), (0, system.nh))
        rates = rates - 2.0 * decay * before - decay * decay / run.dt * off
    return rates


@record()
class _MidpointData:
    """Data of the equations of index 3: start of the step; mass, force and rows of the midpoint."""

    params: PyTree
    state: State
    mass: Inertia
    force: Array
    dt: Array
    frozen: FrozenRows


def _data(run: ImpulseRun, b: Balance) -> _MidpointData:
    return _MidpointData(
        params=run.params, state=run.state, mass=b.inertia, force=b.push, dt=run.dt,
        frozen=frozen_rows(b.at, run.contacts),
    )  # fmt: skip


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
            # over the step: all rows are velocities, with one tolerance
            found.append(self.system.constraint(d.state.t + d.dt, q1, d.params) / d.dt)
        if self.system.nh:  # velocity constraints have no position level
            found.append(rates[-self.system.nh :])
        return self.replaced(rates, bilateral=found[0] if len(found) == 1 else jnp.concatenate(found))


def _end(run: ImpulseRun, dv: Array, jump: Jump, estimate: Array | float = 0.0) -> Stepped:
    """End of the step by the velocity change ``dv``, projected if asked, and the impulses to begin with."""
    state, v1 = run.state, run.state.v + dv
    # the first half of the step moves with the old velocity, the second with the new one
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
    more = lax.stop_gradient(more)  # the solution does not depend on where the iteration begins
    return Stepped(end=end, jump=jump, estimate=jnp.asarray(estimate), more=more)


def _project(run: ImpulseRun, end: State) -> Projection | None:
    """Projection of the end position; None for schemes that do not correct positions."""
    options, coef, system = run.scheme.options, run.scheme.coef, run.system
    constraints = bool(system.nb) and (options.constraint_form == "ggl" or options.project_contacts)
    contacts = bool(system.nc) and options.project_contacts
    if not constraints and not contacts:
        return None
    settings = StageSettings(
        tolerance=coef.stage_tolerance, contact_tolerance=coef.contact_tolerance,
        max_passes=options.max_passes,
        max_iterations=options.max_iterations,
    )  # fmt: skip
    middle = dataclasses.replace(run.midpoint, added=None)  # a projection takes no time
    kinetic = kinetic_metric(options.metric, system, run.params)
    along = Directions(at=middle, contacts=contacts, kinetic=kinetic)
    return project_position(run.at(end), along, run.dt, settings, coef.penetration_tolerance)


def _corrected(run: ImpulseRun, projection: Projection, q: Array) -> Array:
    """The projected position. If a contact is projected before it has acted, the position keeps the
    derivative that it had before the projection: the time of the impact, in the next step, depends on the
    derivative of the gap.
    """
    scheme, nc = run.scheme, run.system.nc
    if scheme.gradient == "discrete" or not scheme.options.project_contacts or not nc:
        return projection.q
    early = jnp.any((projection.psi[:nc] > 0.0) & ~run.acting)
    kept = with_tangent(lax.stop_gradient(projection.q), only_tangent(q, derivatives(scheme)["refuse"]))
    return jnp.where(early, kept, projection.q)


@renamed_options(tolerance="contact_tolerance")
def ggl_decoupled(
    *, force_velocity: str = "auto", metric: str = "auto", joint_damping: str = "explicit",
    contact_tolerance: float = 1e-11, stage_tolerance: float = 1e-12, gap_tolerance: float = 1e-12,
    penetration_tolerance: Array | float = 0.0, max_iterations: int = 50, criteria: Criteria | None = None,
) -> Scheme:  # fmt: skip
    """Moreau's velocity step, then a projection of the position: no penetration, no drift.

    With ``q_tilde`` the position after Moreau's step, for all contacts and constraints::

        q_{i+1} = q_tilde + D_M Psi,     0 <= g_N(q_{i+1})  _|_  Psi_N >= 0,     g_B(q_{i+1}) = 0

    Args:
        metric: metric of the projection. ``"euclidean"``: ``D_M = W_M``, the nearest point in the
            coordinates, as published. ``"kinetic"``: ``D_M = M_M^-1 W_M``, the nearest point by kinetic
            energy, independent of units. ``"auto"``: kinetic for models with rotations, else Euclidean.
        force_velocity, joint_damping, contact_tolerance, max_iterations, criteria: see `moreau`.
        stage_tolerance: bound on the estimated next update of the projection, divided by dt and relative to
            ``1 + |v|``.
        gap_tolerance: contacts with ``g_N(q_M)`` up to this value take part in the velocity step [m]. It is
            above zero because projected gaps are zero to rounding only.
        penetration_tolerance: depth up to which the projection leaves a penetration [m]: its law has
            ``g_N + penetration_tolerance`` in place of ``g_N``. Studer's remedy for the change of energy by
            the projection.

    Order: 1 in position and velocity.

    Limits: the projection does work, so the energy is not controlled: single steps raise it, the more the
    larger dt is. Explicit forces bound dt as in `moreau`. Forces at the start velocity also lose energy, in
    proportion to dt. Coulomb friction acts on velocity level; the paper does not treat friction.

    Source: [S&U&S (29)-(35)]; with rotations the correction is an increment of `System.retract`.

    Example:
        >>> import nsjax
        >>> from nsjax import models, schemes
        >>> traj = nsjax.simulate(models.bouncing_ball(), schemes.ggl_decoupled(), dt=1e-2, time=1.0)
        >>> bool(traj.gap.min() >= 0)
        True
    """
    coef = MoreauCoefficients(
        contact_tolerance=contact_tolerance, stage_tolerance=stage_tolerance, gap_tolerance=gap_tolerance,
        penetration_tolerance=within("ggl_decoupled", "penetration_tolerance", penetration_tolerance, 0.0),
    )  # fmt: skip
    options = MoreauOptions(
        force_velocity=force_velocity, max_iterations=max_iterations, project_contacts=True, metric=metric,
        joint_damping=joint_damping,
    )  # fmt: skip
    return moreau_family("ggl_decoupled", coef, options, criteria)
