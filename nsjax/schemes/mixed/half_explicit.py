"""The half-explicit scheme on velocity or acceleration level, as a base scheme of the mixed framework."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax.numpy as jnp

from nsjax.contact.events import Criteria, criteria_of
from nsjax.contact.friction import SlidingRule, consistent_forces
from nsjax.core.errors import InputError
from nsjax.core.scheme import Scheme
from nsjax.core.system import State
from nsjax.linalg import matvec
from nsjax.renamed import renamed_options
from nsjax.schemes.common import choose
from nsjax.schemes.mixed.base_step import contact_settings
from nsjax.schemes.mixed.framework import BaseEnd, Memory, Tolerances, mixed_scheme
from nsjax.types import Array, record


@record()
class HalfExplicitCoefficients:
    """Numbers of `half_explicit`: tolerances only."""

    tolerances: Tolerances


def _accelerate(t: Array, q: Array, v: Array, dt: Array, run: Any) -> tuple[Array, Array, Any]:
    """``dt M^-1 h``, ``M^-1 W`` and the rows at a state."""
    at = run.step.at(State(t=t, q=q, v=v))
    push, inertia = dt * at.force(), at.inertia(run.kept.inertia)
    if not run.has_rows:
        return inertia.solve(push[:, None])[:, 0], jnp.zeros(0), None
    rows = run.rows_at(t, q)
    return *inertia.answers(push, rows), rows


def _forecast(state: State, dt: Array, run: Any) -> tuple[Array, Array, Array]:
    """First stage: velocity increments without and with row forces, and their impulses ``dt lambda``."""
    t, q, v = jnp.asarray(state.t), state.q, state.v
    free, response, _ = _accelerate(t, q, v, dt, run)
    if not run.has_rows:
        return free, free, jnp.zeros(0)
    # constraint in the predicted configuration, force direction at the start: essential for order 2
    ahead = run.rows_at(t + dt, run.system.retract(q, dt * v))
    p1 = run.velocity_level(ahead.delassus(response), ahead.rate(v + free))
    return free, free + matvec(response, p1), p1


def starting_force(coef: Any, state: State, dt: Array, run: Any) -> Array:
    """Row forces with which a step from ``state`` starts."""
    return _forecast(state, dt, run)[2] / dt


@dataclasses.dataclass(frozen=True)
class HalfExplicitBase:
    """Base step: forecast and trapezoidal stage, each with the laws on velocity or acceleration level."""

    drop: bool
    level: str = "velocity"

    def __call__(self, coef: Any, state: State, memory: Memory, dt: Array, run: Any) -> BaseEnd:
        """One step before an impact."""
        if self.level == "acceleration":
            return _on_accelerations(self.drop, state, memory, dt, run)
        t, q, v = jnp.asarray(state.t), state.q, state.v
        without, first, begin = _forecast(state, dt, run)
        forecast = v + first
        q1 = run.system.retract(q, 0.5 * dt * (v + forecast))
        second, response, rows = _accelerate(t + dt, q1, forecast, dt, run)
        free = v + 0.5 * (without + second) if self.drop else None
        v1 = v + 0.5 * (first + second)
        impulses = jnp.zeros(0)
        if run.has_rows:
            impulses = run.velocity_level(0.5 * rows.delassus(response), rows.rate(v1))
            second = second + matvec(response, impulses)
            v1 = v + 0.5 * (first + second)
        a = second / dt
        force, impulse = run.all(impulses / dt), run.all(0.5 * (begin + impulses))
        return BaseEnd(q=q1, v=v1, a=a, algorithmic=a, force=force, impulse=impulse, free=free)


def _on_accelerations(drop: bool, state: State, memory: Memory, dt: Array, run: Any) -> BaseEnd:
    """Forecast and trapezoidal stage on acceleration level, with the accelerations that contacts allow."""
    system, t, q, v = run.system, jnp.asarray(state.t), state.q, state.v
    if system.nt:
        raise InputError(
            f"half_explicit: level = 'acceleration' works without friction only, {system.name} has "
            f"nt = {system.nt}: accelerations do not show where sliding ends; use level = 'velocity'"
        )

    def stage(t: Array, q: Array, v: Array) -> tuple[Array, Array]:
        at, rule = run.step.at(State(t=t, q=q, v=v)), SlidingRule(criteria=criteria_of(run.scheme))
        return consistent_forces(at, memory.resting, contact_settings(run.scheme, "auto"), rule)

    first, begin = stage(t, q, v)
    forecast = v + dt * first
    q1 = system.retract(q, 0.5 * dt * (v + forecast))
    second, force = stage(t + dt, q1, forecast)
    free = None
    if drop:
        start, end = _accelerate(t, q, v, dt, run)[0], _accelerate(t + dt, q1, forecast, dt, run)[0]
        free = v + 0.5 * (start + end)
    return BaseEnd(
        q=q1, v=v + 0.5 * dt * (first + second), a=second, algorithmic=second,
        force=force, impulse=0.5 * dt * (begin + force), free=free,
    )  # fmt: skip


@renamed_options(tolerance="contact_tolerance")
def half_explicit(
    *, level: str = "velocity", impact_step: str = "keep", averaged_force: bool = False,
    contact_tolerance: float = 1e-11, gap_tolerance: float = 1e-12, max_iterations: int = 20,
    criteria: Criteria | None = None,
) -> Scheme:  # fmt: skip
    """The half-explicit scheme: second order without a Newton iteration, contact laws on velocity level.

    A forecast with the constraint in the predicted configuration, then the trapezoidal rule::

        v_1 = v_i + M_i^-1 (dt h_i + W_i P_1),      u = W_p' v_1 fulfils the laws
        q_{i+1} = q_i + dt/2 (v_i + v_1)
        v_{i+1} = v_i + 1/2 (M_i^-1 (dt h_i + W_i P_1) + M_{i+1}^-1 (dt h_{i+1} + W_{i+1} P_2))

    and the impulse of the mixed framework where a contact has newly closed.

    On acceleration level (the forecasting trapezoidal rule) the acceleration ``a(t, q, v)`` with
    ``0 <= ddg_N _|_ lambda_N >= 0`` on the contacts at rest replaces both problems::

        v_1 = v_i + dt a(t_i, q_i, v_i)
        v_{i+1} = v_i + dt/2 (a(t_i, q_i, v_i) + a(t_{i+1}, q_{i+1}, v_1))

    Args:
        level: level on which closed contacts and constraints are fulfilled between impacts, ``"velocity"``
            or ``"acceleration"``.
        impact_step: pre-impact velocity of a step with an impulse. ``"keep"``: with the forces of the
            closed contacts and constraints. ``"drop"``: without them, and the impulse makes up for
            them, as in the public implementations; a resting contact then approaches with ``O(dt)``,
            so that with ``e_N > 0`` an impact elsewhere lifts it.
        averaged_force: report ``(P_2 + P_1 of the next step) / (2 dt)`` at the end of a step without
            impulse, which is of second order, instead of ``P_2 / dt``. The motion is the same; the
            first stage is computed twice.
        contact_tolerance: bound on the relative natural-map residual of each contact problem.
        gap_tolerance: contacts with a gap up to this value are closed [m]; above zero, because a
            contact at rest keeps its gap to rounding only.
        max_iterations: plain Newton steps of each contact problem.
        criteria: thresholds that classify events; None: `nsjax.Criteria` with its defaults.

    Raises:
        InputError: for an unknown choice, and for ``averaged_force`` on acceleration level.

    Order: 2 in position and velocity on smooth motion, 1 in the force (2 with ``averaged_force``);
    first order at each impact, and where friction turns with the direction of sliding in space (both stages
    take it at the ends of their steps; the implicit mixed schemes keep 2). On acceleration level 2 in the
    force, too; rates of contacts and constraints are not corrected and drift with ``dt^2 t``, positions
    with ``dt^2 t^2``, and a contact whose rate has drifted from zero leaves or strikes again.

    Limits: explicit: stable for ``omega dt < 2``, less with damping; no damping of high frequencies. On
    acceleration level friction is refused, and a contact that bounces within a step does not come to
    rest for ``0 < e_N < 1``: in every step it leaves with ``e_N g dt / (1 + e_N)`` and sinks by
    ``(1 - e_N) / (1 + e_N) g dt^2 / 2``.

    Source: [SRKA]; on acceleration level [SA]; the formulas are derived anew.

    Example:
        >>> import nsjax
        >>> from nsjax import models, schemes
        >>> nsjax.simulate(models.bouncing_ball(), schemes.half_explicit(), dt=1e-2, time=1.0).q.shape
        (101, 1)
    """
    choose("half_explicit", "impact_step", impact_step, ("keep", "drop"))
    choose("half_explicit", "level", level, ("velocity", "acceleration"))
    if averaged_force and level == "acceleration":
        raise InputError("half_explicit: averaged_force = True belongs to level = 'velocity'; leave it out")
    tolerances = Tolerances(stage=1.0, contact=contact_tolerance, gap=gap_tolerance)
    # the stored acceleration does not enter a step
    return mixed_scheme(
        "half_explicit", HalfExplicitBase(drop=impact_step == "drop", level=level),
        HalfExplicitCoefficients(tolerances=tolerances), consistent_initial_acceleration=False,
        acceleration_after_change="keep", starting_force=starting_force if averaged_force else None,
        leaving_is_open=level == "acceleration", carries="none", joints_inside=False,
        max_iterations=max_iterations, criteria=criteria,
    )  # fmt: skip
