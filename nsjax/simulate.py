"""The only time loop."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax.core import checks
from nsjax.core.blocks import block_size, scan_blocks, tree_bytes, warn_of_rows
from nsjax.core.scheme import Output, Scheme
from nsjax.core.system import State, System
from nsjax.nonlinear import SOLUTION
from nsjax.trajectory import ROWS, Continuation, FirstFailure, Impacts, Trajectory
from nsjax.types import Array, PyTree, record

CHUNK_BYTES = 2**23
CHUNK_ROWS = 4096
PROGRESS_STEPS = 400_000
"""An eager run is cut into compiled calls of at most this many rows, bytes of rows and steps."""

STORED = 4
"""What reverse mode keeps of a step, its carry and its solutions, in sizes of the carry: 3.4 for
generalized-alpha, 1.7 for Moreau on the slider-crank.
"""


@record()
class _Run:
    """What the time loop carries from step to step for the whole run."""

    next: Continuation
    status: Array
    first_failure: FirstFailure
    events: Impacts | None


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
    carry: Continuation | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Trajectory:
    """Runs ``steps`` steps of a scheme and returns every ``every``-th state with what happened
    between.

    ``t_k = t_0 + k dt`` is computed, never accumulated. Called with plain numbers, a run of another
    length or with other numbers does not compile again. Inside `jax.jit`, `jax.vmap`, `jax.grad` and
    the like, ``params``, ``state``, the numbers of ``scheme`` and ``dt`` may be traced; lengths are
    then static, and reverse mode recomputes inside rows (two-level checkpointing).

    Args:
        system, params, state: the problem; ``simulate(*problem, ...)`` unpacks one.
        scheme: for instance ``schemes.moreau()``.
        dt: step size [s].
        steps: number of steps, a multiple of ``every``. Give either steps or time.
        time: duration [s], a whole number of steps.
        every: save each ``every``-th step.
        save: names of the row quantities to keep beside ``t, q, v`` (see `Trajectory`); None: all.
        gradient: ``"saltation"`` or ``"discrete"``, the derivative through impacts, see `Scheme`; None:
            the scheme's own. It changes derivatives, and values by the rounding of another program only;
            runs that are not differentiated compile faster with ``"discrete"``.
        events: keep a list of the first ``events`` impacts.
        carry: ``traj.carry`` of an earlier run, to continue it bit for bit instead of starting at
            ``state``.
        progress: called as ``progress(steps_done, steps)`` between compiled calls.

    Returns:
        A `Trajectory`; ``traj.raise_for_status()`` tells whether all steps went well.

    Raises:
        InputError: before any work, for input that cannot be run.

    Limits: the derivative with ``gradient="saltation"`` is that of the motion to first order in dt, as
    far as the motion has one; ``traj.notes`` tells where it is one-sided or a selection. It is of first
    order: a second differentiation through contacts is refused.

    Example:
        >>> import nsjax
        >>> from nsjax import models, schemes
        >>> traj = nsjax.simulate(
        ...     *models.bouncing_ball(height=1.0), schemes.moreau(), dt=1e-3, steps=500, every=100
        ... )
        >>> traj.t.round(9).tolist()
        [0.0, 0.1, 0.2, 0.3, 0.4, 0.5]
        >>> int(traj.impacts.sum())
        1
    """
    checks.check_kind(system, scheme)
    checks.check_precision()
    steps = checks.check_lengths(dt, steps, time, every, events)
    checks.check_gradient(scheme, gradient)
    keep = checks.check_save(save, ROWS)
    params = checks.canonical(params, "params")
    scheme = dataclasses.replace(scheme, coef=checks.canonical(scheme.coef, "scheme"))
    step = checks.canonical(dt, "dt")
    if carry is not None:
        state = carry.carry.state
    state = checks.canonical(state, "state")
    checks.check_shapes(system, params, state)
    traced = checks.is_traced((params, state, scheme, step, carry))
    if not traced and carry is None:
        checks.check_values(system, params, state, scheme)
    # a run outside transformations is never differentiated: its program needs no derivative
    wanted = gradient or (scheme.gradient if traced else "discrete")
    scheme = dataclasses.replace(scheme, gradient=wanted)
    program = _Program(system=system, keep=keep, events=events)
    run = _begin(program, scheme, params, state, step, carry)
    if traced:
        run, rows = _run_traced(program, scheme, params, run, step, steps // every, every)
    else:
        run, rows = _run_eager(program, scheme, params, run, step, steps // every, every, progress)
    return Trajectory(
        system=system,
        params=params,
        **rows,
        status=run.status,
        first_failure=run.first_failure,
        events=run.events,
        carry=run.next,
    )


@dataclasses.dataclass(frozen=True)
class _Program:
    """Static part of a compiled run."""

    system: System
    keep: tuple[str, ...]
    events: int


@functools.partial(jax.jit, static_argnames=("program",))
def _begin(
    program: _Program,
    scheme: Scheme,
    params: PyTree,
    state: State,
    dt: Array,
    carry: Continuation | None,
) -> _Run:
    """The loop's carry at the start of a run, or at the continuation of an earlier one."""
    system = program.system
    if carry is None:
        params, constants = _prepare(system, scheme, params, dt)
        start = scheme.init(scheme, system, params, constants, state)
        follow = Continuation(carry=start, origin=jnp.asarray(state.t), index=jnp.asarray(0, int), dt=dt)
    else:
        same = carry.dt == dt
        follow = Continuation(
            carry=carry.carry,
            origin=jnp.where(same, carry.origin, carry.carry.state.t),
            index=jnp.where(same, carry.index, 0),
            dt=dt,
        )
    none = jnp.asarray(-1, int)
    events = None
    if program.events:
        zero = jnp.zeros(program.events)
        events = Impacts(
            count=jnp.asarray(0, int),
            time=zero,
            contact=jnp.full(program.events, -1),
            rate_before=zero,
            rate_after=zero,
            impulse_normal=zero,
            impulse_tangential=jnp.zeros((program.events, system.nt)),
        )
    failure = FirstFailure(step=none, time=jnp.zeros(()), status=jnp.asarray(0, int), contact=none)
    return _Run(next=follow, status=jnp.asarray(0, int), first_failure=failure, events=events)


def _prepare(system: System, scheme: Scheme, params: PyTree, dt: Array) -> tuple[PyTree, PyTree]:
    if system.prepare is not None:
        params = system.prepare(params)
    return params, scheme.prepare(scheme, system, params, dt)


def _one_step(
    program: _Program,
    scheme: Scheme,
    params: PyTree,
    constants: PyTree,
    dt: Array,
    run: _Run,
    tally: dict[str, Array],
) -> tuple[_Run, dict[str, Array]]:
    """One step of the scheme, and the books kept around it."""
    follow = run.next
    state = dataclasses.replace(follow.carry.state, t=follow.origin + follow.index * dt)
    start = dataclasses.replace(follow.carry, state=state)
    carry, output = scheme.step(scheme, program.system, params, constants, start, dt)
    index = follow.index + 1
    end = follow.origin + index * dt
    carry = dataclasses.replace(carry, state=dataclasses.replace(carry.state, t=end))
    failed = (output.status != 0) & (run.status == 0)
    now = FirstFailure(step=index, time=end, status=output.status, contact=output.contact)
    return _Run(
        next=Continuation(carry=carry, origin=follow.origin, index=index, dt=dt),
        status=run.status | output.status,
        first_failure=jax.tree.map(lambda a, b: jnp.where(failed, a, b), now, run.first_failure),
        events=_list_impacts(run.events, end, output),
    ), {name: _count(name, value, output, dt) for name, value in tally.items()}


def _count(name: str, value: Array, output: Output, dt: Array) -> Array:
    """What accumulates between two saved rows, after one more step."""
    if name == "impacts":
        return value + output.event.impact
    if name == "gap_min":
        return jnp.minimum(value, output.event.gap)
    if name == "closed_time":
        return value + jnp.where(output.event.active, dt, 0.0)
    new: Array = getattr(output, name)
    if name.startswith("impulse") or name in ("constraint_impulse", "iterations"):
        return value + new
    if name == "residual":
        return jnp.maximum(value, new)
    return value | new if name == "notes" else new


def _no_tally(program: _Program) -> dict[str, Array]:
    """What is to be kept, before any step."""
    system = program.system
    nc, nt, nb = system.nc, system.nt, system.nb
    none = jnp.zeros(nc)
    tally = {
        "force_normal": none,
        "force_tangential": jnp.zeros((nc, nt)),
        "constraint_force": jnp.zeros(nb),
        "impulse_normal": none,
        "impulse_tangential": jnp.zeros((nc, nt)),
        "constraint_impulse": jnp.zeros(nb),
        "impacts": jnp.zeros(nc, int),
        "gap_min": jnp.full(nc, jnp.inf),
        "closed_time": none,
        "iterations": jnp.asarray(0),
        "residual": jnp.zeros(()),
        "notes": jnp.asarray(0),
    }
    return {name: value for name, value in tally.items() if name in program.keep}


def _list_impacts(events: Impacts | None, end: Array, output: Output) -> Impacts | None:
    """The impact list with the impacts of this step entered, one contact after the other."""
    if events is None:
        return None
    impact = output.event.impact

    def enter(events: Impacts) -> Impacts:
        for k in range(impact.shape[0]):
            here = (np.arange(events.time.shape[0]) == events.count) & impact[k]
            values = {
                "time": end,
                "contact": jnp.asarray(k),
                "rate_before": output.event.rate_before[k],
                "rate_after": output.event.rate_after[k],
                "impulse_normal": output.impulse_normal[k],
            }
            new: dict[str, Any] = {
                name: jnp.where(here, value, getattr(events, name)) for name, value in values.items()
            }
            tangential = jnp.where(
                here[:, None], output.impulse_tangential[k][None, :], events.impulse_tangential
            )
            events = Impacts(count=events.count + impact[k], impulse_tangential=tangential, **new)
        return events

    return lax.cond(jnp.any(impact), enter, lambda events: events, events)


def _row(
    program: _Program,
    scheme: Scheme,
    params: PyTree,
    constants: PyTree,
    dt: Array,
    run: _Run,
    count: Array | int,
    block: int | None = None,
) -> tuple[_Run, dict[str, Array | None]]:
    """``count`` steps and the row saved after them. A traced count serves any number of steps; a
    static one allows reverse mode, which keeps the carries of blocks of ``block`` steps. No steps at all
    give the row of the start.
    """
    system = program.system

    def step(both: tuple[_Run, dict[str, Array]], _: Any = None) -> tuple[Any, None]:
        return _one_step(program, scheme, params, constants, dt, *both), None

    both = run, _no_tally(program)
    if not isinstance(count, int):
        both = lax.fori_loop(0, count, lambda _, both: step(both)[0], both)
    elif count:
        # where reverse mode computes a step again it looks the solutions up
        keep = jax.checkpoint_policies.save_only_these_names(SOLUTION)
        checkpointed = jax.checkpoint(step, prevent_cse=False, policy=keep)
        both, _ = scan_blocks(checkpointed, both, count, block or count)
    run, tally = both
    state = run.next.carry.state
    gap = jnp.zeros(system.nc) if system.gap is None else system.gap(state.t, state.q, params)
    values = {**tally, "gap": gap}
    if "gap_min" in tally:
        values["gap_min"] = jnp.where(jnp.isinf(tally["gap_min"]), gap, tally["gap_min"])
    kept = {name: values[name] if name in program.keep else None for name in ROWS}
    return run, {"t": jnp.asarray(state.t), "q": state.q, "v": state.v, **kept}


@functools.partial(jax.jit, static_argnames=("program",))
def _advance(
    program: _Program, scheme: Scheme, params: PyTree, run: _Run, dt: Array, counts: Array
) -> tuple[_Run, dict[str, Array | None]]:
    """One compiled call: as many rows as ``counts`` has entries, each of so many steps."""
    params, constants = _prepare(program.system, scheme, params, dt)
    row = functools.partial(_row, program, scheme, params, constants, dt)
    return lax.scan(row, run, counts)


def _chunk_rows(system: System) -> int:
    """Rows of one compiled call: a power of two that depends on the size of the model alone."""
    width = system.nq + system.nv + system.nc * (8 + 2 * system.nt) + 2 * system.nb + 3
    return int(min(CHUNK_ROWS, max(16, 2 ** int(np.log2(CHUNK_BYTES / (8 * width))))))


def _run_eager(
    program: _Program,
    scheme: Scheme,
    params: PyTree,
    run: _Run,
    dt: Array,
    rows: int,
    every: int,
    progress: Callable[[int, int], None] | None,
) -> tuple[_Run, dict[str, Any]]:
    """Calls of `_advance` until all rows are there; one program serves any number of steps."""
    length = _chunk_rows(program.system)
    per_call = max(1, min(length, PROGRESS_STEPS // every))
    parts: list[dict[str, Any]] = []
    done = -1  # row 0, the start, takes no steps
    while done < rows:
        fresh = min(per_call, rows - done)
        counts = np.zeros(length, int)
        counts[:fresh] = every
        if done < 0:
            counts[0] = 0
        run, part = _advance(program, scheme, params, run, dt, counts)
        if done < 0:
            warn_of_rows(rows, tree_bytes(part) // length, traced=False)
        parts.append({k: None if x is None else np.asarray(x)[:fresh] for k, x in part.items()})
        done += fresh
        if progress is not None:
            progress(done * every, rows * every)
    joined = {
        name: None if value is None else np.concatenate([part[name] for part in parts])
        for name, value in parts[0].items()
    }
    return run, joined


def _run_traced(
    program: _Program,
    scheme: Scheme,
    params: PyTree,
    run: _Run,
    dt: Array,
    rows: int,
    every: int,
) -> tuple[_Run, dict[str, Any]]:
    """The same rows with static lengths, for use inside transformations.

    Reverse mode keeps the carries and solutions of the steps if they fit into a budget
    (`nsjax.core.blocks`); else those of blocks, of several rows or of parts of a row.
    """
    params, constants = _prepare(program.system, scheme, params, dt)
    row = functools.partial(_row, program, scheme, params, constants, dt)
    run, first = row(run, 0)
    warn_of_rows(rows, tree_bytes(first), traced=True)
    size = block_size(rows * every, STORED * tree_bytes((run.next.carry, _no_tally(program))))

    def body(run: _Run, _: None) -> tuple[_Run, dict[str, Array | None]]:
        return row(run, every, size)

    group = rows if size < every else max(1, size // every)
    run, rest = scan_blocks(body, run, rows, group)
    joined = {
        name: None if value is None else jnp.concatenate([value[None], rest[name]])
        for name, value in first.items()
    }
    return run, joined
