"""Position and velocity servos in hinges and slides."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np

from nsjax.core import InputError
from nsjax.core.checks import is_traced
from nsjax.forms import quantity
from nsjax.multibody.coordinates.tree_joints import AtOnce
from nsjax.multibody.loads import actuator
from nsjax.multibody.number_checks import number, record_of
from nsjax.multibody.parts import Part
from nsjax.types import Array, record


def within(x: Array, bounds: Any) -> Array:
    """``x`` limited to ``bounds`` (2,); None: not limited. Exactly at a bound the derivative is one, as
    inside.
    """
    if bounds is None:
        return x
    return jnp.where(x < bounds[0], bounds[0], jnp.where(x > bounds[1], bounds[1], x))


@record()
class ServoNumbers:
    """``effort = stiffness (position - x) + damping (velocity - x')``, inside ``limits`` (2,)."""

    stiffness: Any = quantity(default=None, shape="one", least=0.0)
    position: Any = quantity(default=None, shape="one")
    damping: Any = quantity(default=None, shape="one", least=0.0)
    velocity: Any = quantity(default=None, shape="one")
    limits: Any = None

    @property
    def target(self) -> str:
        """Name of the number that an input of the servo sets."""
        return "position" if self.stiffness is not None else "velocity"


@dataclasses.dataclass(frozen=True)
class Follow(AtOnce):
    """The law of a servo: proportional-derivative control with limits of the effort."""

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
    """A position or velocity servo in a hinge or slide.

    Its effort is ``k (x_d - x) + d (x_d' - x')``, cut off at its limits.

    Args:
        name: of the servo.
        joint: name of its joint.
        position: desired coordinate ``x_d`` [rad] or [m], with ``stiffness``; 0 if not given.
        velocity: desired rate ``x_d'`` [rad/s] or [m/s], with ``damping``; 0 if not given.
        stiffness: ``k`` [N m/rad] or [N/m]; None: a velocity servo.
        damping: ``d`` [N m s/rad] or [N s/m].
        limit: largest effort [N m] or [N] in both directions, or a pair of the least and the largest.

    Inputs of `nsjax.driven` and `nsjax.stepper` set the desired coordinate by the name of the servo; for a
    servo without stiffness they set the desired rate. ``"name.own.velocity"`` and the like set its other
    numbers.

    Raises:
        InputError: if neither stiffness nor damping is given, for a desired value without its gain, and for
            limits in the wrong order.

    Limits: the effort has a kink where it reaches a limit. A stiff servo needs an implicit scheme, or steps
    well below ``sqrt(m / k)``. A damping above ``2 m / dt`` makes explicit schemes unstable; use
    ``schemes.moreau(joint_damping="implicit")``. Efforts at a limit stay explicit under that scheme, too.

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
    own = record_of(
        ServoNumbers, "servo", name, stiffness=stiffness, damping=damping, limits=_limits(name, limit),
        position=None if stiffness is None else position or 0.0,
        velocity=None if damping is None else velocity or 0.0,
    )  # fmt: skip
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
