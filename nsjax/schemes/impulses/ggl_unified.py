"""Gear, Gupta and Leimkuhler's scheme for contacts: laws on position and velocity level together."""

from __future__ import annotations

import dataclasses

import jax.numpy as jnp

from nsjax.contact import Jump
from nsjax.contact.criteria import Criteria
from nsjax.contact.family import Stepped
from nsjax.contact.stage import StageAnswer, StageSettings, StageStart, solve_stage
from nsjax.core.scheme import Scheme
from nsjax.core.system import State, System
from nsjax.schemes.books import stage_jump
from nsjax.schemes.choices import METRICS, choose, choose_tangent, kinetic_metric, tangent_of, within
from nsjax.schemes.impulses.impulse_scheme import impulse_scheme
from nsjax.schemes.impulses.impulse_step import ImpulseRun
from nsjax.schemes.impulses.kept_tangents import blank_tangents, carried_tangent, memory_after
from nsjax.schemes.impulses.moreau import Coefficients
from nsjax.schemes.impulses.unified_equations import UnifiedData, UnifiedEquations
from nsjax.types import Array, PyTree


@dataclasses.dataclass(frozen=True)
class UnifiedOptions:
    """Choices of `ggl_unified`, by the names of its arguments."""

    gap: str
    position_multiplier: bool
    metric: str
    max_passes: int
    max_iterations: int
    tangent: str = "auto"
    force: str = "implicit"


def ggl_unified(
    *,
    gap: str = "nonlinear",
    position_multiplier: bool = True,
    metric: str = "auto",
    force: str = "implicit",
    tolerance: float = 1e-11,
    stage_tolerance: float = 1e-12,
    gap_tolerance: float = 1e-12,
    tangent: str = "auto",
    max_passes: int = 20,
    max_iterations: int = 20,
    criteria: Criteria | None = None,
) -> Scheme:
    """Implicit midpoint rule with contact and constraint laws on position and velocity level together.

    With ``q_bar = (q_i + q_{i+1})/2``, ``v_bar = (v_i + v_{i+1})/2`` and the mass matrix ``M_M`` at
    ``q_M = q_i + dt/2 v_i``::

        q_{i+1} = q_i + dt v_bar + D(q_bar) Psi
        M_M (v_{i+1} - v_i) = dt h(t_bar, q_bar, v_bar) + W(q_bar) Lambda
        0 <= W_N(q_bar)' (v_{i+1} + e_N v_i)  _|_  Lambda_N >= 0     where g_N(q_M) <= gap_tolerance
        0 <= g_N(q_{i+1})  _|_  Psi_N >= 0                           on the same contacts

    Bilateral constraints hold as equations on both levels.

    Args:
        gap: gap in the position law. ``"nonlinear"``: ``g_N(q_{i+1})``. ``"linearised"``:
            ``g_N(q_i) + W_N(q_bar)' (q_{i+1} - q_i)``, [S&U&S (41)].
        position_multiplier: False omits ``Psi`` and its law: the reference scheme of [S&U&S Fig. 10].
        metric: metric of the position correction. ``"euclidean"``: ``D = W``, as published. ``"kinetic"``:
            ``D = M_M^-1 W``, see `ggl_decoupled`. ``"auto"``: kinetic for models with rotations, else
            Euclidean. ``"implicit"``: ``D = S^-1 W`` with ``S = M_M - dt/2 dh/dv - dt^2/4 dh/dq`` at the
            predicted midpoint, for elastic bodies with frequencies far above ``1 / dt``. The other metrics
            move the touching node of such a body against its neighbours, which adds energy.
        force: ``"implicit"``: ``h(t_bar, q_bar, v_bar)``, as published. ``"explicit"``:
            ``h(t_bar, q_M, v_i)``, stable up to ``omega dt = 2`` only; in flight this is Moreau's rule.
        tolerance: bound on the relative natural-map residual of each contact problem.
        stage_tolerance: bound on the estimated next update of the solver, relative to ``1 + |v|``.
        gap_tolerance: contacts with ``g_N(q_M)`` up to this value take part [m]. It is above zero because
            position laws keep gaps at zero to rounding only: a contact that is left out for a step falls,
            and with ``e_N > 0`` bounces.
        tangent: tangent matrix of the iteration; see `nsjax.schemes.mixed.framework.mixed_scheme`.
        max_passes: largest number of linearisations of the stage solver.
        max_iterations: largest number of Newton steps per contact problem.
        criteria: thresholds that classify events; None: `nsjax.Criteria` with its defaults.

    Returns:
        A `Scheme`.

    Order: 2 in position and velocity on smooth motion without constraints, else 1. Unconditionally stable
    for linear forces, without numerical damping.

    Limits: contacts are decided by a prediction, so that one may penetrate by up to ``dt/2 |dg|`` for one
    step before it acts. The energy stays close to that of the motion but is not monotone. On the
    slider-crank its rises are ten times smaller in the kinetic metric than in the published one. On smooth
    motion quadratic energies are conserved to ``stage_tolerance`` per step. A stable step may still be
    inaccurate: a stiff spring of length ``l`` that turns by ``v dt / l`` in a step is stretched by
    ``(v dt)^2 / 8 l``. Coulomb friction acts on velocity level, an extension of the paper.

    Source: [S&U&S (36)-(42)]; with rotations the midpoint is reached by half the increment.

    Example:
        >>> import nsjax
        >>> from nsjax import models, schemes
        >>> nsjax.simulate(*models.bouncing_ball(), schemes.ggl_unified(), dt=1e-2, time=1.0).q.shape
        (101, 1)
    """
    choose("ggl_unified", "gap", gap, ("nonlinear", "linearised"))
    choose("ggl_unified", "metric", metric, (*METRICS, "implicit"))
    choose("ggl_unified", "force", force, ("implicit", "explicit"))
    return impulse_scheme(
        "ggl_unified",
        _respond,
        remember=_blank,
        corrects=position_multiplier,
        numbers=Coefficients(
            tolerance=tolerance, stage_tolerance=stage_tolerance, gap_tolerance=gap_tolerance
        ),
        choices=UnifiedOptions(
            gap=gap,
            position_multiplier=position_multiplier,
            metric=metric,
            max_passes=within("ggl_unified", "max_passes", max_passes, 1),
            max_iterations=within("ggl_unified", "max_iterations", max_iterations, 1),
            tangent=choose_tangent("ggl_unified", tangent),
            force=force,
        ),
        gradient="saltation",
        criteria=criteria,
    )


def _metric(choice: str, system: System) -> str:
    """The metric that the user chose; for ``"auto"``, that of the model."""
    if choice == "implicit":
        return choice
    return "kinetic" if kinetic_metric(choice, system) else "euclidean"


def _problem(run: ImpulseRun, contacts: bool) -> tuple[UnifiedEquations, UnifiedData, int]:
    """Equations of a step, their data, and the number of their unknowns."""
    options, system = run.scheme.options, run.system
    data = UnifiedData(params=run.params, state=run.state, mass=run.midpoint.inertia(), dt=run.dt)
    equations = UnifiedEquations(
        system=system,
        contacts=contacts,
        position=(contacts or bool(system.nb)) and options.position_multiplier,
        linearised=options.gap == "linearised",
        metric=_metric(options.metric, system),
        tangent=tangent_of(options.tangent, system),
        explicit=options.force == "explicit",
    )
    return equations, data, system.nv * (1 + equations.position)


def _blank(run: ImpulseRun) -> PyTree:
    """Memory of the scheme at the start of a run."""
    return blank_tangents(run, lambda contacts: _problem(run, contacts))


def unified_stage(run: ImpulseRun) -> tuple[UnifiedEquations, UnifiedData, StageAnswer]:
    """The nonlinear equations of a step of `ggl_unified`, their data, and the solver's answer."""
    options, coef = run.scheme.options, run.scheme.coef
    equations, data, unknowns = _problem(run, run.contacts)
    mask = run.acting[: run.system.nc if run.contacts else 0]
    settings = StageSettings(
        tolerance=coef.stage_tolerance,
        contact_tolerance=coef.tolerance,
        scale=1.0 + jnp.max(jnp.abs(run.state.v)),
        max_passes=options.max_passes,
        max_iterations=options.max_iterations,
    )
    start = StageStart(z=jnp.zeros(unknowns), carried=carried_tangent(run))
    active = jnp.concatenate([mask] * (1 + equations.position))
    return equations, data, solve_stage(equations, data, active, settings, start)


def _respond(run: ImpulseRun) -> Stepped:
    """The result of a step, with or without contact rows."""
    equations, data, answer = unified_stage(run)
    xi, middle, dv = equations.motion(data, answer.z)
    own = dataclasses.replace(answer, impulses=equations.split(answer.impulses)[0])
    state = run.state
    end = State(t=state.t + run.dt, q=run.system.retract(state.q, xi), v=state.v + dv)
    more = memory_after(run, answer.carried)
    return Stepped(end=end, jump=_jump(run, own, middle, dv), estimate=answer.estimate, more=more)


def _jump(run: ImpulseRun, answer: StageAnswer, middle: Array, dv: Array) -> Jump:
    """The velocity jump of the step, with row velocities at the midpoint."""
    state = run.state
    if not run.contacts:
        empty = jnp.zeros(run.system.nb)
        return stage_jump(run.system, answer, dv, (empty, empty), None)
    rows = run.at(State(t=state.t + 0.5 * run.dt, q=middle, v=state.v)).rows()
    rates = rows.rate(state.v), rows.rate(state.v + dv)
    given = run.system.law(run.params).given(run.system.nc, run.dt)
    return stage_jump(run.system, answer, dv, rates, run.active, given)
