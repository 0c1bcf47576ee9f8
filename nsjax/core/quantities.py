"""The row quantities in one table: shape, unit, and accumulation between rows of each.

A new quantity needs a line here, and a scheme that fills it.
"""

from __future__ import annotations

import dataclasses
import math
import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax.core.system import System
from nsjax.startup.owned import kept
from nsjax.types import Array, record

FOLDS: dict[str, tuple[float, Callable[[Any, Any], Array]]] = {
    "end": (0.0, lambda old, new: new),
    "sum": (0.0, operator.add),
    "min": (jnp.inf, jnp.minimum),
    "max": (0.0, jnp.maximum),
    "any": (0.0, operator.or_),
}
"""Accumulations: the value before any step, and the function of the value so far and that of one more step.
``"max"`` is for quantities that are never negative, ``"any"`` for bits.
"""


@dataclasses.dataclass(frozen=True)
class Quantity:
    """Shape, unit and accumulation of a row quantity.

    Args:
        axes: names of its sizes in `System`.
        unit: quantities with a unit change with the motion and have a derivative; counts, bits and ratios
            have neither.
        fold: one of `FOLDS`; ``"state"``: a function of the row's state, nothing accumulates.
        kind: type of its numbers.
    """

    axes: tuple[str, ...]
    unit: str
    fold: str
    kind: type = float

    def shape(self, system: System) -> tuple[int, ...]:
        """Its shape in a row."""
        return tuple(getattr(system, axis) for axis in self.axes)

    def start(self, system: System) -> Array:
        """Its value before any step."""
        return jnp.full(self.shape(system), FOLDS[self.fold][0], self.kind)


def _row(axes: str, unit: str, fold: str, kind: type = float) -> Any:
    made = Quantity(axes=tuple(axes.split()), unit=unit, fold=fold, kind=kind)
    return dataclasses.field(default=None, metadata={"quantity": made})


@record()
class RowQuantities:
    """Quantities of a step, or of the time between two saved rows; None: not known, or not saved.

    Args:
        gap (nc,): at the row's state [m].
        force_normal (nc,), force_tangential (nc, nt), constraint_force (nb,): at the end of the (last)
            step, left limit [N]. Schemes that know impulses alone give impulses over the step: a contact
            that stays closed on a curved motion is loaded in few steps and by much, see the means.
        impulse_normal (nc,), impulse_tangential (nc, nt), constraint_impulse (nb,): time integrals of the
            forces with the scheme's own weights, and impulses of impacts, so that momentum balances in
            every step [N s].
        impacts (nc,): number of impacts.
        gap_min (nc,): least gap that the scheme tested [m].
        closed_time (nc,): time in which the contact takes part [s], a whole number of steps; steps in which
            a penetrated contact opens without load count. Its derivative is that of the time at rest
            under load, from landing to release, to first order in the step; after an accumulation of
            bounces it is only as good as the last bounces are known. For schemes without a memory of
            rest it is the derivative of the count, zero except by the step size.
        iterations: of the contact solver.
        residual: largest relative natural-map residual of the contact problem, the certificate.
        notes (nc,): bits on what the events of each contact mean for derivatives (`nsjax.notes`):
            harmless, one-sided (grazing, a kink), undefined (impacts that move each other, an
            accumulation, friction above the jamming limit). Kept with ``simulate(notes=True)``, as are:
        force_notes: bits of the same kind on forces that jump inside a step, for the whole system.
        margin (nc,): how near a contact has come to grazing, in steps: the rate with which it closed, or
            would have had to come to close, over the change of this rate in a step by its acceleration;
            hits below the gate of `nsjax.Criteria` count if they are noted as grazing. Infinite if the
            contact did not come near. Changes of the data that change the rate by so much lose or add an
            impact, and the derivative of an impact is known to about 1 / margin.
        drag_force, drag_impulse (nd,): forces and impulses of bounded rows, like those of constraints [N],
            [N s].
    """

    gap: Array = _row("nc", "m", "state")
    force_normal: Array = _row("nc", "N", "end")
    force_tangential: Array = _row("nc nt", "N", "end")
    constraint_force: Array = _row("nb", "N", "end")
    impulse_normal: Array = _row("nc", "N s", "sum")
    impulse_tangential: Array = _row("nc nt", "N s", "sum")
    constraint_impulse: Array = _row("nb", "N s", "sum")
    impacts: Array = _row("nc", "", "sum", int)
    gap_min: Array = _row("nc", "m", "min")
    closed_time: Array = _row("nc", "s", "sum")
    iterations: Array = _row("", "", "sum", int)
    residual: Array = _row("", "", "max")
    notes: Array = _row("nc", "", "any", int)
    force_notes: Array = _row("", "", "any", int)
    margin: Array = _row("nc", "", "min")
    drag_force: Array = _row("nd", "N", "end")
    drag_impulse: Array = _row("nd", "N s", "sum")


QUANTITIES: dict[str, Quantity] = {
    f.name: f.metadata["quantity"] for f in dataclasses.fields(RowQuantities)
}

ROWS = tuple(QUANTITIES)
"""Row quantities that `simulate` saves in addition to ``t, q, v``."""

NOTES = ("notes", "force_notes", "margin")
"""Row quantities about derivatives. A run keeps them if asked: they are a third of its program."""


def all_notes(rows: Mapping[str, Any]) -> Array:
    """Union () of all notes of the saved ``rows`` of a run, on contacts and on forces."""
    found = [jnp.ravel(rows[name]) for name in ("notes", "force_notes")]
    return lax.reduce(jnp.concatenate(found), np.asarray(0), lax.bitwise_or, (0,))


LOADS = tuple(name for name, x in QUANTITIES.items() if x.unit in ("N", "N s"))
"""Row quantities that are forces or impulses."""


def accumulated(so_far: Mapping[str, Array], new: RowQuantities) -> dict[str, Array]:
    """Values since the last row after one more step; quantities that the step leaves out keep theirs."""
    found = {name: (old, getattr(new, name)) for name, old in so_far.items()}
    return {k: old if x is None else FOLDS[QUANTITIES[k].fold][1](old, x) for k, (old, x) in found.items()}


@kept
def row_numbers(system: System, keep: Iterable[str] = ROWS) -> int:
    """Count of the numbers in a row that holds the quantities ``keep``."""
    shapes = (QUANTITIES[name].shape(system) for name in keep)
    return 1 + system.nq + system.nv + sum(math.prod(shape) for shape in shapes)
