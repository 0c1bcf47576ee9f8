"""The only time loop: a run from its start, row by row."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax.contact.bounded import reported, working
from nsjax.contact.closing import Closing, begin_closing, follow_closing
from nsjax.contact.events import Touch, criteria_of, frozen
from nsjax.contact.sliding import jammed, jammed_at_start
from nsjax.core.blocks import Blocks, scan_blocks
from nsjax.core.branches import branch
from nsjax.core.operators import prepared, refreshed
from nsjax.core.scheme import Carry, Output, Scheme
from nsjax.core.system import State, System
from nsjax.core.watch import Watch, begin_watch, watch_gaps
from nsjax.nonlinear import keep_solutions, made_live, with_tangent
from nsjax.trajectory import ROWS, Continuation, FirstFailure, Impacts
from nsjax.types import Array, PyTree, record


@dataclasses.dataclass(frozen=True)
class LoopProgram:
    """Static part of a compiled run.

    Args:
        system: the model.
        keep: names of the row quantities to save beside ``t, q, v``.
        events: impacts to list.
    """

    system: System
    keep: tuple[str, ...]
    events: int


@record()
class Run:
    """What the time loop carries from step to step for the whole run."""

    next: Continuation
    status: Array
    first_failure: FirstFailure
    events: Impacts | None
    watch: Watch | None
    closing: Closing | None


@functools.partial(jax.jit, static_argnames=("program",))
def begin_run(
    program: LoopProgram,
    scheme: Scheme,
    params: PyTree,
    state: State,
    dt: Array,
    carry: Continuation | None,
) -> Run:
    """The loop's carry at the start of a run, or at the continuation of an earlier one."""
    system = program.system
    watched = bool(system.nc) and bool({"notes", "margin"} & set(program.keep))
    bits = jnp.zeros(system.nc, int)
    if carry is None:
        params, constants = prepare_run(system, scheme, params, dt)
        params = refreshed(system, jnp.asarray(state.t), state.q, params)
        start = scheme.init(scheme, working(system), params, constants, state)
        origin, index = jnp.asarray(state.t), jnp.asarray(0, int)
        follow = Continuation(carry=start, origin=origin, index=index, dt=dt, **_made_by(scheme))
        if watched:
            at, p = frozen((State(t=follow.origin, q=state.q, v=state.v), params))
            bits = jammed_at_start(criteria_of(scheme), system, p, at)
    else:
        same = carry.dt == dt
        follow = Continuation(
            carry=carry.carry,
            origin=jnp.where(same, carry.origin, carry.carry.state.t),
            index=jnp.where(same, carry.index, 0),
            dt=dt,
            **_made_by(scheme),
        )
    by = params, scheme.coef, state, dt
    follow = dataclasses.replace(follow, carry=_live_carry(follow.carry, by))
    none = jnp.asarray(-1, int)
    events = None
    if program.events:
        empty = jnp.full(program.events, jnp.nan)
        events = Impacts(
            count=jnp.asarray(0, int),
            time=empty,
            contact=jnp.full(program.events, -1),
            rate_before=empty,
            rate_after=empty,
            impulse_normal=empty,
            impulse_tangential=jnp.full((program.events, system.nt), jnp.nan),
        )
    failure = FirstFailure(step=none, time=jnp.zeros(()), status=jnp.asarray(0, int), contact=none)
    watch = begin_watch(system.nc, system.nt, bits) if watched else None
    timed = system.nc > 0 and "closed_time" in program.keep and scheme.gradient != "discrete"
    closing = begin_closing(follow.carry, timed)
    if closing is not None:
        closing = dataclasses.replace(closing, shift=made_live(closing.shift, by))
    return Run(
        next=follow, status=jnp.asarray(0, int), first_failure=failure, events=events, watch=watch,
        closing=closing,
    )  # fmt: skip


def _made_by(scheme: Scheme) -> dict[str, Any]:
    """What a continuation says of the scheme."""
    return {"scheme": scheme.name, "impulses": scheme.impulses}


def _live_carry(carry: Carry, by: PyTree) -> Carry:
    """What moves with ``by`` in any run. The time does not, nor what is remembered of contacts."""
    state = dataclasses.replace(carry.state, **made_live({"q": carry.state.q, "v": carry.state.v}, by))
    leaves: Any
    leaves, tree = jax.tree.flatten(carry.memory, is_leaf=lambda x: isinstance(x, Touch))
    moving = [k for k, x in enumerate(leaves) if not isinstance(x, Touch)]
    for k, x in zip(moving, made_live([leaves[k] for k in moving], by), strict=True):
        leaves[k] = x
    return dataclasses.replace(carry, state=state, memory=jax.tree.unflatten(tree, leaves))


def prepare_run(system: System, scheme: Scheme, params: PyTree, dt: Array) -> tuple[PyTree, PyTree]:
    """Parameters with what the model derives from them, and the constants of the scheme."""
    params = prepared(system, params)
    return params, scheme.prepare(scheme, working(system), params, dt)


def _one_step(
    program: LoopProgram,
    scheme: Scheme,
    params: PyTree,
    constants: PyTree,
    dt: Array,
    run: Run,
    tally: dict[str, Array],
) -> tuple[Run, dict[str, Array]]:
    """One step of the scheme, and the books kept around it."""
    follow = run.next
    state = dataclasses.replace(follow.carry.state, t=follow.origin + follow.index * dt)
    start = dataclasses.replace(follow.carry, state=state)
    params = refreshed(program.system, state.t, state.q, params)
    system = working(program.system)
    carry, output = scheme.step(scheme, system, params, constants, start, dt)
    closing, moves = run.closing, None
    if closing is not None:
        closing, moves = follow_closing(
            criteria_of(scheme), system, params, closing, start, carry, output, dt
        )
        moves = moves[: program.system.nc]
    output = reported(program.system, output)
    index = follow.index + 1
    end = follow.origin + index * dt
    carry = dataclasses.replace(carry, state=dataclasses.replace(carry.state, t=end))
    failed = (output.status != 0) & (run.status == 0)
    now = FirstFailure(step=index, time=end, status=output.status, contact=output.contact)
    watch, margin = run.watch, None
    if watch is not None:
        criteria = criteria_of(scheme)
        watch, margin, grazing = watch_gaps(
            watch, output, dt, resolved=criteria.gate, sequence=criteria.sequence, flight=criteria.flight
        )
        output = dataclasses.replace(output, notes=output.notes | grazing)
    return Run(
        next=dataclasses.replace(follow, carry=carry, index=index, dt=dt),
        status=run.status | output.status,
        first_failure=jax.tree.map(lambda a, b: jnp.where(failed, a, b), now, run.first_failure),
        events=_list_impacts(run.events, end, output),
        watch=watch,
        closing=closing,
    ), {name: _count(name, value, output, dt, margin, moves) for name, value in tally.items()}


def _count(
    name: str, value: Array, output: Output, dt: Array, margin: Array | None, moves: Array | None
) -> Array:
    """What accumulates between two saved rows, after one more step."""
    if name == "margin":
        return value if margin is None else jnp.minimum(value, margin)
    if name == "impacts":
        return value + output.event.impact
    if name == "gap_min":
        return jnp.minimum(value, output.event.gap)
    if name == "closed_time":
        if moves is None:
            return value + jnp.where(output.event.active, dt, 0.0)
        return with_tangent(value + jnp.where(output.event.active, frozen(dt), 0.0), moves)
    new: Array = getattr(output, name)
    if "impulse" in name or name == "iterations":
        return value + new
    if name == "residual":
        return jnp.maximum(value, new)
    return value | new if name == "notes" else new


def no_tally(program: LoopProgram) -> dict[str, Array]:
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
        "drag_force": jnp.zeros(system.nd),
        "drag_impulse": jnp.zeros(system.nd),
        "impacts": jnp.zeros(nc, int),
        "gap_min": jnp.full(nc, jnp.inf),
        "closed_time": none,
        "iterations": jnp.asarray(0),
        "residual": jnp.zeros(()),
        "notes": jnp.zeros(nc, int),
        "margin": jnp.full(nc, jnp.inf),
    }
    return {name: value for name, value in tally.items() if name in program.keep}


def _live_tally(tally: dict[str, Array], by: PyTree) -> dict[str, Array]:
    """Forces, impulses, gaps and times move with the motion; counts and the solver's books do not."""
    own = "gap_min", "closed_time"
    moving = {k: x for k, x in tally.items() if k in own or "force" in k or "impulse" in k}
    return tally | made_live(moving, by)


def _list_impacts(events: Impacts | None, end: Array, output: Output) -> Impacts | None:
    """The impact list with the impacts of this step entered, one contact after the other."""
    if events is None:
        return None
    impact = output.event.impact

    def enter(events: Impacts) -> Impacts:
        for k in range(impact.shape[0]):
            here = (np.arange(events.time.shape[0]) == events.count) & impact[k]
            values = {
                "time": with_tangent(end, jnp.broadcast_to(output.event.shift, impact.shape)[k]),
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

    return branch(jnp.any(impact), enter, lambda events: events, events)


def run_row(
    program: LoopProgram,
    scheme: Scheme,
    params: PyTree,
    constants: PyTree,
    dt: Array,
    run: Run,
    count: Array | int,
    blocks: Blocks | None = None,
) -> tuple[Run, dict[str, Array | None]]:
    """``count`` steps and the row saved after them. A traced count serves any number of steps; a
    static one allows reverse mode, which stores what ``blocks`` says, by default all carries and
    solutions. No steps at all give the row of the start.
    """
    system = program.system

    def step(both: tuple[Run, dict[str, Array]], _: Any = None) -> tuple[Any, None]:
        return _one_step(program, scheme, params, constants, dt, *both), None

    both = run, _live_tally(no_tally(program), (params, run.next))
    if not isinstance(count, int):
        both = lax.fori_loop(0, count, lambda _, both: step(both)[0], both)
    elif count:
        size, solutions = blocks or Blocks(count, True)
        once = keep_solutions(step) if solutions else jax.checkpoint(step, prevent_cse=False)
        both, _ = scan_blocks(once, both, count, size)
    run, tally = both
    state = run.next.carry.state
    params = refreshed(system, jnp.asarray(state.t), state.q, params)
    gap = jnp.zeros(system.nc) if system.gap is None else system.gap(state.t, state.q, params)
    values = {**tally, "gap": gap}
    if "gap_min" in tally:
        values["gap_min"] = jnp.where(jnp.isinf(tally["gap_min"]), gap, tally["gap_min"])
    if "notes" in tally and run.watch is not None:
        at, p = frozen((state, params))
        at = dataclasses.replace(at, t=jnp.asarray(at.t))
        values["notes"] = tally["notes"] | run.watch.start | jammed(system, p, at, run.watch.impulse)
        run = dataclasses.replace(
            run, watch=dataclasses.replace(run.watch, start=jnp.zeros(system.nc, int))
        )
    kept = {name: values[name] if name in program.keep else None for name in ROWS}
    return run, {"t": jnp.asarray(state.t), "q": state.q, "v": state.v, **kept}
