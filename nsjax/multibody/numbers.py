"""Records of the numbers of parts, which `Problem.params` holds under the names of the parts.

A number that is not given is None: it counts as zero, costs no operation and cannot be varied. Give 0.0 for
a number that is varied from zero. Numbers that a record lists in ``not_negative`` are refused below zero,
also after `Problem.replace` and in a sweep; for those in ``one_number`` `Problem.replace` takes no array.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from nsjax.types import Array, record

Number = Array | float


def side_by_side(records: list[Any], axis: int = 0) -> Any:
    """One record with the numbers of equal records, stacked along an axis."""
    return jax.tree.map(lambda *x: jnp.stack([jnp.asarray(y, float) for y in x], axis=axis), *records)


@record()
class Body:
    """Mass [kg], inertia about the centre of mass [kg m^2], centre of mass in body axes [m], inertia that
    each coordinate of a free body drives [kg] and [kg m^2], and numbers of the shapes that pictures show.
    """

    not_negative = ("mass", "inertia", "armature")
    moments = ("inertia",)
    one_number = ("mass", "armature")

    mass: Number
    inertia: Number | None = None
    com: Number | None = None
    armature: Number | None = None
    shape: Any = None


@record()
class Joint:
    """Geometry of a joint, its limits, dry friction and armature.

    Args:
        at, on: joint point in the axes of the first and of the second body [m].
        axis, second_axis: unit vectors, see the joint.
        turned: rotation of the axes of the second body relative to the first at coordinate zero: an angle
            [rad], or a rotation vector (3,).
        length: distance that the joint keeps [m].
        lower, upper: limits of the coordinate [rad] or [m].
        restitution: of the limits.
        friction: bound of dry friction [N m] or [N].
        armature: inertia that the coordinate drives [kg m^2] or [kg].
        own: numbers of this kind of joint alone, a record.
    """

    not_negative = ("length", "friction", "armature")
    one_number = ("length", "lower", "upper", "restitution", "friction", "armature")

    at: Number | None = None
    on: Number | None = None
    axis: Array | None = None
    second_axis: Array | None = None
    turned: Number | None = None
    length: Number | None = None
    lower: Number | None = None
    upper: Number | None = None
    restitution: Number | None = None
    friction: Number | None = None
    armature: Number | None = None
    own: Any = None


@record()
class Spring:
    """Ends and coefficients of a spring with the tension ``k e + k2 |e| e + k3 e^3 + c e' + c2 |e'| e'``
    for the extension ``e``.

    Args:
        at, on: ends in the axes of the first and of the second body [m].
        rest: free length [m] or angle [rad].
        stiffness, quadratic, cubic: k, k2, k3.
        damping, quadratic_damping: c, c2.
        own: numbers of a user's law.
    """

    one_number = ("rest", "stiffness", "quadratic", "cubic", "damping", "quadratic_damping")

    at: Number | None = None
    on: Number | None = None
    rest: Number | None = None
    stiffness: Number | None = None
    quadratic: Number | None = None
    cubic: Number | None = None
    damping: Number | None = None
    quadratic_damping: Number | None = None
    own: Any = None


@record()
class Load:
    """A force [N] or moment [N m], its point of action [m], and numbers of a user's law."""

    value: Number | None = None
    at: Number | None = None
    own: Any = None


@record()
class Thruster:
    """Effort of a thruster, its point of action [m], force and moment per effort, and numbers of a law."""

    value: Number | None = None
    at: Number | None = None
    axis: Number | None = None
    moment: Number | None = None
    own: Any = None


@record()
class Coupling:
    """Coefficients of a coordinate that follows another one: ``offset + ratio x``, or a polynomial (n,),
    constant term first.
    """

    one_number = ("ratio", "offset")

    ratio: Number | None = None
    offset: Number | None = None
    polynomial: Array | None = None


@record()
class Points:
    """Points (k, 2) or (k, 3) in body axes [m]."""

    at: Array


@record(static=("faces",))
class Hull:
    """Vertices (n, 3) of a convex hull in body axes [m], and its triangles as indices of vertices."""

    vertices: Array
    faces: tuple[tuple[int, int, int], ...]


@record()
class Corners:
    """Half edges of a box [m] around the origin of body axes or ``at``; rotation ``turned`` of its axes."""

    not_negative = ("half_length", "half_height", "half_depth")
    one_number = not_negative

    half_length: Number
    half_height: Number
    half_depth: Number | None = None
    at: Number | None = None
    turned: Number | None = None


@record()
class Ball:
    """Radius and centre in body axes [m]; without radius a point."""

    not_negative = ("radius",)
    one_number = not_negative

    radius: Number | None
    at: Number | None = None


@record()
class Round:
    """Radius [m] around the segment through ``at`` along a unit ``axis`` in body axes, ``half_length`` [m]
    to both sides; around the point ``at`` without an axis, around the whole line without a half length.
    """

    not_negative = ("radius", "half_length")
    one_number = not_negative

    radius: Number
    at: Number | None = None
    axis: Array | None = None
    half_length: Number | None = None


@record()
class Profile:
    """Control points (n, 2) of a periodic cubic spline, in body axes [m]."""

    control: Array


@record()
class Tube:
    """Radius of the surface of a beam [m], and the curve of its axis, which follows from the beam
    (`nsjax.multibody.flexible.tubes.Curve`).
    """

    not_negative = ("radius",)
    one_number = not_negative

    radius: Number
    curve: Any = None


@record()
class Walls:
    """Heights of the two walls of a guide, in the axes of its body [m]."""

    one_number = ("lower", "upper")

    lower: Number
    upper: Number


@record()
class Plane:
    """A point of the plane and its unit normal, in the axes of its body."""

    at: Number | None = None
    normal: Array | None = None


LAW = ("restitution", "restitution_tangential", "friction")
"""Names of the numbers of the law of a contact."""

TURNING = ("torsional", "rolling")
"""Names of the coefficients of friction against turning of a contact."""


@record()
class Contact:
    """Law and shapes of a contact; torsional and rolling friction are lengths [m]."""

    first: Any
    second: Any
    restitution: Number = 0.0
    restitution_tangential: Number = 0.0
    friction: Number | None = None
    torsional: Number | None = None
    rolling: Number | None = None


@record()
class ContactGroup:
    """Shapes of a group by kind, the numbers of each kind stacked in arrays; law of the contacts; gap up to
    which a pair is a candidate, ``reach`` [m].
    """

    one_number = ("reach",)

    shapes: dict[str, Any]
    reach: Number
    restitution: Number = 0.0
    restitution_tangential: Number = 0.0
    friction: Number | None = None
    torsional: Number | None = None
    rolling: Number | None = None


@record()
class GroupReach:
    """Gap up to which a step evaluates the contacts of a group with a capacity [m]."""

    reach: Number


@record()
class Section:
    """Stiffness of a beam's section, EA, GA [N] and EI, GJ [N m^2], and inertia per length, line_mass
    [kg/m] and line_inertia [kg m]; GA, EI and line_inertia may be (2,), one for each section axis.
    """

    not_negative = ("EA", "GA", "EI", "GJ", "line_mass", "line_inertia")
    one_number = ("EA", "GJ", "line_mass")

    EA: Number
    GA: Number
    EI: Number
    GJ: Number
    line_mass: Number | None = None
    line_inertia: Number | None = None


@record()
class Beam:
    """Nodes (n + 1, 3) of a beam without strain [m], its section, direction of the first section axis,
    curvature without moments [1/m], and damping [s].
    """

    not_negative = ("damping",)

    points: Array
    section: Section
    first_axis: Array
    curvature: Number | None = None
    damping: Number | None = None
