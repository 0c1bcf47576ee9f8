"""Derivative of the start of a run: a number that enters a constraint moves the start.

Where numbers are replaced by name, `nsjax.core.restart` has moved the start already, and this derivative
changes nothing. It is for numbers that are varied in ``params`` themselves, and for starts that are varied
off their constraints.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from nsjax.core.operators import gap_rows, prepared, refreshed
from nsjax.core.system import State, System
from nsjax.core.velocity_rows import positioned
from nsjax.nonlinear import implicit_solution
from nsjax.types import Array, PyTree


def open_directions(system: System) -> tuple[np.ndarray, np.ndarray]:
    """Directions (nv,) in which constraints move the position and the velocity of a start, 1 or 0: all but
    those of given coordinates of a mechanism.
    """
    kept, inputs = (getattr(system.parts, x, None) for x in ("kept", "inputs"))
    if kept is not None:
        found = kept.open_directions(system.parts)
    elif inputs is not None:
        found = open_directions(inputs.system)
    else:
        found = np.ones(system.nv), np.ones(system.nv)
    q, v = (np.concatenate([x, np.zeros(system.nv - len(x))]) for x in found)
    return q, v


def on_constraints(system: System, params: PyTree, state: State) -> State:
    """The same start, with the derivative of a start that is kept on its constraints: the coordinates that
    are not given change by the least increment with ``d(g_B) = 0`` and ``d(dg_B/dt) = 0``.
    """
    if not system.nb:
        return state
    free_q, free_v = open_directions(system)
    rest = np.zeros(system.nv)

    def ready(t: Array, q: Array, p: PyTree) -> PyTree:
        return refreshed(system, t, q, prepared(system, p))

    def live_step(x: tuple[Array, Array], data: Any) -> Callable[[Any], tuple[Array, Array]]:
        t, p, q, _ = data

        def back(of: System, free: np.ndarray) -> Array:
            rows = gap_rows(of, "constraint", t, q, ready(t, q, p)).jacobian()
            made: Array = jnp.asarray(free)[:, None] * jnp.linalg.pinv(rows * free, rtol=1e-10)
            return made

        slow, known = back(system, free_v), positioned(system)
        near = back(known, free_q) if known.nb else jnp.zeros((system.nv, 0))

        def step(data: Any) -> tuple[Array, Array]:
            t, p, q, v = data
            if system.constraint is not None:
                q = system.retract(q, rest - near @ system.constraint(t, q, ready(t, q, p)))
            rates = gap_rows(system, "constraint", t, q, ready(t, q, p))
            return q, v - slow @ rates.rate(v)

        return step

    data = jnp.asarray(state.t, float), params, state.q, state.v
    (q, v), _ = implicit_solution(lambda x: ((x[2], x[3]), ()), live_step)(data)
    return dataclasses.replace(state, q=q, v=v)
