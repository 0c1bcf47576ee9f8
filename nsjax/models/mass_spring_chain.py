"""Masses on springs; a very stiff spring or a constraint holds the last one."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np

from nsjax import shapes
from nsjax.core import Labels, Problem, State, System
from nsjax.core.errors import check_choice, check_whole
from nsjax.forms import quantity
from nsjax.linalg import BlockTridiagonal, Dense
from nsjax.models.common import constructor, vector
from nsjax.types import Array, record


@record()
class MassSpringChain:
    """Parameters of `mass_spring_chain`; the field names are its keyword names."""

    mass: Array | float = quantity(default=1.0, least=0.0)
    stiffness: Array | float = 1.0
    support_stiffness: Array | float = 1e7
    gravity: Array | float = 9.81


@dataclasses.dataclass(frozen=True)
class Chain:
    """Topology: number of masses and support of the last one; its methods are the system's functions."""

    support: str
    masses: int = 3

    def _each(self, value: Array | float) -> Array:
        """One number for each mass or spring (n,)."""
        return jnp.broadcast_to(jnp.asarray(value, float), (self.masses,))

    def _support(self, p: MassSpringChain) -> Array | float:
        return p.support_stiffness if self.support == "spring" else 0.0

    def mass(self, q: Array, p: MassSpringChain) -> Array:
        """Mass matrix (n, n): diagonal."""
        return self._each(p.mass)[:, None] * np.eye(self.masses)

    def inertia(self, q: Array, w: Array, p: MassSpringChain) -> Array:
        """Mass matrix times ``w``, for a long chain."""
        return self._each(p.mass) * w

    def _stretched(self, q: Array) -> Array:
        """Elongations of the springs (n,), from the wall on [m]."""
        return jnp.diff(q, prepend=0.0)

    def force(self, t: Array, q: Array, v: Array, p: MassSpringChain) -> Array:
        """Generalised forces (n,): weight along the chain and spring forces."""
        tension = self._each(p.stiffness) * self._stretched(q)
        after = jnp.concatenate([tension[1:], self._support(p) * q[-1:]])
        signs = np.append(-np.ones(self.masses - 1), 1.0)  # a spring pulls on, the support pushes back
        return self._each(p.mass) * p.gravity - tension - after * signs

    def potential(self, t: Array, q: Array, p: MassSpringChain) -> Array:
        """Potential energy of springs and weight."""
        springs = jnp.sum(self._each(p.stiffness) * self._stretched(q) ** 2) + self._support(p) * q[-1] ** 2
        return 0.5 * springs - jnp.sum(self._each(p.mass) * p.gravity * q)

    def hold(self, t: Array, q: Array, p: MassSpringChain) -> Array:
        """Constraint (1,): displacement of the last mass."""
        return q[-1:]

    def picture(self, t: Array, q: Array, p: MassSpringChain) -> shapes.Picture:
        """Picture of the hanging chain; unloaded springs are drawn with three times the largest stretch."""
        weight = jnp.max(jnp.asarray(p.mass, float)) * p.gravity
        stretch = jnp.asarray(weight / jnp.min(jnp.asarray(p.stiffness, float)))
        length = jnp.where(stretch > 0.0, 3.0 * stretch, 1.0)
        side = 0.12 * length
        zero, height = jnp.zeros(()), -length * np.arange(1.0, self.masses + 1.0) - q
        tops = [zero, *(height[k] - side for k in range(self.masses))]
        found = [shapes.level((0.0, 0.0), (0.0, -1.0), "ceiling")]
        for k in range(self.masses):
            upper, lower = (jnp.stack([zero, y]) for y in (tops[k], height[k] + side))
            line = shapes.zigzag(upper, lower, 0.6 * side)
            found.append(shapes.Shape(points=line, name=f"spring {k + 1}", role="spring"))
            block = shapes.placed(shapes.rectangle(side, side), jnp.stack([zero, height[k]]))
            found.append(shapes.Shape(points=block, name=f"mass {k + 1}", kind="area"))
        base = jnp.stack([zero, -(self.masses + 0.7) * length])
        if self.support == "spring":
            line = shapes.zigzag(jnp.stack([zero, tops[-1]]), base, 0.3 * side)
            found.append(shapes.Shape(points=line, name="support", role="spring"))
            found.append(shapes.level(base, (0.0, 1.0), "floor"))
        else:
            found.append(shapes.level(jnp.stack([zero, -self.masses * length - side]), (0.0, 1.0), "floor"))
        return shapes.Picture(shapes=tuple(found))

    def system(self) -> System:
        """The system of this topology."""
        # number of masses up to which matrices are dense, one small kernel; longer chains are solved node
        # by node
        few = 8
        n, held, dense = self.masses, self.support == "constraint", self.masses <= few
        choices = (("support", self.support), ("masses", n))
        matrix = {"mass": self.mass} if dense else {"inertia": self.inertia}
        return System(
            name="mass_spring_chain", stiff=True, choices=choices, nq=n, nv=n,
            nb=1 if held else 0,
            **matrix,
            force=self.force, potential=self.potential,
            constraint=self.hold if held else None,
            structure=Dense() if dense else BlockTridiagonal(1, constant=True),
            shapes=self.picture,
            labels=Labels(
                q=tuple(f"q{k + 1} [m]" for k in range(n)),
                v=tuple(f"v{k + 1} [m/s]" for k in range(n)),
                constraints=("support",) if held else (),
            ),
        )  # fmt: skip


@constructor(MassSpringChain)
def mass_spring_chain(
    params: MassSpringChain, *, support: str = "spring", masses: int = 3, initial_q: Any = 0.0,
    initial_v: Any = 0.0, initial_time: Any = 0.0,
) -> Problem:  # fmt: skip
    """The linear model problem of high-frequency damping: soft springs and one very stiff one.

    Wall, spring, mass, spring, mass, spring, mass along the direction of gravity, or another number of
    masses. The last mass is held by a spring of large stiffness, whose fast oscillation a scheme must
    survive, or by the constraint that is the limit of this spring.

    Args:
        support: ``"spring"`` (a) or ``"constraint"`` (b).
        masses: number n of masses; three in the source.
        initial_q, initial_v, initial_time: initial state, scalars or (n,), by default at rest with unloaded
            springs.
        mass: [kg], scalar or (n,).
        stiffness: of the springs from the wall on [N/m], scalar or (n,).
        support_stiffness: [N/m], for ``"spring"`` only.
        gravity: along the chain [m/s^2].

    Raises:
        InputError: for an unknown support, or no mass.

    Source: [R&S section 2.8]; the printed k = 1 N/m does not give the printed highest frequency 0.8717 Hz
        of model (b), which belongs to k = 10 N/m.

    Example:
        >>> from nsjax import models
        >>> models.mass_spring_chain(support="constraint", stiffness=10.0).system.nb
        1
        >>> models.mass_spring_chain(masses=100).system.nv
        100
    """
    check_choice("mass_spring_chain: support", support, ("spring", "constraint"))
    check_whole("mass_spring_chain: masses", masses, 1)
    n = int(masses)
    state = State(t=initial_time, q=vector(initial_q, n), v=vector(initial_v, n))
    return Problem(system=Chain(support, n).system(), params=params, state=state)
