"""Records of the numbers of parts, which `Problem.params` holds under the names of the parts.

A number that is not given is None: it counts as zero, costs no operation and cannot be varied. Give 0.0 for
a number that is varied from zero. Unit, bounds and shape of a number stand with its field
(`nsjax.forms`).
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from nsjax.forms import quantity
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

    mass: Number = quantity("kg", shape="one", least=0.0, needed=True)
    inertia: Number | None = quantity("kg m^2", None, least=0.0, moments=True)
    com: Number | None = quantity("m", None, shape="point")
    armature: Number | None = quantity(default=None, shape="one", least=0.0)
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
        active, locked: whether the joint is there, and whether it keeps its coordinate, 1 or 0.
        own: numbers of this kind of joint, of its friction and of its motion alone, a record.
        motion: prescribed motion that is a spline (`nsjax.signal`).
    """

    at: Number | None = quantity("m", None, shape="point")
    on: Number | None = quantity("m", None, shape="point")
    axis: Array | None = quantity(default=None, shape="point")
    second_axis: Array | None = quantity(default=None, shape="point")
    turned: Number | None = quantity("rad", None, shape="turn")
    length: Number | None = quantity("m", None, shape="one", least=0.0)
    lower: Number | None = quantity(default=None, shape="one")
    upper: Number | None = quantity(default=None, shape="one")
    restitution: Number | None = quantity(default=None, shape="one", least=0.0, most=1.0)
    friction: Number | None = quantity(default=None, shape="one", least=0.0)
    armature: Number | None = quantity(default=None, shape="one", least=0.0)
    active: Number | None = quantity(default=None, shape="one", least=0.0, most=1.0)
    locked: Number | None = quantity(default=None, shape="one", least=0.0, most=1.0)
    own: Any = None
    motion: Any = None


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

    at: Number | None = quantity("m", None, shape="point")
    on: Number | None = quantity("m", None, shape="point")
    rest: Number | None = quantity(default=None, shape="one")
    stiffness: Number | None = quantity(default=None, shape="one")
    quadratic: Number | None = quantity(default=None, shape="one")
    cubic: Number | None = quantity(default=None, shape="one")
    damping: Number | None = quantity(default=None, shape="one")
    quadratic_damping: Number | None = quantity(default=None, shape="one")
    own: Any = None


@record()
class Load:
    """A force [N] or moment [N m], its point of action [m], and numbers of a user's law."""

    value: Number | None = quantity(default=None, shape="point")
    at: Number | None = quantity("m", None, shape="point")
    own: Any = None


@record()
class Thruster:
    """Effort of a thruster, its point of action [m], force and moment per effort, and numbers of a law."""

    value: Number | None = None
    at: Number | None = quantity("m", None, shape="point")
    axis: Number | None = quantity(default=None, shape="point")
    moment: Number | None = quantity(default=None, shape="point")
    own: Any = None


@record()
class Coupling:
    """Coefficients of a coordinate that follows another one: ``offset + ratio x``, or a polynomial (n,),
    constant term first; whether the coupling is there, 1 or 0.
    """

    ratio: Number | None = quantity(default=None, shape="one", needed=True)
    offset: Number | None = quantity(default=None, shape="one")
    polynomial: Array | None = None
    active: Number | None = quantity(default=None, shape="one", least=0.0, most=1.0)


@record()
class Points:
    """Points (k, 2) or (k, 3) in body axes [m]."""

    at: Array = quantity("m", needed=True)


@record(static=("faces",))
class Hull:
    """Vertices (n, 3) of a convex hull in body axes [m], and its triangles as indices of vertices."""

    vertices: Array
    faces: tuple[tuple[int, int, int], ...]


@record()
class Corners:
    """Half edges of a box [m] around the origin of body axes or ``at``; rotation ``turned`` of its axes."""

    half_length: Number = quantity("m", shape="one", least=0.0, needed=True)
    half_height: Number = quantity("m", shape="one", least=0.0, needed=True)
    half_depth: Number | None = quantity("m", None, shape="one", least=0.0)
    at: Number | None = quantity("m", None, shape="point")
    turned: Number | None = quantity("rad", None, shape="turn")


@record()
class Ball:
    """Radius and centre in body axes [m]; without radius a point."""

    radius: Number | None = quantity("m", shape="one", least=0.0, needed=True)
    at: Number | None = quantity("m", None, shape="point")


@record()
class Round:
    """Radius [m] around the segment through ``at`` along a unit ``axis`` in body axes, ``half_length`` [m]
    to both sides; around the point ``at`` without an axis, around the whole line without a half length.
    """

    radius: Number = quantity("m", shape="one", least=0.0, needed=True)
    at: Number | None = quantity("m", None, shape="point")
    axis: Array | None = quantity(default=None, shape="point")
    half_length: Number | None = quantity("m", None, shape="one", least=0.0)


@record()
class Profile:
    """Control points (n, 2) of a periodic cubic spline, in body axes [m]."""

    control: Array


@record()
class Tube:
    """Radius of the surface of a beam [m]; the curve of its axis follows from the beam (`curves.Curve`)."""

    radius: Number = quantity("m", shape="one", least=0.0, needed=True)
    curve: Any = None


@record()
class Walls:
    """Heights of the two walls of a guide, in the axes of its body [m]."""

    lower: Number = quantity("m", shape="one", needed=True)
    upper: Number = quantity("m", shape="one", needed=True)


@record()
class Plane:
    """A point of the plane and its unit normal, in the axes of its body."""

    at: Number | None = quantity("m", None, shape="point")
    normal: Array | None = quantity(default=None, shape="point")


LAW = ("restitution", "restitution_tangential", "friction")
"""Names of the numbers of the law of a contact."""

TURNING = ("torsional", "rolling")
"""Names of the coefficients of friction against turning of a contact."""


SPEEDS = ("friction_sliding", "friction_speed", "restitution_speed")
"""Names of the numbers of a contact by which its law depends on the speed, see `nsjax.contact.SpeedLaw`."""

CONSTANT = {"friction_speed": 1.0, "restitution_speed": float("inf")}
"""Speeds [m/s] of a law that does not depend on the speed, beside others that do."""


@record()
class Contact:
    """Law and shapes of a contact; torsional and rolling friction are lengths [m]. ``grain`` is a direction
    in the axes of a body, ``friction_across`` the coefficient across it.
    """

    first: Any
    second: Any
    restitution: Number = quantity(default=0.0, shape="each", most=1.0)
    restitution_tangential: Number = quantity(default=0.0, shape="each", most=1.0)
    friction: Number | None = quantity(default=None, shape="each")
    torsional: Number | None = quantity("m", None, shape="each")
    rolling: Number | None = quantity("m", None, shape="each")
    friction_sliding: Number | None = quantity(default=None, shape="each")
    friction_speed: Number | None = quantity("m/s", None, shape="each", positive=True)
    restitution_speed: Number | None = quantity("m/s", None, shape="each", positive=True)
    friction_across: Number | None = quantity(default=None, shape="one", positive=True)
    grain: Array | None = quantity(default=None, shape="point")


@record()
class ContactGroup:
    """Shapes of a group by kind, the numbers of each kind stacked in arrays; law of the contacts; gap up to
    which a pair is a candidate, ``reach`` [m].
    """

    shapes: dict[str, Any]
    reach: Number = quantity("m", shape="one")
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

    EA: Number = quantity("N", shape="one", least=0.0, positive=True, needed=True)
    GA: Number = quantity("N", shape="pair", least=0.0, positive=True, needed=True)
    EI: Number = quantity("N m^2", shape="pair", least=0.0, positive=True, needed=True)
    GJ: Number = quantity("N m^2", shape="one", least=0.0, positive=True, needed=True)
    line_mass: Number | None = quantity("kg/m", None, shape="one", least=0.0)
    line_inertia: Number | None = quantity("kg m", None, shape="pair", least=0.0)


@record()
class Beam:
    """Nodes (n + 1, 3) of a beam without strain [m], its section, direction of the first section axis,
    curvature without moments [1/m], and damping [s].
    """

    points: Array
    section: Section
    first_axis: Array
    curvature: Number | None = quantity("1/m", None)
    damping: Number | None = quantity("s", None, least=0.0)
