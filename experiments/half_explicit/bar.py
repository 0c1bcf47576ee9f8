"""A linear elastic bar whose end hits a rigid wall, as an explicit `System` in one place.

Two-node elements along the bar, consistent mass, no gravity; ``q`` are the positions of the nodes as
displacements from the bar that just touches the wall with its first node, the gap is ``q[0]``. Stiffness-
proportional damping ``C = c K``. With 101 unknowns LAPACK solves, so a step is not one kernel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax import ContactLaw, Problem, State, System
from nsjax.models.common import vector
from nsjax.types import Array, record


@record()
class Bar:
    """Numbers of the bar; element masses and stiffnesses follow."""

    length: Array | float = 1.0
    modulus: Array | float = 2.1e11
    density: Array | float = 7800.0
    area: Array | float = 3.14e-4
    damping: Array | float = 0.0
    restitution: Array | float = 0.0


@dataclass(frozen=True)
class Mesh:
    """Number of elements. Its methods are the functions of the system."""

    elements: int

    def stiffness(self, p: Bar) -> Array:
        """Of one element [N/m]."""
        return jnp.asarray(p.modulus * p.area * self.elements / p.length)

    def mass(self, q: Array, p: Bar) -> Array:
        """Consistent mass matrix, tridiagonal, as a dense one."""
        n = self.elements + 1
        pattern = np.diag([1 / 3, *[2 / 3] * (n - 2), 1 / 3]) + (np.eye(n, k=1) + np.eye(n, k=-1)) / 6
        return jnp.asarray(p.density * p.area * p.length / self.elements * pattern)

    def force(self, t: Array, q: Array, v: Array, p: Bar) -> Array:
        """Tensions of the elements pull at their nodes."""
        tension = self.stiffness(p) * (jnp.diff(q) + p.damping * jnp.diff(v))
        return jnp.pad(tension, (0, 1)) - jnp.pad(tension, (1, 0))

    def potential(self, t: Array, q: Array, p: Bar) -> Array:
        """Strain energy."""
        return 0.5 * self.stiffness(p) * jnp.sum(jnp.diff(q) ** 2)

    def gap(self, t: Array, q: Array, p: Bar) -> Array:
        """Of the first node (1,)."""
        return q[:1]

    def law(self, p: Bar) -> ContactLaw:
        """Of the first node."""
        return ContactLaw(restitution=p.restitution)

    def system(self) -> System:
        """The system of this mesh."""
        n = self.elements + 1
        return System(
            nq=n, nv=n, nc=1, mass=self.mass, force=self.force, potential=self.potential, gap=self.gap,
            law=self.law,
        )  # fmt: skip


def largest_frequency(problem: Problem) -> float:
    """Largest angular frequency of the free bar, from its matrices [rad/s]."""
    system, p, state = problem
    n, rest = system.nq, np.zeros(system.nq)
    stiffness = -np.asarray(jax.jacfwd(lambda q: system.force(0.0, q, rest, p))(jnp.zeros(n)))
    mass = np.asarray(system.mass(state.q, p))
    return float(np.sqrt(np.linalg.eigvals(np.linalg.solve(mass, stiffness)).real.max()))


def bar(elements: int = 100, *, gap: float = 5e-5, speed: float = 0.1, **numbers: Any) -> Problem:
    """The bar at rest in itself, at a ``gap`` [m] from the wall that it approaches with ``speed`` [m/s]."""
    n = elements + 1
    state = State(t=0.0, q=vector(gap, n), v=vector(-speed, n))
    return Problem(system=Mesh(elements).system(), params=Bar(**numbers), state=state)
