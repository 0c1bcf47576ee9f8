"""Gear, Gupta and Leimkuhler's scheme for contacts: laws on position and velocity level together."""

from __future__ import annotations

import dataclasses
import functools

import jax.numpy as jnp

from nsjax.contact import Jump
from nsjax.contact.criteria import Criteria
from nsjax.contact.equations import Carried
from nsjax.contact.events import Balance, Formed
from nsjax.contact.sensitivity import Stepped
from nsjax.contact.stage import StageAnswer, StageSettings, solve_stage
from nsjax.core.inertia import inertia_at
from nsjax.core.operators import all_rows
from nsjax.core.scheme import Carry, Output, Scheme
from nsjax.core.system import State, System
from nsjax.schemes.books import stage_jump
from nsjax.schemes.choices import (
    METRICS,
    choose,
    choose_tangent,
    kinetic_metric,
    tangent_of,
    told_by,
    within,
)
from nsjax.schemes.impulses.keeping import Pair, renewed, tangents_of, with_tangents
from nsjax.schemes.impulses.midpoint_contacts import contact_init, impulse_step, midpoint
from nsjax.schemes.impulses.moreau import Coefficients
from nsjax.schemes.impulses.unified_equations import UnifiedData, UnifiedEquations
from nsjax.types import Array, PyTree


@dataclasses.dataclass(frozen=True)
class UnifiedOptions:
    """Choices of `ggl_unified`."""

    gap: str
    position_multiplier: bool
    metric: str
    max_passes: int
    max_iterations: int
    tangent: str = "auto"


def ggl_unified(
    *,
    gap: str = "nonlinear",
    position_multiplier: bool = True,
    metric: str = "auto",
    tolerance: float = 1e-11,
    stage_tolerance: float = 1e-12,
    gap_tolerance: float = 1e-12,
    tangent: str = "auto",
    max_passes: int = 20,
    max_iterations: int = 20,
    criteria: Criteria | None = None,
) -> Scheme:
    """Implicit midpoint rule with contacts and constraints on both levels, solved together.

    With ``q_bar = (q_i + q_{i+1})/2``, ``v_bar = (v_i + v_{i+1})/2`` and ``M_M`` at ``q_i + dt/2 v_i``::

        q_{i+1} = q_i + dt v_bar + D(q_bar) Psi
        M_M (v_{i+1} - v_i) = dt h(t_bar, q_bar, v_bar) + W(q_bar) Lambda
        0 <= W_N(q_bar)' (v_{i+1} + e_N v_i)  _|_  Lambda_N >= 0     where g_N(q_M) <= gap_tolerance
        0 <= g_N(q_{i+1})  _|_  Psi_N >= 0                           on the same contacts

    and both levels without inequality for bilateral constraints.

    Args:
        gap: in the position law. ``"nonlinear"``: ``g_N(q_{i+1})``. ``"linearised"``:
            ``g_N(q_i) + W_N(q_bar)' (q_{i+1} - q_i)``, [S&U&S (41)].
        position_multiplier: False leaves ``Psi`` and its law out: the reference scheme of [S&U&S Fig. 10].
        metric: ``D = W`` (``"euclidean"``, as published) or ``M_M^-1 W`` (``"kinetic"``), see
            `ggl_decoupled`; or ``S^-1 W`` with ``S = M_M - dt/2 dh/dv - dt^2/4 dh/dq`` at the predicted
            midpoint (``"implicit"``): for elastic bodies with frequencies far above ``1 / dt``. There the
            other metrics move the touching node alone, against its neighbours, which adds energy.
        tolerance: bound on the relative natural-map residual of each contact problem.
        stage_tolerance: bound on the estimated next update of the solver, relative to ``1 + |v|``.
        gap_tolerance: contacts with ``g_N(q_M)`` up to this value take part [m]. Above zero, because
            position laws keep gaps at zero to rounding only: a contact that is missed for a step falls,
            and with ``e_N > 0`` bounces.
        tangent: of the iteration; see `nsjax.schemes.mixed.framework.mixed_scheme`.
        max_passes, max_iterations: of the stage solver and of each contact problem.
        criteria: thresholds that classify events; None: `nsjax.Criteria` with its defaults.

    Returns:
        A `Scheme`.

    Order: 2 in position and velocity on smooth motion without constraints, else 1; unconditionally stable
    for linear forces and without damping.

    Limits: the contact decision is a prediction, so that a contact may be penetrated by up to
    ``dt/2 |dg|`` for one step before it acts. Energy is close to that of the motion but not monotone; on
    the slider-crank its rises are ten times smaller in the kinetic metric than as published. On smooth
    motion quadratic energies are kept to ``stage_tolerance`` per step. Stable is not accurate: a stiff
    spring that turns by ``v dt / l`` in a step is stretched by ``(v dt)^2 / 8 l``. Coulomb friction acts
    on velocity level, an extension of the paper.

    Source: [S&U&S (36)-(42)]; with rotations the midpoint is reached by half the increment.

    Example:
        >>> import nsjax
        >>> from nsjax import models, schemes
        >>> nsjax.simulate(*models.bouncing_ball(), schemes.ggl_unified(), dt=1e-2, time=1.0).q.shape
        (101, 1)
    """
    choose("ggl_unified", "gap", gap, ("nonlinear", "linearised"))
    choose("ggl_unified", "metric", metric, (*METRICS, "implicit"))
    return Scheme(
        name="ggl_unified",
        coef=Coefficients(
            tolerance=tolerance, stage_tolerance=stage_tolerance, gap_tolerance=gap_tolerance
        ),
        options=UnifiedOptions(
            gap=gap,
            position_multiplier=position_multiplier,
            metric=metric,
            max_passes=within("ggl_unified", "max_passes", max_passes, 1),
            max_iterations=within("ggl_unified", "max_iterations", max_iterations, 1),
            tangent=choose_tangent("ggl_unified", tangent),
        ),
        prepare=_prepare,
        init=_init,
        step=_step,
        gradient="saltation",
        criteria=told_by("ggl_unified", criteria),
        impulses="step",
    )


def _prepare(scheme: Scheme, system: System, params: PyTree, dt: Array) -> PyTree:
    return ()


def _init(scheme: Scheme, system: System, params: PyTree, constants: PyTree, state: State) -> Carry:
    carry = contact_init(scheme, system, params, constants, state)
    problem = functools.partial(_problem, scheme, system, params, state, jnp.ones(()))
    return with_tangents(scheme, system, carry, problem)


def _step(
    scheme: Scheme, system: System, params: PyTree, constants: PyTree, carry: Carry, dt: Array
) -> tuple[Carry, Output]:
    corrects = scheme.options.position_multiplier
    respond = functools.partial(_respond, tangents_of(carry))
    return impulse_step(respond, scheme, system, params, carry, dt, corrects=corrects)


def _metric(choice: str, system: System) -> str:
    """The metric, chosen or of the model."""
    if choice == "implicit":
        return choice
    return "kinetic" if kinetic_metric(choice, system) else "euclidean"


def _problem(
    scheme: Scheme, system: System, params: PyTree, state: State, dt: Array, contacts: bool
) -> tuple[UnifiedEquations, UnifiedData, int]:
    """Equations of a step, what they read, and how many unknowns they have."""
    options = scheme.options
    middle = midpoint(system, state, dt)
    mass = inertia_at(system, middle.t, middle.q, params)
    data = UnifiedData(params=params, state=state, mass=mass, dt=dt)
    equations = UnifiedEquations(
        system=system,
        contacts=contacts,
        position=(contacts or bool(system.nb)) and options.position_multiplier,
        linearised=options.gap == "linearised",
        metric=_metric(options.metric, system),
        tangent=tangent_of(options.tangent, system),
    )
    return equations, data, system.nv * (1 + equations.position)


def unified_stage(
    scheme: Scheme, system: System, params: PyTree, state: State, active: Array, dt: Array, contacts: bool,
    carried: Carried | None = None,
) -> tuple[UnifiedEquations, UnifiedData, StageAnswer]:  # fmt: skip
    """The nonlinear equations of a step of `ggl_unified`, what they read, and the solver's answer.

    Args:
        active: (nc,) bool, contacts that take part.
        contacts: whether rows of the contacts are formed at all.
        carried: tangent of an earlier step.
    """
    options, coef, v = scheme.options, scheme.coef, state.v
    equations, data, unknowns = _problem(scheme, system, params, state, dt, contacts)
    mask = active[: system.nc if contacts else 0]
    settings = StageSettings(
        tolerance=coef.stage_tolerance,
        contact_tolerance=coef.tolerance,
        scale=1.0 + jnp.max(jnp.abs(v)),
    )
    answer = solve_stage(
        equations, data, jnp.zeros(unknowns),
        jnp.concatenate([mask] * (1 + equations.position)), settings,
        max_passes=options.max_passes, max_iterations=options.max_iterations, carried=carried,
    )  # fmt: skip
    return equations, data, answer


def _respond(
    pair: Pair | None, scheme: Scheme, system: System, params: PyTree, state: State, active: Array,
    dt: Array, contacts: bool, _balance: Balance | None,
    _formed: Formed | None,
) -> Stepped:  # fmt: skip
    """The whole step, with or without contact rows."""
    carried = None if pair is None else pair[contacts]
    equations, data, answer = unified_stage(scheme, system, params, state, active, dt, contacts, carried)
    xi, middle, dv = equations.motion(data, answer.z)
    own = dataclasses.replace(answer, impulses=equations.split(answer.impulses)[0])
    jump = _books(system, data, own, middle, dv, active, contacts)
    end = State(t=state.t + dt, q=system.retract(state.q, xi), v=state.v + dv)
    more = renewed(pair, contacts, answer.carried)
    return Stepped(end=end, jump=jump, estimate=answer.estimate, more=more)


def _books(
    system: System,
    d: UnifiedData,
    answer: StageAnswer,
    middle: Array,
    dv: Array,
    active: Array,
    contacts: bool,
) -> Jump:
    """The jump, with rates at the midpoint."""
    v, t = d.state.v, d.state.t + 0.5 * d.dt
    if not contacts:
        empty = jnp.zeros(system.nb)
        return stage_jump(system, answer, dv, empty, empty, active, contacts)
    rows = all_rows(system, t, middle, d.params)
    return stage_jump(system, answer, dv, rows.rate(v), rows.rate(v + dv), active, contacts)
