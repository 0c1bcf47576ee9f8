"""The theta-method of Moreau and Jean: implicit forces, impulses inside the step."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax.numpy as jnp
from jax import lax

from nsjax.contact import Jump
from nsjax.contact.stage import StageSettings, solve_stage
from nsjax.core.errors import InputError
from nsjax.core.scheme import Carry, Output, Scheme
from nsjax.core.system import State, System
from nsjax.linalg import matvec, solve_positive
from nsjax.schemes.books import gated_impacts, impulse_output, stage_jump
from nsjax.schemes.frozen_rows import FrozenRowEquations, FrozenRows, frozen_rows
from nsjax.types import Array, PyTree, record


@record()
class Coefficients:
    """Numbers of the scheme; see `moreau_theta`."""

    theta: Array | float
    stage_tolerance: Array | float
    tolerance: Array | float
    gap_tolerance: Array | float


@dataclasses.dataclass(frozen=True)
class Options:
    """Choices of the scheme; see `moreau_theta`."""

    max_passes: int
    max_iterations: int


@record()
class _Data:
    """Everything live that the equations of a step read."""

    params: PyTree
    state: State
    theta: Array
    dt: Array
    start_force: Array
    frozen: FrozenRows


@dataclasses.dataclass(frozen=True)
class _Equations(FrozenRowEquations):
    """``M(q_bar) z - dt ((1 - theta) h_i + theta h_{i+1}) - W P = 0``."""

    def residual(self, d: Any, z: Array) -> Array:
        """Momentum balance without row forces."""
        system, q, v = self.system, d.state.q, d.state.v
        xi = d.dt * (v + d.theta * z)
        mass = system.mass(system.retract(q, d.theta * xi), d.params)  # type: ignore[misc]
        end = system.force(d.state.t + d.dt, system.retract(q, xi), v + z, d.params)
        return matvec(mass, z) - d.dt * ((1 - d.theta) * d.start_force + d.theta * end)


def moreau_theta(
    theta: Array | float = 0.5,
    *,
    stage_tolerance: float = 1e-12,
    tolerance: float = 1e-11,
    gap_tolerance: float = 0.0,
    max_passes: int = 20,
    max_iterations: int = 20,
) -> Scheme:
    """The theta-method of Moreau and Jean: stiff forces implicit, impacts and friction in the step.

    With ``q_tilde = q_i + dt/2 v_i`` for the contact decision and the directions::

        q_{i+1} = q_i + dt ((1 - theta) v_i + theta v_{i+1}),  q_bar = (1 - theta) q_i + theta q_{i+1}
        M(q_bar) (v_{i+1} - v_i) = dt ((1 - theta) h_i + theta h_{i+1}) + W(q_tilde) Lambda
        0 <= dg_{N,i+1} + e_N dg_{N,i}  _|_  Lambda_N >= 0      where g_N(q_tilde) <= gap_tolerance

    Args:
        theta: in [1/2, 1]; the spectral radius at infinite frequency is ``(1 - theta)/theta``.
        stage_tolerance: bound on the estimated next update of the stage solver, relative to 1 + |v|.
        tolerance: bound on the relative natural-map residual of each contact problem.
        gap_tolerance: contacts with ``g_N(q_tilde)`` up to this value take part [m].
        max_passes, max_iterations: of the stage solver and of each contact problem.

    Returns:
        A `Scheme`.

    Order: 2 for ``theta = 1/2`` on smooth motion without constraints, else 1; first order with contacts
    and constraints.

    Limits: bodies penetrate by up to ``dt/2 |dg|`` before a contact is noticed; closed contacts drift on
    position level.

    Source: `schemes.md` section 2.1, `rotations.md` section 5.

    Example:
        >>> import nsjax
        >>> from nsjax import models, schemes
        >>> nsjax.simulate(*models.bouncing_ball(), schemes.moreau_theta(), dt=1e-2, time=1.0).q.shape
        (101, 1)
    """
    coef = Coefficients(
        theta=theta, stage_tolerance=stage_tolerance, tolerance=tolerance, gap_tolerance=gap_tolerance
    )
    return Scheme(
        name="moreau_theta",
        coef=coef,
        options=Options(max_passes=max_passes, max_iterations=max_iterations),
        prepare=_prepare,
        init=_init,
        step=_step,
    )


def _prepare(scheme: Scheme, system: System, params: PyTree, dt: Array) -> PyTree:
    if system.mass is None:
        raise InputError("moreau_theta: the system gives inertia; this scheme needs mass, a dense matrix")
    return ()


def _init(scheme: Scheme, system: System, params: PyTree, constants: PyTree, state: State) -> Carry:
    return Carry(state=state)


def _step(
    scheme: Scheme, system: System, params: PyTree, constants: PyTree, carry: Carry, dt: Array
) -> tuple[Carry, Output]:
    state, coef = carry.state, scheme.coef
    t, q, v = jnp.asarray(state.t), state.q, state.v
    middle = State(t=t + 0.5 * dt, q=system.retract(q, 0.5 * dt * v), v=v)
    gap = jnp.zeros(0) if system.gap is None else system.gap(middle.t, middle.q, params)
    active = gap <= coef.gap_tolerance
    force = system.force(t, q, v, params)

    def respond(contacts: bool) -> tuple[Array, Jump, Array, Array]:
        return _respond(scheme, system, params, state, middle, force, active, dt, contacts)

    if system.nc:
        z, jump, impact, estimate = lax.cond(
            jnp.any(active), lambda _: respond(True), lambda _: respond(False), None
        )
    else:
        z, jump, impact, estimate = respond(False)
    v1 = v + z
    q1 = system.retract(q, dt * (v + coef.theta * z))
    solved = (jump.residual <= coef.tolerance) & (estimate <= coef.stage_tolerance)
    end = State(t=t + dt, q=q1, v=v1)
    output = impulse_output(system, params, middle, end, gap, active, impact, jump, dt, solved)
    return Carry(state=end, memory=carry.memory), output


def _respond(
    scheme: Scheme, system: System, params: PyTree, state: State, middle: State, force: Array,
    active: Array, dt: Array, contacts: bool,
) -> tuple[Array, Jump, Array, Array]:  # fmt: skip
    """Velocity increment, impulses, impacts and error estimate, with or without contact rows."""
    frozen = frozen_rows(system, params, jnp.asarray(middle.t), middle.q, contacts)
    start = State(t=jnp.asarray(state.t), q=state.q, v=state.v)
    data = _Data(
        params=params, state=start, theta=jnp.asarray(scheme.coef.theta), dt=dt, start_force=force,
        frozen=frozen,
    )  # fmt: skip
    settings = StageSettings(
        tolerance=scheme.coef.stage_tolerance,
        contact_tolerance=scheme.coef.tolerance,
        scale=1.0 + jnp.max(jnp.abs(state.v)),
    )
    equations = _Equations(system, contacts)
    answer = solve_stage(
        equations, data, jnp.zeros(system.nv), active[: equations.nc], settings,
        max_passes=scheme.options.max_passes, max_iterations=scheme.options.max_iterations,
    )  # fmt: skip
    before, after = (frozen.rows.rate(state.v + x) for x in (0.0, answer.z))
    jump = stage_jump(system, answer, answer.z, before, after, active, contacts)
    impact = jnp.zeros(system.nc, bool)
    if contacts:
        # velocity change by everything but the impulses; the mass of the midpoint is near enough
        mass = system.mass(middle.q, params)  # type: ignore[misc]
        free = solve_positive(mass, force[:, None])[:, 0]
        impact = gated_impacts(system, params, middle, frozen.rows, free, jump, active, dt)
    return answer.z, jump, impact, answer.estimate
