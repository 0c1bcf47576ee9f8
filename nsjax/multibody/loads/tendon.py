"""Tendons, ropes and cables through points of bodies, with pulleys."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax.numpy as jnp

from nsjax import shapes
from nsjax.core import InputError
from nsjax.multibody import symbols
from nsjax.multibody.coordinates import planar_vectors as plane
from nsjax.multibody.coordinates.frames import Scene
from nsjax.multibody.joints.joint_kind import Push
from nsjax.multibody.loads.load_kind import (
    End,
    Line,
    LoadKind,
    Tendon,
    end_of,
    line_effort,
    line_energy,
    line_numbers,
)
from nsjax.multibody.parts import POINT, POSITIVE, Part, made, number


def tendon(
    name: str, *path: End | float, stiffness: Any = None, damping: Any = None, length: Any = None,
    limits: Any = None, restitution: Any = 0.0, friction: Any = None,
) -> Part:  # fmt: skip
    """A tendon, rope or cable that runs without friction through points of bodies.

    It runs straight from point to point. Pulleys divide it into branches b with the divisors r_b. With the
    points x_i of a branch, its length and its tension are::

        L = sum_b (1 / r_b) sum_i |x_(i+1) - x_i|,        T = k (L - length) + c L'

    Each straight piece of branch b pulls both its ends together with ``T / r_b``.

    Args:
        name: of the tendon. Laws and sensors read its length as the coordinate of this name. An
            `actuator` may name it in place of a joint: a positive effort [N] lengthens the tendon.
        path: points in their order, each a body's name for its origin, or ``("rod", point)`` in body axes
            [m]. A number between them is a pulley: the branch before it ends, and the number is the divisor
            of the branch after it.
        stiffness, damping: k [N/m], c [N s/m].
        length: free length [m]; or a pair of lengths between which the stiffness exerts no force: a rope,
            which cannot push, has ``(0.0, length)``. None: zero.
        limits: least and largest length [m], rigid stops like those of a hinge. None in the pair: no stop
            on that side. ``(None, 2.0)`` is an inextensible rope.
        restitution: coefficient of restitution of these stops, in [0, 1].
        friction: bound of dry friction along the length [N].

    Raises:
        InputError: for branches of fewer than two points, for pulleys that are not positive, and for limits
            in the wrong order; by `assemble`, for unknown bodies and points that coincide.

    Limits: the tendon has no mass and does not wrap around shapes. A piece whose ends coincide has no
    direction. Damping acts on slack tendons, too.

    Source: MuJoCo's documentation, chapter Computation, for branches and pulleys.

    Example:
        >>> from nsjax.multibody import assemble, body, slide, tendon
        >>> up = (0.0, 1.0)
        >>> problem = assemble(  # b hangs on two strands, a on one
        ...     body("a", mass=2.0), slide("A", "ground", "a", axis=up),
        ...     body("b", mass=1.0), slide("B", "ground", "b", at=1.0, axis=up),
        ...     tendon("rope", ("ground", (0.0, 2.0)), "a", 0.5, ("ground", (1.0, 2.0)), "b",
        ...            limits=(None, 6.0)),
        ...     gravity=9.81,
        ... )
        >>> problem.system.labels.contacts
        ('rope.upper',)
    """
    branches: list[list[tuple[str, Any]]] = [[]]
    ratios: list[Any] = [1.0]
    for k, x in enumerate(path):
        if isinstance(x, str | tuple):
            branches[-1].append(end_of("tendon", name, x))
            continue
        if isinstance(x, list):
            raise InputError(f"tendon {name!r}: a list in its path; give its points one by one, *points")
        ratio = number("tendon", name, "pulley", x, form=POSITIVE)
        if k == 0:
            ratios = [ratio]
        else:
            branches.append([])
            ratios.append(ratio)
    short = [len(x) for x in branches if len(x) < 2]
    if short:
        raise InputError(
            f"tendon {name!r}: a branch of {short[0]} points has no length; give two or more between its "
            "pulleys"
        )
    at = tuple(number("tendon", name, "point", x[1], form=POINT) for branch in branches for x in branch)
    given = {
        "rest": length, "stiffness": stiffness, "damping": damping, "limits": limits,
        "restitution": restitution, "friction": friction,
    }  # fmt: skip
    kept = line_numbers("tendon", name, at, tuple(ratios), given)
    bodies = tuple(x[0] for branch in branches for x in branch)
    return made("tendon", name, bodies, kept, branches=tuple(map(len, branches)))


def _pieces(part: Part, numbers: Tendon) -> Iterator[tuple[int, Any]]:
    """Index of the first point of every straight piece, and the divisor of its branch."""
    first = 0
    for count, ratio in zip(part.option("branches"), numbers.ratios, strict=True):
        for k in range(first, first + count - 1):
            yield k, ratio
        first += count


def _line(scene: Scene, topology: Any, part: Part, p: Any) -> Line:
    a, numbers = scene.algebra, p[part.name]
    ends = list(zip(part.bodies, numbers.at, strict=True))
    places = [scene.point(*x) for x in ends]
    motions = [scene.motion(body, scene.arm(body, at)) for body, at in ends]
    length, rate, pulls = None, None, []
    for k, ratio in _pieces(part, numbers):
        gone, share = a.subtract(places[k + 1], places[k]), 1.0 / ratio
        size = a.size(gone)
        along = a.scale(share / jnp.where(size > 0.0, size, 1.0), gone)
        length = plane.plus(length, share * size)
        rate = plane.plus(rate, a.dot(along, a.subtract(motions[k + 1], motions[k])))
        pulls.append((k, along))

    def act(effort: Any) -> Iterator[Push]:
        for k, along in pulls:
            push = a.scale(effort, along)
            yield part.bodies[k], a.negative(push), places[k], None
            yield part.bodies[k + 1], push, places[k + 1], None

    return Line(length, rate, act)


def _check(scene: Scene, part: Part, numbers: Tendon) -> None:
    places = [scene.position(*x) for x in zip(part.bodies, numbers.at, strict=True)]
    for k, _ in _pieces(part, numbers):
        if not float(jnp.max(jnp.abs(places[k + 1] - places[k]))) > 0.0:
            raise InputError(
                f"tendon {part.name!r}: a piece between {part.bodies[k]!r} and {part.bodies[k + 1]!r} has "
                "length zero at the start, so that its pull has no direction; move its points apart"
            )


def _shapes(scene: Scene, part: Part, numbers: Tendon) -> list[shapes.Shape]:
    places, found, first = [scene.position(*x) for x in zip(part.bodies, numbers.at, strict=True)], [], 0
    for count in part.option("branches"):
        points = jnp.stack(places[first : first + count])
        found.append(shapes.Shape(points=points, name=part.name, role="spring"))
        ends = ((first, first + 1), (first + count - 1, first + count - 2))
        walls = [(part.bodies[k], places[k], places[other] - places[k]) for k, other in ends]
        found += symbols.walls_at(walls, part.name)
        first += count
    return found


TENDON = LoadKind(
    name="tendon", effort=line_effort, energy=line_energy, line=_line, check=_check, held=True,
    shapes=_shapes,
)  # fmt: skip
