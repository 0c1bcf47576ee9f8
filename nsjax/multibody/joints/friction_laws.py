"""Laws of friction in a joint: clutches, rates, dry friction; and rows that are there or not."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp

from nsjax.core import InputError
from nsjax.types import Array, is_traced


@dataclasses.dataclass(frozen=True)
class OneWay:
    """A clutch that turns or slides freely in one sense and holds in the other, ``0 <= u _|_ x >= 0``.

    With a bound ``b`` of dry friction (``friction=`` of the joint) the free sense rubs,
    ``0 <= u _|_ x + b >= 0``.

    Args:
        sense: 1: coordinates may grow; -1: they may fall.

    Raises:
        InputError: for another sense.

    Order: that of the scheme; the force jumps where the clutch locks, and velocities do not.

    Example:
        >>> import nsjax
        >>> from nsjax import multibody as mb
        >>> from nsjax import schemes
        >>> shaft = mb.hinge("shaft", "ground", "wheel", friction_law=mb.OneWay())
        >>> kick = mb.torque("kick", "wheel", -1.0)
        >>> problem = mb.assemble(mb.body("wheel", mass=1.0, inertia=0.1), shaft, kick)
        >>> traj = nsjax.simulate(problem, schemes.moreau(), dt=1e-2, steps=20)
        >>> abs(float(traj["wheel.angle"][-1])) < 1e-12
        True
    """

    sense: int = 1

    def __post_init__(self) -> None:
        if self.sense not in (1, -1):
            raise InputError(f"OneWay: sense = {self.sense!r}; give 1 (coordinates may grow) or -1 (fall)")

    def residual(self, x: Array, u: Array, r: Array, numbers: Any, duration: Array | float) -> Array:
        """``x - max(x - r u, -b)`` of the forces and rates in the free sense."""
        x, u = self.sense * x, self.sense * u
        bound = getattr(numbers, "friction", None)
        return self.sense * (x - jnp.maximum(x - r * u, 0.0 if bound is None else -duration * bound))


@dataclasses.dataclass(frozen=True)
class Stribeck:
    """Friction whose bound falls from ``own["rest"]`` at rest to ``friction`` in fast sliding::

        |x| <= b(u) dt,      b(u) = friction + (rest - friction) exp(-(u / speed)^2)

    with ``own = {"rest": ..., "speed": ...}`` of the joint.

    Limits: steady sliding is unstable where ``db/du`` is below minus the damping beside it.

    Source: B. Armstrong-Helouvry, P. Dupont, C. Canudas de Wit: A survey of models, analysis tools and
    compensation methods for the control of machines with friction. Automatica 30 (1994) 1083-1138.

    Example:
        >>> from nsjax import multibody as mb
        >>> guide = mb.slide(
        ...     "guide", "ground", "block", friction=1.0, own={"rest": 2.0, "speed": 0.1},
        ...     friction_law=mb.Stribeck(),
        ... )
        >>> guide.option("friction_law")
        Stribeck()
    """

    def check(self, who: str, friction: Any, own: Any) -> None:
        """Refuses a joint without the numbers of the law, and a speed that is not positive."""
        known = own if isinstance(own, Mapping) else {}
        if friction is None or not known.keys() >= {"rest", "speed"}:
            raise InputError(
                f"{who}: friction = {friction} and own = {own} with Stribeck(); give the bound in fast "
                'sliding, that at rest and the speed of the fall: friction=1.0, own={"rest": 2.0, "speed": '
                "0.1}"
            )
        if not is_traced(known["speed"]) and not known["speed"] > 0.0:
            raise InputError(f"{who}: speed = {known['speed']}; it must be positive")

    def residual(self, x: Array, u: Array, r: Array, numbers: Any, duration: Array | float) -> Array:
        """``x - prox(x - r u)`` with the bound at the rate."""
        fast, rest, speed = numbers.friction, numbers.own["rest"], numbers.own["speed"]
        bound = duration * (fast + (rest - fast) * jnp.exp(-((u / speed) ** 2)))
        return x - jnp.clip(x - r * u, -bound, bound)


@dataclasses.dataclass(frozen=True)
class Held:
    """A row that holds its rate while a number of its part is one, ``u = 0``, and else has another law.

    Args:
        by: name of the number, ``"locked"`` or ``"active"``.
        otherwise: law while it is zero; None: dry friction with the bound of the joint, or no force.
    """

    by: str
    otherwise: Any = None

    def residual(self, x: Array, u: Array, r: Array, numbers: Any, duration: Array | float) -> Array:
        """``r u`` where it holds."""
        free = x
        if self.otherwise is not None or getattr(numbers, "friction", None) is not None:
            free = by_law(self.otherwise, (x, u, r), numbers, duration)
        return jnp.where(jnp.asarray(getattr(numbers, self.by)) > 0.5, r * u, free)


def by_law(law: Any, row: tuple[Array, Array, Array], numbers: Any, duration: Array | float) -> Array:
    """Residual of a law of one row ``(x, u, r)``; None: dry friction with a bound."""
    x, u, r = row
    if law is None:
        bound = duration * numbers.friction
        return x - jnp.clip(x - r * u, -bound, bound)
    return law.residual(x, u, r, numbers, duration)


@dataclasses.dataclass(frozen=True)
class JointLaws:
    """Laws of all joints with friction, as one law of their rows; None: dry friction with a bound.

    The numbers are those of the joints, in the same order.
    """

    laws: tuple[Any, ...]

    def residual(self, x: Array, u: Array, r: Array, numbers: Any, duration: Array | float) -> Array:
        """The residuals of the joints."""
        found = [
            by_law(law, (x[k : k + 1], u[k : k + 1], r[k : k + 1]), numbers[k], duration)
            for k, law in enumerate(self.laws)
        ]
        return jnp.concatenate(found)
