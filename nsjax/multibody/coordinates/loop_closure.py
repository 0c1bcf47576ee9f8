"""Closure of loops by Newton's method, velocities that keep them closed, and redundant constraint rows."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax.core import System
from nsjax.core.checks import is_traced
from nsjax.core.operators import gap_rows
from nsjax.multibody.mechanism import Mechanism
from nsjax.nonlinear import implicit_solution
from nsjax.startup.owned import compiled_for
from nsjax.types import Array, PyTree

CLOSED = 1e-11
"""Largest residual of a closed loop [m, rad]: about a thousand roundings of a position of one metre."""


class RedundantConstraintsWarning(UserWarning):
    """Some constraints follow from others: the motion is right, but single reactions are not unique."""


LARGEST = 0.5
"""Largest change of a coordinate in a Newton step of a search [m, rad]."""

Data = tuple[PyTree, Array, Array, Array]


@dataclasses.dataclass(frozen=True)
class Closure:
    """Equations of the closed positions of a mechanism, for `root`; its data are time and params."""

    mechanism: Mechanism

    @property
    def system(self) -> System:
        """The system whose positions are searched."""
        return self.mechanism.system()

    def residual(self, q: Array, data: tuple[Array, PyTree]) -> Array:
        """Residuals of the constraints on positions."""
        return self.mechanism.constraint(data[0], q, data[1])


@compiled_for("equations")
def root(equations: Any, data: PyTree, q: Array, free: Array, largest: Any) -> tuple[Array, Array]:
    """Position at which ``equations.residual(q, data)`` vanishes, by Newton steps of least norm in the free
    directions, none above ``largest``, and the residual there.

    The position is differentiable by the data and by the coordinates that are kept.
    """
    system, residual = equations.system, equations.residual
    rest = np.zeros(system.nv)  # a numpy constant, since rules for derivatives must not capture tracers

    def change(q: Array, data: PyTree, free: Array) -> Callable[[Array], Array]:
        rows = jax.jacfwd(lambda xi: residual(system.retract(q, xi), data))(rest) * free
        inverse = jnp.linalg.pinv(rows, rtol=1e-10)
        return lambda found: -inverse @ found

    def solver(given: Data) -> tuple[Array, Array]:
        data, q, free, largest = given

        def step(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
            q, found, k = carry
            xi = change(q, data, free)(found)
            most = jnp.max(jnp.abs(xi))
            q = system.retract(q, xi * jnp.where(most > largest, largest / most, 1.0))
            return q, residual(q, data), k + 1

        def unfinished(carry: tuple[Array, Array, Array]) -> Array:
            _, found, k = carry
            passes = 60  # largest number of Newton steps of a search
            return (k < passes) & ~(jnp.max(jnp.abs(found)) <= CLOSED / 10.0)

        q, _, k = lax.while_loop(unfinished, step, (q, residual(q, data), jnp.zeros((), int)))
        return q, k

    def live_step(closed: Array, given: Data) -> Callable[[Data], Array]:
        data, before, free, _ = given
        back = change(closed, data, free)

        def step(given: Data) -> Array:
            data, q, free, _ = given
            moved = system.retract(closed, system.difference(before, q) * (1.0 - free))
            made: Array = system.retract(moved, back(residual(moved, data)))
            return made

        return step

    given = data, q, jnp.asarray(free, float), jnp.asarray(largest, float)
    closed, _ = implicit_solution(solver, live_step)(given)
    return closed, residual(closed, data)


@compiled_for("mechanism")
def closing_rates(
    mechanism: Mechanism, t: Any, p: PyTree, q: Array, v: Array, ways: Array
) -> tuple[Array, Array]:
    """Velocities that keep the loops closed, changed along free ``ways`` (nv, k) by least squares, and the
    residual rates of the loops.
    """
    system = mechanism.system()
    found = gap_rows(system, "constraint", jnp.asarray(t, float), q, p)
    rows, offset = found.jacobian(), found.offset
    moved = v - ways @ (jnp.linalg.pinv(rows @ ways, rtol=1e-10) @ (rows @ v + offset))
    return moved, rows @ moved + offset


def closed_position(mechanism: Mechanism, p: PyTree, near: Any, free: np.ndarray) -> tuple[Array, Array]:
    """The first position with closed loops that the trials find, and the residuals of the loops."""
    seeded, system = np.random.default_rng(0), mechanism.system()
    if system.constraint is None:  # all rows are of velocities
        return jnp.asarray(near), jnp.zeros(1)
    # searches for a closed position: the first from the guess, the others from random ones (fixed seed)
    trials = 24
    for trial in range(trials):
        xi = seeded.uniform(-1.5, 1.5, len(free)) * free * (trial > 0)
        begun = near if trial == 0 else system.retract(jnp.asarray(near), jnp.asarray(xi))
        closed, left = root(Closure(mechanism), (jnp.zeros(()), p), jnp.asarray(begun), free, LARGEST)
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


@compiled_for("mechanism")
def openings(mechanism: Mechanism, p: PyTree, q: Array, v: Array) -> tuple[Array, Array, Array]:
    """Residuals (nb - nh,) of the constraints at the start, the Jacobian (nb, nv) of all, and their rates
    (nb,).
    """
    system, t = mechanism.system(), jnp.zeros(())
    found = gap_rows(system, "constraint", t, q, p)
    left = jnp.zeros(0) if system.constraint is None else system.constraint(t, q, p)
    return left, found.jacobian(), found.rate(v)
