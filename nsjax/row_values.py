"""Values of a saved row: what its steps have accumulated, and notes and gaps at its end."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from nsjax.contact.events import Touch, frozen, no_touch
from nsjax.contact.friction_decisions import jammed
from nsjax.core.blocks import scan_first
from nsjax.core.operators import refreshed
from nsjax.core.pairs import handed_on, rows_handed_on
from nsjax.core.quantities import QUANTITIES
from nsjax.core.scheme import Carry
from nsjax.core.step import SystemState
from nsjax.core.system import System
from nsjax.types import Array, PyTree


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
    system: System, prepared: PyTree, run: Any, tally: dict[str, Array]
) -> tuple[Any, dict[str, Array]]:
    """The state of a run (`nsjax.loop.RunState`) and the values of its row at the end, without gaps
    (`rows_with_gaps`) but for those of changing pairs, which are searched here in any case.
    """
    if system.pairs is None and not ("notes" in tally and run.watch is not None):
        return run, tally
    state = run.next.carry.state
    params = refreshed(system, jnp.asarray(state.t), state.q, prepared)
    if system.pairs is not None:
        _, values = same_pairs(system, params, run.next.carry, tally)
        return run, _with_gap(values, system.gap(state.t, state.q, params))
    at = frozen(SystemState(system=system, params=params, state=state))
    notes = tally["notes"] | run.watch.start | jammed(at, run.watch.impulse)
    watch = dataclasses.replace(run.watch, start=jnp.zeros(system.nc, int))
    return dataclasses.replace(run, watch=watch), {**tally, "notes": notes}


def _with_gap(values: dict[str, Any], gap: Array) -> dict[str, Any]:
    """Values of one row or several with their gaps; without a step the least gap is that of the start."""
    least = values.get("gap_min")
    if least is not None:
        least = jnp.where(jnp.isinf(least), gap, least)
    return {**values, "gap": gap, **({} if least is None else {"gap_min": least})}


def rows_with_gaps(
    setup: Any, rows: dict[str, Any], asked: Array | None = None
) -> dict[str, Array | None]:  # fmt: skip
    """Rows of `nsjax.loop.run_steps` with the gaps at their ends, as far as these are kept; zeros after
    the first ``asked`` () rows, without derivatives.

    The gaps get a loop of their own: a single loop for steps and gaps would be one kernel, and its time of
    compilation grows faster than its size. Reverse mode searches them again and stores the states alone.
    """

    def gap(row: tuple[Array, Array]) -> Array:
        return _gap(setup, *row)

    if not _lacks_gaps(setup):
        return rows
    ends = rows["t"], rows["q"]
    if asked is None:
        found = lax.map(jax.checkpoint(gap, prevent_cse=False), ends)
    else:
        _, found = scan_first(lambda _, row: (None, gap(row)), None, ends, asked)
    return _kept(setup, _with_gap(rows, found))


def row_with_gaps(setup: Any, row: dict[str, Any]) -> dict[str, Array | None]:
    """One row with the gaps at its end, as far as these are kept."""
    if not _lacks_gaps(setup):
        return row
    return _kept(setup, _with_gap(row, _gap(setup, row["t"], row["q"])))


def _lacks_gaps(setup: Any) -> bool:
    """Whether rows of `nsjax.loop.run_steps` lack gaps that are kept."""
    program = setup.program
    return program.system.pairs is None and bool({"gap", "gap_min"} & set(program.keep))


def _kept(setup: Any, row: dict[str, Any]) -> dict[str, Any]:
    return row if "gap" in setup.program.keep else {**row, "gap": None}


def _gap(setup: Any, t: Array, q: Array) -> Array:
    """Gaps (nc,), for which features of all pairs of bodies may be searched."""
    system = setup.program.system
    params = refreshed(system, t, q, setup.params)
    return jnp.zeros(system.nc) if system.gap is None else system.gap(t, q, params)
