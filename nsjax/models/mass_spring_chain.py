"""Three masses on springs, the last one held by a very stiff spring or by a constraint."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np

from nsjax import shapes
from nsjax.core import InputError, Labels, Problem, State, System
from nsjax.models.common import constructor, vector
from nsjax.types import Array, record


@record()
class MassSpringChain:
    """Parameters of `mass_spring_chain`; the field names are its keyword names."""

    mass: Array | float = 1.0
    stiffness: Array | float = 1.0
    support_stiffness: Array | float = 1e7
    gravity: Array | float = 9.81


@dataclasses.dataclass(frozen=True)
class Chain:
    """Topology: how the last mass is held. Its methods are the functions of the system."""

    support: str

    def mass(self, q: Array, p: MassSpringChain) -> Array:
        """Three equal masses, or one number each."""
        return jnp.broadcast_to(jnp.asarray(p.mass, float), (3,))[:, None] * np.eye(3)

    def stiffness(self, p: MassSpringChain) -> Array:
        """Stiffness matrix (3, 3) of wall, spring, mass, spring, mass, spring, mass [, support]."""
        k = jnp.broadcast_to(jnp.asarray(p.stiffness, float), (3,))
        last = k[2] + (p.support_stiffness if self.support == "spring" else 0.0)
        zero = jnp.zeros(())
        rows = [k[0] + k[1], -k[1], zero, -k[1], k[1] + k[2], -k[2], zero, -k[2], last]
        return jnp.stack([jnp.asarray(x, float) for x in rows]).reshape(3, 3)

    def force(self, t: Array, q: Array, v: Array, p: MassSpringChain) -> Array:
        """Weight along the chain minus spring forces."""
        weight = jnp.broadcast_to(jnp.asarray(p.mass, float), (3,)) * p.gravity
        return weight - jnp.sum(self.stiffness(p) * q[None, :], axis=1)

    def potential(self, t: Array, q: Array, p: MassSpringChain) -> Array:
        """Energy of springs and weight."""
        weight = jnp.broadcast_to(jnp.asarray(p.mass, float), (3,)) * p.gravity
        return 0.5 * jnp.sum(q * jnp.sum(self.stiffness(p) * q[None, :], axis=1)) - jnp.sum(weight * q)

    def hold(self, t: Array, q: Array, p: MassSpringChain) -> Array:
        """The last mass does not move (1,)."""
        return q[2:]

    def picture(self, t: Array, q: Array, p: MassSpringChain) -> shapes.Picture:
        """What is drawn, hanging down: springs have no length of their own, and get three times their
        largest static stretch.
        """
        weight = jnp.max(jnp.asarray(p.mass, float)) * p.gravity
        stretch = jnp.asarray(weight / jnp.min(jnp.asarray(p.stiffness, float)))
        length = jnp.where(stretch > 0.0, 3.0 * stretch, 1.0)
        side = 0.12 * length
        zero, height = jnp.zeros(()), -length * np.arange(1.0, 4.0) - q
        tops = [zero, *(height[k] - side for k in range(3))]
        found = [shapes.level((0.0, 0.0), (0.0, -1.0), "ceiling")]
        for k in range(3):
            upper, lower = (jnp.stack([zero, y]) for y in (tops[k], height[k] + side))
            line = shapes.zigzag(upper, lower, 0.6 * side)
            found.append(shapes.Shape(points=line, name=f"spring {k + 1}", role="spring"))
            block = shapes.placed(shapes.rectangle(side, side), jnp.stack([zero, height[k]]))
            found.append(shapes.Shape(points=block, name=f"mass {k + 1}", kind="area"))
        base = jnp.stack([zero, -3.7 * length])
        if self.support == "spring":
            line = shapes.zigzag(jnp.stack([zero, tops[3]]), base, 0.3 * side)
            found.append(shapes.Shape(points=line, name="support", role="spring"))
            found.append(shapes.level(base, (0.0, 1.0), "floor"))
        else:
            found.append(shapes.level(jnp.stack([zero, -3.0 * length - side]), (0.0, 1.0), "floor"))
        return shapes.Picture(shapes=tuple(found))

    def system(self) -> System:
        """The system of this topology."""
        held = self.support == "constraint"
        return System(
            name="mass_spring_chain",
            choices=(("support", self.support),),
            nq=3,
            nv=3,
            nb=1 if held else 0,
            mass=self.mass,
            force=self.force,
            potential=self.potential,
            constraint=self.hold if held else None,
            shapes=self.picture,
            labels=Labels(
                q=("q1 [m]", "q2 [m]", "q3 [m]"),
                v=("v1 [m/s]", "v2 [m/s]", "v3 [m/s]"),
                constraints=("support",) if held else (),
            ),
        )


@constructor(MassSpringChain)
def mass_spring_chain(
    params: MassSpringChain,
    *,
    support: str = "spring",
    initial_q: Any = (0.0, 0.0, 0.0),
    initial_v: Any = (0.0, 0.0, 0.0),
    initial_time: Any = 0.0,
) -> Problem:
    """The linear model problem of high-frequency damping: soft springs and one very stiff one.

    Wall, spring, mass, spring, mass, spring, mass along the direction of gravity. The last mass is held
    by a spring of large stiffness, whose fast oscillation a scheme must survive, or by the constraint
    that is its limit.

    Args:
        support: ``"spring"`` (a) or ``"constraint"`` (b).
        initial_q, initial_v, initial_time: the start, by default at rest in the unloaded springs.
        mass: [kg], scalar or (3,).
        stiffness: of the three springs [N/m], scalar or (3,).
        support_stiffness: [N/m], for ``"spring"`` only.
        gravity: along the chain [m/s^2].

    Returns:
        A `Problem`.

    Raises:
        InputError: for an unknown support.

    Source: [R&S section 2.8]; its printed k = 1 N/m does not give its highest frequency 0.8717 Hz in model
        (b), which belongs to k = 10 N/m.

    Example:
        >>> from nsjax import models
        >>> models.mass_spring_chain(support="constraint", stiffness=10.0).system.nb
        1
    """
    if support not in ("spring", "constraint"):
        raise InputError(f"mass_spring_chain: support = {support!r}; choose 'spring' or 'constraint'")
    state = State(t=initial_time, q=vector(initial_q), v=vector(initial_v))
    return Problem(system=Chain(support).system(), params=params, state=state)
