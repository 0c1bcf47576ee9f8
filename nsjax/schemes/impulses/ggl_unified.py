"""Gear, Gupta and Leimkuhler's scheme for contacts: laws on position and velocity level together."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from nsjax.contact import Jump
from nsjax.contact.events import Criteria
from nsjax.contact.projection import Directions, chosen
from nsjax.contact.sensitivity import Stepped
from nsjax.contact.stage import StageAnswer, StageSettings, StageStart, solve_stage
from nsjax.core.operators import position_rows, row_forces, row_rates
from nsjax.core.row_groups import Bounded, GivenForces, RowGroups
from nsjax.core.scheme import Scheme
from nsjax.core.step import Inertia, SystemState
from nsjax.core.system import State, System, row_groups, slip_of
from nsjax.linalg import Structure
from nsjax.renamed import renamed_options
from nsjax.schemes.common import (
    METRICS,
    choose,
    choose_tangent,
    kinetic_metric,
    stage_jump,
    tangent_of,
    within,
)
from nsjax.schemes.impulses.impulse_scheme import (
    blank_tangents,
    carried_tangent,
    impulse_scheme,
    memory_after,
)
from nsjax.schemes.impulses.impulse_step import ImpulseRun
from nsjax.schemes.impulses.moreau import MoreauCoefficients
from nsjax.types import Array, PyTree, record


@record()
class UnifiedData:
    """Data of the equations that derivatives may move; ``mass`` is that of the predicted midpoint."""

    params: PyTree
    state: State
    mass: Inertia
    dt: Array


@dataclasses.dataclass(frozen=True)
class UnifiedEquations:
    """Implicit midpoint rule with velocity and position rows. The unknowns are ``z = (w, x)``::

        w = v_{i+1} - v_i,   q_{i+1} = q_i + dt (v_bar + x),   x = D(q_bar) Psi / dt

    The rows are velocity laws of contacts, position laws of all contacts, velocity laws of bounded forces,
    velocity rows of the constraints, position rows of the constraints. Without position rows the unknown is
    ``w`` alone.

    Args:
        system: system of the problem.
        contacts: whether contacts may act in the step.
        position: whether there are position rows.
        linearised: whether the position law has the linearised gap, see `nsjax.schemes.ggl_unified`.
        metric: ``"euclidean"``, ``"kinetic"`` or ``"implicit"``, see `nsjax.schemes.ggl_unified`.
        tangent: tangent of the iteration, see `nsjax.schemes.mixed.framework.mixed_scheme`.
        explicit: whether forces are those of the predicted midpoint at the velocity of the start.
    """

    system: System
    contacts: bool
    position: bool
    linearised: bool
    metric: str
    tangent: str = "full"
    explicit: bool = False

    @property
    def structure(self) -> Structure:
        """Structure of the tangent matrix: one block for ``w``, and one for ``x`` with position rows."""
        return self.system.structure.stacked(1 + self.position)

    @property
    def own(self) -> RowGroups:
        """Rows of the contacts, if any may act, and constraints."""
        return row_groups(self.system, self.contacts)

    @property
    def rows(self) -> RowGroups:
        """Rows of both levels: position laws of all contacts follow the contacts without friction."""
        one = self.own
        if not self.position:
            return one
        forces = next((g for g in one.groups if isinstance(g.law, Bounded)), None)
        first, normals = one.rough + one.frictionless + one.nc, one.frictionless + one.nc if one.nt else 0
        return RowGroups.of(first, one.nt, 2 * one.nb, normals, forces)

    def frozen(self, d: Any, z: Array) -> tuple[Callable[[Array], Array], bool]:
        """``z -> (M w, x)``, and whether rates are ``W' z`` plus a constant: only without position rows."""
        n = self.system.nv
        heavy = lambda z: jnp.concatenate([d.mass.times(z[:n]), self.shifted(d, z[n:])])  # noqa: E731
        return heavy, not self.position

    def motion(self, d: Any, z: Array) -> tuple[Array, Array, Array]:
        """Increment of the position (nv,), position at the midpoint (nq,), velocity increment (nv,)."""
        n = self.system.nv
        xi = d.dt * (d.state.v + 0.5 * z[:n])
        if self.position:
            xi = xi + d.dt * z[n:]
        return xi, self.system.retract(d.state.q, 0.5 * xi), z[:n]

    def start(self, d: Any) -> SystemState:
        """The system at the start of the step."""
        return SystemState(system=self.system, params=d.params, state=d.state)

    def middle(self, d: Any) -> Array:
        """Time of the midpoint [s]."""
        return d.state.t + 0.5 * d.dt

    def residual(self, d: Any, z: Array) -> Array:
        """Momentum balance, and ``x`` (or ``S x``), both without row forces."""
        _, middle, w = self.motion(d, z)
        v = d.state.v + 0.5 * w
        if self.explicit:
            # the state that the step predicts: its forces are known before it is solved
            middle, v = self.system.retract(d.state.q, 0.5 * d.dt * d.state.v), d.state.v
        force = self.system.force(self.middle(d), middle, v, d.params)
        balance = d.mass.times(w) - d.dt * force
        return jnp.concatenate([balance, self.shifted(d, z[self.system.nv :])])

    def shifted(self, d: Any, x: Array) -> Array:
        """``x``, or ``S x`` in the implicit metric: the change of the momentum balance by ``x``."""
        if self.metric != "implicit" or not x.shape[0]:
            return x
        t, q, v, half = self.middle(d), d.state.q, d.state.v, 0.5 * d.dt

        def force(w: Array) -> Array:
            middle = self.system.retract(q, half * (v + 0.5 * w))
            return self.system.force(t, middle, v + 0.5 * w, d.params)

        return d.mass.times(x) - d.dt * jax.jvp(force, (jnp.zeros_like(x),), (x,))[1]

    def split(self, x: Array) -> tuple[Array, Array]:
        """Velocity rows and position rows, contacts first in each; the latter have no tangents."""
        one = self.own
        if not self.position:
            return x, x[:0]
        (_, first, last), nc = one.ends, one.nc
        end = last + nc + one.nb
        velocity = [x[:first], x[first + nc : end]]
        return jnp.concatenate(velocity), jnp.concatenate([x[first : first + nc], x[end:]])

    def join(self, velocity: Array, position: Array) -> Array:
        """Inverse of `split` along the first axis."""
        if not self.position:
            return velocity
        first, nc = self.own.ends[1], self.own.nc
        return jnp.concatenate([velocity[:first], position[:nc], velocity[first:], position[nc:]])

    def of_contacts(self, velocity: Array, position: Array | float) -> Array:
        """Values of the laws of contacts from those (nc,) on velocity and on position level."""
        if not self.position:
            return velocity
        last = self.own.rough + self.own.frictionless
        position = jnp.broadcast_to(position, velocity.shape).astype(velocity.dtype)
        return jnp.concatenate([velocity[:last], position, velocity[last:]])

    def followed(self, active: Array, impulses: Array) -> Array:
        """Contacts whose laws a derivative follows: position laws only of contacts that carry an impulse.
        What takes out one that another has pushed below its surface would annul the derivative of the gap.
        """
        if not self.position or not self.own.nc:
            return active
        loaded = self.own.normals(self.split(impulses)[0]) > 0.0
        # velocity laws of all, position laws of loaded contacts
        return active & self.of_contacts(jnp.ones_like(loaded), loaded)

    def forces(self, d: Any, z: Array, impulses: Array) -> Array:
        """``(W Lambda, D Psi / dt)`` at the midpoint; in the implicit metric ``(W Lambda, W Psi / dt)``."""
        _, q, _ = self.motion(d, z)
        velocity, position = self.split(impulses)
        push = row_forces(self.system, self.middle(d), q, velocity, d.params, self.contacts)
        if not self.position:
            return push
        one = self.own
        # position laws are frictionless: their rows have no tangents
        normal = jnp.pad(position[: one.nc, None], [(0, 0), (0, one.nt)])
        x = one.stack(normal, position[one.nc :])  # a bounded force has no position law
        x = row_forces(self.system, self.middle(d), q, x, d.params, self.contacts)
        kinetic = kinetic_metric(self.metric, self.system, d.params)
        x = chosen(kinetic, lambda: d.mass.solve(x[:, None])[:, 0], x)
        return jnp.concatenate([push, x])

    def directions(self, d: Any, z: Array) -> Array:
        """Directions of the row forces: the block diagonal matrix ``(W, D)`` (unknowns, rows)."""
        _, q, _ = self.motion(d, z)
        at = SystemState(
            system=self.system, params=d.params, state=State(t=self.middle(d), q=q, v=d.state.v)
        )
        rows = at.rows(self.contacts)
        if not self.position:
            return rows.directions()
        kinetic = kinetic_metric(self.metric, self.system, d.params)
        wt, along = rows.jacobian(), Directions(at=at, contacts=self.contacts, kinetic=kinetic)
        dt = along.matrix().T
        upper = self.join(wt, jnp.zeros_like(dt))
        lower = self.join(jnp.zeros_like(wt), dt)
        return jnp.concatenate([upper, lower], axis=1).T

    def rates(self, d: Any, z: Array) -> Array:
        """Velocity rows ``u^+ + e u^-`` at the midpoint; gaps at the end over ``dt``. Both in [m/s]."""
        xi, q, w = self.motion(d, z)
        system, t, v = self.system, self.middle(d), d.state.v
        nc = system.nc if self.contacts else 0

        def rate(v: Array) -> Array:
            return row_rates(system, t, q, v, d.params, self.contacts)

        velocity = rate(v + w)
        if nc:
            velocity = velocity + self.start(d).law().rebound(self.own, rate(v))
        if not self.position:
            return velocity
        if self.linearised:
            start = position_rows(system, d.state.t, (d.state.q, None), d.params, nc) / d.dt
            along = rate(xi / d.dt)
            position = start + jnp.concatenate([self.own.normals(along), self.own.bilateral(along)])
        else:
            position = position_rows(system, d.state.t + d.dt, (d.state.q, xi), d.params, nc) / d.dt
        if system.nh:
            # constraints on velocities have no position: the correction does not slip either
            own = slip_of(system, t, q, z[system.nv :], d.params)
            position = jnp.concatenate([position[: -system.nh], own])
        return self.join(velocity, position)

    def friction(self, d: Any) -> Array:
        """Coefficients of friction of all contact laws; zero for position laws."""
        nc = self.own.nc
        return self.of_contacts(self.start(d).friction(), 0.0) if nc else jnp.zeros(0)

    def given(self, d: Any) -> GivenForces | None:
        """Numbers of the bounded forces; None if there are none. Position laws have none."""
        one = self.system.law(d.params).given(d.dt) if self.own.nc else None
        return None if one is None else dataclasses.replace(one, normal=self.of_contacts(one.normal, 0.0))


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


@renamed_options(tolerance="contact_tolerance")
def ggl_unified(
    *, gap: str = "nonlinear", position_multiplier: bool = True, metric: str = "auto",
    force: str = "implicit", contact_tolerance: float = 1e-11, stage_tolerance: float = 1e-12,
    gap_tolerance: float = 1e-12, tangent: str = "auto", max_passes: int = 20, max_iterations: int = 20,
    criteria: Criteria | None = None,
) -> Scheme:  # fmt: skip
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
        contact_tolerance: bound on the relative natural-map residual of each contact problem.
        stage_tolerance: bound on the estimated next update of the solver, relative to ``1 + |v|``.
        gap_tolerance: contacts with ``g_N(q_M)`` up to this value take part [m]. It is above zero because
            position laws keep gaps at zero to rounding only: a contact that is left out for a step falls,
            and with ``e_N > 0`` bounces.
        tangent, max_passes, max_iterations, criteria: see `nsjax.schemes.mixed.framework.mixed_scheme`.

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
        >>> nsjax.simulate(models.bouncing_ball(), schemes.ggl_unified(), dt=1e-2, time=1.0).q.shape
        (101, 1)
    """
    choose("ggl_unified", "gap", gap, ("nonlinear", "linearised"))
    choose("ggl_unified", "metric", metric, (*METRICS, "implicit"))
    choose("ggl_unified", "force", force, ("implicit", "explicit"))
    return impulse_scheme(
        "ggl_unified", _respond, remember=_blank, corrects=position_multiplier, gradient="saltation",
        criteria=criteria,
        numbers=MoreauCoefficients(
            contact_tolerance=contact_tolerance, stage_tolerance=stage_tolerance,
            gap_tolerance=gap_tolerance,
        ),
        choices=UnifiedOptions(
            gap=gap, position_multiplier=position_multiplier, metric=metric,
            max_passes=within("ggl_unified", "max_passes", max_passes, 1),
            max_iterations=within("ggl_unified", "max_iterations", max_iterations, 1),
            tangent=choose_tangent("ggl_unified", tangent), force=force,
        ),
    )  # fmt: skip


def _problem(run: ImpulseRun, contacts: bool) -> tuple[UnifiedEquations, UnifiedData, int]:
    """Equations of a step, their data, and the number of their unknowns."""
    options, system = run.scheme.options, run.system
    data = UnifiedData(params=run.params, state=run.state, mass=run.midpoint.inertia(), dt=run.dt)
    equations = UnifiedEquations(
        system=system, contacts=contacts,
        position=(contacts or bool(system.nb)) and options.position_multiplier,
        linearised=options.gap == "linearised", metric=options.metric,
        tangent=tangent_of(options.tangent, system), explicit=options.force == "explicit",
    )  # fmt: skip
    return equations, data, system.nv * (1 + equations.position)


def _blank(run: ImpulseRun) -> PyTree:
    """Memory of the scheme at the start of a run."""
    return blank_tangents(run, lambda contacts: _problem(run, contacts))


def unified_stage(run: ImpulseRun) -> tuple[UnifiedEquations, UnifiedData, StageAnswer]:
    """The nonlinear equations of a step of `ggl_unified`, their data, and the solver's answer."""
    options, coef = run.scheme.options, run.scheme.coef
    equations, data, unknowns = _problem(run, run.contacts)
    mask = run.acting[: equations.own.nc]
    settings = StageSettings(
        tolerance=coef.stage_tolerance, contact_tolerance=coef.contact_tolerance,
        scale=1.0 + jnp.max(jnp.abs(run.state.v)), max_passes=options.max_passes,
        max_iterations=options.max_iterations,
    )  # fmt: skip
    start = StageStart(z=jnp.zeros(unknowns), carried=carried_tangent(run))
    active = equations.of_contacts(mask, mask)
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
    given = run.system.law(run.params).given(run.dt)
    return stage_jump(run.system, answer, dv, rates, run.active, given)
