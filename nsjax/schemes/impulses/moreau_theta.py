"""The theta-method of Moreau and Jean: implicit forces, impulses inside the step."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax.numpy as jnp

from nsjax.contact.equations import kept_tangent
from nsjax.contact.events import Criteria, gap_rates
from nsjax.contact.sensitivity import Stepped
from nsjax.core.operators import momentum
from nsjax.core.scheme import Scheme, Traits
from nsjax.core.system import State
from nsjax.renamed import renamed_fields, renamed_options
from nsjax.schemes.common import choose_tangent, tangent_of, within
from nsjax.schemes.impulses.impulse_scheme import (
    blank_tangents,
    carried_tangent,
    impulse_scheme,
    memory_after,
)
from nsjax.schemes.impulses.impulse_step import FrozenRowEquations, FrozenRows, ImpulseRun, frozen_rows
from nsjax.types import Array, PyTree, record


@renamed_fields
@record()
class ThetaCoefficients:
    """Numbers of the scheme; see `moreau_theta`."""

    theta: Array | float
    stage_tolerance: Array | float
    contact_tolerance: Array | float
    gap_tolerance: Array | float
    gamma: Array | float | None = None


@dataclasses.dataclass(frozen=True)
class ThetaOptions:
    """Choices of the scheme; see `moreau_theta`."""

    max_passes: int
    max_iterations: int
    tangent: str = "auto"


@record()
class _StepData:
    """Data of the equations of a step that derivatives may move."""

    params: PyTree
    state: State
    theta: Array
    dt: Array
    start_force: Array
    frozen: FrozenRows


@dataclasses.dataclass(frozen=True)
class _MomentumBalance(FrozenRowEquations):
    """``M(q_bar) z - dt ((1 - theta) h_i + theta h_{i+1}) - W P = 0``."""

    def residual(self, d: Any, z: Array) -> Array:
        """Momentum balance without row forces."""
        system, q, v = self.system, d.state.q, d.state.v
        xi = d.dt * (v + d.theta * z)
        inertia = momentum(system, system.retract(q, d.theta * xi), z, d.params)
        end = system.force(d.state.t + d.dt, system.retract(q, xi), v + z, d.params)
        return inertia - d.dt * ((1 - d.theta) * d.start_force + d.theta * end)


@renamed_options(tolerance="contact_tolerance")
def moreau_theta(
    theta: Array | float = 0.5, *, gamma: Array | float | None = None, stage_tolerance: float = 1e-12,
    contact_tolerance: float = 1e-11, gap_tolerance: float = 1e-12, tangent: str = "auto",
    max_passes: int = 20, max_iterations: int = 20, criteria: Criteria | None = None,
) -> Scheme:  # fmt: skip
    """The theta-method of Moreau and Jean: stiff forces implicit, impacts and friction in the step.

    With ``q_tilde = q_i + dt/2 v_i`` for the contact decision and the directions::

        q_{i+1} = q_i + dt ((1 - theta) v_i + theta v_{i+1}),  q_bar = (1 - theta) q_i + theta q_{i+1}
        M(q_bar) (v_{i+1} - v_i) = dt ((1 - theta) h_i + theta h_{i+1}) + W(q_tilde) Lambda
        0 <= dg_{N,i+1} + e_N dg_{N,i}  _|_  Lambda_N >= 0      where g_N(q_tilde) <= gap_tolerance

    Args:
        theta: weight of the end of the step, in [1/2, 1]. The spectral radius at infinite frequency is
            ``(1 - theta)/theta``.
        gamma: in [0, 1]; contacts take part where ``g_N(q_i) + gamma dt dg_{N,i} <= gap_tolerance``, as in
            other codes (Siconos: 1/2 by default, or 1). None: the condition above, which equals ``gamma =
            1/2`` up to the curvature of the gap.
        gap_tolerance: contacts with ``g_N(q_tilde)`` up to this value take part [m]. It is above zero
            because a contact at rest keeps its gap to rounding only.
        stage_tolerance, contact_tolerance, tangent, max_passes, max_iterations, criteria: see
            `ggl_unified`.

    Order: 2 for ``theta = 1/2`` on smooth motion without constraints, else 1; first order with contacts
    and constraints.

    Limits: a contact takes part in the first step whose midpoint it has passed, with bodies up to
    ``dt |dg|`` deep there; closed contacts drift on position level. A jump moves positions as if it
    happened ``(1 - theta) dt`` after the start of its step. With ``theta = 1/2`` this is half a step late
    on average for ``gamma = 1/2``, and on time for ``gamma = 1``. A plastic impact then leaves a gap from
    ``-dt |dg|`` to 0 for ``gamma = 1/2``, and from ``-dt/2 |dg|`` to ``dt/2 |dg|`` for ``gamma = 1``; with
    ``gamma = theta = 1`` nothing penetrates. All these errors are of first order. A body at rest above a
    wall falls for a step before the wall holds it.

    Source: the theta-method of Moreau and Jean on velocity level.

    Example:
        >>> import nsjax
        >>> from nsjax import models, schemes
        >>> nsjax.simulate(models.bouncing_ball(), schemes.moreau_theta(), dt=1e-2, time=1.0).q.shape
        (101, 1)
    """
    coef = ThetaCoefficients(
        theta=within("moreau_theta", "theta", theta, 0.5, 1.0), stage_tolerance=stage_tolerance,
        contact_tolerance=contact_tolerance, gap_tolerance=gap_tolerance,
        gamma=None if gamma is None else within("moreau_theta", "gamma", gamma, 0.0, 1.0),
    )  # fmt: skip
    return impulse_scheme(
        "moreau_theta", _respond, prepare=_prepare, gaps=None if gamma is None else _extrapolated_gaps,
        remember=_blank, numbers=coef, gradient="saltation", criteria=criteria,
        traits=Traits(joints_inside=True),
        choices=ThetaOptions(
            max_passes=within("moreau_theta", "max_passes", max_passes, 1),
            max_iterations=within("moreau_theta", "max_iterations", max_iterations, 1),
            tangent=choose_tangent("moreau_theta", tangent),
        ),
    )  # fmt: skip


def _problem(run: ImpulseRun, contacts: bool) -> tuple[_MomentumBalance, _StepData, int]:
    """Equations of a step, their data, and the number of their unknowns."""
    system = run.system
    data = _StepData(
        params=run.params, state=run.state, theta=jnp.asarray(run.scheme.coef.theta), dt=run.dt,
        start_force=run.start.force(), frozen=frozen_rows(run.midpoint, contacts),
    )  # fmt: skip
    equations = _MomentumBalance(system, contacts, tangent_of(run.scheme.options.tangent, system))
    return equations, data, system.nv


def _prepare(run: ImpulseRun) -> PyTree:
    """Tangents without and with contact rows, if they are constant over a run."""
    if not run.system.structure.constant:
        return None, None
    return tuple(kept_tangent(*_problem(run, contacts)) for contacts in (False, run.system.nc > 0))


def _blank(run: ImpulseRun) -> PyTree:
    """Memory of the scheme at the start of a run."""
    return blank_tangents(run, lambda contacts: _problem(run, contacts))


def _extrapolated_gaps(run: ImpulseRun) -> Array:
    """Gaps (nc,) [m], extrapolated by ``gamma dt`` from the start of the step."""
    return run.start.gap() + run.scheme.coef.gamma * run.dt * gap_rates(run.start)


def _respond(run: ImpulseRun) -> Stepped:
    """The result of a step, with or without contact rows."""
    equations, data, _ = _problem(run, run.contacts)
    jump, answer = run.answer(equations, data, run.constants[run.contacts], carried_tangent(run))
    dv, state, dt = answer.z, run.state, run.dt
    q1 = run.system.retract(state.q, dt * (state.v + data.theta * dv))
    end = State(t=state.t + dt, q=q1, v=state.v + dv)
    return Stepped(end=end, jump=jump, estimate=answer.estimate, more=memory_after(run, answer.carried))
