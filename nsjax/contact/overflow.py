"""Programs without the solver of all rows, for runs whose active contacts fit into the capacity.

A step gathers its active contacts in a few places (`nsjax.contact.compact`). If there are more, all rows
are solved together. Above `nsjax.linalg.ROW_LIMIT` rows that takes a library's factorisation, which is
called in few steps or in none, and whose presence alone keeps a time loop from being one kernel. Up to this
number its loops are in the kernel (`nsjax.contact.factored_rows`) and take time to compile. By Moreau's
rule, CPU microseconds a step and CPU seconds to compile with the library, with these loops, and without
either: a planar hopper of seven bodies with 125 rows 113 and 8, 41 and 13, 41 and 11; a cheetah with 231
rows 101 and 10, 52 and 18; three boxes with 144 rows 135 and 11, 50 and 22, 50 and 18.

Joint limits alone can be more than their capacity, but hardly are: a joint is at one of its two at most.
Without the solver of all rows an ant (16 limits) compiles in 8.5 CPU seconds in place of 10.1, a go1 (24)
in 12.0 in place of 15.0, a humanoid (34) in 21 in place of 25, with steps of the same length.

A run outside transformations therefore begins with a program without that solver. If a step fails in it,
the steps since the last call are computed again, as are all further ones, by the whole program, which is
compiled then.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import numpy as np

from nsjax.contact.compact import crowded, overflows
from nsjax.core.blocks import tree_shapes
from nsjax.core.operators import prepared, refreshed
from nsjax.core.scheme import Scheme
from nsjax.core.system import State, System
from nsjax.nonlinear.trimmed import equations
from nsjax.startup.owned import kept
from nsjax.types import PyTree

LARGEST_GAPS = 1_500
"""Equations of the gaps of a step up to which it may become one kernel, whose compilation takes time that
grows with its square. Gaps of the hopper and cheetah above have 741 and 1,183. Those of a humanoid with 413
contacts and of a finger with cylinders, 2,544 and 5,065, belong to steps of 47,000 and 52,000 equations:
the finger compiles in some 50 CPU seconds in pieces, and as one kernel not in four minutes.
"""


def without_overflow(
    system: System, scheme: Scheme, params: PyTree, state: State, closed: Any
) -> Scheme | None:  # fmt: skip
    """The scheme whose solver takes at most as many active contacts as there are places; None where its
    program would not be faster, would compile for long, or would fail at once.

    Args:
        system: of the run.
        scheme: of the run.
        params: of the run.
        state: at its start.
        closed: contacts (nc,) bool that touch at its start.
    """
    if getattr(scheme.options, "few", None) is not False or jax.default_backend() != "cpu":
        return None
    step = _of_step(system)
    rough = step.nc - step.smooth
    if step.pairs is not None or step.islands or not overflows(rough, step.smooth, step.nt):
        return None
    if crowded(np.shape(closed)[0] - system.smooth, closed):
        return None
    if _gap_equations(system, *tree_shapes((params, state))) > LARGEST_GAPS:
        return None
    return dataclasses.replace(scheme, options=dataclasses.replace(scheme.options, few=True))


def _of_step(system: System) -> System:
    """The system that a step sees."""
    return system if system.chosen is None else system.chosen.system


@kept
def _gap_equations(system: System, structure: Any, leaves: tuple[tuple[Any, Any], ...]) -> int:
    """Equations of the gaps that a step evaluates, and of what is refreshed for them."""
    params, state = jax.tree.unflatten(structure, [jax.ShapeDtypeStruct(*x) for x in leaves])

    def gaps(params: PyTree, state: State) -> Any:
        p = refreshed(system, state.t, state.q, prepared(system, params))
        return _of_step(system).gap(state.t, state.q, p)

    return equations(jax.make_jaxpr(gaps)(params, state))
