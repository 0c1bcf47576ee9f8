"""Springs, dampers, actuators and loads: functions that return parts."""

from __future__ import annotations

from typing import Any

from nsjax.core import InputError
from nsjax.multibody import numbers
from nsjax.multibody.parts import GROUND, Part, made, number
from nsjax.types import Fn

End = Any
"""A body's name for its origin, or a pair of name and point in body axes [m]."""


def _end(kind: str, name: str, end: End) -> tuple[str, Any]:
    if isinstance(end, str):
        return end, None
    if isinstance(end, tuple) and len(end) == 2 and isinstance(end[0], str):
        return end
    raise InputError(f"{kind} {name!r}: end {end!r}; give a body's name, or a pair ('rod', 0.3)")


def _law(kind: str, name: str, law: Fn | None, own: Any, given: dict[str, Any]) -> dict[str, Any]:
    kept = {k: number(kind, name, k, v) for k, v in given.items()}
    if law is not None and not callable(law):
        raise InputError(f"{kind} {name!r}: law = {law!r}; it must be a function of extension and rate")
    if law is not None and any(kept[k] is not None for k in kept if k not in ("at", "on", "rest")):
        raise InputError(f"{kind} {name!r}: a law of your own beside stiffness or damping; put all into it")
    return kept | {"own": own}


def spring(
    name: str, first: End, second: End, *, stiffness: Any = None, damping: Any = None, length: Any = None,
    quadratic: Any = None, cubic: Any = None, quadratic_damping: Any = None, law: Fn | None = None,
    potential: Fn | None = None, own: Any = None,
) -> Part:  # fmt: skip
    """A spring and damper along the line between two points.

    Tension ``k e + k2 |e| e + k3 e^3 + c e' + c2 |e'| e'`` with the extension ``e = |d| - length``.

    Args:
        first, second: its ends: a body's name (its origin), or ``("rod", point)`` with the point in body
            axes [m].
        stiffness, quadratic, cubic: k [N/m], k2 [N/m^2], k3 [N/m^3].
        damping, quadratic_damping: c [N s/m], c2 [N s^2/m^2].
        length: free length [m]; None: zero, a spring that pulls its ends together and has no direction to
            lose.
        law: ``(e, rate, own) -> tension [N]``, in place of all of these.
        potential: ``(e, own) -> [J]`` of the conservative part of ``law``, for energies.
        own: numbers for ``law``, any pytree.

    Limits: with a free length or damping the force has no direction where the ends coincide: a start there
    is refused.

    Example:
        >>> from nsjax.multibody import spring
        >>> spring("leg", "ground", ("rod", 0.3), stiffness=100.0, length=0.2)
        spring('leg', 'ground', 'rod', on=0.3, rest=0.2, stiffness=100.0)
    """
    (one, at), (other, on) = _end("spring", name, first), _end("spring", name, second)
    given = {
        "at": at, "on": on, "rest": length, "stiffness": stiffness, "quadratic": quadratic,
        "cubic": cubic, "damping": damping, "quadratic_damping": quadratic_damping,
    }  # fmt: skip
    kept = numbers.Spring(**_law("spring", name, law, own, given))
    return made("spring", name, (one, other), kept, law=law, potential=potential)


def joint_spring(
    name: str, joint: str, *, stiffness: Any = None, damping: Any = None, rest: Any = None,
    quadratic: Any = None, cubic: Any = None, quadratic_damping: Any = None, law: Fn | None = None,
    potential: Fn | None = None, own: Any = None,
) -> Part:  # fmt: skip
    """A spring and damper on the coordinate of a hinge or slide: torsion over any number of turns.

    Moment or force on the second body ``-(k e + k2 |e| e + k3 e^3 + c e' + c2 |e'| e')`` with
    ``e = coordinate - rest``.

    On a ball joint ``stiffness``, ``damping`` and ``rest`` alone: ``-(k phi + c omega)`` with the angular
    velocity of the second body against the first and the rotation vector ``phi`` to it from its rest: where
    it is turned by the rotation vector ``rest`` (3,) against the first.

    Args:
        name, joint: of the spring and of its joint.
        rest: coordinate without moment or force [rad] or [m].
        stiffness, damping, quadratic, cubic, quadratic_damping: k, c, k2, k3, c2 as of `spring`; in
            [N m/rad] and so on for a hinge.
        law, potential, own: as of `spring`.

    Raises:
        InputError: as `spring`.

    Limits: ``phi`` of a ball joint jumps at half a turn, where the spring has no direction.

    Example:
        >>> from nsjax.multibody import joint_spring
        >>> joint_spring("torsion", "bearing", stiffness=2.0, damping=0.05)
        joint_spring('torsion', stiffness=2.0, damping=0.05)
    """
    given = {
        "rest": rest, "stiffness": stiffness, "quadratic": quadratic, "cubic": cubic, "damping": damping,
        "quadratic_damping": quadratic_damping,
    }  # fmt: skip
    kept = numbers.Spring(**_law("joint_spring", name, law, own, given))
    return made("joint_spring", name, (), kept, law=law, potential=potential, joint=joint)


def actuator(name: str, joint: str, effort: Any = None, *, law: Fn | None = None, own: Any = None) -> Part:
    """A motor in a hinge [N m] or slide [N]: drives the second body and pushes back on the first.

    Args:
        name, joint: of the motor and of its joint.
        effort: constant.
        law: ``(t, coordinate, rate, own) -> effort``, a controller for instance.
        own: numbers for ``law``.

    Raises:
        InputError: for effort and law at once, and for neither.

    Example:
        >>> from nsjax.multibody import actuator
        >>> actuator("motor", "bearing", law=lambda t, angle, rate, own: own * (9.0 - rate), own=1e-3).kind
        'actuator'
    """
    if (effort is None) == (law is None):
        raise InputError(f"actuator {name!r}: give effort or law, one of them")
    kept = numbers.Load(value=number("actuator", name, "effort", effort), own=own)
    return made("actuator", name, (), kept, law=law, joint=joint)


def force(
    name: str, body: End, value: Any = None, *, follower: bool = False, law: Fn | None = None,
    own: Any = None,
) -> Part:  # fmt: skip
    """A force on a body.

    Args:
        name: of the force.
        body: a name (its origin) or ``("rod", point)`` in body axes.
        value: constant (2,) or (3,) [N], in the axes of the ground.
        follower: in the axes of the body, with which it turns.
        law: ``(t, scene, own) -> (2,) or (3,)``; ``scene`` is a `nsjax.multibody.frames.Scene`:
            positions and velocities of all bodies by name.
        own: numbers for ``law``.

    Raises:
        InputError: for value and law at once, for neither, and for a force on the ground.

    Example:
        >>> from nsjax.multibody import force
        >>> force("push", ("rod", 0.3), (0.0, -5.0)).bodies
        ('rod',)
    """
    return _load("force", name, _end("force", name, body), value, follower, law, own)


def torque(
    name: str, body: str, value: Any = None, *, follower: bool = False, law: Fn | None = None,
    own: Any = None,
) -> Part:  # fmt: skip
    """A moment on a body [N m].

    Args:
        name: of the moment.
        body: a name.
        value: a number in the plane, (3,) in space, in the axes of the ground.
        follower, law, own: as of `force`.

    Raises:
        InputError: as `force`.

    Example:
        >>> from nsjax.multibody import torque
        >>> torque("drive", "crank", 0.1)
        torque('drive', 'crank', value=0.1)
    """
    return _load("torque", name, (body, None), value, follower, law, own)


def _load(
    kind: str, name: str, end: tuple[str, Any], value: Any, follower: bool, law: Fn | None, own: Any
) -> Part:
    if (value is None) == (law is None):
        raise InputError(f"{kind} {name!r}: give a value or a law, one of them")
    if end[0] == GROUND:
        raise InputError(f"{kind} {name!r}: acts on the ground, which does not move; name a body")
    kept = numbers.Load(
        value=number(kind, name, "value", value), at=number(kind, name, "at", end[1]), own=own
    )
    return made(kind, name, (end[0],), kept, follower=follower, law=law)
