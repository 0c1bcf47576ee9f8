"""Springs and dampers between two points."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax.numpy as jnp

from nsjax import shapes
from nsjax.core import InputError
from nsjax.multibody import numbers, symbols
from nsjax.multibody.coordinates import planar_vectors as plane
from nsjax.multibody.coordinates.frames import Scene
from nsjax.multibody.joints.joint_kind import Push
from nsjax.multibody.loads.load_kind import Driven, End, LoadKind, end_of, kept_numbers, stored, tension
from nsjax.multibody.parts import Part, made
from nsjax.types import Array, Fn


def spring(
    name: str, first: End, second: End, *, stiffness: Any = None, damping: Any = None, length: Any = None,
    quadratic: Any = None, cubic: Any = None, quadratic_damping: Any = None, law: Fn | None = None,
    potential: Fn | None = None, own: Any = None, switch: Fn | None = None,
) -> Part:  # fmt: skip
    """A spring and damper along the line between two points.

    With the vector ``d`` between its ends and the extension ``e = |d| - length``, its tension is
    ``k e + k2 |e| e + k3 e^3 + c e' + c2 |e'| e'``.

    Args:
        name: of the spring.
        first, second: its ends, each a body's name for its origin, or ``("rod", point)`` in body axes [m].
        stiffness, quadratic, cubic: k [N/m], k2 [N/m^2], k3 [N/m^3].
        damping, quadratic_damping: c [N s/m], c2 [N s^2/m^2].
        length: free length [m]; None: zero.
        law: ``(e, rate, own) -> tension`` [N], in place of the coefficients.
        potential: ``(e, own) -> energy`` [J] stored by the conservative part of ``law``; without it the
            energy of a run leaves this spring out, and its report says so.
        own: numbers for ``law`` and ``potential``, any pytree.
        switch: surfaces of ``law``, a function of the same arguments; see `force`.

    Raises:
        InputError: for a law that is no function or is given with coefficients; by `assemble`, for ends
            that coincide at the start, unless the spring is linear without a free length.

    Limits: where its ends coincide the force has no direction. Only a linear spring without free length,
    damping and law is defined there: its force is ``k d``.

    Example:
        >>> from nsjax.multibody import spring
        >>> spring("leg", "ground", ("rod", 0.3), stiffness=100.0, length=0.2)
        spring('leg', 'ground', 'rod', on=0.3, rest=0.2, stiffness=100.0)
    """
    (one, at), (other, on) = end_of("spring", name, first), end_of("spring", name, second)
    given = {
        "at": at, "on": on, "rest": length, "stiffness": stiffness, "quadratic": quadratic,
        "cubic": cubic, "damping": damping, "quadratic_damping": quadratic_damping,
    }  # fmt: skip
    kept = numbers.Spring(**kept_numbers("spring", name, law, own, given))
    return made("spring", name, (one, other), kept, law=law, potential=potential, switch=switch)


def only_pull(part: Part, numbers: Any) -> bool:
    """Whether a spring has a stiffness alone: its force ``k d`` is defined where its ends coincide."""
    others = (numbers.rest, numbers.quadratic, numbers.cubic, numbers.damping, numbers.quadratic_damping)
    return part.option("law") is None and all(x is None for x in others)


def _pushes(scene: Scene, part: Part, numbers: Any, driven: Driven) -> Iterator[Push]:
    a, (first, second) = scene.algebra, part.bodies
    one, other = scene.point(first, numbers.at), scene.point(second, numbers.on)
    gone = a.subtract(other, one)
    if only_pull(part, numbers):
        pull = a.scale(numbers.stiffness, gone)
    else:
        length = a.size(gone)
        along = a.scale(1.0 / jnp.where(length > 0.0, length, 1.0), gone)
        speed = a.subtract(
            scene.motion(second, scene.arm(second, numbers.on)),
            scene.motion(first, scene.arm(first, numbers.at)),
        )
        extension = plane.plus(length, plane.minus(numbers.rest))
        pull = a.scale(tension(part, numbers, extension, a.dot(along, speed)), along)
    yield first, pull, one, None
    yield second, a.negative(pull), other, None


def _energy(scene: Scene, part: Part, numbers: Any, driven: Driven) -> Any:
    a = scene.algebra
    gone = a.subtract(scene.point(part.bodies[1], numbers.on), scene.point(part.bodies[0], numbers.at))
    if only_pull(part, numbers):
        return plane.times(0.5, plane.times(numbers.stiffness, a.dot(gone, gone)))
    return stored(part, numbers, plane.plus(a.size(gone), plane.minus(numbers.rest)))


def _check(scene: Scene, part: Part, numbers: Any) -> None:
    apart = scene.position(part.bodies[1], numbers.on) - scene.position(part.bodies[0], numbers.at)
    if not only_pull(part, numbers) and not float(jnp.max(jnp.abs(apart))) > 0.0:
        raise InputError(
            f"spring {part.name!r}: its ends coincide at the start, so that its force has no direction; "
            "move them apart, or leave length and damping out: a spring of free length zero needs none"
        )


def _shapes(scene: Scene, part: Part, numbers: Any) -> list[shapes.Shape]:
    start, end = (scene.position(*x) for x in zip(part.bodies, (numbers.at, numbers.on), strict=True))
    coil = symbols.between(start, end, symbols.bellows(numbers, part.option("law")), part.name)
    ends = [(part.bodies[0], start, end - start), (part.bodies[1], end, start - end)]
    return [coil, *symbols.walls_at(ends, part.name)]


def _exerts(scene: Scene, part: Part, numbers: Any, force: Array, torque: Array) -> Any:
    """Force that pushes the ends apart [N]."""
    gone = scene.position(part.bodies[1], numbers.on) - scene.position(part.bodies[0], numbers.at)
    return jnp.sum(force * gone) / plane.value(scene.algebra.size(scene.algebra.vector(gone)))


SPRING = LoadKind(
    name="spring", pushes=_pushes, energy=_energy, check=_check, held=True, shapes=_shapes, exerts=_exerts
)
