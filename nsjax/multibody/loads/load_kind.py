"""The record of a kind of load, and what springs and tendons have in common."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import jax.numpy as jnp
import numpy as np

from nsjax.core import InputError
from nsjax.forms import ANY, NumberForm, forms_of, quantity
from nsjax.multibody.coordinates import planar_vectors as plane
from nsjax.multibody.coordinates.frames import Scene
from nsjax.multibody.joints import kind_of
from nsjax.multibody.joints.joint_kind import Push
from nsjax.multibody.numbers import Spring
from nsjax.multibody.parts import GROUND, Part, limits_of, number, record_of, user_value
from nsjax.shapes import Shape
from nsjax.types import Array, Fn, is_traced, record

Driven = tuple[Part, Any] | None
"""The joint in which a load acts, and the numbers of that joint; None for a load on bodies."""


def _never(part: Part) -> bool:
    """Answer of a load that reads no coordinates of joints."""
    return False


def on_a_coordinate(part: Part, joint: Part) -> None:
    """Refuses a joint that has no coordinate."""
    if kind_of(joint).measure is None:
        raise InputError(
            f"{part.kind} {part.name!r}: {joint.name!r} is a {joint.kind} joint; name a hinge or slide, or "
            "give a kind of your own its measure and effort"
        )


@dataclasses.dataclass(frozen=True, eq=False)
class LoadKind:
    """A kind of loads: an entry of `nsjax.multibody.loads.KINDS` with all that defines it.

    A load acts on bodies (``pushes``), on the coordinate of a joint (``effort``), along a beam (``along``),
    or is a tendon (``line``).

    Args:
        name: name of the function that makes such a load.
        pushes: ``(scene, part, numbers, driven) -> iterator`` of forces and moments on bodies
            (`nsjax.multibody.joints.joint_kind.Push`).
        effort: ``(part, numbers, t, coordinate, rate) -> scalar or None``, moment [N m] or force [N] on the
            coordinate of its joint. A load with an effort needs ``pushes`` only for joints without a
            coordinate.
        energy: ``(scene, part, numbers, driven) -> scalar or None``, stored energy [J].
        fits: ``(part, joint)``, raises for a joint in which the load cannot act.
        reads_angle: ``(part) -> bool``, whether the load reads the coordinate of its joint.
        sees_scene: ``(part) -> bool``, whether the load reads the coordinates of all joints.
        check: ``(scene, part, numbers)``, raises if the force has no direction at the start.
        along: ``(topology, tree, part, t, q, p) -> (n, 6)``, forces and moments on the nodes of a beam.
        of_beam: ``(part, beams) -> part``, checks and completes a load along one of the ``beams``, a dict
            by name.
        line: ``(scene, topology, part, params) -> nsjax.multibody.loads.load_kind.Line``, length of a
            tendon, on which its own effort and those of actuators act. Its numbers ``lower``, ``upper``,
            ``restitution`` and ``friction`` are rigid stops and dry friction.
        in_line: whether the load may act on a tendon in place of a joint.
        held: whether pictures mark its points of action on the bodies.
        shapes: ``(scene, part, numbers) -> list``, shapes that pictures show.
        exerts: ``(scene, part, numbers, force, torque) -> scalar``, the number that it exerts, from its
            force and torque on its last body; None: its effort.

    Example:
        >>> from nsjax.multibody.loads import KINDS
        >>> KINDS["spring"].energy is not None, KINDS["force"].energy is not None
        (True, False)
    """

    name: str
    pushes: Callable[[Scene, Part, Any, Driven], Iterator[Push]] | None = None
    effort: Callable[[Part, Any, Any, Any, Any], Any] | None = None
    energy: Callable[[Scene, Part, Any, Driven], Any] | None = None
    fits: Callable[[Part, Part], None] = on_a_coordinate
    reads_angle: Callable[[Part], bool] = _never
    sees_scene: Callable[[Part], bool] = _never
    check: Callable[[Scene, Part, Any], None] | None = None
    along: Callable[[Any, Any, Part, Array, Array, Any], Array] | None = None
    of_beam: Callable[[Part, dict[str, Part]], Part] | None = None
    line: Callable[[Scene, Any, Part, Any], Any] | None = None
    in_line: bool = False
    held: bool = False
    shapes: Callable[[Scene, Part, Any], list[Shape]] | None = None
    exerts: Callable[[Scene, Part, Any, Array, Array], Any] | None = None


End = Any
"""A point of a body: the body's name for its origin, or a pair of name and point in body axes [m]."""


def end_of(kind: str, name: str, end: End) -> tuple[str, Any]:
    """Name of the body, and point in body axes [m] or None for its origin. Raises `InputError` if the end
    is neither a name nor such a pair.
    """
    if isinstance(end, str):
        return end, None
    if isinstance(end, tuple) and len(end) == 2 and isinstance(end[0], str):
        return end
    raise InputError(f"{kind} {name!r}: end {end!r}; give a body's name, or a pair ('rod', 0.3)")


def with_law(part: Part) -> bool:
    """Whether a user's function (``law``) gives the load."""
    return part.option("law") is not None


def refuse_ground(kind: str, name: str, body: str) -> None:
    """Refuses a load on the ground."""
    if body == GROUND:
        raise InputError(f"{kind} {name!r}: acts on the ground, which does not move; name a body")


# Tension of springs and dampers as a function of their extension, and the energy that they store.


def kept_numbers(
    kind: str, name: str, law: Fn | None, own: Any, given: dict[str, Any], **forms: NumberForm
) -> dict[str, Any]:  # fmt: skip
    """Numbers of a spring by name, checked.

    Args:
        kind, name: of the spring, for error messages.
        law, own: the user's law and its numbers.
        given: ends, free length and coefficients by name; None where not given.
        forms: forms that differ from those of the record.

    Raises:
        InputError: for a law that is no function, or that is given with coefficients.
    """
    forms = {**forms_of(Spring), **forms}
    kept = {k: number(kind, name, k, v, form=forms[k]) for k, v in given.items()}
    if law is not None and not callable(law):
        raise InputError(f"{kind} {name!r}: law = {law!r}; it must be a function of extension and rate")
    if law is not None and any(kept[k] is not None for k in kept if k not in ("at", "on", "rest")):
        raise InputError(
            f"{kind} {name!r}: a law is given together with stiffness or damping; put all into the law"
        )
    return kept | {"own": own}


def signed_square(x: Array) -> Array:
    """``|x| x``."""
    return jnp.abs(x) * x


def tension(part: Part, numbers: Any, extension: Any, rate: Any) -> Any:
    """Tension of a spring and damper [N] at an extension and its rate, a scalar; None if it has neither."""
    if part.option("law") is not None:
        given = plane.value(extension), plane.value(rate), numbers.own
        return user_value(part, "law", "e, rate, own", *given, shapes=((),))
    terms = (
        (numbers.stiffness, extension, None), (numbers.quadratic, extension, signed_square),
        (numbers.cubic, extension, lambda x: x**3), (numbers.damping, rate, None),
        (numbers.quadratic_damping, rate, signed_square),
    )  # fmt: skip
    total = None
    for factor, x, shape in terms:
        if factor is not None and x is not None:
            total = plane.plus(total, plane.times(factor, x if shape is None else shape(x)))
    return total


def stored(part: Part, numbers: Any, extension: Any) -> Any:
    """Energy stored in a spring [J], a scalar; None for a law without a potential."""
    if part.option("law") is not None:
        if part.option("potential") is None:
            return None
        return user_value(part, "potential", "e, own", plane.value(extension), numbers.own, shapes=((),))
    e, total = plane.value(extension), None
    for factor, energy in (
        (numbers.stiffness, e * e / 2.0), (numbers.quadratic, jnp.abs(e) ** 3 / 3.0),
        (numbers.cubic, e**4 / 4.0),
    ):  # fmt: skip
        total = plane.plus(total, plane.times(factor, energy))
    return total


# What all tendons have in common: a length with stiffness, damping, stops and dry friction.


@dataclasses.dataclass(frozen=True)
class Line:
    """Length of a tendon at an instant.

    Args:
        length, rate: [m] and [m/s]; [rad] and [rad/s] for a sum of angles.
        act: function from a force along the length [N], positive where it lengthens the tendon, to the
            forces and moments on bodies.
        slip: rate of a rope on its drum, as the row of capstan friction has it, see
            `nsjax.multibody.loads.tendon.tendon`; None: the rope slips freely.
        rub: like ``act``, from the force of this row.
    """

    length: Any
    rate: Any
    act: Callable[[Any], Iterator[Push]]
    slip: Any = None
    rub: Callable[[Any], Iterator[Push]] | None = None


@record()
class Tendon:
    """Numbers of a tendon.

    Args:
        at: points through which it runs, each in the axes of its body [m]; () for a `joint_tendon`.
        around: numbers of the spheres and cylinders about which it winds.
        sides: points at their sides, each in the axes of its body [m]; of those that have one.
        directions: in which its ends leave the discs on which they are wound, each (2,).
        ratios: divisors of the lengths of its branches; for a `joint_tendon`, factors of its joints.
        rest: free length, or the least and the largest length (2,) between which it exerts no force [m].
        stiffness, damping: [N/m], [N s/m]; or [N m/rad], [N m s/rad].
        lower, upper: least and largest length, at which it has rigid stops [m].
        restitution: coefficient of restitution of the stops.
        friction: bound of dry friction along the length [N] or [N m].
        capstan_friction: coefficient of friction on the drum about which it winds.
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
    around: Any = ()
    sides: Any = ()
    directions: Any = ()
    capstan_friction: Any = quantity(default=None, shape="one", least=0.0)


def line_numbers(kind: str, name: str, at: Any, ratios: Any, given: dict[str, Any]) -> Tendon:
    """Numbers of a tendon, checked. ``kind``, ``name``: of the tendon, for error messages; ``given``: the
    other arguments of `tendon` by name; ``rest`` is its ``length``.

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
    """Extension [m]: length minus free length; of a range of these, the signed distance from it."""
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
