"""A step on few chosen contacts (`nsjax.core.chosen`), and its results in terms of all contacts."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from nsjax.contact.bounded import by_law, by_row
from nsjax.contact.closed_time import ClosedPhases
from nsjax.contact.criteria import Criteria
from nsjax.contact.events import NEVER, Touch, fly
from nsjax.core.chosen import WholeMemory, narrow, widen, widen_rows, widths
from nsjax.core.quantities import QUANTITIES
from nsjax.core.scheme import Carry, Output
from nsjax.core.system import System
from nsjax.status import CANDIDATES_LOST
from nsjax.types import PyTree


def _leaves(x: Any) -> tuple[list[Any], Any]:
    """Leaves of a pytree, with a `Touch` as one leaf, and its structure."""
    return jax.tree.flatten(x, is_leaf=lambda y: isinstance(y, Touch))


def _each(memory: PyTree, sizes: tuple[int, ...], of: Callable[[Any, int], Any], touch: Any) -> PyTree:
    """Memory of a scheme after ``of(array, width)`` on every array and ``touch`` on every `Touch`."""
    leaves, tree = _leaves(memory)
    rest, found = iter(sizes), []
    for x in leaves:
        if isinstance(x, Touch):
            for _ in jax.tree.leaves(x):
                next(rest)
            found.append(touch(x))
        else:
            found.append(of(x, next(rest)))
    return jax.tree.unflatten(tree, found)


def begin_with_all(system: System, p: PyTree, few: Carry, many: Carry) -> Carry:
    """The carry at the start of a run, with a memory of all contacts.

    Args:
        few: carry of the chosen contacts.
        many: shapes of the carry of all contacts.
    """
    chosen = system.chosen
    sizes, wide = (
        widths(few.memory, many.memory, chosen, system.nc),
        functools.partial(widen, chosen, p),
    )
    memory = _each(few.memory, sizes, wide, lambda x: _unknown(wide, x))
    return dataclasses.replace(few, memory=WholeMemory(memory=memory, widths=sizes))


def _unknown(of: Callable[[Any, int, Any], Any], touch: Touch) -> Touch:
    """`Touch` after ``of(array, width, value)`` on each array; ``value`` is that of an unknown contact."""
    fields = {f.name: getattr(touch, f.name) for f in dataclasses.fields(touch)}
    return Touch(**{name: of(x, 1, NEVER if name == "off" else 0) for name, x in fields.items()})


def narrow_to_chosen(
    system: System, p: PyTree, carry: Carry, closing: ClosedPhases | None
) -> tuple[Carry, ClosedPhases | None]:  # fmt: skip
    """Carry and closed phases of the chosen contacts alone."""
    chosen, count, whole = system.chosen, system.nc, carry.memory
    one = functools.partial(narrow, chosen, p, count)

    memory = _each(whole.memory, whole.widths, one, lambda x: _unknown(one, x))
    if closing is not None:
        closing = jax.tree.map(lambda x: one(x, 1), closing)
    return dataclasses.replace(carry, memory=memory), closing


def widen_to_all(
    criteria: Criteria, system: System, p: PyTree, before: Carry, carry: Carry, output: Output
) -> tuple[Carry, Output]:
    """Carry and output of all contacts, after a step of the chosen ones; the others are open."""
    chosen, whole = system.chosen, before.memory
    wide = functools.partial(widen, chosen, p)
    flown = iter([fly(criteria, x) for x in _leaves(whole.memory)[0] if isinstance(x, Touch)])

    def touch(x: Touch) -> Touch:
        return jax.tree.map(lambda y, others: wide(y, 1, others), x, next(flown))

    memory = _each(carry.memory, whole.widths, wide, touch)
    own = {
        name: wide(getattr(output, name), 1, jnp.inf if name == "margin" else 0)
        for name, kind in QUANTITIES.items()
        if kind.axes[:1] == ("nc",) and getattr(output, name) is not None
    }
    own |= {
        name: by_row(system, widen_rows(chosen, p, by_law(chosen.system, getattr(output, name))))
        for name, kind in QUANTITIES.items()
        if kind.axes == ("nd",) and getattr(output, name) is not None
    }
    event = jax.tree.map(lambda x: wide(x, 1) if jnp.ndim(x) else x, output.event)
    gaps = {name: getattr(output.event, name) for name in ("gap", "begun", "ended")}
    unknown = {name: wide(x, 1, jnp.inf) for name, x in gaps.items() if x is not None}
    event = dataclasses.replace(event, **unknown)
    which = jnp.concatenate([chosen.which(p), jnp.arange(system.nc - chosen.common, system.nc)])
    contact = jnp.where(output.contact < 0, -1, which[jnp.clip(output.contact, 0)])
    lost = jnp.where(chosen.overflow(p), CANDIDATES_LOST, 0)
    output = dataclasses.replace(
        output, **own, event=event, contact=contact, status=output.status | lost
    )  # fmt: skip
    return dataclasses.replace(carry, memory=WholeMemory(memory=memory, widths=whole.widths)), output
