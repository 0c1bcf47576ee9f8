"""What all tendons have in common: a length with stiffness, damping, stops and dry friction."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import jax.numpy as jnp
import numpy as np

from nsjax.core import InputError
from nsjax.core.checks import is_traced
from nsjax.forms import quantity
from nsjax.multibody.coordinates import planar_vectors as plane
from nsjax.multibody.coordinates.frames import Scene
from nsjax.multibody.joints.joint_kind import Push
from nsjax.multibody.loads.load_kind import Driven
from nsjax.multibody.number_checks import ANY, limits_of, number, record_of
from nsjax.multibody.parts import Part
from nsjax.types import Array, record


@dataclasses.dataclass(frozen=True)
class Line:
    """Length of a tendon at an instant.

    Args:
        length, rate: [m] and [m/s]; [rad] and [rad/s] for a sum of angles.
        act: function from a force along the length [N], positive where it lengthens the tendon, to the
            forces and moments on bodies.
    """

    length: Any
    rate: Any
    act: Callable[[Any], Iterator[Push]]


@record()
class Tendon:
    """Numbers of a tendon.

    Args:
        at: points through which it runs, each in the axes of its body [m]; () for a `joint_tendon`.
        ratios: divisors of the lengths of its branches; for a `joint_tendon`, factors of its joints.
        rest: free length, or the least and the largest length (2,) between which it exerts no force [m].
        stiffness, damping: [N/m], [N s/m]; or [N m/rad], [N m s/rad].
        lower, upper: least and largest length, at which it has rigid stops [m].
        restitution: coefficient of restitution of the stops.
        friction: bound of dry friction along the length [N] or [N m].
    """

    at: Any
    ratios: Any
    rest: Any = quantity(default=None)
    stiffness: Any = quantity(default=None, shape="one")
    damping: Any = quantity(default=None, shape="one")
    lower: Any = quantity(default=None, shape="one")
    upper: Any = quantity(default=None, shape="one")
    restitution: Any = quantity(default=None, shape="one", least=0.0, most=1.0)
    friction: Any = quantity(default=None, shape="one", least=0.0)


def line_numbers(kind: str, name: str, at: Any, ratios: Any, given: dict[str, Any]) -> Tendon:
    """Numbers of a tendon, checked.

    Args:
        kind, name: of the tendon, for error messages.
        at, ratios: as in `Tendon`.
        given: the other arguments of `tendon` by name; ``rest`` is its ``length``.

    Raises:
        InputError: for limits or free lengths in the wrong order, and for values that are no numbers.
    """
    limits, rest = given.pop("limits"), given["rest"]
    lower, upper = limits_of(kind, name, limits)
    given["rest"] = rest = number(kind, name, "length", rest, form=ANY)
    ranged = rest is not None and not is_traced(rest) and np.ndim(rest) > 0
    if ranged and (np.shape(rest) != (2,) or not rest[0] <= rest[1]):
        raise InputError(
            f"{kind} {name!r}: length = {rest}; give the free length, or a pair of the least and the "
            "largest length between which it exerts no force"
        )
    given |= {"lower": lower, "upper": upper}
    if limits is None:
        given.pop("restitution")
    return record_of(Tendon, kind, name, at=at, ratios=ratios, **given)


def extension(numbers: Tendon, length: Any) -> Any:
    """Extension [m]: length minus free length; with a range of free lengths, the distance from the range,
    negative below it and zero inside.
    """
    rest = numbers.rest
    if rest is None or jnp.ndim(rest) == 0:
        return plane.plus(length, plane.minus(rest))
    x = plane.value(length)
    return jnp.where(x < rest[0], x - rest[0], jnp.where(x > rest[1], x - rest[1], 0.0))


def line_effort(part: Part, numbers: Tendon, t: Any, length: Any, rate: Any) -> Any:
    """Force of stiffness and damping along the length [N], ``-(k e + c L')``; None if it has neither."""
    tension = None
    if numbers.stiffness is not None:
        tension = plane.times(numbers.stiffness, extension(numbers, length))
    return plane.minus(plane.plus(tension, plane.times(numbers.damping, rate)))


def line_energy(scene: Scene, part: Part, numbers: Tendon, driven: Driven) -> Any:
    """Energy ``k e^2 / 2`` stored in the stiffness [J]; None without a stiffness."""
    if numbers.stiffness is None:
        return None
    e: Array = plane.value(extension(numbers, scene.coordinates(part.name)[0]))
    return 0.5 * numbers.stiffness * e * e
