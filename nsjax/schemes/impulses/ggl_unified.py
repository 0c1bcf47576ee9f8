"""Gear, Gupta and Leimkuhler's scheme for contacts: laws on position and velocity level together."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from nsjax.contact import Given, Jump
from nsjax.contact.criteria import Criteria
from nsjax.contact.equations import Carried
from nsjax.contact.events import Formed
from nsjax.contact.projection import correction_directions, position_rows
from nsjax.contact.sensitivity import Stepped
from nsjax.contact.stage import StageAnswer, StageSettings, solve_stage
from nsjax.core.inertia import Inertia, inertia_at
from nsjax.core.operators import all_rows, row_forces, row_rates
from nsjax.core.scheme import Carry, Output, Scheme
from nsjax.core.system import State, System
from nsjax.linalg import Structure
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
from nsjax.types import Array, PyTree, record


@dataclasses.dataclass(frozen=True)
class UnifiedOptions:
    """Choices of `ggl_unified`."""

    gap: str
    position_multiplier: bool
    metric: str
    max_passes: int
    max_iterations: int
    tangent: str = "auto"


@record()
class _Data:
    """Everything live that the equations read; ``mass`` is that of the predicted midpoint."""

    params: PyTree
    state: State
    mass: Inertia
    dt: Array


@dataclasses.dataclass(frozen=True)
class _Equations:
    """Implicit midpoint rule with velocity and position rows; unknown ``z = (w, x)``::

        w = v_{i+1} - v_i,   q_{i+1} = q_i + dt (v_bar + x),   x = D(q_bar) Psi / dt

    Rows: velocity and then position laws of all contacts (the tangents of the latter are empty), then
    velocity and position rows of the constraints. Without position rows the unknown is ``w`` alone.
    """

    system: System
    contacts: bool
    position: bool
    linearised: bool
    kinetic: bool
    tangent: str = "full"

    @property
    def structure(self) -> Structure:
        """Of the tangent: velocities, and corrections if the position counts."""
        return self.system.structure.stacked(1 + self.position)

    @property
    def nt(self) -> int:
        """Tangents per contact."""
        return self.system.nt

    @property
    def nc(self) -> int:
        """Contacts, twice where the position counts."""
        return (1 + self.position) * self.system.nc if self.contacts else 0

    @property
    def nb(self) -> int:
        """Bilateral rows."""
        return (1 + self.position) * self.system.nb

    def frozen(self, d: Any, z: Array) -> tuple[Callable[[Array], Array], bool]:
        """``(M w, x)``; rates are those of velocities alone where the position does not count."""
        n = self.system.nv
        return lambda z: jnp.concatenate([d.mass.times(z[:n]), z[n:]]), not self.position

    def motion(self, d: Any, z: Array) -> tuple[Array, Array, Array]:
        """Increment of the position, midpoint, velocity increment."""
        n = self.system.nv
        xi = d.dt * (d.state.v + 0.5 * z[:n])
        if self.position:
            xi = xi + d.dt * z[n:]
        return xi, self.system.retract(d.state.q, 0.5 * xi), z[:n]

    def middle(self, d: Any) -> Array:
        """Time of the midpoint."""
        return d.state.t + 0.5 * d.dt

    def residual(self, d: Any, z: Array) -> Array:
        """Momentum balance, and ``x``, without row forces."""
        _, middle, w = self.motion(d, z)
        force = self.system.force(self.middle(d), middle, d.state.v + 0.5 * w, d.params)
        balance = d.mass.times(w) - d.dt * force
        return jnp.concatenate([balance, z[self.system.nv :]])

    def split(self, x: Array) -> tuple[Array, Array]:
        """Velocity rows (contacts, constraints), and position rows without tangents."""
        nc, nb, d = (self.system.nc if self.contacts else 0), self.system.nb, 1 + self.nt
        if not self.position:
            return x, x[:0]
        velocity = [x[: nc * d], x[2 * nc * d : 2 * nc * d + nb]]
        return jnp.concatenate(velocity), jnp.concatenate(
            [x[nc * d : 2 * nc * d : d], x[2 * nc * d + nb :]]
        )

    def join(self, velocity: Array, position: Array) -> Array:
        """Inverse of `split` along the first axis, the tangents of position rows zero."""
        if not self.position:
            return velocity
        count = self.system.nc * (1 + self.nt) if self.contacts else 0
        position = self._padded(position)
        parts = [velocity[:count], position[:count], velocity[count:], position[count:]]
        return jnp.concatenate(parts)

    def _padded(self, position: Array) -> Array:
        """Position rows with tangents, which are zero."""
        nc, shape = (self.system.nc if self.contacts else 0), position.shape[1:]
        empty = jnp.zeros((nc, self.nt, *shape))
        normal = jnp.concatenate([position[:nc, None], empty], axis=1).reshape(nc * (1 + self.nt), *shape)
        return jnp.concatenate([normal, position[nc:]])

    def forces(self, d: Any, z: Array, impulses: Array) -> Array:
        """``(W Lambda, D Psi / dt)`` at the midpoint."""
        _, q, _ = self.motion(d, z)
        velocity, position = self.split(impulses)
        push = row_forces(self.system, self.middle(d), q, velocity, d.params, self.contacts)
        if not self.position:
            return push
        x = row_forces(self.system, self.middle(d), q, self._padded(position), d.params, self.contacts)
        return jnp.concatenate([push, d.mass.solve(x[:, None])[:, 0] if self.kinetic else x])

    def directions(self, d: Any, z: Array) -> Array:
        """Block diagonal ``(W, D)`` (unknowns, rows)."""
        _, q, _ = self.motion(d, z)
        t = self.middle(d)
        wt = all_rows(self.system, t, q, d.params, self.contacts).wt
        if not self.position:
            return wt.T
        dt = correction_directions(self.system, t, q, d.params, self.contacts, self.kinetic).T
        upper = self.join(wt, jnp.zeros_like(dt))
        lower = self.join(jnp.zeros_like(wt), dt)
        return jnp.concatenate([upper, lower], axis=1).T

    def rates(self, d: Any, z: Array) -> Array:
        """``u^+ + e u^-`` at the midpoint, and the gaps at the end over ``dt``."""
        xi, q, w = self.motion(d, z)
        system, t, v = self.system, self.middle(d), d.state.v
        nc = system.nc if self.contacts else 0

        def rate(v: Array) -> Array:
            return row_rates(system, t, q, v, d.params, self.contacts)

        velocity = rate(v + w)
        if nc:
            e = system.law(d.params).row_restitution(nc, self.nt)
            velocity = velocity + jnp.concatenate([e, jnp.zeros(system.nb)]) * rate(v)
        if not self.position:
            return velocity
        if self.linearised:
            start = position_rows(system, d.state.t, d.state.q, d.params, nc) / d.dt
            along = rate(xi / d.dt)
            count = nc * (1 + self.nt)
            position = start + jnp.concatenate([along[: count : 1 + self.nt], along[count:]])
        else:
            end = system.retract(d.state.q, xi)
            position = position_rows(system, d.state.t + d.dt, end, d.params, nc) / d.dt
        return self.join(velocity, position)

    def friction(self, d: Any) -> Array:
        """Coefficients of the velocity laws; position laws are frictionless."""
        nc = self.system.nc if self.contacts else 0
        if not nc:
            return jnp.zeros(0)
        mu = self.system.law(d.params).friction_of(nc)
        return jnp.concatenate([mu, jnp.zeros(nc)]) if self.position else mu

    def given(self, d: Any) -> Given | None:
        """Normal impulses that are given, if any; none on position level."""
        nc = self.system.nc if self.contacts else 0
        one = self.system.law(d.params).given(nc, d.dt) if nc else None
        if one is None or not self.position:
            return one
        on = np.concatenate([one.on, np.zeros(nc, bool)])
        return Given(on=on, normal=jnp.concatenate([one.normal, jnp.zeros(nc)]))


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
        metric: ``D = W`` (``"euclidean"``, as published) or ``M_M^-1 W`` (``"kinetic"``); see
            `ggl_decoupled`.
        tolerance: bound on the relative natural-map residual of each contact problem.
        stage_tolerance: bound on the estimated next update of the solver, relative to ``1 + |v|``.
        gap_tolerance: contacts with ``g_N(q_M)`` up to this value take part [m]. Above zero, because
            position laws keep gaps at zero to rounding only: a contact that is missed for a step falls,
            and with ``e_N > 0`` bounces.
        tangent: of the iteration; see `nsjax.schemes.mixed.framework.mixed_scheme`.
        max_passes, max_iterations: of the stage solver and of each contact problem.
        criteria: by which events are told; None: `nsjax.Criteria` with its defaults.

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
    choose("ggl_unified", "metric", metric, METRICS)
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


def _problem(
    scheme: Scheme, system: System, params: PyTree, state: State, dt: Array, contacts: bool
) -> tuple[_Equations, _Data, int]:
    """Equations of a step, what they read, and how many unknowns they have."""
    options = scheme.options
    middle = midpoint(system, state, dt)
    mass = inertia_at(system, middle.t, middle.q, params)
    data = _Data(params=params, state=state, mass=mass, dt=dt)
    equations = _Equations(
        system=system,
        contacts=contacts,
        position=(contacts or bool(system.nb)) and options.position_multiplier,
        linearised=options.gap == "linearised",
        kinetic=kinetic_metric(options.metric, system),
        tangent=tangent_of(options.tangent, system),
    )
    return equations, data, system.nv * (1 + equations.position)


def unified_stage(
    scheme: Scheme, system: System, params: PyTree, state: State, active: Array, dt: Array, contacts: bool,
    carried: Carried | None = None,
) -> tuple[_Equations, _Data, StageAnswer]:  # fmt: skip
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
    dt: Array, contacts: bool, _formed: Formed | None,
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
    system: System, d: _Data, answer: StageAnswer, middle: Array, dv: Array, active: Array, contacts: bool
) -> Jump:
    """The jump, with rates at the midpoint."""
    v, t = d.state.v, d.state.t + 0.5 * d.dt
    if not contacts:
        empty = jnp.zeros(system.nb)
        return stage_jump(system, answer, dv, empty, empty, active, contacts)
    rows = all_rows(system, t, middle, d.params)
    return stage_jump(system, answer, dv, rows.rate(v), rows.rate(v + dv), active, contacts)
