"""Tendons, ropes and cables through points of bodies and about shapes, with pulleys."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from nsjax import shapes
from nsjax.core import InputError
from nsjax.core.errors import listed
from nsjax.multibody import symbols
from nsjax.multibody.coordinates import planar_vectors as plane
from nsjax.multibody.coordinates.frames import Scene
from nsjax.multibody.joints.joint_kind import Push
from nsjax.multibody.loads import winding
from nsjax.multibody.loads.load_kind import (
    Line,
    LoadKind,
    Tendon,
    end_of,
    line_effort,
    line_energy,
    line_numbers,
)
from nsjax.multibody.parts import GROUND, POINT, POSITIVE, Part, made, number
from nsjax.types import is_traced


def tendon(
    name: str, *path: Any, stiffness: Any = None, damping: Any = None, length: Any = None,
    limits: Any = None, restitution: Any = 0.0, friction: Any = None, capstan_friction: Any = None,
) -> Part:  # fmt: skip
    """A tendon, rope or cable that runs through points of bodies and about shapes.

    It runs straight from point to point. Pulleys divide it into branches b with the divisors r_b. With the
    points x_i of a branch, its length and its tension are::

        L = sum_b (1 / r_b) sum_i |x_(i+1) - x_i|,        T = k (L - length) + c L'

    Each straight piece of branch b pulls both its ends together with ``T / r_b``.

    Between two points it may wind about a sphere (a disc in the plane) or a cylinder of a body: where the
    straight line would enter the shape, it lies on it along the shortest line, and pulls the body where it
    meets and leaves the shape. With straight pieces l_0 and l_1 and the angle phi about the radius r, the
    term is ``l_0 + r phi + l_1``; about a cylinder ``sqrt((l_0 + r phi + l_1)^2 + z^2)`` with the distance
    z of both points along the axis.

    In the plane, either end may be wound on a disc, a drum or a pulley that turns with its rope. With the
    straight piece l, the sense s = 1 in which a positive rotation winds the rope up (else -1), the angle of
    the disc's body and that of the touching point from a given direction, the term is
    ``l + s r (angle - touching)``, over many turns. Two ropes that are wound on one disc are one that runs
    over it without slipping.

    An inextensible rope may rub on spheres and cylinders of one body, its drums (Euler, Eytelwein). With
    the tensions T_1 before the first one and T_2 behind the last one, the sum phi of the angles by which
    the rope turns about them, and the rates l_1' and l_2' of both parts, measured from a mark on the body::

        u = (l_1' - l_2') / 2,   T = (T_1 + T_2) / 2,   T_1 - T_2 = sign(u) 2 tanh(mu phi / 2) T in sliding

    so that ``T_1 / T_2 = exp(mu phi)`` for positive u, and a ratio up to that where the rope sticks. It is
    Coulomb's law of the stop ``upper``, whose normal force is T, with the slip ``f u``, where ``f =
    (2 / mu) tanh(mu phi / 2)``: all schemes take it. ``traj.force_tangential`` has a force lambda, at most
    ``mu T``, and ``T_2 - T_1 = f lambda``. Impulses obey the same law.

    Args:
        name: of the tendon. Laws and sensors read its length as the coordinate of this name. An
            `actuator` may name it in place of a joint: a positive effort [N] lengthens the tendon.
        path: points in their order, each a body's name for its origin, or ``("rod", point)`` in body axes
            [m]. A number between them is a pulley: the branch before it ends, and the number is the divisor
            of the branch after it. A `sphere` or `cylinder` between two points is wound about on the
            shorter way; ``(shape, ("rod", point))`` past this point at its side, also where the straight
            line is free; ``(shape, "inside")`` from within, like a ring through which it runs;
            ``(shape, ("rod", point), 3)`` with three whole turns more than past the point. A sphere at
            an end of a branch, ``(sphere("drum", 0.1), (1.0, 0.0))``, is a disc on which the rope is wound,
            with the direction, in the axes of the ground, from its centre to where the rope leaves it.
        stiffness, damping: k [N/m], c [N s/m].
        length: free length [m]; or a pair of lengths between which the stiffness exerts no force: a rope,
            which cannot push, has ``(0.0, length)``. None: zero.
        limits: least and largest length [m], rigid stops like those of a hinge. None in the pair: no stop
            on that side. ``(None, 2.0)`` is an inextensible rope.
        restitution: coefficient of restitution of these stops, in [0, 1].
        friction: bound of dry friction along the length [N].
        capstan_friction: coefficient mu of the rope on its drums, between which there are only points of
            their body.

    Raises:
        InputError: for branches of fewer than two points, for shapes that are no sphere or cylinder or have
            no points beside them, for points at a side that lie within a shape, for pulleys that are not
            positive, for limits in the wrong order, and for capstan friction of a rope that stretches, has
            pulleys, or drums of several bodies; by `assemble`, for unknown bodies, points that coincide or
            lie within a disc on which the rope is wound, and for such discs in space.

    Limits: the tendon has no mass. A piece whose ends coincide has no direction, unless one body has both.
    Damping acts on slack tendons, too. A cylinder counts as endless; a rope winds less than one turn beside
    its whole turns, and runs straight while one of its points is within the shape. Its stiffness jumps
    where it lifts off, its pull does not. With whole turns it never lifts off, and its length jumps by one
    where the rest would fall below zero. The point beside a drum stays on its side of the line through the
    centre along the direction, and the touching point within half a turn from the direction. Capstan
    friction acts along the rope: a drum that slips across it meets none.

    Source: MuJoCo's documentation, chapter Computation, for branches, pulleys and the way about shapes;
    L. Euler: Remarques sur l'effet du frottement dans l'équilibre. Mémoires de l'académie des sciences de
    Berlin 18 (1769) 265-278.

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
    branches, ratios, winds = _read(name, path)
    at = tuple(number("tendon", name, "point", x[1], form=POINT) for branch in branches for x in branch)
    given = {
        "rest": length, "stiffness": stiffness, "damping": damping, "limits": limits,
        "restitution": restitution, "friction": friction, "capstan_friction": capstan_friction,
    }  # fmt: skip
    kept = line_numbers("tendon", name, at, tuple(ratios), given)
    bodies = tuple(x[0] for branch in branches for x in branch)
    ways, sides = _ways(name, winds)
    bodies += tuple(x.body for _, x, *_ in winds) + tuple(x for x, _ in sides)
    if capstan_friction is not None:
        _check_capstan(name, kept, ways, bodies)
    if winds:
        around, past = tuple(x.numbers for _, x, *_ in winds), tuple(at for _, at in sides)
        ends = (x.direction for _, _, x, _ in winds if isinstance(x, _End))
        leaving = tuple(number("tendon", name, "direction", x) for x in ends)
        kept = dataclasses.replace(kept, around=around, sides=past, directions=leaving)
    return made("tendon", name, bodies, kept, branches=tuple(map(len, branches)), winds=ways or None)


def _check_capstan(name: str, numbers: Tendon, ways: tuple[Turn, ...], bodies: tuple[str, ...]) -> None:
    """Refuses capstan friction unless the tensions are those of one inextensible rope over one body."""
    who = f"tendon {name!r}: capstan_friction = {numbers.capstan_friction}"
    rubs = [x for x in ways if x[2] in (winding.SHORT, winding.SIDE)]
    if len(ways) != len(rubs) or not rubs or len(numbers.ratios) != 1:
        raise InputError(
            f"{who} with {len(rubs)} drums of {len(ways)} shapes and {len(numbers.ratios)} branches; a "
            "rope with friction has one branch, spheres or cylinders between two points, and no other shape"
        )
    between = bodies[ways[0][0] + 1 : ways[-1][0] + 1]
    held = list(dict.fromkeys((*bodies[len(numbers.at) : len(numbers.at) + len(ways)], *between)))
    if len(held) > 1:
        raise InputError(
            f"{who} on drums, and through points between them, of {listed(held)}; all are on one body: "
            "divide the rope where it runs straight, by a light body at which two ropes end"
        )
    stretches = numbers.stiffness is not None or numbers.damping is not None
    if numbers.upper is None or stretches:
        what = "stiffness or damping" if stretches else "no largest length"
        raise InputError(
            f"{who} with {what}; the friction follows the tension of an inextensible rope: give "
            "limits=(None, length), and neither stiffness nor damping"
        )


class _End(NamedTuple):
    """An end of a rope that is wound on a disc: its way, and the direction in which the rope leaves it."""

    way: str
    direction: Any


def _read(name: str, path: tuple[Any, ...]) -> tuple[list[Any], list[Any], list[tuple[int, Any, Any, Any]]]:
    """Points of branches, their divisors, and of each shape: point before, itself, what is given, turns."""
    branches: list[list[tuple[str, Any]]] = [[]]
    ratios: list[Any] = [1.0]
    winds: list[tuple[int, Any, Any, Any]] = []
    for k, x in enumerate(path):
        if isinstance(x, list):
            raise InputError(f"tendon {name!r}: a list in its path; give its points one by one, *points")
        shape, side, turns = (*x, 0, 0)[:3] if isinstance(x, tuple) and len(x) in (2, 3) else (x, None, 0)
        if hasattr(shape, "numbers"):
            first, last = not branches[-1], sum(map(len, branches)) - 1
            ends = side is not None and not isinstance(side, str) and not isinstance(side[0], str)
            if ends:
                side = _End(winding.OFF if first else winding.ONTO, side)
                branches[-1].append((shape.body, shape.numbers.at))
            at = last + 1 if first else last
            if (first and not ends) or (winds and winds[-1][0] == at):
                raise _alone(name, shape)
            winds.append((at, shape, side, turns))
        elif isinstance(x, str | tuple):
            branches[-1].append(end_of("tendon", name, x))
        else:
            ratio = number("tendon", name, "pulley", x, form=POSITIVE)
            branches, ratios = (branches, [ratio]) if k == 0 else ([*branches, []], [*ratios, ratio])
    short = [len(x) for x in branches if len(x) < 2]
    if short:
        raise InputError(
            f"tendon {name!r}: a branch of {short[0]} points has no length; give two or more between its "
            "pulleys"
        )
    lasts = np.cumsum([len(x) for x in branches]) - 1
    for at, shape, side, _ in winds:
        inside = isinstance(side, _End) and side.way == winding.ONTO and at + 1 not in lasts
        if at in lasts or inside:
            raise _alone(name, shape)
    return branches, ratios, winds


def _alone(name: str, shape: Any) -> InputError:
    return InputError(
        f"tendon {name!r}: the {shape.kind} of {shape.body!r} has no points beside it; give each shape "
        "between two points of a branch, or a disc on which the rope is wound at one of its ends"
    )


Turn = tuple[int, str, str, int]
"""A shape on the path: number of the point before it, its kind, the way about it, and whole turns."""


def _ways(
    name: str, winds: list[tuple[int, Any, Any, Any]]
) -> tuple[tuple[Turn, ...], list[tuple[str, Any]]]:
    """Shapes on the path, and the points at their sides, of those that have one."""
    ways, sides = [], []
    for k, shape, side, turns in winds:
        who = f"tendon {name!r}: the {shape.kind} of {shape.body!r}"
        if shape.kind not in ("sphere", "cylinder") or shape.numbers.radius is None:
            raise InputError(f"{who} is no sphere or cylinder; a rope winds about these alone")
        if isinstance(side, _End):
            if shape.kind != "sphere" or np.shape(side.direction) != (2,):
                raise InputError(
                    f"{who} winds the rope up, leaving in the direction {side.direction!r}; give a sphere, "
                    "which is a disc in the plane, and two numbers"
                )
            ways.append((k, shape.kind, side.way, 0))
            continue
        way = winding.SHORT if side is None else winding.INSIDE
        if side is not None and side != winding.INSIDE:
            if not isinstance(side, tuple):
                raise InputError(f"{who} has the side {side!r}; give a point ('rod', point), or 'inside'")
            way, (body, at) = winding.SIDE, end_of("tendon", name, side)
            at = number("tendon", name, "side", at, form=POINT)
            if body == shape.body and _within(shape, at):
                raise InputError(f"{who} holds the point {side!r} at its side; give 'inside' for a ring")
            sides.append((body, at))
        if not isinstance(turns, int) or turns < 0 or (turns and way != winding.SIDE):
            raise InputError(
                f"{who} has {turns!r} whole turns; give an integer, with a point ('rod', point) at its side"
            )
        ways.append((k, shape.kind, way, turns))
    return tuple(ways), sides


def _within(shape: Any, at: Any) -> bool:
    """Whether a point of the same body is nearer to the centre of a shape than its radius."""
    x = shape.numbers
    if is_traced((at, x.at, x.radius)):
        return False
    return float(np.linalg.norm(_wide(at) - _wide(x.at))) < x.radius


def _wide(at: Any) -> np.ndarray:
    """A point as a vector (3,): a number is one on the x axis."""
    found = np.zeros(3)
    given = np.atleast_1d(0.0 if at is None else np.asarray(at, float))
    found[: given.size] = given
    return found


def _pieces(part: Part, numbers: Tendon) -> Iterator[tuple[int, Any, int | None]]:
    """Index of the first point of every piece, the divisor of its branch, and the shape or None."""
    turns = {k: n for n, (k, *_) in enumerate(part.option("winds") or ())}
    first = 0
    for count, ratio in zip(part.option("branches"), numbers.ratios, strict=True):
        for k in range(first, first + count - 1):
            yield k, ratio, turns.get(k)
        first += count


ENDS = (winding.ONTO, winding.OFF)


def _wound(scene: Scene, part: Part, numbers: Tendon, places: list[Any], n: int) -> Any:
    """The piece about the shape number ``n``, by the places of all points: a `Wound` or an `Unwound`."""
    ways = part.option("winds")
    k, kind, way, turns = ways[n]
    side = None
    if way == winding.SIDE:
        before = sum(x[2] == winding.SIDE for x in ways[:n])
        body = part.bodies[len(numbers.at) + len(ways) + before]
        side = scene.point(body, numbers.sides[before])
    elif way in ENDS:
        side = numbers.directions[sum(x[2] in ENDS for x in ways[:n])]
    drum = winding.Drum(kind, part.bodies[len(numbers.at) + n], numbers.around[n], way, side, turns)
    if way in ENDS:
        return winding.unwound(scene, drum, places[k if way == winding.ONTO else k + 1])
    return winding.wound(scene, drum, (places[k], places[k + 1]))


def _line(scene: Scene, topology: Any, part: Part, p: Any) -> Line:
    a, numbers = scene.algebra, p[part.name]
    ends = list(zip(part.bodies, numbers.at, strict=False))
    places = [scene.point(*x) for x in ends]
    motions = [scene.motion(body, scene.arm(body, at)) for body, at in ends]
    length, rate = None, None
    drums: list[tuple[int, Any]] = []  # pulls before each drum, and the angle about it
    pulls: list[tuple[str, Any, str, Any, Any]] = []
    rates = []
    for k, ratio, n in _pieces(part, numbers):
        here, there, share = part.bodies[k], part.bodies[k + 1], 1.0 / ratio
        if n is None:
            gone = a.subtract(places[k + 1], places[k])
            size = a.size(gone)
            along = a.scale(share / jnp.where(size > 0.0, size, 1.0), gone)
            length = plane.plus(length, share * size)
            if here == there:  # of constant length, or a point
                continue
            rates.append(a.dot(along, a.subtract(motions[k + 1], motions[k])))
            pulls.append((here, places[k], there, places[k + 1], along))
            continue
        bent, body = _wound(scene, part, numbers, places, n), part.bodies[len(numbers.at) + n]
        length = plane.plus(length, share * bent.length)
        if here == there == body:
            drums.append((len(pulls), bent.turned))
            continue
        centre = scene.frame(body).origin
        if isinstance(bent, winding.Unwound):
            j = k if part.option("winds")[n][2] == winding.ONTO else k + 1
            along, moved = a.scale(share, bent.along), scene.motion(body, a.subtract(bent.place, centre))
            rates.append(a.dot(along, a.subtract(moved, motions[j])))
            pulls.append((part.bodies[j], places[j], body, bent.place, along))
            continue
        on, off = (scene.motion(body, a.subtract(x, centre)) for x in (bent.on, bent.off))
        for one, place, moved, other, where, going, way in (
            (here, places[k], motions[k], body, bent.on, on, bent.leaving),
            (body, bent.off, off, there, places[k + 1], motions[k + 1], bent.arriving),
        ):
            along = a.scale(share, way)
            rates.append(a.dot(along, a.subtract(going, moved)))
            pulls.append((one, place, other, where, along))
        drums.append((len(pulls) - 1, bent.turned))
    for x in rates:
        rate = plane.plus(rate, x)

    def act(effort: Any, signs: tuple[float, ...] = (1.0,) * len(pulls)) -> Iterator[Push]:
        for sign, (one, place, other, where, along) in zip(signs, pulls, strict=True):
            push = a.scale(sign * effort, along)
            yield one, a.negative(push), place, None
            yield other, push, where, None

    mu = numbers.capstan_friction
    if mu is None or not drums:
        return Line(length, rate, act)
    first, last, angle = drums[0][0], drums[-1][0], sum(x for _, x in drums)
    signs = tuple(0.5 if k < first else -0.5 if k >= last else 0.0 for k in range(len(pulls)))
    x = 0.5 * mu * angle
    small = jnp.abs(x) < 1e-4  # the next term of the series of tanh(x) / x, 2 x^4 / 15, is below rounding
    safe = jnp.where(small, 1.0, x)
    factor = angle * jnp.where(small, 1.0 - x * x / 3.0, jnp.tanh(safe) / safe)
    slip = factor * sum(sign * plane.value(x) for sign, x in zip(signs, rates, strict=True))
    return Line(length, rate, act, slip, lambda force: act(factor * force, signs))


def _check(scene: Scene, part: Part, numbers: Tendon) -> None:
    places = [scene.position(*x) for x in zip(part.bodies, numbers.at, strict=False)]
    for k, _, n in _pieces(part, numbers):
        drum = part.bodies[k] if n is None else part.bodies[len(numbers.at) + n]
        if part.bodies[k] == part.bodies[k + 1] == drum:
            continue
        if not float(jnp.max(jnp.abs(places[k + 1] - places[k]))) > 0.0:
            raise InputError(
                f"tendon {part.name!r}: a piece between {part.bodies[k]!r} and {part.bodies[k + 1]!r} has "
                "length zero at the start, so that its pull has no direction; move its points apart"
            )
    for n, (k, kind, way, _) in enumerate(part.option("winds") or ()):
        body = part.bodies[len(numbers.at) + n]
        if way in ENDS and scene.dimension == 3:
            raise InputError(
                f"tendon {part.name!r}: its end is wound on a disc of {body!r}, which works in the plane "
                "alone; in space, wind the rope about a cylinder of the body with capstan_friction, or let "
                "its length follow a hinge: gear(name, rope, hinge, ratio=r, offset=length)"
            )
        off = float(jnp.linalg.norm(places[k + 1] - places[k]))  # of a disc, the centre is a point
        if way in ENDS and not off > numbers.around[n].radius:
            raise InputError(
                f"tendon {part.name!r}: a point lies within the disc of {body!r} on which its end is wound"
            )
        if kind == "cylinder" and scene.dimension == 2:
            raise InputError(
                f"tendon {part.name!r}: a cylinder behind {part.bodies[k]!r} lies in the plane; give a "
                "sphere, which is a disc there"
            )


def _shapes(scene: Scene, part: Part, numbers: Tendon) -> list[shapes.Shape]:
    found, first, a = list[shapes.Shape](), 0, scene.algebra
    places = [scene.position(*x) for x in zip(part.bodies, numbers.at, strict=False)]
    vectors = [a.vector(x) for x in places]
    turns = {k: n for k, _, n in _pieces(part, numbers) if n is not None}
    for count in part.option("branches"):
        rows = []
        for k in range(first, first + count):
            rows.append(places[k][None])
            if k in turns:
                bent = _wound(scene, part, numbers, vectors, turns[k])
                rows.append(a.array(bent.place)[None] if isinstance(bent, winding.Unwound) else bent.arc())
        found.append(shapes.Shape(points=jnp.concatenate(rows), name=part.name, role="spring"))
        ends = ((first, first + 1), (first + count - 1, first + count - 2))
        walls = [(part.bodies[k], places[k], places[other] - places[k]) for k, other in ends]
        found += symbols.walls_at(walls, part.name)
        first += count
    drawn: dict[str, Any] = {"sphere": symbols.of_sphere, "cylinder": symbols.of_cylinder}
    for n, (_, kind, way, _) in enumerate(part.option("winds") or ()):
        body = part.bodies[len(numbers.at) + n]
        if way != winding.INSIDE:
            name = part.name if body == GROUND else body
            found += drawn[kind](scene, name, body, numbers.around[n])
    return found


TENDON = LoadKind(
    name="tendon", effort=line_effort, energy=line_energy, line=_line, check=_check, held=True,
    shapes=_shapes,
)  # fmt: skip
