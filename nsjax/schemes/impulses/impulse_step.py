"""A step whose contact forces are all impulses, with rows that are frozen in it.

Such a scheme decides at the predicted midpoint which contacts act, and then changes the velocity by one
jump. The contact decision, the memory of contacts and the output are common to all these schemes and are
here; the jump is a function of each scheme (``Method.respond``).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from nsjax.contact import ContactLaw, Jump, events
from nsjax.contact.equations import CarriedTangent
from nsjax.contact.events import criteria_of
from nsjax.contact.sensitivity import Contacts, Family, Stepped, no_report, through_events
from nsjax.contact.stage import StageAnswer, StageSettings, StageStart, solve_stage
from nsjax.core.operators import Rows, momentum, no_rows, touching
from nsjax.core.row_groups import GivenForces, RowGroups
from nsjax.core.scheme import Carry, Output, Scheme
from nsjax.core.step import Balance, Formed, Step, SystemState
from nsjax.core.system import State, System, row_groups
from nsjax.jaxtools.control_flow import branch
from nsjax.linalg import Structure
from nsjax.schemes.common import (
    contact_event,
    derivatives,
    held_contacts,
    impulse_output,
    stage_jump,
    step_status,
    touch_at_start,
)
from nsjax.types import Array, PyTree, record

# Contact and constraint rows in the step equations of schemes that freeze their directions in a step.


@record()
class FrozenRows:
    """Rows of contacts and constraints that are constant in a step, with their restitution.

    Args:
        rows: contact rows (if contacts may act), then bilateral rows.
        rebound: (rows,) ``e u^-``, see `nsjax.ContactLaw.rebound`.
        friction: (nc,) coefficients of friction.
    """

    rows: Rows
    rebound: Array
    friction: Array


def frozen_rows(at: SystemState, contacts: bool) -> FrozenRows:
    """Rows at a state; those of contacts only if ``contacts`` is true."""
    system = at.system
    groups = row_groups(system, contacts)
    if not groups.count:
        return FrozenRows(rows=no_rows(system), rebound=jnp.zeros(0), friction=jnp.zeros(0))
    law = at.law() if groups.nc else ContactLaw()
    rows = at.rows(contacts)
    rebound = law.rebound(groups, rows.all_rates(at.v))
    return FrozenRows(rows=rows, rebound=rebound, friction=law.friction_of(groups.nc))


@dataclasses.dataclass(frozen=True)
class FrozenRowEquations:
    """Equations of a step with frozen rows, for the velocity increment ``z = v_{i+1} - v_i``.

    ``residual(data, z) = W P`` is the momentum balance, with ``residual`` added by the scheme, and
    ``rates(data, z)`` and the row impulses ``P`` fulfil the laws of contacts and constraints.

    The data ``d`` of all methods have the fields ``params``, ``state`` (start of the step), ``dt`` and
    ``frozen`` (`FrozenRows`).

    Args:
        system: system of the problem.
        contacts: whether contacts may act in the step.
        tangent: tangent of the iteration, see `nsjax.schemes.mixed.framework.mixed_scheme`.
    """

    system: System
    contacts: bool
    tangent: str = "full"

    def frozen(self, d: Any, z: Array) -> tuple[Callable[[Array], Array], bool]:
        """``w -> M w`` at the start of the step, and True: rates are ``W' z`` plus a constant."""
        return lambda w: momentum(self.system, d.state.q, w, d.params), True

    @property
    def structure(self) -> Structure:
        """Structure of the tangent matrix: that of the model."""
        return self.system.structure

    @property
    def rows(self) -> RowGroups:
        """Rows of the contacts, if any may act, and of the constraints."""
        return row_groups(self.system, self.contacts)

    @property
    def islands(self) -> int:
        """Number of islands of the model."""
        return self.system.islands

    def forces(self, d: Any, z: Array, impulses: Array) -> Array:
        """Generalised impulse ``W P`` (nv,) of the row impulses ``P`` (rows,) [N s]."""
        return d.frozen.rows.force(impulses)

    def directions(self, d: Any, z: Array) -> Any:
        """Directions ``W`` (nv, rows) of the row impulses."""
        return d.frozen.rows.directions()

    def rates(self, d: Any, z: Array) -> Array:
        """``u^+ + e u^-`` (rows,) of the row velocities before and after the step [m/s]."""
        return d.frozen.rows.all_rates(d.state.v + z) + d.frozen.rebound

    def replaced(self, rates: Array, normal: Array | None = None, bilateral: Array | None = None) -> Array:
        """``rates`` (rows,) with other entries of normals (nc,) and bilateral rows (nb,), if given."""
        groups = self.rows
        contacts, last = groups.contacts(rates), groups.bilateral(rates) if bilateral is None else bilateral
        if normal is not None:
            contacts = jnp.concatenate([normal[:, None], contacts[:, 1:]], axis=1)
        return groups.stack(contacts, last)

    def friction(self, d: Any) -> Array:
        """Coefficients of friction (nc,)."""
        return d.frozen.friction

    def given(self, d: Any) -> GivenForces | None:
        """Numbers of the bounded forces; None: there are none."""
        return self.system.law(d.params).given(d.dt) if self.rows.nc else None


def solve_frozen(
    scheme: Scheme, equations: Any, data: Any, active: Array, start: StageStart
) -> tuple[Jump, StageAnswer]:
    """Velocity jump with its impulses, and answer of the stage solver, by `FrozenRowEquations` for
    ``z = v_{i+1} - v_i`` with the contacts ``active`` (nc,) bool; ``start``: zeros, and a tangent if one is
    known.
    """
    system, v, options = equations.system, data.state.v, scheme.options
    # tolerances of velocities are relative to the largest, with 1 m/s as its least size
    settings = StageSettings(
        tolerance=scheme.coef.stage_tolerance, contact_tolerance=scheme.coef.contact_tolerance,
        scale=1.0 + jnp.max(jnp.abs(v)), max_passes=options.max_passes,
        max_iterations=options.max_iterations,
    )  # fmt: skip
    answer = solve_stage(equations, data, active[: equations.rows.nc], settings, start)
    before, after = (data.frozen.rows.all_rates(v + x) for x in (0.0, answer.z))
    acting = active if equations.contacts else None
    jump = stage_jump(system, answer, answer.z, (before, after), acting, equations.given(data))
    return jump, answer


# A step whose contact forces are all impulses: Moreau, theta-method, Gear-Gupta-Leimkuhler.


@record()
class StepData:
    """Data of the equations of a step.

    Args:
        params: parameters of the system.
        state: start of the step.
        memory: memory of the scheme from the step before.
        dt: step size [s].
        frozen: rows of contacts (if any may act) and constraints.
    """

    params: PyTree
    state: State
    memory: PyTree
    dt: Array
    frozen: FrozenRows


@record()
class ImpulseMemory:
    """Memory of a scheme of impulses: ``touch`` of its contacts, and ``own`` of the scheme itself."""

    touch: PyTree
    own: PyTree


@record(static=("system", "contacts"))
class ImpulseRun(Step):
    """A step as the functions of a scheme of impulses get it, with the solver of its equations.

    Args:
        scheme, system, params, carry: as in `Scheme`.
        constants: result of the function ``prepare`` of the scheme.
        dt: step size [s].
        active: (nc,) bool, contacts that take part.
        contacts: whether any contact may take part.
        balance: result of the function ``balance`` of the scheme; None: the step finds it itself.
        formed: rows and responses at the predicted midpoint; None where ``balance`` is None or no contact
            takes part.
    """

    active: Array | None = None
    contacts: bool = False
    balance: Balance | None = None
    formed: Formed | None = None

    @property
    def memory(self) -> PyTree:
        """The scheme's own memory from the step before; ``()`` if it has none."""
        memory = self.carry.memory
        return memory.own if isinstance(memory, ImpulseMemory) else ()

    @property
    def midpoint(self) -> SystemState:
        """The system at the predicted midpoint ``q + dt/2 v``."""
        return self.at(midpoint(self))

    def damped(self) -> ImpulseRun:
        """The same step with ``dt D`` added to its mass: damping at the midpoint, taken implicitly."""
        return dataclasses.replace(self, added=self.dt * self.midpoint.damping())

    def shifted(self, state: State) -> ImpulseRun:
        """The step from another state, as `Step.shifted`; an added ``dt D`` is evaluated there, too."""
        moved = dataclasses.replace(self, **vars(super().shifted(state)))
        return moved if self.added is None else moved.damped()

    @property
    def acting(self) -> Array:
        """Contacts (nc,) bool that take part in the step."""
        return jnp.zeros(self.system.nc, bool) if self.active is None else self.active

    def data(self, t: Array | float, q: Array) -> StepData:
        """Data of the equations, with the rows of contacts and constraints at ``(t, q)``."""
        at = self.at(State(t=t, q=q, v=self.state.v))
        rows = frozen_rows(at, self.contacts)
        return StepData(params=self.params, state=self.state, memory=self.memory, dt=self.dt, frozen=rows)

    def solve(self, equations: type[FrozenRowEquations], data: Any) -> tuple[Array, Jump, Array]:
        """Solves the equations of a step.

        Args:
            equations: class of the equations.
            data: their data.

        Returns:
            Velocity change (nv,), jump, and error estimate () of the iteration.
        """
        jump, answer = self.answer(equations(self.system, self.contacts), data)
        return answer.z, jump, answer.estimate

    def answer(
        self, equations: FrozenRowEquations, data: Any, kept: Any = None,
        carried: CarriedTangent | None = None,
    ) -> tuple[Jump, StageAnswer]:  # fmt: skip
        """Solves the equations of a step, as `solve`, with a tangent that is known already.

        Args:
            equations: the equations.
            data: their data.
            kept: tangent that is constant over the run; None: none.
            carried: tangent from the step before; None: none.

        Returns:
            The jump, and the answer of the stage solver.
        """
        start = StageStart(z=jnp.zeros(self.system.nv), kept=kept, carried=carried)
        return solve_frozen(self.scheme, equations, data, self.acting, start)

    def acceleration(self) -> Array:
        """``M^-1 h`` (nv,) at the start of the step, without contact and constraint forces."""
        force, inertia = self.start.force(), self.start.inertia()
        return inertia.solve(force[:, None])[:, 0]


StepFunction = Callable[[ImpulseRun], Stepped]
StepHook = Callable[[ImpulseRun], Any]


@dataclasses.dataclass(frozen=True)
class Method:
    """The functions of a scheme of impulses, see `nsjax.schemes.building.impulse_scheme`."""

    respond: StepFunction
    prepare: StepHook | None = None
    balance: StepHook | None = None
    gaps: StepHook | None = None
    remember: StepHook | None = None
    corrects: bool = False


def midpoint(step: Step) -> State:
    """Predicted midpoint ``q + dt/2 v`` of a step, at which the contacts that take part are decided."""
    state, half = step.state, 0.5 * step.dt
    return State(t=state.t + half, q=step.system.retract(state.q, half * state.v), v=state.v)


def run_of(step: Step, constants: PyTree) -> ImpulseRun:
    """A step as the functions of a scheme get it, with the result ``constants`` of ``Method.prepare``."""
    state = step.state
    own = {f.name: getattr(step, f.name) for f in dataclasses.fields(Step)}
    run = ImpulseRun(**own | {"constants": constants})
    return dataclasses.replace(
        run, carry=dataclasses.replace(run.carry, state=dataclasses.replace(state, t=jnp.asarray(state.t)))
    )


def _with_memory(touch: PyTree, own: PyTree) -> PyTree:
    """Memory of a scheme: `ImpulseMemory`, or ``touch`` alone if the scheme has no memory of its own."""
    return touch if isinstance(own, tuple) and not own else ImpulseMemory(touch=touch, own=own)


def impulse_init(step: Step, method: Method, constants: PyTree) -> Carry:
    """The carry at the start of a run. Contacts that touch there at rest count as closed before."""
    touch: PyTree = ()
    if step.system.nc:
        touch = touch_at_start(step, step.scheme.coef.gap_tolerance)
    own = () if method.remember is None else method.remember(run_of(step, constants))
    return Carry(state=step.state, memory=_with_memory(touch, own))


def impulse_step(step: Step, method: Method, constants: PyTree) -> tuple[Carry, Output]:
    """One step: contact decision, jump, status. Returns the carry, with the memory of the contacts and
    `Stepped.more`, and the output.
    """
    run = run_of(step, constants)
    system, coef, memory = run.system, run.scheme.coef, run.carry.memory
    touch = memory.touch if isinstance(memory, ImpulseMemory) else memory
    if run.scheme.traits.implicit_damping:
        run = run.damped()
    at, around = run.midpoint, None
    few = 32  # contacts whose gaps are in the program twice, for values and curvature; of more in a loop
    if method.gaps is None and system.nc > few and not derivatives(run.scheme)["derivative"]:
        around = events.gaps_around(at, ~touch.held, coef.gap_tolerance)
        gap = around.gap
    else:
        gap = at.gap() if method.gaps is None or not system.nc else method.gaps(run)
    active = touching(system, at.t, at.q, run.params, gap, coef.gap_tolerance)
    # steps with and without contacts share mass and force; where derivatives are wanted the state is
    # shifted first, so that they are made in `_meet`
    if method.balance is not None and not derivatives(run.scheme)["derivative"]:
        run = dataclasses.replace(run, balance=method.balance(run))
    run, marked = dataclasses.replace(run, active=active), derivatives(run.scheme)["marked"]

    def fly(_: None) -> Any:
        r = method.respond(run)
        after = events.fly(criteria_of(run.scheme), touch) if system.nc else events.no_touch(system)
        return r, no_report(after, marked)

    if not system.nc:
        r, report = fly(None)
    else:
        # a contact at rest that hops for a step is open, but its sliding may still reverse
        busy = jnp.any(active) | jnp.any(touch.held) if system.nt else jnp.any(active)
        meet = lambda _: _meet(run, method, touch, around)  # noqa: E731
        if derivatives(run.scheme)["derivative"] and system.tangent_hint == "mass":
            # a derivative of its own for flight takes long to compile, and saves mechanisms little time
            r, report = meet(None)
            none = no_report(events.fly(criteria_of(run.scheme), touch), marked)
            report = jax.tree.map(lambda a, b: jnp.where(busy, a, b), report, none)
        else:
            r, report = branch(busy, meet, fly, None, again=True)
    solved = (r.jump.residual <= coef.contact_tolerance) & (r.estimate <= coef.stage_tolerance)
    bits = step_status(at, r.end, gap, solved, r.jump.residual, run.balance)
    output = impulse_output(r, contact_event(gap, active, report, r.jump), report.notes, run.dt, bits)
    return Carry(state=r.end, memory=_with_memory(report.touch if system.nc else (), r.more)), output


def _meet(
    run: ImpulseRun, method: Method, touch: events.Touch, around: events.GapsAround | None
) -> Any:  # fmt: skip
    """A step in which contacts may act, and the report on its contacts."""
    # contacts are looked at, and laws hold, at the midpoint, half a step ahead of the state
    family = Family(
        predict=midpoint, held=held_contacts, corrects=method.corrects, turns=True, ahead=0.5, laws=0.5,
        **derivatives(run.scheme),
    )  # fmt: skip

    def respond(run: ImpulseRun, _: Contacts) -> tuple[Stepped, Formed | None]:
        if method.balance is not None and run.balance is None:
            run = dataclasses.replace(run, balance=method.balance(run))
        formed = None if run.balance is None else run.balance.formed()
        return method.respond(dataclasses.replace(run, contacts=True, formed=formed)), formed

    return through_events(respond, family, run, Contacts(touch=touch, active=run.acting, around=around))
