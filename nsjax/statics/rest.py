"""Stable positions of rest, which a strongly damped mechanism reaches when it is released.

The steps solve ``(a M - K) xi - J' dx = h + J' x``, ``J xi = -g`` with ``K = dh/dq``: each is an implicit
time step of length ``1 / sqrt(a)`` from rest. The energy of conservative forces falls as long as ``a`` is
above the largest eigenvalue of ``K`` relative to the mass; for decreasing ``a`` the steps become Newton's.
"""

from __future__ import annotations

import dataclasses

import jax.numpy as jnp
import numpy as np

from nsjax.core import InputError, Problem, System
from nsjax.core.inertia import mass_matrix
from nsjax.core.operators import prepared
from nsjax.startup.owned import compiled_for
from nsjax.statics.equilibria import LAST_STEP, Ramp, moved, null_space, ramp_of, size, solved
from nsjax.types import Array, PyTree


@compiled_for("system")
def _mass(system: System, q: Array, p: PyTree) -> Array:
    return mass_matrix(system, q, prepared(system, p))


@dataclasses.dataclass
class _RestSearch:
    """State of the search: position, multipliers, and ``a``."""

    ramp: Ramp
    q: np.ndarray
    x: np.ndarray
    a: float = 0.0

    def step(self) -> tuple[np.ndarray, float, np.ndarray | None]:
        """Takes a step; returns its increment, the largest acceleration at its start, and the direction in
        which the position at its start is unstable, or None.
        """
        nv = self.ramp.system.nv
        value, matrix, _ = self.ramp.tangents(self.q, self.x, 0.0)
        mass = np.asarray(_mass(self.ramp.system, jnp.asarray(self.q), self.ramp.start))
        free = null_space(matrix[nv:, :nv])
        inner = free.T @ mass @ free
        stiff = free.T @ (matrix[:nv, :nv] + matrix[:nv, :nv].T) @ free / 2.0
        rates = solved(inner, free.T @ value[:nv])
        values, vectors = np.linalg.eig(solved(inner, stiff))
        worst = int(np.argmax(values.real)) if len(values) else 0
        most = float(values.real[worst]) if len(values) else 0.0
        largest = float(np.max(np.abs(free @ rates), initial=0.0))
        longest = 0.3  # length of the first steps [m, rad]
        self.a = max(self.a or largest / longest, 2.0 * most, 1e-12)
        matrix = np.array(matrix)
        matrix[:nv, :nv] -= self.a * mass
        change = -solved(matrix, value)
        xi = change[:nv] * min(1.0, longest / max(float(np.max(np.abs(change[:nv]))), 1e-300))
        self.q = np.asarray(moved(self.ramp.system, jnp.asarray(self.q), jnp.asarray(xi)))
        self.x = self.x + change[nv:]
        scale = float(np.max(np.abs(values))) if len(values) else 0.0
        unstable = most > 1e-9 * scale
        return xi, largest, free @ vectors.real[:, worst] if unstable else None

    def leave(self, way: np.ndarray) -> None:
        """Moves away from an unstable position along ``way``."""
        aside = 1e-3  # length of the step away from an unstable position of rest [m, rad]
        xi = jnp.asarray(aside * way / np.max(np.abs(way)))
        self.q = np.asarray(moved(self.ramp.system, jnp.asarray(self.q), xi))


def rest(problem: Problem, who: str) -> Problem:
    """The problem at the stable position of rest that a damped motion reaches, without contacts and limits.

    Args:
        problem: problem with the initial position; its velocity is ignored.
        who: name of the caller, for messages.

    Raises:
        InputError: if the mechanism does not come to rest.
    """
    ramp, q = ramp_of(problem, None)
    search, before = _RestSearch(ramp, q, np.zeros(ramp.system.nb)), 0.0
    steps = 300  # number of steps after which the mechanism counts as one without a position of rest
    for _ in range(steps):
        xi, rate, unstable = search.step()
        if not np.all(np.isfinite(search.q)):
            break
        if float(np.max(np.abs(xi))) <= LAST_STEP * size(search.q):
            if unstable is None:
                return problem.replace(initial_q=search.q, initial_v=np.zeros(ramp.system.nv))
            search.leave(unstable)
        falling = rate / before if before > 0.0 else 1.0
        search.a, before = search.a * min(max(falling, 0.1), 2.0), rate
    labels, worst = ramp.system.labels.v, int(np.argmax(np.abs(np.nan_to_num(xi, nan=np.inf))))
    name = labels[worst].split(" [")[0] if labels else f"entry {worst} of v"
    raise InputError(
        f"{who}: no position of rest is found in {steps} steps, {name} goes on moving; hold it by a joint "
        "or spring, give another guess, or name the contacts that hold it to nsjax.analysis.equilibrium"
    )
