"""The only time loop, which computes a run from its start, row by row."""

from __future__ import annotations

import dataclasses
import functools
import importlib
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from nsjax.contact.bounded import bounded_as_contacts, reported
from nsjax.contact.contact_set import (
    ContactMemory,
    begin_memory,
    contacts_of_step,
    narrow,
    tally_of_step,
    widen,
)
from nsjax.contact.events import Touch, criteria_of, frozen
from nsjax.contact.friction import jammed_at_start
from nsjax.contact.sensitivity import MARKED, QUIET
from nsjax.contact.sweeps import REFUSED_GRADIENT
from nsjax.contact.switches import (
    ClosedPhases,
    begin_closing,
    follow_closing,
    force_notes,
    through_switches,
)
from nsjax.core.checks import refuse_located
from nsjax.core.guards import GuardMemory, Guards, begin_guards, guards_of, numbers_at_start
from nsjax.core.inputs import Inputs
from nsjax.core.operators import on_constraints, prepared, refreshed
from nsjax.core.scheme import QUANTITIES, ROWS, Carry, Output, Scheme, accumulated
from nsjax.core.slots import ContactSlots
from nsjax.core.step import Step, SystemState
from nsjax.core.system import State, System, at_nodes_alone, bordered, step_system, traced_once
from nsjax.jaxtools import (
    Quiet,
    keep_solutions,
    make_live,
    value_with_derivative_of,
    with_lanes,
    with_tangent,
    without_derivative,
)
from nsjax.jaxtools.control_flow import Shared, StepBlocks, branch, repeat_for, scan_blocks
from nsjax.jaxtools.owned import compiled_for
from nsjax.jaxtools.programs import large_in_pieces
from nsjax.recording import (
    Watch,
    WatchLimits,
    begin_watch,
    closed_at_start,
    enter_impacts,
    no_impacts,
    row_values,
    row_with_gaps,
    watch_gaps,
)
from nsjax.sensors import quantity, read
from nsjax.trajectory import Continuation, FirstFailure, Impacts, Trajectory
from nsjax.types import Array, PyTree, record


@dataclasses.dataclass(frozen=True)
class LoopProgram:
    """Static part of a compiled run.

    Args:
        system: the model.
        keep: names of the row quantities to save in addition to ``t, q, v``.
        events: number of impacts to list.
        guards: functions at whose zeros the run stops or its state is reset; None: there are none.
    """

    system: System
    keep: tuple[str, ...]
    events: int
    guards: Guards | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "system", traced_once(self.system))


@dataclasses.dataclass(frozen=True)
class StopQuantity:
    """A quantity of a system by its name, as a function of the state."""

    system: System
    name: str

    def __call__(self, t: Array, q: Array, v: Array, p: PyTree) -> Array:
        """Its value."""
        return read(self.system, self.name, t, q, v, None, p)


def guards_for(system: System, stop: Any, resets: Any = ()) -> Guards | None:
    """The guards of a run, whose ``stop`` may be the name of a quantity; None without any."""
    if stop is None and not resets:
        return None
    refuse_located("simulate: stop and resets")
    locating = importlib.import_module("nsjax.schemes.locating.localized")  # other runs do not load it
    return guards_of(system, _named(system, stop), resets, locating.through_guards)


def _named(system: System, stop: Any) -> Any:
    """The ``stop`` of a run, with the function of a name."""
    if isinstance(stop, tuple | list) and len(stop) == 2:
        return (_named(system, stop[0]), stop[1])
    if not isinstance(stop, str):
        return stop
    owner = getattr(system.prepare, "__self__", None)
    found = StopQuantity(owner.system if isinstance(owner, Inputs) else system, stop)
    quantity(found.system, stop)  # refuses an unknown name
    return found


@record()
class RunState:
    """State of the time loop, carried from step to step. ``closed`` (nc,) bool: contacts that touch at the
    start of the run; all false in a run that continues an earlier one.
    """

    next: Continuation
    status: Array
    first_failure: FirstFailure
    events: Impacts | None
    closed: Array
    watch: Watch | None
    closing: ClosedPhases | None

    @property
    def stopped(self) -> Array | None:
        """() bool, whether the run has stopped; None: nothing stops it."""
        return None if self.next.guards is None else self.next.guards.stopped

    def refused(self, bits: Array | None) -> RunState:
        """The run with the status ``bits`` of its start, see `nsjax.core.checks.examined_start`."""
        if bits is None:
            return self
        failure = self.first_failure.at_start(bits, self.next.origin)
        return dataclasses.replace(self, status=bits, first_failure=failure)


@compiled_for("program")
def begin_run(
    program: LoopProgram,
    scheme: Scheme,
    params: PyTree,
    state: State,
    dt: Array,
    carry: Continuation | None,
) -> RunState:
    """State of the loop at the start of a run, or at the continuation of an earlier run."""
    system = program.system
    if system.changing_contacts:
        given = scheme.coef, params, state, dt, carry
        coef, params, state, dt, carry = without_derivative(given, REFUSED_GRADIENT)
        scheme = dataclasses.replace(scheme, coef=coef)
    watched = (
        bool(system.nc) and bool({"notes", "margin"} & set(program.keep)) and not system.changing_contacts
    )
    bits, closed = jnp.zeros(system.nc, int), jnp.zeros(system.nc, bool)
    if carry is None:
        state = on_constraints(system, params, state)
        params, start = _first_carry(prepare_run(program, scheme, params, dt), state)
        origin, index = jnp.asarray(state.t), jnp.asarray(0, int)
        follow = Continuation(carry=start, origin=origin, index=index, dt=dt, **_scheme_fields(scheme))
        known = None
        if system.nc:
            closed = closed_at_start(system, params, state)
        if watched:
            at = State(t=follow.origin, q=state.q, v=state.v)
            look = frozen(SystemState(system=system, params=params, state=at))
            bits = jammed_at_start(criteria_of(scheme), look, closed)
    else:
        same, known = carry.dt == dt, carry.guards
        follow = Continuation(
            carry=carry.carry,
            origin=jnp.where(same, carry.origin, carry.carry.state.t),
            index=jnp.where(same, carry.index, 0),
            dt=dt,
            **_scheme_fields(scheme),
        )
    by = params, scheme.coef, state, dt
    follow = dataclasses.replace(follow, carry=_live_carry(follow.carry, by))
    if program.guards is None:
        follow = dataclasses.replace(follow, guards=None)
    else:
        ready = prepared(system, params)
        numbers = numbers_at_start(program.guards, ready, known)
        ready = refreshed(system, follow.carry.state.t, state.q, program.guards.given(ready, numbers))
        first = SystemState(system=system, params=ready, state=follow.carry.state)
        guards = begin_guards(program.guards, first, known, numbers)
        both = make_live((guards.elapsed, guards.numbers), by)
        guards = dataclasses.replace(guards, elapsed=both[0], numbers=both[1])
        follow = dataclasses.replace(follow, guards=guards, origin=make_live(follow.origin, by))
    none = jnp.asarray(-1, int)
    failure = FirstFailure(step=none, time=jnp.zeros(()), status=jnp.asarray(0, int), contact=none)
    watch = begin_watch(system.nc, system.nt, bits) if watched else None
    timed = system.nc > 0 and "closed_time" in program.keep and scheme.gradient != "discrete"
    closing = begin_closing(_bare(follow.carry), timed)
    if closing is not None:
        closing = dataclasses.replace(closing, shift=make_live(closing.shift, follow.carry.state.q))
    run = RunState(
        next=follow, status=jnp.asarray(0, int), first_failure=failure,
        events=no_impacts(system, program.events), closed=closed, watch=watch, closing=closing,
    )  # fmt: skip
    # the same types as after a chunk of rows, so that the next chunk is not compiled anew
    return jax.tree.map(lambda x: lax.convert_element_type(x, jnp.result_type(x)), run)


def begin_with_inputs(setup: RunSetup, run: RunState) -> RunState:
    """The run; if it has made no step yet, the scheme starts it with the inputs of ``setup``."""

    def anew(follow: Continuation) -> Continuation:
        _, start = _first_carry(setup, follow.carry.state)
        by = setup.params, setup.scheme.coef, follow.carry.state, setup.dt
        return dataclasses.replace(follow, carry=_live_carry(start, by))

    return dataclasses.replace(run, next=branch(run.next.index == 0, anew, lambda x: x, run.next))


def _first_carry(setup: RunSetup, state: State) -> tuple[PyTree, Carry]:
    """Parameters of the first step, and the carry of the scheme at its start, for all contacts."""
    scheme, system = setup.scheme, setup.program.system
    params = refreshed(system, jnp.asarray(state.t), state.q, setup.params)
    start = scheme.init(scheme, system_of_steps(scheme, system), params, setup.constants, state)
    if system.contact_set is None:
        return params, start

    def whole() -> Carry:
        every = system_of_steps(scheme, dataclasses.replace(system, contact_set=None))
        # the memory of a scheme depends on the size of a step's problem: keep the choice
        every = dataclasses.replace(every, contact_set=system.contact_set)
        return scheme.init(scheme, every, params, scheme.prepare(scheme, every, params, setup.dt), state)

    return params, begin_memory(system, params, start, whole)


def _bare(carry: Carry) -> Carry:
    """The carry with the plain memory of the scheme, without `ContactMemory` around it."""
    memory = carry.memory
    return dataclasses.replace(carry, memory=memory.memory) if isinstance(memory, ContactMemory) else carry


def _scheme_fields(scheme: Scheme) -> dict[str, Any]:
    """Fields of a `Continuation` that describe the scheme."""
    return {"scheme": scheme.name, "impulses": scheme.traits.impulses}


def _live_carry(carry: Carry, by: PyTree) -> Carry:
    """The carry with tangents by ``by`` for all parts but the time and the memory of contacts."""
    state = dataclasses.replace(carry.state, **make_live({"q": carry.state.q, "v": carry.state.v}, by))
    leaves: Any
    leaves, tree = jax.tree.flatten(carry.memory, is_leaf=lambda x: isinstance(x, Touch))
    moving = [k for k, x in enumerate(leaves) if not isinstance(x, Touch)]
    for k, x in zip(moving, make_live([leaves[k] for k in moving], by), strict=True):
        leaves[k] = x
    return dataclasses.replace(carry, state=state, memory=jax.tree.unflatten(tree, leaves))


def system_of_steps(scheme: Scheme, system: System) -> System:
    """The system as a scheme sees it: the contacts of a step, bounded rows as contacts, joints in the
    border unless the scheme takes them inside the structure, and rows of contacts at single nodes if it
    takes such rows.
    """
    if system.contact_set is not None:
        system = traced_once(step_system(system))
    if scheme.traits.node_contacts:
        return at_nodes_alone(bounded_as_contacts(bordered(system)))
    return bounded_as_contacts(system if scheme.traits.joints_inside else bordered(system))


@record(static=("program",))
class RunSetup:
    """Data that all steps of a run have in common.

    Args:
        program: static part of the run.
        scheme: the scheme.
        params: prepared params.
        constants: constants of the scheme.
        dt: step size [s].
        shared: what steps by kind have in common, see `nsjax.jaxtools.Quiet`; None: no step has a kind.
    """

    program: LoopProgram
    scheme: Scheme
    params: PyTree
    constants: PyTree
    dt: Array
    shared: Shared | None = None

    def step(self, carry: Carry, guards: GuardMemory | None = None) -> Step:
        """The `Step` of the scheme from a carry, with the numbers that have changed so far."""
        state, given = carry.state, self.params
        if self.program.guards is not None and guards is not None:
            given = self.program.guards.given(given, guards.numbers)
        return Step(
            scheme=self.scheme, system=system_of_steps(self.scheme, self.program.system),
            params=refreshed(self.program.system, state.t, state.q, given),
            constants=self.constants, carry=carry, dt=self.dt,
        )  # fmt: skip


def prepare_run(program: LoopProgram, scheme: Scheme, params: PyTree, dt: Array) -> RunSetup:
    """`RunSetup` with the prepared parameters and the constants of the scheme."""
    system = program.system
    params = prepared(system, params)
    constants = scheme.prepare(scheme, system_of_steps(scheme, system), params, dt)
    return RunSetup(program=program, scheme=scheme, params=params, constants=constants, dt=dt)


def _one_step(setup: RunSetup, run: RunState, tally: dict[str, Array]) -> tuple[RunState, dict[str, Array]]:
    """One step of the scheme, with the state of the run and the accumulated quantities after it; none after
    a stop.
    """
    if run.stopped is None:
        return _taken_step(setup, run, tally)
    return branch(
        run.stopped, lambda run, tally: (run, tally), lambda *x: _taken_step(setup, *x), run, tally
    )  # fmt: skip


def _taken_step(
    setup: RunSetup, run: RunState, tally: dict[str, Array]
) -> tuple[RunState, dict[str, Array]]:  # fmt: skip
    follow, dt, program = run.next, setup.dt, setup.program
    state = dataclasses.replace(follow.carry.state, t=follow.origin + follow.index * dt)
    step = setup.step(dataclasses.replace(follow.carry, state=state), follow.guards)
    params, slots = step.params, contacts_of_step(program.system, step.params, step.carry)
    tally = tally_of_step(program.system, slots, tally)
    carry, output, (closing, guards), moves = _step_in_slots(
        setup, step, slots, (run.closing, follow.guards)
    )  # fmt: skip
    index = follow.index + 1
    end = follow.origin + index * dt
    follow = dataclasses.replace(follow, index=index, dt=dt, guards=guards)
    if guards is not None:  # a run that goes on from a stop counts its steps from there
        stop = state.t + guards.elapsed
        origin, count = (jnp.where(guards.stopped, x, y) for x, y in ((stop, follow.origin), (0, index)))
        follow = dataclasses.replace(follow, origin=origin, index=count)
    ended = end if guards is None else jnp.where(guards.stopped, stop, end)
    carry = dataclasses.replace(carry, state=dataclasses.replace(carry.state, t=ended))
    failed = (output.status != 0) & (run.status == 0)
    now = FirstFailure(step=index, time=end, status=output.status, contact=output.contact)
    watch, output = _watched(run.watch, setup.scheme, output, dt)
    taken = dt if guards is None else guards.elapsed
    event, spent = output.event, taken if moves is None else frozen(taken)
    # contacts that touch at the start of a run were never open: they strike only without collision
    held = run.closed if event.unheld is None else run.closed & ~event.unheld
    impacts = event.impact & ~(held & (index == 1))
    output = dataclasses.replace(
        output, impacts=impacts, gap_min=event.gap, closed_time=jnp.where(event.active, spent, 0.0)
    )
    tally = accumulated(tally, output)
    if moves is not None:
        tally["closed_time"] = with_tangent(tally["closed_time"], moves[: program.system.nc])
    at = SystemState(system=program.system, params=params, state=state)
    return RunState(
        next=dataclasses.replace(follow, carry=carry),
        status=run.status | output.status,
        first_failure=jax.tree.map(lambda a, b: jnp.where(failed, a, b), now, run.first_failure),
        events=enter_impacts(run.events, at, output, dt, end),
        closed=run.closed,
        watch=watch,
        closing=closing,
    ), tally


Known = tuple[ClosedPhases | None, GuardMemory | None]
"""What the loop remembers of closed contacts and of the guards of a run."""


def _step_in_slots(
    setup: RunSetup, step: Step, slots: ContactSlots | None, known: Known
) -> tuple[Carry, Output, Known, Array | None]:  # fmt: skip
    """A step on the contacts that have a slot, with results for all contacts."""
    system = setup.program.system
    if slots is None:
        carry, output, known, moves = _stepped(setup, step, known)
        return carry, reported(system, output), known, moves
    few, own = narrow(slots, step.carry, known[0])
    carry, output, (own, guards), moves = _stepped(
        setup, dataclasses.replace(step, carry=few), (own, known[1])
    )
    output = reported(step_system(system), output)
    carry, output = widen(system, step, slots, carry, output)
    own, moves = jax.tree.map(slots.put, (own, moves))
    return carry, output, (own, guards), moves


def _stepped(setup: RunSetup, step: Step, known: Known) -> tuple[Carry, Output, Known, Array | None]:
    """A step of the scheme, what the loop remembers after it, and the derivative (nc,) of the closed time.
    Operations for derivatives at events are in the program only if it is differentiated, or notes are
    wanted.
    """
    program, noted = setup.program, not {"notes", "force_notes"}.isdisjoint(setup.program.keep)

    def guarded(step: Step, guards: GuardMemory | None, end: tuple[Carry, Output]) -> Any:
        if program.guards is None or guards is None:
            return *end, None
        return program.guards.through(step, program.guards, guards, end)

    def plain(data: tuple[Step, Known]) -> Any:
        step, (closing, guards) = data
        step = dataclasses.replace(step, scheme=dataclasses.replace(step.scheme, gradient="discrete"))
        carry, output, guards = guarded(step, guards, step.take())
        moves = None if closing is None else jnp.zeros(closing.shift.shape)
        # in a batch, what `full` alone computes has lanes of its own here, too
        carry = dataclasses.replace(carry, memory=make_live(carry.memory, carry.state.q))
        return carry, *with_lanes((output, (closing, guards), moves), carry.state.q)

    def whole(data: tuple[Step, Known]) -> tuple[Any, Array | None]:
        step, (closing, guards) = data
        carry, output, guards = guarded(step, guards, through_switches(step, *step.take()))
        happens, moves = output.event.moves, None
        output = dataclasses.replace(output, event=dataclasses.replace(output.event, moves=None))
        if closing is not None:
            closing, moves = follow_closing(step, closing, carry, output)
        return (carry, output, (closing, guards), moves), happens

    full = lambda data: whole(data)[0]  # noqa: E731

    def of_kind(gradient: str, data: tuple[Step, Known]) -> tuple[Any, Array | None]:
        own = dataclasses.replace(data[0], scheme=dataclasses.replace(data[0].scheme, gradient=gradient))
        return whole((own, data[1]))

    easy, marked = (functools.partial(of_kind, x) for x in (QUIET, MARKED))
    kinds = None if setup.shared is None else Quiet(easy, marked, setup.shared)
    live = value_with_derivative_of(full if noted else plain, full, kinds)
    carry, output, known, moves = (plain if step.scheme.gradient == "discrete" else live)((step, known))
    if noted:
        event = output.event
        if step.system.nc and step.system.refresh is not None and not step.system.changing_contacts:
            begun, ended = (frozen(step.at(x).gap()) for x in (step.state, carry.state))
            event = dataclasses.replace(event, begun=begun, ended=ended)
        output = dataclasses.replace(output, event=event, force_notes=force_notes(step, carry, output))
    # decisions, counts and bits have no derivative
    memory = jax.tree.map(
        lambda x: frozen(x) if isinstance(x, Touch) else x, carry.memory,
        is_leaf=lambda x: isinstance(x, Touch),
    )  # fmt: skip
    still = {name: frozen(getattr(output, name)) for name, x in QUANTITIES.items() if not x.unit}
    return (
        dataclasses.replace(carry, memory=memory), dataclasses.replace(output, **still), known, moves,
    )  # fmt: skip


def _watched(watch: Watch | None, scheme: Scheme, output: Output, dt: Array) -> tuple[Watch | None, Output]:
    """The next watch, and the output with notes and margins of impacts that are missed, or nearly."""
    if watch is None:
        return None, output
    criteria = criteria_of(scheme)
    limits = WatchLimits(
        resolved=criteria.gate, sequence=criteria.sequence, flight=criteria.flight,
        near=2.0 * scheme.unsure * criteria.near, locates=scheme.traits.locates,
    )  # fmt: skip
    watch, margin, grazing = watch_gaps(watch, output, dt, limits)
    notes = grazing if output.notes is None else output.notes | grazing
    return watch, dataclasses.replace(output, notes=notes, margin=margin)


def no_tally(program: LoopProgram) -> dict[str, Array]:
    """Initial values of the accumulated quantities that are kept."""
    counted = (name for name in program.keep if QUANTITIES[name].fold != "state")
    return {name: QUANTITIES[name].start(program.system) for name in counted}


def run_steps(
    setup: RunSetup, run: RunState, count: Array | int, blocks: StepBlocks | None = None
) -> tuple[RunState, dict[str, Array | None]]:
    """State of the run and saved row after ``count`` steps, without the gaps at its end. A traced count
    serves any number of steps; a static one allows reverse mode, which stores the carries and solutions
    that ``blocks`` chooses, by default all. A count of zero gives the row of the start.
    """
    program = setup.program

    tally = no_tally(program)
    # quantities with a unit depend on the motion, and get the tangents of the position
    moving = {name: x for name, x in tally.items() if QUANTITIES[name].unit}
    both = run, tally | make_live(moving, run.next.carry.state.q)
    if not isinstance(count, int) or count:
        step = large_in_pieces(lambda both: _one_step(setup, *both), both)
    if not isinstance(count, int):
        both = repeat_for(count, lambda _, both: step(both), both)
    elif count:
        size, solutions = blocks or StepBlocks(count, True)

        def one(both: PyTree, _: None) -> tuple[PyTree, None]:
            return step(both), None

        both, _ = scan_blocks(keep_solutions(one, solutions), both, count, size)
    run, values = row_values(program.system, setup.params, *both)
    state = run.next.carry.state
    kept = {name: values.get(name) if name in program.keep else None for name in ROWS}
    return run, {"t": jnp.asarray(state.t), "q": state.q, "v": state.v, **kept}


def run_row(
    setup: RunSetup, run: RunState, count: int, blocks: StepBlocks | None = None
) -> tuple[RunState, dict[str, Array | None]]:
    """State of the run and saved row after ``count`` steps, as `run_steps`, with the gaps at its end."""
    run, row = run_steps(setup, run, count, blocks)
    return run, row_with_gaps(setup, row)


def trajectory(system: System, params: PyTree, run: RunState, rows: dict[str, Any]) -> Trajectory:
    """The `Trajectory` of a run with the saved ``rows``."""
    return Trajectory(
        system=system, params=params, **rows, status=run.status, first_failure=run.first_failure,
        events=run.events, carry=run.next, stopped=run.stopped,
    )  # fmt: skip
