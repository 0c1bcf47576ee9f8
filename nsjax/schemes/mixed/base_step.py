"""The base step of the mixed framework: inputs, tools and results of a base scheme."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from nsjax.contact import ContactLaw, ContactProblem, SolverSettings
from nsjax.contact.equations import CarriedTangent, StageTangent, blank, kept_tangent, no_tangent
from nsjax.contact.events import NEVER, Touch, no_touch
from nsjax.contact.stage import StageSettings, StageStart, solve_stage
from nsjax.core.errors import InputError
from nsjax.core.operators import Rows, momentum
from nsjax.core.scheme import Answer, Carry, InModes, PartEnd, Scheme
from nsjax.core.step import ConstantInertia, Step, constant_inertia
from nsjax.core.system import State, System, row_groups
from nsjax.jaxtools.control_flow import branch
from nsjax.schemes.common import tangent_of
from nsjax.schemes.mixed.stages import Maps, StageEquations, single
from nsjax.types import Array, PyTree, record

Tangents = tuple[tuple[CarriedTangent, ...], tuple[CarriedTangent, ...]]


@record()
class Memory:
    """Memory of mixed schemes between steps.

    Args:
        a, algorithmic: (nv,) true and algorithmic acceleration.
        force, algorithmic_force: (rows,) the row forces that belong to them [N], contacts first: a scheme
            that puts earlier accelerations into a step puts the forces that caused them into it, too.
        closed: (nc,) bool, closed contacts.
        touch: memory of contacts for events, and which contacts are at rest.
        stale: () bool, accelerations and their forces are not those of the persistent contacts: the next
            step begins by computing them.
        tangents: tangents of every group of stages, without and with contact rows, if they are kept from
            step to step.
    """

    a: Array
    algorithmic: Array
    force: Array
    algorithmic_force: Array
    closed: Array
    touch: Touch
    stale: Array
    tangents: Tangents = ((), ())

    @property
    def resting(self) -> Array:
        """(nc,) bool, closed contacts whose gap rate is zero to rounding."""
        return self.touch.held


@record()
class BaseEnd:
    """Result of a base scheme: the end of the step before an impact.

    Args:
        q, v, a, algorithmic: position, velocity, true and algorithmic acceleration.
        force: (rows,) row forces at the end of the step [N], contacts first, zero where they have no rows.
        impulse: (rows,) their part in the velocity change [N s], ``M dv = (same weights of h) + W P`` for
            constant ``M`` and ``W``: the formula of the velocity, applied to row forces.
        algorithmic_force: (rows,) row forces of the algorithmic acceleration; None: ``force``.
        free: the velocity without row forces for schemes that drop them in a step with an impulse;
            None keeps them.
    """

    q: Array
    v: Array
    a: Array
    algorithmic: Array
    force: Array
    impulse: Array
    algorithmic_force: Array | None = None
    free: Array | None = None


@record()
class End:
    """A `BaseEnd` with the work done, whether all problems were solved, and the sliding velocities
    ``slide`` (nc, nt) at the start of the step, infinite where they are not known.
    """

    q: Array
    v: Array
    a: Array
    algorithmic: Array
    force: Array
    impulse: Array
    algorithmic_force: Array
    iterations: Array
    residual: Array
    solved: Array
    notes: Array
    slide: Array
    free: Array | None = None
    tangents: Tangents = ((), ())


@record()
class ConstantParts:
    """Data that are constant over a run of a model with a constant structure; empty for other models.

    Args:
        inertia: factors and responses of the inertia.
        stages: linearised dynamics of every group of stages, without and with contact rows.
    """

    inertia: ConstantInertia | None = None
    stages: tuple[tuple[StageTangent, ...], ...] = ((), ())


class Runner:
    """Tools of a base scheme in a step: the model, and the solution of its stages and contact laws.

    Calling it with `Maps` solves one group of implicit stages. `rows_at` and `velocity_level` serve
    base schemes without a Newton iteration.
    """

    def __init__(
        self, step: Step, closed: Array, contacts: bool, tangents: tuple[CarriedTangent, ...] = ()
    ) -> None:
        self.step, self.contacts, self.dt = step, contacts, step.dt
        self.scheme, self.system, self.params = step.scheme, step.system, step.params
        self.closed = closed if contacts else jnp.zeros(0, bool)
        self.scale = 1.0 + jnp.max(jnp.abs(step.state.v))
        self.has_rows = bool(self.system.nb) or contacts
        self.kept: ConstantParts = step.constants
        self.groups = iter(self.kept.stages[contacts])
        self.earlier, self.carried = iter(tangents), list[CarriedTangent]()
        self.residuals: list[Array] = [jnp.zeros(())]
        self.estimates: list[Array] = [jnp.zeros(())]
        self.iterations: Array = jnp.asarray(0, int)

    def equations(self, maps: Maps) -> StageEquations:
        """Equations of a group of stages."""
        options = self.scheme.options
        tangent = tangent_of(options.tangent, self.system)
        return StageEquations(self.system, maps.v.shape[0], self.contacts, options.constraint_form, tangent)

    def __call__(self, maps: Maps) -> tuple[list[tuple[Array, Array, Array, Array]], list[Array]]:
        """``(t, q, v, a)`` and row impulses ``dt lambda`` (contacts, then constraints) of every stage."""
        tolerances, options = self.scheme.coef.tolerances, self.scheme.options
        equations = self.equations(maps)
        if equations.own.nc:
            maps = dataclasses.replace(maps, friction=self.step.start.friction())
        earlier = next(self.earlier, None)
        settings = StageSettings(
            tolerance=tolerances.stage, contact_tolerance=tolerances.contact, scale=self.scale,
            max_passes=options.max_passes, max_iterations=options.max_iterations,
        )  # fmt: skip
        start = StageStart(
            z=jnp.zeros(equations.unknowns), kept=next(self.groups, None), carried=earlier,
            again=None if earlier is None else maps.still(equations.unknowns),
        )  # fmt: skip
        active = equations.own.contacts_by_group([self.closed] * equations.stages)
        answer = solve_stage(equations, (self.params, maps), active, settings, start)
        if answer.carried is not None:
            self.carried.append(answer.carried)
        self.residuals.append(answer.residual)
        self.estimates.append(answer.estimate)
        self.iterations = self.iterations + answer.iterations
        return maps.at(self.system, answer.z), [self.all(x) for x in equations.split(answer.impulses)]

    def all(self, x: Array) -> Array:
        """Values of all rows from those of the rows of this branch: zero at contacts without rows here."""
        missing = row_groups(self.system).count - x.shape[0]
        return jnp.concatenate([jnp.zeros(missing), x]) if missing else x

    def rows_at(self, t: Array, q: Array) -> Rows:
        """Rows of the contacts (if any can act in this branch) and constraints."""
        if self.system.inside:
            name = self.scheme.name
            raise InputError(f"{name}: joints inside the structure have no rows; give joints_inside=False")
        return self.step.at(State(t=t, q=q, v=self.step.state.v)).rows(self.contacts)

    def velocity_level(self, delassus: Array, free: Array) -> Array:
        """Impulses for which the row velocities ``free + delassus x`` fulfil the laws, no restitution."""
        # restitution is that of the impulse at the end of the step (`nsjax.schemes.mixed.impact`)
        groups = row_groups(self.system, self.contacts)
        law = self.step.start.law() if groups.nc else ContactLaw()
        problem = ContactProblem(
            rows=groups, delassus=delassus, free=free, friction=law.friction_of(groups.nc),
            mask=self.closed, given=law.given(self.dt),
        )  # fmt: skip
        answer = contact_settings(self.scheme, "auto").solve(problem)
        self.residuals.append(answer.residual)
        self.iterations = self.iterations + answer.iterations
        return answer.x


class Recorder(Runner):
    """Runs a base scheme only for the tangents of its stages: ``of`` is `kept_tangent` or `no_tangent`."""

    def __init__(self, step: Step, contacts: bool, of: Any) -> None:
        super().__init__(step, jnp.zeros(step.system.nc, bool), contacts)
        self.groups, self.of = iter(()), of
        self.tangents: list[Any] = []

    def __call__(self, maps: Maps) -> tuple[list[tuple[Array, Array, Array, Array]], list[Array]]:
        """Records the tangent of the stages, and returns the predicted stages with zero impulses."""
        equations = self.equations(maps)
        self.tangents.append(self.of(equations, (self.params, maps), equations.unknowns))
        nothing = [self.all(x) for x in equations.split(jnp.zeros(equations.rows.count))]
        return maps.at(self.system, jnp.zeros(equations.unknowns)), nothing


def _noted(step: Step, of: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Tangents by ``of`` (see `Recorder`) for every group of stages, without and with contact rows."""
    scheme, system = step.scheme, step.system
    still, free = jnp.zeros(system.nv), jnp.zeros(row_groups(system).count)
    memory = Memory(
        a=still, algorithmic=still, force=free, algorithmic_force=free,
        closed=jnp.zeros(system.nc, bool), touch=no_touch(system), stale=jnp.asarray(False),
    )  # fmt: skip
    found: list[tuple[Any, ...]] = []
    for contacts in (False, system.nc > 0):
        record = Recorder(step, contacts, of)
        scheme.options.base(scheme.coef, step.state, memory, step.dt, record)
        found.append(tuple(record.tangents))
    return found[0], found[1]


def rest_step(scheme: Scheme, system: System, params: PyTree, kept: ConstantParts, dt: Array) -> Step:
    """A step from zero position and velocity."""
    rest = State(t=jnp.zeros(()), q=jnp.zeros(system.nq), v=jnp.zeros(system.nv))
    return Step(scheme=scheme, system=system, params=params, constants=kept, carry=Carry(state=rest), dt=dt)


def kept_parts(scheme: Scheme, system: System, params: PyTree, dt: Array) -> ConstantParts:
    """`ConstantParts` for a run of a mixed scheme."""
    if not system.structure.constant:
        return ConstantParts()
    kept = ConstantParts(inertia=constant_inertia(system, params))
    # a constant structure has the tangents of the state of rest in all states
    stages = _noted(rest_step(scheme, system, params, kept, dt), kept_tangent)
    return dataclasses.replace(kept, stages=stages)


def no_tangents(step: Step) -> Tangents:
    """Blank tangents for `Memory` if tangents are kept from step to step, else none."""
    scheme, system = step.scheme, step.system
    if system.structure.constant or tangent_of(scheme.options.tangent, system) != "kept":
        return (), ()
    rest = rest_step(scheme, system, step.params, ConstantParts(), jnp.ones(()))
    # shapes alone are asked: nothing is evaluated
    return blank(jax.eval_shape(lambda: _noted(rest, no_tangent)))


def contact_settings(scheme: Scheme, method: str = "auto_rare") -> SolverSettings:
    """Settings of the contact problems of a mixed scheme."""
    tolerance, most = scheme.coef.tolerances.contact, scheme.options.max_iterations
    return SolverSettings(tolerance=tolerance, max_iterations=most, method=method)


def loaded_rows(system: System, x: Array) -> Array:
    """Contacts (nc,) bool that push, by the forces ``x`` of all rows; bounded forces always act."""
    groups = row_groups(system)
    return (groups.normals(x) > 0.0) | groups.given


def on_contacts(system: System, closed: Array, f: Callable[[bool], Any]) -> Any:
    """``f(contacts)``: with contact rows if any contact is closed, else without.

    Mechanisms of many bodies always have contact rows: these cost a step little, a second program does not.
    """
    if not system.nc:
        return f(False)
    if system.tangent_hint == "mass":
        return f(True)
    return branch(jnp.any(closed), lambda _: f(True), lambda _: f(False), None)


def end_by(step: Step, contacts: bool, formulas: Any, tangents: tuple[CarriedTangent, ...] = ()) -> End:
    """The end of a step by a base scheme's ``formulas``, before an impulse, from earlier ``tangents``."""
    scheme, memory = step.scheme, step.carry.memory
    both = memory.tangents
    run = Runner(step, memory.closed, contacts, tangents)
    base: BaseEnd = formulas(scheme.coef, step.state, memory, step.dt, run)
    # a step is as good as the worst of its stages
    residual, estimate = jnp.max(jnp.stack(run.residuals)), jnp.max(jnp.stack(run.estimates))
    tolerances = scheme.coef.tolerances
    return End(
        q=base.q, v=base.v, a=base.a, algorithmic=base.algorithmic, force=base.force, impulse=base.impulse,
        algorithmic_force=base.force if base.algorithmic_force is None else base.algorithmic_force,
        iterations=run.iterations, residual=residual,
        solved=(residual <= tolerances.contact) & (estimate <= tolerances.stage),
        notes=jnp.zeros(step.system.nc, int), slide=jnp.full((step.system.nc, step.system.nt), jnp.inf),
        free=base.free,
        tangents=(both[0], tuple(run.carried)) if contacts else (tuple(run.carried), both[1]),
    )  # fmt: skip


# The base step of the mixed framework, and that after contacts have changed stiff motion.


def base_step(step: Step, contacts: bool) -> End:
    """The step before an impulse, with or without contact rows: that of the base scheme, or the implicit
    Euler rule where contacts have changed motion that is too fast for the step.

    The rule adds no energy to motion with a convex potential and dampers, whatever its velocities::

        E_{i+1} - E_i <= -dv M dv / 2 - dt v_{i+1} D v_{i+1} + P W' v_{i+1}

    Unilateral contacts do no work at the velocity of the end, and friction takes energy. One such step has
    an error of order two, no more than the impact before it. Source of the idea: Rannacher's start of
    parabolic equations (1984), and Marti and Lin's steps after switches in circuits (1989).
    """
    scheme = step.scheme
    end = end_by(step, contacts, scheme.options.base, step.carry.memory.tangents[contacts])
    if not (contacts and step.system.stiff and scheme.options.implicit):
        return end

    def anew(_: None) -> End:
        # kept tangents are those of the stages of the base scheme, not of the Euler rule
        inertia_alone = ConstantParts(inertia=step.constants.inertia) if step.constants else step.constants
        found = end_by(dataclasses.replace(step, constants=inertia_alone), True, _implicit_euler)
        return dataclasses.replace(
            found, iterations=end.iterations + found.iterations, tangents=end.tangents
        )

    return branch(_unresolved(step, end), anew, lambda _: end, None)


def _implicit_euler(coef: Any, state: State, memory: Memory, dt: Array, run: Any) -> BaseEnd:
    """``q_{i+1} = q_i + dt v_{i+1}``, ``M (v_{i+1} - v_i) = dt h_{i+1} + W P``. No memory is read."""
    v, rest = state.v, jnp.zeros_like(state.v)
    maps = single(
        anchor=state.q, xi=dt * v, v=v, a=rest, cq=dt, ca=1 / dt, t=jnp.asarray(state.t) + dt, dt=dt
    )
    ((_, q, v, a),), (impulses,) = run(maps)
    return BaseEnd(q=q, v=v, a=a, algorithmic=a, force=impulses / dt, impulse=impulses)


def _unresolved(step: Step, end: End) -> Array:
    """Whether () bool contacts have changed motion that is too fast for the step,
    ``dt d D d + dt^2 d K d > d M d`` for the change ``d`` of the velocity in the step, or for the
    acceleration at its start. Contacts change velocities at once where they are new, leave, or push what
    moves apart; weights of a scheme then do what forces do not.
    """
    system, memory, state, dt = step.system, step.carry.memory, step.state, step.dt
    before, pushed, after = (loaded_rows(system, x) for x in (memory.force, end.impulse, end.force))
    changes = (before & ~after) | (pushed & ~memory.resting)

    def too_fast(d: Array) -> Array:
        def force(s: Array) -> Array:
            q = system.retract(state.q, s * dt * d)
            return system.force(jnp.asarray(state.t), q, state.v + s * d, step.params)

        push = jax.jvp(force, (jnp.zeros(()),), (jnp.ones(()),))[1]
        return -dt * jnp.sum(d * push) > jnp.sum(d * momentum(system, state.q, d, step.params))

    def fast(_: None) -> Array:
        # a decision, which has no derivative
        ways = jax.lax.stop_gradient(jnp.stack([end.v - state.v, dt * memory.a]))
        return jnp.any(jax.vmap(too_fast)(ways))

    suspect = memory.stale | jnp.any(memory.closed & changes)
    return branch(suspect, fast, lambda _: jnp.asarray(False), None)


# Steps of an explicit base scheme in fixed contact modes, without contact laws.


class _GivenImpulses(Runner):
    """Runs a base scheme with row impulses by given equations instead of the contact laws."""

    def __init__(self, step: Step, closed: Array, contacts: bool, answer: Answer) -> None:
        super().__init__(step, closed, contacts)
        self.answer = answer

    def velocity_level(self, delassus: Array, free: Array) -> Array:
        """Impulses of the rows by the equations of their modes."""
        return self.answer(delassus, free)


def _advance(step: Step, held: Array | None, answer: Answer) -> PartEnd:
    """The base step without an impulse at its end."""
    options, coef = step.scheme.options, step.scheme.coef

    def base(contacts: bool) -> PartEnd:
        run = _GivenImpulses(
            step, jnp.zeros(step.system.nc, bool) if held is None else held, contacts, answer
        )
        end: BaseEnd = options.base(coef, step.state, None, step.dt, run)
        return PartEnd(q=end.q, v=end.v, a=end.a, force=end.force, impulse=end.impulse)

    if held is None:
        return base(False)
    return on_contacts(step.system, held, base)


def _fits(scheme: Scheme) -> bool:
    """Whether base steps fulfil constraints on velocity level, and report their own forces."""
    options = scheme.options
    plain = options.starting_force is None and not options.leaving_is_open
    return bool(plain and options.constraint_form == "index_2")


def _held(memory: Memory) -> tuple[Array, Array]:
    touch = memory.touch
    return memory.resting, memory.resting & (touch.off == 0) & ~touch.stuck


def _flown(memory: Memory) -> Array:
    return jnp.where(memory.touch.bounced, memory.touch.off, NEVER)


def _remembered(
    memory: Memory, end: PartEnd, held: Array, stuck: Array, active: Array, impact: Array
) -> Memory:
    """The memory after a step in which ``active`` contacts took part and ``impact`` had impacts."""
    old = memory.touch
    touch = dataclasses.replace(
        old,
        held=held,
        stuck=stuck,
        off=jnp.where(active, 0, old.off + 1),
        bounced=(old.bounced | impact) & ~held,
        slide=jnp.full_like(old.slide, jnp.inf),  # not known
    )
    return dataclasses.replace(
        memory, a=end.a, algorithmic=end.a, force=end.force, algorithmic_force=end.force, closed=held,
        touch=touch, stale=jnp.asarray(False),
    )  # fmt: skip


EXPLICIT = InModes(fits=_fits, advance=_advance, held=_held, flown=_flown, remembered=_remembered)
"""Steps in modes of base schemes that start from position and velocity alone and solve no stages."""
