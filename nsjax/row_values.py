"""Values of a saved row: what its steps have accumulated, and notes and gaps at its end."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from nsjax.contact.events import Touch, frozen, no_touch
from nsjax.contact.friction_decisions import jammed
from nsjax.core.operators import refreshed
from nsjax.core.pairs import handed_on, rows_handed_on
from nsjax.core.quantities import QUANTITIES
from nsjax.core.scheme import Carry
from nsjax.core.step import SystemState
from nsjax.core.system import System
from nsjax.types import Array, Fn, PyTree


def same_pairs(system: System, params: PyTree, start: Carry, tally: Any) -> tuple[Carry, Any]:
    """Carry and accumulated quantities, with the entries of each pair in its slot of `System.pairs`."""
    if system.pairs is None:
        return start, tally
    old, new = start.memory.pairs, system.pairs.identity(params)
    fresh = {name: QUANTITIES[name].start(system) for name in tally}
    memory = start.memory.memory
    # a new pair has no memory
    nothing = jax.tree.map(
        lambda x: no_touch(system) if isinstance(x, Touch) else jnp.zeros_like(x), memory,
        is_leaf=lambda x: isinstance(x, Touch),
    )  # fmt: skip
    memory = handed_on(old, new, memory, nothing)
    return dataclasses.replace(start, memory=memory), rows_handed_on(system, old, new, tally, fresh)


def row_values(
    system: System, prepared: PyTree, run: Any, tally: dict[str, Array], count: Array | int
) -> tuple[Any, dict[str, Array]]:
    """The state of a run (`nsjax.loop.RunState`) and the values of its row after ``count`` steps, without
    gaps (`rows_with_gaps`).

    One program serves any number of rows. Those with a traced count below zero are never read; what their
    end would need is left out.
    """
    if system.pairs is None and ("notes" not in tally or run.watch is None):
        return run, tally
    if isinstance(count, int):
        return _at_end(system, prepared, run, tally)
    return lax.cond(
        count < 0, lambda run, tally: (run, tally),
        lambda run, tally: _at_end(system, prepared, run, tally), run, tally,
    )  # fmt: skip


def _at_end(
    system: System, prepared: PyTree, run: Any, tally: dict[str, Array]
) -> tuple[Any, dict[str, Array]]:  # fmt: skip
    """State of the run and values of its row."""
    state = run.next.carry.state
    params = refreshed(system, jnp.asarray(state.t), state.q, prepared)
    _, values = same_pairs(system, params, run.next.carry, tally)
    if "notes" in values and run.watch is not None:
        at = frozen(SystemState(system=system, params=params, state=state))
        values = {**values, "notes": values["notes"] | run.watch.start | jammed(at, run.watch.impulse)}
        run = dataclasses.replace(
            run, watch=dataclasses.replace(run.watch, start=jnp.zeros(system.nc, int))
        )
    return run, values


def row_with_gaps(setup: Any, row: dict[str, Any]) -> dict[str, Array | None]:
    """A row with the gaps at its end, as far as these are kept."""
    return _with_gaps(setup, row, _gaps) if _keeps_gaps(setup) else row


def rows_with_gaps(
    setup: Any, rows: dict[str, Any], counts: Array | None = None
) -> dict[str, Array | None]:  # fmt: skip
    """Rows of `nsjax.loop.run_steps` with the gaps at their ends, as far as these are kept; with zeros for
    rows that have a negative entry of ``counts`` (rows,).

    The gaps get a loop of their own: a single loop for steps and gaps would be one kernel, and its time of
    compilation grows faster than its size.
    """

    def gaps(setup: Any, t: Array, q: Array) -> Array:
        def one(row: tuple[Array, Array, Array | None]) -> Array:
            t, q, count = row
            if count is None:
                return _gaps(setup, t, q)
            nothing = jnp.zeros(setup.program.system.nc)
            return lax.cond(count < 0, lambda *_: nothing, lambda *x: _gaps(setup, *x), t, q)

        found: Array = lax.map(one, (t, q, counts))
        return found

    return _with_gaps(setup, rows, gaps) if _keeps_gaps(setup) else rows


def _keeps_gaps(setup: Any) -> bool:
    return bool({"gap", "gap_min"} & set(setup.program.keep))


def _gaps(setup: Any, t: Array, q: Array) -> Array:
    """Gaps (nc,), for which features of all pairs of bodies may be searched."""
    system = setup.program.system
    params = refreshed(system, t, q, setup.params)
    return jnp.zeros(system.nc) if system.gap is None else system.gap(t, q, params)


def _with_gaps(setup: Any, row: dict[str, Any], gaps: Fn) -> dict[str, Any]:
    """One row or several; without a step the least gap is that of the start."""
    gap, least = gaps(setup, row["t"], row["q"]), row["gap_min"]
    if least is not None:
        least = jnp.where(jnp.isinf(least), gap, least)
    return {**row, "gap": gap if "gap" in setup.program.keep else None, "gap_min": least}
