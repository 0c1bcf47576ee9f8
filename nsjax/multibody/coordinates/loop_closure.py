"""Closure of loops by Newton's method, velocities that keep them closed, and redundant constraint rows."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax.core.checks import is_traced
from nsjax.core.operators import gap_rows
from nsjax.multibody.mechanism import Mechanism
from nsjax.nonlinear import implicit_solution
from nsjax.types import Array, PyTree

CLOSED = 1e-11
"""Largest residual of a closed loop [m, rad]: about a thousand roundings of a position of one metre."""

TRIALS = 24
"""Searches for a closed position: the first from the guess, the others from random ones (fixed seed)."""

PASSES = 60
"""Largest number of Newton steps of a search."""


class RedundantConstraintsWarning(UserWarning):
    """Some constraints follow from others: the motion is right, but single reactions are not unique."""


Data = tuple[PyTree, Array, Array]


@functools.partial(jax.jit, static_argnames=("mechanism",))
def searched(mechanism: Mechanism, p: PyTree, q: Array, free: Array) -> tuple[Array, Array]:
    """Position with closed loops, by Newton steps of least norm in the free directions, and its residuals.

    The position is differentiable by the params and by the coordinates that are kept.
    """
    system = mechanism.system()
    rest = np.zeros(system.nv)  # a numpy constant, since rules for derivatives must not capture tracers

    def residual(q: Array, p: PyTree) -> Array:
        return mechanism.constraint(jnp.zeros(()), q, p)

    def change(q: Array, p: PyTree, free: Array) -> Callable[[Array], Array]:
        rows = jax.jacfwd(lambda xi: residual(system.retract(q, xi), p))(rest) * free
        inverse = jnp.linalg.pinv(rows, rtol=1e-10)
        return lambda found: -inverse @ found

    def solver(data: Data) -> tuple[Array, Array]:
        p, q, free = data

        def step(carry: tuple[Array, Array]) -> tuple[Array, Array]:
            q, k = carry
            xi = change(q, p, free)(residual(q, p))
            largest = jnp.max(jnp.abs(xi))
            return system.retract(q, xi * jnp.where(largest > 0.5, 0.5 / largest, 1.0)), k + 1

        def unfinished(carry: tuple[Array, Array]) -> Array:
            q, k = carry
            return (k < PASSES) & ~(jnp.max(jnp.abs(residual(q, p))) <= CLOSED / 10.0)

        return lax.while_loop(unfinished, step, (q, jnp.zeros((), int)))

    def live_step(closed: Array, data: Data) -> Callable[[Data], Array]:
        p, before, free = data
        back = change(closed, p, free)

        def step(data: Data) -> Array:
            p, q, free = data
            moved = system.retract(closed, system.difference(before, q) * (1.0 - free))
            made: Array = system.retract(moved, back(residual(moved, p)))
            return made

        return step

    closed, _ = implicit_solution(solver, live_step)((p, q, jnp.asarray(free, float)))
    return closed, residual(closed, p)


@functools.partial(jax.jit, static_argnames=("mechanism",))
def closing_rates(mechanism: Mechanism, p: PyTree, q: Array, v: Array, ways: Array) -> tuple[Array, Array]:
    """Velocities that keep the loops closed, changed along free ``ways`` (nv, k) by least squares, and the
    residual rates of the loops.
    """
    system = mechanism.system()
    found = gap_rows(system, "constraint", jnp.zeros(()), q, p)
    rows, offset = found.jacobian(), found.offset
    moved = v - ways @ (jnp.linalg.pinv(rows @ ways, rtol=1e-10) @ (rows @ v + offset))
    return moved, rows @ moved + offset


def closed_position(mechanism: Mechanism, p: PyTree, near: Any, free: np.ndarray) -> tuple[Array, Array]:
    """The first position with closed loops that the trials find, and the residuals of the loops."""
    seeded, system = np.random.default_rng(0), mechanism.system()
    if system.constraint is None:  # all rows are of velocities
        return jnp.asarray(near), jnp.zeros(1)
    for trial in range(TRIALS):
        xi = seeded.uniform(-1.5, 1.5, len(free)) * free * (trial > 0)
        begun = near if trial == 0 else system.retract(jnp.asarray(near), jnp.asarray(xi))
        closed, left = searched(mechanism, p, jnp.asarray(begun), free)
        if is_traced((closed, left)) or float(jnp.max(jnp.abs(left))) <= CLOSED:
            break
    return closed, left


def drop_with_warning(names: tuple[str, ...], kept: tuple[int, ...], where: str) -> tuple[str, ...]:
    """Names of the rows that are left out, with a warning if there are any.

    Args:
        names: of all rows.
        kept: numbers of the rows that are kept.
        where: where these rows follow from the others, ``" at the start"`` for instance.
    """
    dropped = tuple(name for k, name in enumerate(names) if k not in kept)
    if dropped:
        warnings.warn(
            f"{len(dropped)} of {len(names)} constraints follow from the others{where} and are left out "
            f"({', '.join(dropped)}); the motion is right, but single reactions are not unique: those of "
            "these rows are given as zero",
            RedundantConstraintsWarning,
            stacklevel=5,
        )
    return dropped


@functools.partial(jax.jit, static_argnames=("mechanism",))
def directions(mechanism: Mechanism, p: PyTree, q: Array) -> Array:
    """Jacobian (nb, nv) of the constraints."""
    made: Array = gap_rows(mechanism.system(), "constraint", jnp.zeros(()), q, p).jacobian()
    return made
