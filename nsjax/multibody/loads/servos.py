"""Position and velocity servos in hinges and slides."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np

from nsjax.core import InputError
from nsjax.core.checks import is_traced
from nsjax.multibody.coordinates.tree_joints import AtOnce
from nsjax.multibody.loads import actuator
from nsjax.multibody.parts import Part, number
from nsjax.types import Array, record


def within(x: Array, bounds: Any) -> Array:
    """``x`` inside bounds (2,); None: no bounds. At a bound its derivative is that of inside."""
    if bounds is None:
        return x
    return jnp.where(x < bounds[0], bounds[0], jnp.where(x > bounds[1], bounds[1], x))


@record()
class ServoNumbers:
    """``effort = stiffness (position - x) + damping (velocity - x')``, inside ``limits`` (2,)."""

    stiffness: Any = None
    position: Any = None
    damping: Any = None
    velocity: Any = None
    limits: Any = None

    @property
    def target(self) -> str:
        """Name of the number that a controller gives."""
        return "position" if self.stiffness is not None else "velocity"


@dataclasses.dataclass(frozen=True)
class Follow(AtOnce):
    """The law of a servo."""

    def __call__(self, t: Array, x: Array, rate: Array, own: ServoNumbers) -> Array:
        """Effort at a joint's coordinate and rate."""
        effort = jnp.zeros(jnp.shape(x))
        if own.stiffness is not None:
            effort = effort + own.stiffness * (own.position - x)
        if own.damping is not None:
            effort = effort + own.damping * (own.velocity - rate)
        return within(effort, own.limits)


def servo(
    name: str, joint: str, *, position: Any = None, velocity: Any = None, stiffness: Any = None,
    damping: Any = None, limit: Any = None,
) -> Part:  # fmt: skip
    """A servo in a hinge or slide: ``effort = k (x_d - x) + d (x_d' - x')``, not beyond its limits.

    Args:
        name, joint: of the servo and of its joint.
        position: wanted coordinate ``x_d`` [rad] or [m], with ``stiffness``; 0 where it is not given.
        velocity: wanted rate ``x_d'`` [rad/s] or [m/s], with ``damping``; 0 where it is not given.
        stiffness: ``k`` [N m/rad] or [N/m]; None: a velocity servo.
        damping: ``d`` [N m s/rad] or [N s/m].
        limit: largest effort [N m] or [N], or a pair of least and largest.

    As an input of `nsjax.driven` and `nsjax.stepper` the name of the servo is the wanted coordinate, of one
    without stiffness the wanted rate; ``"name.own.velocity"`` and so on are its other numbers.

    Raises:
        InputError: without stiffness and damping, for a target without its gain, and for limits in the
            wrong order.

    Limits: efforts are smooth between the limits and have a kink there. A stiff servo takes implicit
    schemes, or steps well below ``sqrt(m / k)``; a damping that bounds the step, above ``2 m / dt``, takes
    ``schemes.moreau(joint_damping="implicit")``, for which efforts beyond the limits stay explicit.

    Example:
        >>> from nsjax.multibody import servo
        >>> servo("knee_motor", "knee", position=0.3, stiffness=50.0, damping=2.0, limit=20.0).kind
        'actuator'
    """
    if stiffness is None and damping is None:
        raise InputError(f"servo {name!r}: neither stiffness nor damping; give one of them")
    for target, value, gain, factor in (
        ("position", position, "stiffness", stiffness), ("velocity", velocity, "damping", damping),
    ):  # fmt: skip
        if value is not None and factor is None:
            raise InputError(f"servo {name!r}: {target} = {value} has no gain; give {gain} with it")
    own = ServoNumbers(
        stiffness=number("servo", name, "stiffness", stiffness, 0.0),
        position=None if stiffness is None else number("servo", name, "position", position or 0.0),
        damping=number("servo", name, "damping", damping, 0.0),
        velocity=None if damping is None else number("servo", name, "velocity", velocity or 0.0),
        limits=_limits(name, limit),
    )
    return actuator(name, joint, law=Follow(), own=own)


def _limits(name: str, limit: Any) -> Any:
    if limit is None:
        return None
    if is_traced(limit):
        return jnp.stack([-limit, limit]) if jnp.ndim(limit) == 0 else limit
    limit = number("servo", name, "limit", limit)
    bounds = np.array([-limit, limit]) if np.ndim(limit) == 0 else limit
    if bounds.shape != (2,) or not bounds[0] < bounds[1]:
        raise InputError(
            f"servo {name!r}: limit = {limit}; give a positive number, or the least and the largest effort"
        )
    return bounds
