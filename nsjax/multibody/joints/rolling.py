"""Wheels and balls that roll on a plane without slip."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from nsjax.multibody.coordinates import planar_vectors as plane
from nsjax.multibody.coordinates import spatial_vectors as space
from nsjax.multibody.coordinates.frames import Scene
from nsjax.multibody.joints.joint_kind import JointKind, joint
from nsjax.multibody.parts import POSITIVE, Part, number
from nsjax.types import Array, record


@record()
class Wheel:
    """Radius of a wheel or ball [m]."""

    radius: Array | float


def rolling(
    name: str, first: str, second: str, *, radius: Any, axis: Any = None, normal: Any = None,
    at: Any = None, on: Any = None, contact: bool = True,
) -> Part:  # fmt: skip
    """A thin wheel or a ball of the second body that rolls on a plane of the first body without slip.

    With the centre ``c``, the unit normal ``n`` through the point ``o`` of the plane, the axis ``a`` and
    the point of contact ``P``::

        ball:  P = c - r n                          g = n . (c - o) - r
        wheel: P = c - r (n - (n . a) a) / s        g = n . (c - o) - r s,    s = |n - (n . a) a|
        g = 0                                       the contact, a constraint of the position
        t . (v_second(P) - v_first(P)) = 0          no slip along the tangents t of the plane

    The slip rows are nonholonomic constraints, of velocities alone. The tangents of a wheel are its rolling
    direction ``a x n / s`` and the sideways direction ``n x (a x n) / s``; those of a ball are the two
    tangents of the plane.

    Args:
        name: of the joint; its numbers are ``params[name].own.radius``, ``axis`` (the normal), ``at`` and
            so on. Its rows are ``name.contact``, ``name.forward`` and, in space, ``name.sideways``.
        first: the body that carries the plane, ``"ground"`` for instance.
        second: the body that rolls.
        radius: of the wheel or ball [m], above zero.
        axis: of a wheel, a unit vector (3,) in the axes of the second body; None: a ball, and always in the
            plane.
        normal: unit normal of the plane in the axes of the first body; None: y in the plane, z in space.
        at: a point of the plane in the axes of the first body [m].
        on: centre of the wheel or ball in the axes of the second body [m].
        contact: False leaves out the row of the contact, for a wheel whose height another constraint keeps;
            the joint then exerts no normal force.

    Raises:
        InputError: for a radius that is not positive, vectors that are no unit vectors, and one body named
            twice; by `assemble`, for starts off the plane.

    Limits: the rows exert any force that they need, upward, downward and sideways: check the forces
    (``traj.joint(name)``), which contacts with friction would bound. A wheel that lies flat (``a`` along
    ``n``) has no single point of contact. Rows that follow from others, like the second sideways row of two
    wheels on an axle, are left out with a warning. Equilibria and linear motions are refused. The nsga
    schemes accept this joint only with ``smooth="constrained"`` and ``"full"``.

    Source: kinematics of a thin disc on a plane as in any book on analytical mechanics; tested against
    Euler's disc in steady precession.

    Example:
        >>> import nsjax
        >>> from nsjax import schemes
        >>> from nsjax.multibody import assemble, body, rolling
        >>> problem = assemble(
        ...     body("ball", mass=1.0, inertia=(0.4, 0.4, 0.4)),
        ...     rolling("roll", "ground", "ball", radius=1.0),
        ...     start={"ball": ((0.0, 0.0, 1.0), None)}, gravity=(3.0, 0.0, -9.0),
        ... )
        >>> traj = nsjax.simulate(problem, schemes.generalized_alpha(), dt=1e-2, steps=100)
        >>> round(float(traj.body("ball").velocity[-1, 0]), 6)  # 5/7 of 3 m/s^2
        2.142857
    """
    own = Wheel(radius=number("rolling", name, "radius", radius, form=POSITIVE))
    kind = ROLLING if contact else ALONE
    part = joint(
        kind.name, name, first, second, None, True, own=own, axis=normal, second_axis=axis, at=at, on=on
    )
    return dataclasses.replace(part, options=(*part.options, ("alike", (axis is None, normal is None))))


def _normal(scene: Scene, part: Part, numbers: Any) -> Any:
    """Unit normal of the plane in the axes of the ground."""
    up = (0.0, 1.0) if scene.dimension == 2 else (0.0, 0.0, 1.0)
    given = np.asarray(up) if numbers.axis is None else numbers.axis
    return scene.algebra.turned(scene.frame(part.bodies[0]).turn, scene.algebra.vector(given))


def _arm(scene: Scene, part: Part, numbers: Any) -> tuple[Any, Any, tuple[Any, ...]]:
    """Vector from the centre to the point of contact, ``s``, and the tangents."""
    a, normal, radius = scene.algebra, _normal(scene, part, numbers), numbers.own.radius
    if scene.dimension == 2:
        return a.scale(-radius, normal), 1.0, plane.tangents(normal)
    if numbers.second_axis is None:
        return a.scale(-radius, normal), 1.0, space.tangents(normal)
    axis = space.turned(scene.frame(part.bodies[1]).turn, numbers.second_axis)
    up = space.subtract(normal, space.dot(normal, axis) * axis)
    size = space.size(up)
    forward = space.cross(axis, normal) / size
    return (-radius / size) * up, size, (forward, space.cross(normal, forward))


def _height(scene: Scene, part: Part, numbers: Any) -> list[Any]:
    (first, second), a = part.bodies, scene.algebra
    _, size, _ = _arm(scene, part, numbers)
    gone = a.subtract(scene.point(second, numbers.on), scene.point(first, numbers.at))
    return [plane.plus(a.dot(_normal(scene, part, numbers), gone), -numbers.own.radius * size)]


def _slips(scene: Scene, part: Part, numbers: Any) -> list[Any]:
    (first, second), a = part.bodies, scene.algebra
    arm, _, tangents = _arm(scene, part, numbers)
    place = a.add(scene.point(second, numbers.on), arm)
    one, other = (scene.motion(x, a.subtract(place, scene.frame(x).origin)) for x in (first, second))
    return [a.dot(tangent, a.subtract(other, one)) for tangent in tangents]


_RATES = {2: ("forward",), 3: ("forward", "sideways")}

ROLLING = JointKind(
    name="rolling", rows={2: ("contact",), 3: ("contact",)}, residuals=_height, framed=False,
    rate_rows=_RATES, rates=_slips, drawn="wheel",
)  # fmt: skip

ALONE = JointKind(
    name="rolling_without_contact", rows={2: (), 3: ()}, residuals=lambda scene, part, numbers: [],
    framed=False, rate_rows=_RATES, rates=_slips, drawn="wheel",
)  # fmt: skip
"""Rolling without slip, with a free distance from the plane."""
