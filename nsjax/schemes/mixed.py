"""The mixed framework: a base step with velocity-level contact forces, an impulse at its end.

Between impacts a scheme of structural dynamics runs with the contact forces of the contacts closed at
the start of the step; if a contact has newly closed at the end, all closed contacts share an impulse
with Newton's and Coulomb's laws. A base scheme contributes its stages, as affine maps of the
velocity increments, and nothing else. Source: [R&S section 2.3, (46)-(54)]; `schemes.md` section 5,
`mixed_framework.md` sections 1 and 4.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax import lax

from nsjax.contact import ContactProblem, Jump, no_jump, solve, velocity_jump
from nsjax.contact.acceleration import consistent_acceleration
from nsjax.contact.stage import StageSettings, solve_stage
from nsjax.core.errors import InputError
from nsjax.core.operators import Rows, all_rows, gap_rows, row_rates
from nsjax.core.scheme import Carry, Event, Output, Scheme
from nsjax.core.system import State, System
from nsjax.linalg import solve_positive
from nsjax.schemes.books import gated_impacts, step_status
from nsjax.schemes.choices import FORMS, choose
from nsjax.schemes.stages import Maps, StageEquations
from nsjax.types import Array, PyTree, record

# A closed contact rests if its gap rate is zero to rounding. Looser bounds spoil derivatives at
# single step sizes (`mixed_framework.md` section 5).
RESTING = 1e-11


@record()
class Memory:
    """What mixed schemes remember: true and algorithmic acceleration, closed and resting contacts."""

    a: Array
    algorithmic: Array
    closed: Array
    resting: Array


@record()
class Tolerances:
    """Numbers common to all mixed schemes; see `mixed_scheme`."""

    stage: Array | float
    contact: Array | float
    gap: Array | float


@dataclasses.dataclass(frozen=True)
class Options:
    """Choices common to all mixed schemes; see `mixed_scheme`."""

    base: Callable[..., Any]
    consistent_initial_acceleration: bool
    acceleration_after_change: str
    constraint_form: str
    starting_force: Callable[..., Any] | None
    max_passes: int
    max_iterations: int


@record()
class BaseEnd:
    """What a base scheme returns: end of the step before an impact, accelerations, row forces [N].

    ``free`` is the velocity without row forces for schemes that drop them in a step with an impulse;
    None keeps them.
    """

    q: Array
    v: Array
    a: Array
    algorithmic: Array
    force: Array
    free: Array | None = None


@record()
class End:
    """End of a base step: position, velocity before an impact, accelerations, impulses over ``dt``."""

    q: Array
    v: Array
    a: Array
    algorithmic: Array
    contacts: Array
    constraints: Array
    iterations: Array
    residual: Array
    solved: Array
    free: Array | None = None


def mixed_scheme(
    name: str,
    base: Callable[..., Any],
    coef: Any,
    *,
    consistent_initial_acceleration: bool = True,
    acceleration_after_change: str = "recompute",
    constraint_form: str = "index_2",
    starting_force: Callable[..., Any] | None = None,
    max_passes: int = 20,
    max_iterations: int = 20,
) -> Scheme:
    """A scheme of the mixed framework around a base step.

    Args:
        name: registered name.
        base: ``(coef, state, memory, dt, run) -> BaseEnd``, the formulas of the base scheme.
            ``run(maps)`` solves one group of stages; it returns ``(t, q, v, a)`` and the row impulses
            (contacts, then constraints) of every stage.
        coef: record of numbers with a field ``tolerances``.
        consistent_initial_acceleration: start with the acceleration that contacts and constraints allow.
            False leaves their forces out, as the paper does, and reproduces its Figures 17 and 18.
        acceleration_after_change: of the set of persistent contacts. ``"recompute"``: the consistent
            acceleration on the new set; ``"keep"``: the stored one, as in the paper.
        constraint_form: level on which implicit stages fulfil bilateral constraints: ``"index_2"``
            velocity, ``"ggl"`` position and velocity (Gear, Gupta, Leimkuhler), ``"index_3"`` position,
            ``"index_1"`` acceleration.
        starting_force: ``(coef, state, dt, run) -> (rows,)``, row forces at the start of a step. If
            given, a step without impulse reports the mean of its own forces and those with which the
            next one starts.
        max_passes, max_iterations: of the stage solver and of each contact problem.
    """
    choose(name, "acceleration_after_change", acceleration_after_change, ("recompute", "keep"))
    choose(name, "constraint_form", constraint_form, FORMS)
    options = Options(
        base=base,
        consistent_initial_acceleration=consistent_initial_acceleration,
        acceleration_after_change=acceleration_after_change,
        constraint_form=constraint_form,
        starting_force=starting_force,
        max_passes=max_passes,
        max_iterations=max_iterations,
    )
    return Scheme(name=name, coef=coef, options=options, prepare=_prepare, init=_init, step=_step)


def _prepare(scheme: Scheme, system: System, params: PyTree, dt: Array) -> PyTree:
    if system.mass is None:
        raise InputError(f"{scheme.name}: the system gives inertia; this scheme needs mass, a dense matrix")
    return ()


def _init(scheme: Scheme, system: System, params: PyTree, constants: PyTree, state: State) -> Carry:
    t, q, v = jnp.asarray(state.t), state.q, state.v
    closed = _closed(scheme, system, params, t, q)
    if system.nc:
        # a start that approaches is an impact: it counts as open, so that the first step has an impulse
        rates = gap_rows(system, "gap", system.nc, t, q, params).rate(v)
        closed = closed & (rates >= -RESTING * (1.0 + jnp.max(jnp.abs(v))))
    resting = _resting(system, params, t, q, v, closed)
    if scheme.options.consistent_initial_acceleration:
        a = _acceleration(scheme, system, params, t, q, v, resting)
    else:
        mass = system.mass(q, params)  # type: ignore[misc]
        a = solve_positive(mass, system.force(t, q, v, params)[:, None])[:, 0]
    return Carry(state=state, memory=Memory(a=a, algorithmic=a, closed=closed, resting=resting))


def _acceleration(
    scheme: Scheme, system: System, params: PyTree, t: Array, q: Array, v: Array, resting: Array
) -> Array:
    return consistent_acceleration(
        system, params, t, q, v, resting,
        tolerance=scheme.coef.tolerances.contact, max_iterations=scheme.options.max_iterations,
    )  # fmt: skip


def _closed(scheme: Scheme, system: System, params: PyTree, t: Array, q: Array) -> Array:
    if system.gap is None:
        return jnp.zeros(0, bool)
    return system.gap(t, q, params) <= scheme.coef.tolerances.gap


def _resting(system: System, params: PyTree, t: Array, q: Array, v: Array, closed: Array) -> Array:
    """Closed contacts whose gap rate is zero to rounding."""
    if not system.nc:
        return closed

    def look(_: None) -> Array:
        rates = row_rates(system, t, q, v, params)
        normal = rates[: system.nc * (1 + system.nt) : 1 + system.nt]
        return closed & (jnp.abs(normal) <= RESTING * (1.0 + jnp.max(jnp.abs(v))))

    return lax.cond(jnp.any(closed), look, lambda _: jnp.zeros(system.nc, bool), None)


class Runner:
    """What a base scheme may use in a step: the model, and the solves that belong to it.

    Calling it with `Maps` solves one group of implicit stages. `rows_at` and `velocity_level` serve
    base schemes without a Newton iteration.
    """

    def __init__(
        self, scheme: Scheme, system: System, params: PyTree, state: State, closed: Array, contacts: bool
    ) -> None:
        self.scheme, self.system, self.params, self.contacts = scheme, system, params, contacts
        self.closed = closed if contacts else jnp.zeros(0, bool)
        self.scale = 1.0 + jnp.max(jnp.abs(state.v))
        self.has_rows = bool(system.nb) or contacts
        self.residuals: list[Array] = [jnp.zeros(())]
        self.estimates: list[Array] = [jnp.zeros(())]
        self.iterations: Array = jnp.asarray(0, int)

    def __call__(self, maps: Maps) -> tuple[list[tuple[Array, Array, Array, Array]], list[Array]]:
        """``(t, q, v, a)`` and the row impulses (contacts, then constraints) of every stage."""
        tolerances, options = self.scheme.coef.tolerances, self.scheme.options
        stages = maps.v.shape[0]
        equations = StageEquations(self.system, stages, self.contacts, options.constraint_form)
        settings = StageSettings(
            tolerance=tolerances.stage, contact_tolerance=tolerances.contact, scale=self.scale
        )
        answer = solve_stage(
            equations, (self.params, maps), jnp.zeros(equations.unknowns),
            jnp.concatenate([self.closed] * stages), settings,
            max_passes=options.max_passes, max_iterations=options.max_iterations,
        )  # fmt: skip
        self.residuals.append(answer.residual)
        self.estimates.append(answer.estimate)
        self.iterations = self.iterations + answer.iterations
        return maps.at(self.system, answer.z), equations.split(answer.impulses)

    def rows_at(self, t: Array, q: Array) -> Rows:
        """Rows of the contacts (if any can act in this branch) and constraints."""
        return all_rows(self.system, t, q, self.params, self.contacts)

    def velocity_level(self, delassus: Array, free: Array) -> Array:
        """Impulses for which the row velocities ``free + delassus x`` fulfil the laws without
        restitution.
        """
        nc = self.system.nc if self.contacts else 0
        friction = self.system.law(self.params).friction_of(nc) if nc else jnp.zeros(0)  # type: ignore[misc]
        problem = ContactProblem(
            nc=nc, nt=self.system.nt, nb=self.system.nb, delassus=delassus, free=free,
            friction=friction, mask=self.closed,
        )  # fmt: skip
        answer = solve(
            problem,
            tolerance=self.scheme.coef.tolerances.contact,
            max_iterations=self.scheme.options.max_iterations,
        )
        self.residuals.append(answer.residual)
        self.iterations = self.iterations + answer.iterations
        return answer.x


def _split(system: System, force: Array, contacts: bool) -> tuple[Array, Array]:
    """Row forces as (nc, 1 + nt) of the contacts, zero where they have no rows, and (nb,)."""
    d = system.nc * (1 + system.nt) if contacts else 0
    shape = system.nc, 1 + system.nt
    return (force[:d].reshape(shape) if contacts else jnp.zeros(shape)), force[d:]


def _branch(system: System, closed: Array, f: Callable[[bool], Any]) -> Any:
    """``f(contacts)``: with contact rows where any contact is closed, else without."""
    if not system.nc:
        return f(False)
    return lax.cond(jnp.any(closed), lambda _: f(True), lambda _: f(False), None)


def _base_step(
    scheme: Scheme, system: System, params: PyTree, state: State, memory: Memory, dt: Array, contacts: bool
) -> End:
    run = Runner(scheme, system, params, state, memory.closed, contacts)
    base: BaseEnd = scheme.options.base(scheme.coef, state, memory, dt, run)
    residual, estimate = jnp.max(jnp.stack(run.residuals)), jnp.max(jnp.stack(run.estimates))
    tolerances = scheme.coef.tolerances
    force, constraints = _split(system, base.force, contacts)
    return End(
        q=base.q,
        v=base.v,
        a=base.a,
        algorithmic=base.algorithmic,
        contacts=force,
        constraints=constraints,
        iterations=run.iterations,
        residual=residual,
        solved=(residual <= tolerances.contact) & (estimate <= tolerances.stage),
        free=base.free,
    )


def _without_forces(end: End, drop: Array) -> End:
    """The step without its row forces, where ``drop``, if the base scheme gives it."""
    if end.free is None:
        return end
    pick = lambda kept, dropped: jnp.where(drop, dropped, kept)  # noqa: E731
    return dataclasses.replace(
        end,
        v=pick(end.v, end.free),
        contacts=pick(end.contacts, 0.0),
        constraints=pick(end.constraints, 0.0),
    )


def _reported_forces(
    scheme: Scheme, system: System, params: PyTree, end: End, state: State, closed: Array, dt: Array,
    impulse: Array,
) -> tuple[Array, Array]:  # fmt: skip
    """Forces at the end of the step; see ``starting_force`` of `mixed_scheme`."""
    if scheme.options.starting_force is None:
        return end.contacts, end.constraints

    def start(contacts: bool) -> tuple[Array, Array]:
        run = Runner(scheme, system, params, state, closed, contacts)
        force = scheme.options.starting_force(scheme.coef, state, dt, run)
        return _split(system, force, contacts)

    next_contacts, next_constraints = _branch(system, closed, start)
    mean = lambda own, following: jnp.where(impulse, own, 0.5 * (own + following))  # noqa: E731
    return mean(end.contacts, next_contacts), mean(end.constraints, next_constraints)


def _remember(
    scheme: Scheme, system: System, params: PyTree, end: End, state: State, memory: Memory, closed: Array
) -> Memory:
    """Accelerations after the step: anew where the set of persistent contacts has changed."""
    t, q, v = jnp.asarray(state.t), state.q, state.v
    resting = _resting(system, params, t, q, v, closed)
    a, algorithmic = end.a, end.algorithmic
    if scheme.options.acceleration_after_change == "recompute" and system.nc:
        changed = jnp.any(closed & ~memory.closed) | jnp.any(resting != memory.resting)
        fresh = lax.cond(
            changed,
            lambda _: _acceleration(scheme, system, params, t, q, v, resting),
            lambda _: a,
            None,
        )
        a, algorithmic = fresh, jnp.where(changed, fresh, algorithmic)
    return Memory(a=a, algorithmic=algorithmic, closed=closed, resting=resting)


def _step(
    scheme: Scheme, system: System, params: PyTree, constants: PyTree, carry: Carry, dt: Array
) -> tuple[Carry, Output]:
    state, memory = carry.state, carry.memory
    t = jnp.asarray(state.t) + dt
    end: End = _branch(
        system, memory.closed, lambda on: _base_step(scheme, system, params, state, memory, dt, on)
    )
    gap = jnp.zeros(0) if system.gap is None else system.gap(t, end.q, params)
    closed = gap <= scheme.coef.tolerances.gap
    new = jnp.any(closed & ~memory.closed)
    end = _without_forces(end, new)
    jump, impact = _impulse(scheme, system, params, t, end, closed, new, dt)
    after = State(t=t, q=end.q, v=end.v + jump.dv)
    forces, constraints = _reported_forces(scheme, system, params, end, after, closed, dt, new)
    impulses = dt * forces + jump.contacts
    solved = end.solved & (jump.residual <= scheme.coef.tolerances.contact)
    ahead = State(t=t, q=system.retract(state.q, dt * state.v), v=state.v)
    output = Output(
        force_normal=forces[:, 0],
        force_tangential=forces[:, 1:],
        constraint_force=constraints,
        impulse_normal=impulses[:, 0],
        impulse_tangential=impulses[:, 1:],
        constraint_impulse=dt * constraints + jump.constraints,
        event=Event(gap=gap, active=closed, impact=impact, rate_before=jump.before, rate_after=jump.after),
        iterations=end.iterations + jump.iterations,
        residual=jnp.maximum(end.residual, jump.residual),
        status=step_status(system, params, ahead, gap, after.v, after.q, solved),
        contact=jump.worst,
    )
    memory = _remember(scheme, system, params, end, after, memory, closed)
    return Carry(state=after, memory=memory), output


def _impulse(
    scheme: Scheme, system: System, params: PyTree, t: Array, end: End, closed: Array, new: Array, dt: Array
) -> tuple[Jump, Array]:
    """Impulse of all closed contacts if one is ``new``, with the plain mass matrix."""
    none = no_jump(system), jnp.zeros(system.nc, bool)
    if not system.nc:
        return none

    def strike(_: None) -> tuple[Jump, Array]:
        rows = all_rows(system, t, end.q, params)
        response = solve_positive(system.mass(end.q, params), rows.wt.T)  # type: ignore[misc]
        jump = velocity_jump(
            system, params, rows, response, end.v, jnp.zeros(system.nv), closed,
            tolerance=scheme.coef.tolerances.contact, max_iterations=scheme.options.max_iterations,
        )  # fmt: skip
        at = State(t=t, q=end.q, v=end.v)
        impact = gated_impacts(system, params, at, rows, end.a, jump, closed, dt)
        return jump, impact

    return lax.cond(new, strike, lambda _: none, None)
