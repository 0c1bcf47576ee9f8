"""Runs: compiled calls of the time loop for any length, and static lengths inside transformations."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ParamSpec, Protocol, overload

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.contact.active_set import without_overflow
from nsjax.contact.contact_set import check_run
from nsjax.core import checks
from nsjax.core.arguments import check_call, check_switches
from nsjax.core.errors import InputError
from nsjax.core.guards import Guards, warn_of_guards, with_changing
from nsjax.core.inputs import check_constants
from nsjax.core.memory import Progress, check_events, check_rows, meter
from nsjax.core.scheme import NOTES, ROWS, Scheme, row_numbers
from nsjax.core.system import Problem, State, System, row_groups
from nsjax.jaxtools.cache import kept_call
from nsjax.jaxtools.compilation import INSIDE, compiled_once, few_steps, tracing
from nsjax.jaxtools.control_flow import (
    Shared,
    StepBlocks,
    kept_bytes,
    lanes_around,
    places_of,
    plan_blocks,
    results_that_move,
    scan_blocks,
    scan_first,
    tree_bytes,
    tree_shapes,
)
from nsjax.jaxtools.fingerprint import package_held
from nsjax.jaxtools.kept_derivatives import kept_run, kept_soon
from nsjax.jaxtools.owned import Uncompiled, compiled_for, kept, latest, owned
from nsjax.loop import (
    LoopProgram,
    RunState,
    begin_run,
    guards_for,
    no_tally,
    prepare_run,
    run_steps,
    trajectory,
)
from nsjax.multibody.parts import Part
from nsjax.recording import rows_with_gaps
from nsjax.stability import warn_of_step, with_findings
from nsjax.trajectory import Continuation, Trajectory
from nsjax.types import Array, PyTree, being_compiled, is_traced

P = ParamSpec("P")


class _Simulate(Protocol[P]):
    """`simulate` of a problem, or of its three values."""

    @overload
    def __call__(self, problem: Problem, scheme: Scheme, /, **options: Any) -> Trajectory: ...

    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Trajectory: ...


def _of_problems(run: Callable[P, Trajectory]) -> _Simulate[P]:
    """The function ``run``, which also takes a problem in place of its three values, with a sentence for
    parts in place of a problem.
    """

    @functools.wraps(run)
    def checked_run(*args: Any, **kwargs: Any) -> Trajectory:
        first = args[0] if args else None
        if isinstance(first, Problem):
            args = (*first, *args[1:])
        if any(isinstance(x, Part) for x in (first if isinstance(first, list | tuple) else [first])):
            raise InputError(
                "simulate: the first argument is a part or a list of parts, which is no problem yet; give "
                "simulate(assemble(*parts), scheme, ...), of a model file simulate(file.problem(), ...)"
            )
        try:
            return run(*args, **kwargs)
        except TypeError:
            check_call(run, args, kwargs)
            raise

    return checked_run


@_of_problems
def simulate(
    system: System,
    params: PyTree,
    state: State,
    scheme: Scheme,
    *,
    dt: Array | float,
    steps: int | None = None,
    time: float | None = None,
    every: int = 1,
    save: Sequence[str] | None = None,
    gradient: str | None = None,
    events: int = 0,
    notes: bool = False,
    carry: Continuation | None = None,
    progress: Progress = None,
    inputs: Mapping[str, Any] | None = None,
    stop: Any = None,
    resets: Sequence[tuple[Any, Any]] = (),
) -> Trajectory:
    """Runs ``steps`` steps of a scheme and returns every ``every``-th state, with forces, impulses and
    impacts between these states.

    ``t_k = t_0 + k dt`` is computed, never accumulated. Called with plain numbers, a run of another
    length or with other numbers does not compile again. Inside `jax.jit`, `jax.vmap`, `jax.grad` and
    the like, ``params``, ``state``, the numbers of ``scheme`` and ``dt`` may be traced; lengths are
    then static, and reverse mode recomputes inside rows (two-level checkpointing).

    Args:
        system, params, state: one problem, or its three values. The state may penetrate walls and
            violate constraints by as much as steps of this size leave
            (`nsjax.core.start_checks`): row k of a run, ``State(t=traj.t[k], q=traj.q[k], v=traj.v[k])``,
            is a start for it.
        scheme: for instance ``schemes.moreau()``.
        dt: step size [s].
        steps: number of steps, a multiple of ``every``. Give either steps or time.
        time: duration [s], a whole number of steps.
        every: save each ``every``-th step.
        save: names of the row quantities to save in addition to ``t, q, v`` (see `Trajectory`); None: all
            but ``notes`` and ``margin``.
        gradient: ``"saltation"`` or ``"discrete"``, the derivative through impacts, see `Scheme`; None:
            the scheme's own. It changes derivatives, and values by rounding only; programs that are not
            differentiated do not depend on it.
        events: keep a list of the first ``events`` impacts.
        notes: keep ``traj.notes`` and ``traj.margin``, which show what the events of the run mean for its
            derivatives. `nsjax.check_gradient` and `nsjax.identify` always use them.
        carry: ``traj.carry`` of an earlier run, to continue it bit for bit instead of starting at
            ``state``.
        progress: True shows a bar (extra ``progress``), and what compiles; a function is called as
            ``progress(steps_done, steps)`` between compiled calls.
        inputs: tables over time (`nsjax.signal`) by the name of a number or motor, see `nsjax.with_inputs`.
        stop: function ``(t, q, v, p) -> scalar`` with ``p`` as the functions of the system get it, or the
            name of a quantity (``"theta1"``, ``"rod.omega"``; none that needs forces). The run ends at the
            instant at which it falls through zero, located inside the step; the last row is that instant. A
            pair ``(function, 3)``: the third time. Instant and last row have the derivatives of the motion
            up to there. Inside transformations, where lengths are static, rows after the stop repeat it;
            ``traj.stopped`` says whether it came. ``carry`` goes on from it.
        resets: pairs of such a function and a map ``(t, q, v, p) -> (q, v)``. Where the function falls
            through zero, located as well, the map gives the state with which the run goes on: a latch, a
            kick, an impact law of one's own. Numbers by name in place of the map are those of the problem
            from there on: ``(function, {"grip.active": True, "motor": 0.0})``; a number may be a function
            ``(t, q, v, p)``. Joints and couplings that come (``active``, ``locked``) close with the
            impulses of a plastic impact, together with the contacts that touch. Derivatives are those of
            the motion with these resets (saltation).

    Returns:
        A `Trajectory`; ``traj.raise_for_status()`` raises an error unless all steps went well.

    Raises:
        InputError: before any work, for input that cannot be run, including a carry of another scheme or
            system.

    Limits: the derivative with ``gradient="saltation"`` is that of the motion to first order in dt, as
    far as the motion has one; ``traj.notes`` (``notes=True``) shows where it is one-sided or a
    selection. Only first derivatives exist: a second differentiation through contacts is refused. Of
    ``stop`` and ``resets`` a zero is seen where the function was positive before and is not at the end of a
    step, or at an impact in it; with them a run is a larger program. What is read from a run later (efforts
    of motors) knows the numbers of its start, not those that resets have changed. The first run
    compiles, for seconds; a robot with contacts, by schemes that iterate over forces, for half a minute.

    Example:
        >>> import nsjax
        >>> from nsjax import models, schemes
        >>> traj = nsjax.simulate(
        ...     models.bouncing_ball(height=1.0), schemes.moreau(), dt=1e-3, steps=500, every=100
        ... )
        >>> traj.t.round(9).tolist()
        [0.0, 0.1, 0.2, 0.3, 0.4, 0.5]
        >>> int(traj.impacts.sum())
        1
    """
    if inputs or resets:
        problem = Problem(system=system, params=params, state=state)
        system, params, state = with_changing(problem, inputs, resets)
    with package_held():
        call = checked(
            system, params, state, scheme, dt=dt, steps=steps, time=time, every=every, save=save,
            gradient=gradient, events=events, notes=notes, carry=carry, progress=progress,
            guards=guards_for(system, stop, resets),
        )  # fmt: skip
        if call.traced:
            run, rows = _run_traced(call)
        else:
            warned = warn_of_step(system, call.arrays, call.state, call.scheme, call.dt)
            run, rows = _run_eager(call, progress)
            run = with_findings(call, warned, rows, run)
            warn_of_guards(run.next.guards, call.program.guards)
    return trajectory(system, call.params, run, rows)


@dataclasses.dataclass(frozen=True)
class Call:
    """A run whose input has been checked, and that can begin.

    Args:
        program, scheme, params, state, dt: as the time loop takes them.
        arrays: ``params`` as arrays of the device; inside transformations the same.
        run: state of the loop at the start.
        rows: number of rows to be saved after that of the start, each after ``every`` steps.
        traced: whether the run is inside a transformation.
    """

    program: LoopProgram
    scheme: Scheme
    params: PyTree
    arrays: PyTree
    state: State
    dt: Array
    run: RunState
    rows: int
    every: int
    traced: bool


def checked(
    system: System, params: PyTree, state: State, scheme: Scheme, *, dt: Array | float, steps: int | None,
    time: float | None, every: int, save: Sequence[str] | None, gradient: str | None, events: int,
    notes: bool, carry: Continuation | None, progress: Any, guards: Guards | None = None,
) -> Call:  # fmt: skip
    """The `Call` of `simulate`, after all checks of its input.

    Raises:
        InputError: for input that cannot be run.
    """
    checks.check_kind(system, scheme)
    checks.check_precision()
    steps = checks.check_lengths(dt, steps, time, every, events)
    checks.check_gradient(scheme, gradient)
    if progress not in (None, True, False) and not callable(progress):
        raise InputError(
            f"progress = {progress!r}; give True, or a function of the steps done and of all steps"
        )
    keep = checks.check_save(save, ROWS)
    check_switches("simulate", notes=notes)
    if save is None and not notes:
        keep = tuple(name for name in keep if name not in NOTES)
    elif notes:
        keep = tuple(name for name in ROWS if name in (*keep, *NOTES))
    check_events(events, system.nt)
    params = checks.canonical(params, "params")
    scheme = checks.canonical_scheme(scheme)
    step = checks.canonical(dt, "dt")
    if carry is not None:
        state = _continued(carry)
    checks.check_state(state)
    state = checks.canonical(state, "state")
    checks.check_shapes(system, params, state)
    traced = is_traced((params, state, scheme, step, carry)) or being_compiled()
    bits = None
    if carry is None:
        state, bits = checks.examined_start(system, params, state, scheme, step, traced)
    # a run outside transformations is never differentiated: its program needs no derivative
    differentiable = traced and not system.changing_contacts
    wanted = gradient or (scheme.gradient if differentiable else "discrete")
    scheme = dataclasses.replace(scheme, gradient=wanted)
    program = LoopProgram(system=system, keep=keep, events=events, guards=guards)
    if carry is not None:
        _check_carry(program, scheme, params, step, carry)
    check_run(system, scheme, events, gradient)
    arrays = params if traced else _arrays(program, params)
    check_constants(params, lambda p: prepare_run(program, scheme, p, step).constants)
    begin = begin_run if traced else begin_eager_run if carry is not None else _begun
    run = begin(program, scheme, arrays, state, step, carry).refused(bits)
    return Call(program, scheme, params, arrays, state, step, run, steps // every, every, traced)


begin_eager_run = compiled_for("program", make=compiled_once)(inspect.unwrap(begin_run))
"""`begin_run` outside transformations, compiled without optimisation because it runs once. Compiling takes
a fourth of the time (0.2 CPU s for go1, 18 coordinates), a call 0.7 ms more at most."""


_arrays = latest(lambda program, params: jax.device_put(jax.tree.map(np.array, params)))
"""Numbers as arrays of the device, made once (for a robot in 2 ms), from copies that no user changes."""

_begun = latest(begin_eager_run)
"""`begin_eager_run` without a carry, not repeated for equal numbers."""


def _continued(carry: Any) -> State:
    """The state from which a carry continues."""
    if isinstance(carry, Continuation):
        return carry.carry.state
    raise InputError(f"carry is of type {type(carry).__name__}; give traj.carry of an earlier run")


def _check_carry(
    program: LoopProgram, scheme: Scheme, params: PyTree, step: Array, carry: Continuation
) -> None:
    """Refuses a carry of another scheme, or of the same scheme on another system."""
    if carry.scheme not in ("", scheme.name):
        raise InputError(
            f"carry: it belongs to a run of {carry.scheme}, not of {scheme.name}; continue with the scheme "
            "that made it, or start anew from its state, traj.carry.carry.state, which nsjax.consistent "
            "moves out of walls"
        )
    changed = [] if carry.guards is None else [*carry.guards.numbers]
    names = () if program.guards is None else program.guards.names
    lost = next((x for x in changed if x not in names), None)
    if lost is not None:
        raise InputError(
            f"carry: resets of its run change {lost!r}, and this run has none that do; give the same "
            "resets, or start anew from its state, traj.carry.carry.state"
        )
    wanted = _memory(program, *tree_shapes((scheme, params, carry.carry.state, step)))
    if wanted != tree_shapes(carry.carry.memory):
        raise InputError(
            f"carry: its memory does not fit {scheme.name} and this system, so it belongs to another "
            "scheme or system; continue with the scheme that made it, or start anew from its state, "
            "traj.carry.carry.state, which nsjax.consistent moves out of walls"
        )


@kept
def _memory(program: LoopProgram, structure: Any, leaves: tuple[tuple[Any, Any], ...]) -> Any:
    """`tree_shapes` of the memory of a scheme at the start of a run."""
    whole = jax.tree.unflatten(structure, [jax.ShapeDtypeStruct(*x) for x in leaves])
    begin = functools.partial(begin_run, program)
    return tree_shapes(jax.eval_shape(lambda x: begin(*x, None).next.carry.memory, whole))


@compiled_for("program")
def _advance(
    program: LoopProgram, scheme: Scheme, params: PyTree, run: RunState, dt: Array, counts: Array
) -> tuple[RunState, dict[str, Array | None]]:
    """One compiled call for some rows: entry ``k`` of ``counts`` is the number of steps of row ``k``, -1
    for a row that is not asked.
    """
    return kept_call(rows_of, program, scheme, params, run, dt, counts)


def rows_of(
    program: LoopProgram, scheme: Scheme, params: PyTree, run: RunState, dt: Array, counts: Array
) -> tuple[RunState, dict[str, Array | None]]:
    """State of the run and rows of `_advance`."""
    setup = prepare_run(program, scheme, params, dt)
    asked = jnp.sum(counts >= 0)
    run, rows = scan_first(functools.partial(run_steps, setup), run, counts, asked)
    return run, rows_with_gaps(setup, rows, asked)


def _chunk_rows(system: System) -> int:
    """Rows of one compiled call: a power of two that depends on the size of the model alone."""
    chunk_bytes, chunk_rows = 2**23, 4096  # most bytes of rows, and most rows, of one compiled call
    return int(min(chunk_rows, max(16, 2 ** int(np.log2(chunk_bytes / (8 * row_numbers(system)))))))


def row_bytes(program: LoopProgram) -> int:
    """Size of a saved row."""
    return 8 * row_numbers(program.system, program.keep)


def most_rows(call: Call) -> int:
    """Rows of one compiled call."""
    progress_steps = 400_000  # most steps of one compiled call of a run outside transformations
    return max(1, min(_chunk_rows(call.program.system), progress_steps // call.every))


def some_rows(call: Call, run: RunState, done: int, count: int) -> tuple[RunState, dict[str, Any]]:
    """State and rows of the next ``count`` rows, at most `most_rows`, after ``done`` rows; with ``done =
    -1`` the first one is the row of the start, which takes no steps. One program serves any number of rows.
    """
    counts = np.full(_chunk_rows(call.program.system), -1)
    counts[:count] = call.every
    if done < 0:
        counts[0] = 0
    overflowed, known = owned(call.program), (without_overflow, call.program, call.scheme.options)
    given = call.program.system, call.scheme, call.arrays, call.state, run.closed
    swift = None if known in overflowed else without_overflow(*given)
    for scheme in (call.scheme,) if swift is None else (swift, call.scheme):
        after, part = _advance(call.program, scheme, call.arrays, run, call.dt, counts)
        if scheme is call.scheme or not int(after.status):
            break
        overflowed[known] = True  # later runs of this process begin with the whole program
    return after, jax.tree.map(lambda x: np.asarray(x)[:count], part)


def joined_rows(parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Rows of several calls, joined."""
    return dict(jax.tree.map(lambda *x: np.concatenate(x), *parts))


def _run_eager(call: Call, progress: Progress) -> tuple[RunState, dict[str, Any]]:
    """State of the run and all rows, by calls of `_advance`."""
    check_rows(call.rows, row_bytes(call.program), traced=False)
    parts: list[dict[str, Any]] = []
    run, done, per_call = call.run, -1, most_rows(call)
    with meter(progress, call.rows * call.every, "step") as tell:
        while done < call.rows:
            fresh = min(per_call, call.rows - done)
            run, part = some_rows(call, run, done, fresh)
            parts.append(part)
            done += fresh
            tell(done * call.every)
            if has_stopped(run):
                break
    return run, up_to_stop(run, joined_rows(parts))


def has_stopped(run: RunState) -> bool:
    """Whether a run outside transformations has met its stop."""
    return run.stopped is not None and bool(run.stopped)


def up_to_stop(run: RunState, rows: dict[str, Any]) -> dict[str, Any]:
    """The rows without those that repeat the stop."""
    if not has_stopped(run):
        return rows
    last = int(np.searchsorted(rows["t"], rows["t"][-1])) + 1
    return {name: x if x is None else x[:last] for name, x in rows.items()}


def _run_traced(call: Call) -> tuple[RunState, dict[str, Any]]:
    """State of the run and all rows with static lengths, for use inside transformations.

    Reverse mode keeps the carries and solutions of the steps if they fit into a budget
    (`nsjax.core.memory`); else only those between blocks, of several rows or of parts of a row.
    """
    program, scheme, rows, every = call.program, call.scheme, call.rows, call.every
    steps, system = rows * every, program.system
    # arrays of numpy cannot be read at a traced index, as a model may do with its tables
    numbers = scheme, jax.tree.map(jnp.asarray, call.params), call.dt
    lanes, moving = lanes_around((numbers, call.run))
    tally = jax.eval_shape(functools.partial(no_tally, program))
    carry, solution = tree_bytes((call.run.next.carry, tally)), 0
    if scheme.traits.stores_solutions:
        # size of the solutions of a step relative to its velocities and rows: 1 to 4, largest for Bathe
        # with two solves
        solved = 4
        solution = 8 * solved * (system.nv + row_groups(system).count)
    blocks = plan_blocks(steps, carry, solution)
    kept = kept_bytes(steps, carry, solution, blocks) if moving else 0
    check_rows(rows, row_bytes(program), traced=True, lanes=lanes, kept=kept)
    # steps of impulses have the same solutions with events and without; a program by kinds of steps takes
    # longer to compile, which some 300 gradients make up for, see `nsjax.jaxtools.programs`
    many = 1_000  # steps
    kinds = scheme.traits.impulses == "step" and not scheme.traits.locates and program.guards is None
    moves = places_of(moving, numbers) if kinds and steps >= many else None
    plan = (rows, every, *blocks)
    with tracing(INSIDE):
        soon = _soon_run(program, plan, moves, *numbers, call.run) if moving else None
        return soon or _whole_run(program, plan, moves, *numbers, call.run)


def _run_by(keep: Callable[..., Any]) -> Callable[..., Any]:
    """State and rows of `_run_traced`, by `kept_run` or `_kept_soon`."""

    def _whole_run(
        program: LoopProgram, plan: tuple[int, int, int, bool], moves: tuple[int, ...] | None,
        scheme: Scheme, params: PyTree, dt: Array, run: RunState,
    ) -> tuple[RunState, dict[str, Array | None]] | None:  # fmt: skip
        return keep(rows_in_blocks, (program, plan, moves), scheme, params, dt, run)

    return _whole_run


_whole_run = compiled_for("program", "plan", "moves")(_run_by(kept_run))
"""Trace, derivatives and programs of a run in a transformation belong to the system, whatever function is
differentiated.
"""


def _kept_soon(function: Callable[..., Any], static: tuple[Any, ...], *arguments: Any) -> Any:
    """`kept_soon` for as many calls as take few steps together."""
    program, (rows, every, *_), _ = static
    calls = few_steps(row_groups(program.system).count) // (rows * every)
    return kept_soon(calls, function, static, *arguments)


_soon_run = compiled_for("program", "plan", "moves", make=Uncompiled)(_run_by(_kept_soon))
"""`_whole_run` for first reverse derivatives: the compiler takes a half to a quarter of the time, each step
two to five times as long.
"""


def rows_in_blocks(
    static: tuple[LoopProgram, tuple[int, int, int, bool], tuple[int, ...] | None], scheme: Scheme,
    params: PyTree, dt: Array, run: RunState,
) -> tuple[RunState, dict[str, Array | None]]:  # fmt: skip
    """State and rows of `_whole_run`, with ``rows, every`` and the blocks as plan; ``moves``: places of the
    numbers that are differentiated, by kinds of steps; None: by one program for all steps.
    """
    program, (rows, every, size, solutions), moves = static
    blocks = StepBlocks(size, solutions)
    setup = prepare_run(program, scheme, params, dt)
    if moves is not None:
        prepare = lambda numbers: prepare_run(program, *numbers)  # noqa: E731
        follow = results_that_move(prepare, (scheme, params, dt), moves)
        leaves = jax.tree.leaves(setup)
        setup = dataclasses.replace(setup, shared=Shared.of(setup, [leaves[k] for k in follow]))
    row = functools.partial(run_steps, setup)
    run, first = row(run, 0)

    def body(run: RunState, _: None) -> tuple[RunState, dict[str, Array | None]]:
        return row(run, every, blocks)

    group = rows if blocks.size < every else max(1, blocks.size // every)
    run, rest = scan_blocks(body, run, rows, group)
    every_row = jax.tree.map(lambda x, more: jnp.concatenate([x[None], more]), first, rest)
    # of a run that was refused, what its steps say follows from that; a value that is not finite has no
    # derivative
    refused = run.first_failure.step == 0
    run = dataclasses.replace(run, status=jnp.where(refused, run.first_failure.status, run.status))
    lost = {x: every_row[x] * jnp.where(jnp.isfinite(every_row[x]), 1.0, jnp.nan) for x in "qv"}
    return run, rows_with_gaps(setup, every_row | lost)
