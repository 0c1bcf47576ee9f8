"""Bodies, joints and contacts: functions that return frozen parts. `nsjax.multibody.assemble` puts them
together; a sub-mechanism is a list of parts.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import jax.numpy as jnp
import numpy as np

from nsjax.core import InputError
from nsjax.core.changes import as_number
from nsjax.core.checks import is_traced
from nsjax.math import rotations
from nsjax.multibody import numbers
from nsjax.types import Fn, PyTree

GROUND = "ground"
"""The body that does not move."""

UNIT_TOLERANCE = 1e-6
"""An axis may miss unit length by this much: six printed digits."""


@dataclasses.dataclass(frozen=True)
class Part:
    """A part of a mechanism.

    Args:
        kind: what it is, the name of the function that made it.
        name: unique in a mechanism; its numbers are ``problem.params[name]``.
        bodies: whom it concerns, in order.
        numbers: a record of `nsjax.multibody.numbers`; None in a topology.
        options: choices and functions.

    Example:
        >>> from nsjax.multibody import body
        >>> (part := body("rod", mass=0.038)).kind, part.name, part.numbers.mass
        ('body', 'rod', 0.038)
    """

    kind: str
    name: str
    bodies: tuple[str, ...] = ()
    numbers: PyTree = dataclasses.field(default=None, compare=False)
    options: tuple[tuple[str, Any], ...] = ()

    def __repr__(self) -> str:
        inner = [repr(self.name), *(repr(x) for x in self.bodies)]
        if dataclasses.is_dataclass(self.numbers):
            fields = dataclasses.fields(self.numbers)
            given = {f.name: getattr(self.numbers, f.name) for f in fields}
            inner += [f"{k}={v}" for k, v in given.items() if v is not None]
        return f"{self.kind}({', '.join(inner)})"

    def option(self, name: str) -> Any:
        """A choice, or None."""
        return dict(self.options).get(name)


def made(kind: str, name: str, bodies: tuple[str, ...], given: Any, **options: Any) -> Part:
    """A part whose name and bodies are checked."""
    if not isinstance(name, str) or not name.isidentifier() or name == GROUND:
        raise InputError(f"{kind}: name = {name!r}; give a word of letters, digits and _, not 'ground'")
    for body_name in bodies:
        if not isinstance(body_name, str):
            raise InputError(
                f"{kind} {name!r}: {body_name!r} is no name of a body; give 'ground' or a name"
            )
    chosen = tuple((k, v) for k, v in options.items() if v is not None and v is not False)
    return Part(kind, name, bodies, given, chosen)


def number(kind: str, name: str, what: str, value: Any, least: float = -math.inf) -> Any:
    """A number or array as params hold it.

    Raises:
        InputError: for what is not finite, or below ``least``.
    """
    if value is None:
        return None
    value = as_number(value)
    if isinstance(value, bool | str) or not (hasattr(value, "dtype") or isinstance(value, int | float)):
        raise InputError(f"{kind} {name!r}: {what} = {value!r}; give a number or an array of numbers")
    if not is_traced(value):
        plain = np.asarray(value, float)
        if not np.all(np.isfinite(plain)):
            raise InputError(f"{kind} {name!r}: {what} = {plain.tolist()}; it must be finite")
        if not np.all(plain >= least):
            raise InputError(f"{kind} {name!r}: {what} = {plain.tolist()}; it must be at least {least:g}")
        return float(plain) if plain.ndim == 0 else plain
    return value


def unit(kind: str, name: str, what: str, value: Any) -> Any:
    """A unit vector.

    Raises:
        InputError: if it is none.
    """
    value = number(kind, name, what, value)
    if value is None or is_traced(value):
        return value
    length = float(np.linalg.norm(value))
    if np.ndim(value) != 1 or abs(length - 1.0) > UNIT_TOLERANCE:
        remedy = f"; {(value / length).tolist()} is" if np.ndim(value) == 1 and length > 0 else ""
        raise InputError(
            f"{kind} {name!r}: {what} = {np.asarray(value).tolist()} is no unit vector{remedy}"
        )
    return value / length


def body(name: str, *, mass: Any, inertia: Any = None, com: Any = None) -> Part:
    """A rigid body.

    Args:
        name: of letters, digits and _.
        mass: [kg].
        inertia: about the centre of mass [kg m^2]: in the plane a number; in space (3,) about body axes, or
            a symmetric matrix (3, 3). None: a point mass.
        com: centre of mass in body axes [m]: a number on their x axis, or a vector. None: their origin.

    Raises:
        InputError: for a name that is none, a mass that is not positive, moments of inertia that no body
            has.

    Example:
        >>> from nsjax.multibody import body
        >>> body("rod", mass=0.038, inertia=5.9e-4, com=0.153)
        body('rod', mass=0.038, inertia=0.00059, com=0.153)
    """
    mass = number("body", name, "mass", mass, 0.0)
    inertia = number("body", name, "inertia", inertia)
    if inertia is not None and not is_traced(inertia):
        _check_inertia(name, np.asarray(inertia, float))
    com = number("body", name, "com", com)
    return made("body", name, (), numbers.Body(mass=mass, inertia=inertia, com=com))


def _check_inertia(name: str, inertia: np.ndarray) -> None:
    if inertia.shape not in ((), (3,), (3, 3)):
        raise InputError(f"body {name!r}: inertia has shape {inertia.shape}; give (), (3,) or (3, 3)")
    if inertia.ndim == 2 and np.max(np.abs(inertia - inertia.T)) > 1e-9 * np.max(np.abs(inertia)):
        raise InputError(f"body {name!r}: inertia is not symmetric")
    moments = np.linalg.eigvalsh(inertia) if inertia.ndim == 2 else np.sort(inertia.reshape(-1))
    if moments[0] < 0.0:
        raise InputError(f"body {name!r}: inertia = {inertia.tolist()}; it must not be negative")
    # a plate fulfils it with equality: rounding of printed digits passes
    if moments.size == 3 and moments[2] > (moments[0] + moments[1]) * (1.0 + UNIT_TOLERANCE):
        raise InputError(
            f"body {name!r}: moments of inertia {moments.tolist()} violate the triangle inequality; no "
            "body has a moment larger than the sum of the two others"
        )


def _joint(
    kind: str, name: str, first: str, second: str, motion: Fn | None, loop: bool, **given: Any
) -> Part:
    limits, turns = given.pop("limits", None), given.pop("turns", False)
    if limits is not None:
        given["lower"], given["upper"] = limits
        if not is_traced(limits) and not given["lower"] < given["upper"]:
            raise InputError(f"{kind} {name!r}: limits = {limits}; the lower must be below the upper")
        given.setdefault("restitution", 0.0)
    else:
        given.pop("restitution", None)
    for what in ("axis", "second_axis"):
        if given.get(what) is not None and np.ndim(given[what]) > 0:
            given[what] = unit(kind, name, what, given[what])
    least = {"friction": 0.0, "armature": 0.0, "length": 0.0, "restitution": 0.0}
    kept = {k: number(kind, name, k, v, least.get(k, -math.inf)) for k, v in given.items()}
    if first == second:
        raise InputError(f"{kind} {name!r}: joins {first!r} to itself; name two bodies")
    return made(kind, name, (first, second), numbers.Joint(**kept), motion=motion, loop=loop, turns=turns)


def hinge(
    name: str, first: str, second: str, *, at: Any = None, on: Any = None, axis: Any = None,
    turned: Any = None, limits: Any = None, restitution: Any = 0.0, friction: Any = None,
    armature: Any = None, motion: Fn | None = None, loop: bool = False, turns: bool = False,
) -> Part:  # fmt: skip
    """A hinge: one rotation of the second body against the first.

    Args:
        name, first, second: of the joint and of its bodies, ``"ground"`` among them.
        at, on: joint point in the axes of the first and of the second body [m]; a number lies on the
            x axis, None is the origin.
        axis: unit vector in the axes of the first body; None in the plane.
        turned: in space, rotation vector (3,) of the second body's axes against the first's where the angle
            is zero.
        limits, restitution: lower and upper of the angle [rad], and with what it rebounds there.
        friction: bound of its dry friction [N m].
        armature: inertia driven with the angle [kg m^2].
        motion: prescribed angle ``(t) -> [rad]``; the joint exerts the moment that it takes.
        loop: this joint closes a loop; where several may, one is found unless it is named so.
        turns: count its turns, see Limits.

    Raises:
        InputError: for limits in the wrong order, an axis that is no unit vector, a body joined to itself.

    Limits: spatial hinges that are constraints have angles between -pi and pi, but those in absolute
    coordinates with ``turns``, or whose angle springs, limits or laws read: less than half a turn a step.

    Example:
        >>> from nsjax.multibody import hinge
        >>> hinge("pin", "crank", "rod", at=0.153)
        hinge('pin', 'crank', 'rod', at=0.153)
    """
    return _joint(
        "hinge", name, first, second, motion, loop, at=at, on=on, axis=axis, turned=turned, limits=limits,
        restitution=restitution, friction=friction, armature=armature, turns=turns,
    )  # fmt: skip


def pin(name: str, first: str, second: str, **given: Any) -> Part:
    """A `hinge`, as it is called in the plane.

    Args:
        name, first, second: as of `hinge`.
        given: all other arguments of `hinge`.

    Example:
        >>> from nsjax.multibody import pin
        >>> pin("bearing", "ground", "crank", on=-0.1).kind
        'hinge'
    """
    return hinge(name, first, second, **given)


def slide(
    name: str, first: str, second: str, *, at: Any = None, on: Any = None, axis: Any = None,
    turned: Any = None, limits: Any = None, restitution: Any = 0.0, friction: Any = None,
    armature: Any = None, motion: Fn | None = None, loop: bool = False,
) -> Part:  # fmt: skip
    """A slide: the second body moves along an axis of the first without turning.

    Args:
        name, first, second, at, on, loop: as of `hinge`.
        axis: unit vector in the axes of the first body; None: its x axis.
        turned: of the second body's axes against the first's: an angle [rad], in space a vector (3,).
        limits, restitution: lower and upper of the displacement [m], and with what it rebounds there.
        friction: bound of its dry friction [N].
        armature: mass driven with the displacement [kg].
        motion: prescribed displacement ``(t) -> [m]``; the joint exerts the force that it takes.

    Raises:
        InputError: as `hinge`.

    Example:
        >>> from nsjax.multibody import slide
        >>> slide("guide", "ground", "piston", limits=(0.0, 0.3)).numbers.upper
        0.3
    """
    return _joint(
        "slide", name, first, second, motion, loop, at=at, on=on, axis=axis, turned=turned, limits=limits,
        restitution=restitution, friction=friction, armature=armature,
    )  # fmt: skip


def ball(name: str, first: str, second: str, *, at: Any = None, on: Any = None, loop: bool = False) -> Part:
    """A ball joint: the second body turns freely about a point of the first. In space.

    Args:
        name, first, second, at, on, loop: as of `hinge`.

    Raises:
        InputError: for a body that is joined to itself.

    Example:
        >>> from nsjax.multibody import ball
        >>> ball("shoulder", "ground", "upper", at=(0.0, 0.0, 0.8)).bodies
        ('ground', 'upper')
    """
    return _joint("ball", name, first, second, None, loop, at=at, on=on)


def universal(
    name: str, first: str, second: str, *, axis: Any, second_axis: Any, at: Any = None, on: Any = None,
    turned: Any = None, loop: bool = False,
) -> Part:  # fmt: skip
    """A universal (Hooke) joint: ``axis`` of the first body stays across ``second_axis`` of the second.

    Args:
        name, first, second, at, on, turned, loop: as of `hinge`.
        axis, second_axis: unit vectors in the axes of the first and of the second body; with
            ``turned`` they stand across each other.

    Raises:
        InputError: if they do not.

    Example:
        >>> from nsjax.multibody import universal
        >>> universal("cross", "ground", "shaft", axis=(0, 1, 0), second_axis=(0, 0, 1)).kind
        'universal'
    """
    if not is_traced((axis, second_axis, turned)):
        by = jnp.zeros(3) if turned is None else jnp.asarray(turned, float)
        frame = rotations.matrix(rotations.exponential(by))
        lean = float(np.asarray(axis, float) @ np.asarray(frame) @ np.asarray(second_axis, float))
        if abs(lean) > UNIT_TOLERANCE:
            raise InputError(
                f"universal {name!r}: axis and second_axis meet at {np.degrees(np.arccos(lean)):.6g} "
                "degrees; they must stand across each other where the coordinates are zero: change an "
                "axis, or give turned"
            )
    return _joint(
        "universal", name, first, second, None, loop, at=at, on=on, axis=axis, second_axis=second_axis,
        turned=turned,
    )  # fmt: skip


def cylindrical(
    name: str, first: str, second: str, *, axis: Any, at: Any = None, on: Any = None, turned: Any = None,
    loop: bool = False,
) -> Part:  # fmt: skip
    """The second body moves along an axis of the first and turns about it. In space.

    Args:
        name, first, second, at, on, turned, loop: as of `hinge`.
        axis: unit vector (3,) in the axes of the first body.

    Raises:
        InputError: for an axis that is no unit vector.

    Example:
        >>> from nsjax.multibody import cylindrical
        >>> cylindrical("sleeve", "ground", "slider", axis=(1.0, 0.0, 0.0)).kind
        'cylindrical'
    """
    return _joint("cylindrical", name, first, second, None, loop, at=at, on=on, axis=axis, turned=turned)


def fixed(
    name: str, first: str, second: str, *, at: Any = None, on: Any = None, turned: Any = None,
    path: Fn | None = None, loop: bool = False,
) -> Part:  # fmt: skip
    """The second body does not move against the first, or as prescribed.

    Args:
        name, first, second, at, on, turned, loop: as of `hinge`.
        path: prescribed motion ``(t) -> (displacement, turn)`` of the second body in the axes of the first:
            (3,) [m] of its point, and the rotation vector (3,) by which it is turned; in the plane (2,) and
            an angle. The joint exerts what it takes.

    Example:
        >>> from nsjax.multibody import fixed
        >>> shaken = fixed("clamp", "ground", "arm", path=lambda t: ((0.0, 0.01 * t, 0.0), (0.0, 0.0, t)))
    """
    loop = loop or path is not None  # constraints take it, whatever the coordinates
    part = _joint("fixed", name, first, second, None, loop, at=at, on=on, turned=turned)
    return part if path is None else dataclasses.replace(part, options=(*part.options, ("path", path)))


def distance(name: str, first: str, second: str, *, length: Any, at: Any = None, on: Any = None) -> Part:
    """A massless rod: the distance of a point of the first body and one of the second is ``length`` [m].

    Args:
        name, first, second, at, on: as of `hinge`.
        length: above zero.

    Raises:
        InputError: for a length that is not.

    Example:
        >>> from nsjax.multibody import distance
        >>> distance("link", "crank", "rocker", at=0.1, on=0.2, length=0.4).numbers.length
        0.4
    """
    if not is_traced(length) and not np.all(np.asarray(length, float) > 0.0):
        raise InputError(
            f"distance {name!r}: length = {length!r}; it must be positive, or use a pin or ball"
        )
    return _joint("distance", name, first, second, None, True, at=at, on=on, length=length)


def revolute_spherical(
    name: str, first: str, second: str, *, length: Any, axis: Any, at: Any = None, on: Any = None
) -> Part:
    """A massless link with a hinge at the first body and a ball at the second: the vector between the
    points has a ``length`` [m] and stays across ``axis`` of the first body. In space.

    Args:
        name, first, second, at, on: as of `hinge`.
        length, axis: of the link [m]; of the hinge, a unit vector (3,) in the axes of the first body.

    Raises:
        InputError: for an axis that is no unit vector.

    Example:
        >>> from nsjax.multibody import revolute_spherical
        >>> revolute_spherical("link", "crank", "arm", length=0.4, axis=(0.0, 0.0, 1.0)).numbers.length
        0.4
    """
    return _joint(
        "revolute_spherical", name, first, second, None, True, at=at, on=on, length=length, axis=axis
    )
