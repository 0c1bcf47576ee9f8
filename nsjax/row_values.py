"""Values of a saved row: what its steps have accumulated, and gaps and notes at its end."""

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
    system: System, prepared: PyTree, run: Any, tally: dict[str, Array], count: Array | int
) -> tuple[Any, dict[str, Array]]:
    """The state of a run (`nsjax.loop.RunState`) and the values of its row after ``count`` steps.

    One program serves any number of rows. Those with a traced count below zero are never read; their gaps,
    for which features of all pairs of bodies may be searched, are left out.
    """
    if isinstance(count, int):
        return _at_end(system, prepared, run, tally)
    nothing = jnp.zeros(system.nc)
    return lax.cond(
        count < 0, lambda run, tally: (run, {**tally, "gap": nothing}),
        lambda run, tally: _at_end(system, prepared, run, tally), run, tally,
    )  # fmt: skip


def _at_end(
    system: System, prepared: PyTree, run: Any, tally: dict[str, Array]
) -> tuple[Any, dict[str, Array]]:  # fmt: skip
    """State of the run and values of its row."""
    state = run.next.carry.state
    params = refreshed(system, jnp.asarray(state.t), state.q, prepared)
    _, tally = same_pairs(system, params, run.next.carry, tally)
    gap = jnp.zeros(system.nc) if system.gap is None else system.gap(state.t, state.q, params)
    values = {**tally, "gap": gap}
    if "gap_min" in tally:
        values["gap_min"] = jnp.where(jnp.isinf(tally["gap_min"]), gap, tally["gap_min"])
    if "notes" in tally and run.watch is not None:
        at = frozen(SystemState(system=system, params=params, state=state))
        values["notes"] = tally["notes"] | run.watch.start | jammed(at, run.watch.impulse)
        run = dataclasses.replace(
            run, watch=dataclasses.replace(run.watch, start=jnp.zeros(system.nc, int))
        )
    return run, values
