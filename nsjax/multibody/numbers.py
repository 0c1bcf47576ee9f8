"""The numbers of parts: what stands in `Problem.params` under the name of a part.

A number that is not given is None: it is zero before anything is computed, and cannot be varied. Give 0.0
to vary one that starts at zero.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from nsjax.types import Array, record

Number = Array | float


def side_by_side(records: list[Any], axis: int = 0) -> Any:
    """Numbers alike along a first axis, or along another."""
    return jax.tree.map(lambda *x: jnp.stack([jnp.asarray(y, float) for y in x], axis=axis), *records)


@record()
class Body:
    """Mass [kg], inertia about the centre of mass [kg m^2], centre of mass in body axes [m]."""

    mass: Number
    inertia: Number | None = None
    com: Number | None = None


@record()
class Joint:
    """Geometry of a joint and what acts in it.

    Args:
        at, on: joint point in the axes of the first and of the second body [m].
        axis, second_axis: unit vectors, see the joint.
        turned: how the axes of the second body are turned against those of the first where the
            coordinate is zero: an angle [rad], or a rotation vector (3,).
        length: distance that is kept [m].
        lower, upper: limits of the coordinate [rad] or [m].
        restitution: of the limits.
        friction: bound of dry friction [N m] or [N].
        armature: inertia that is driven with the coordinate [kg m^2] or [kg].
        own: numbers of the joint's kind alone, a record.
    """

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
    """Tension ``k e + k2 |e| e + k3 e^3 + c e' + c2 |e'| e'`` of the extension ``e``, and ends.

    Args:
        at, on: ends in the axes of the first and of the second body [m].
        rest: free length [m] or angle [rad].
        stiffness, quadratic, cubic: k, k2, k3.
        damping, quadratic_damping: c, c2.
        own: what a user's law wants.
    """

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
    """A force [N] or moment [N m], where it acts, and what a user's law wants."""

    value: Number | None = None
    at: Number | None = None
    own: Any = None


@record()
class Coupling:
    """How a coordinate follows another: ``offset + ratio x``, or a polynomial (n,), constant first."""

    ratio: Number | None = None
    offset: Number | None = None
    polynomial: Array | None = None


@record()
class Points:
    """Points (k, 2) or (k, 3) in body axes [m]."""

    at: Array


@record(static=("faces",))
class Hull:
    """Vertices (n, 3) of a convex hull in body axes [m], and of its triangles the three places in these."""

    vertices: Array
    faces: tuple[tuple[int, int, int], ...]


@record()
class Corners:
    """Half edges of a box [m] around the origin of body axes, or around ``at``; ``turned`` against them."""

    half_length: Number
    half_height: Number
    half_depth: Number | None = None
    at: Number | None = None
    turned: Number | None = None


@record()
class Ball:
    """Radius and centre in body axes [m]; without radius a point."""

    radius: Number | None
    at: Number | None = None


@record()
class Round:
    """Radius [m] around a line through ``at`` along a unit ``axis`` in body axes, ``half_length`` [m] to
    both sides; without axis around a point, without half length around the whole line.
    """

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
    """Radius of a beam's surface [m], and how its axis passes through its nodes as drawn, which follows
    from the beam (`nsjax.multibody.flexible.tubes.Curve`).
    """

    radius: Number
    curve: Any = None


@record()
class Walls:
    """Heights of the two walls of a guide, in the axes of its body [m]."""

    lower: Number
    upper: Number


@record()
class Plane:
    """A point of the plane and its unit normal, in the axes of its body."""

    at: Number | None = None
    normal: Array | None = None


LAW = ("restitution", "restitution_tangential", "friction")
"""Numbers of the law of a contact."""


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
    """Shapes of a group by their kinds, numbers of those of a kind side by side; law of their contacts; gap
    up to which a pair is a candidate [m].
    """

    shapes: dict[str, Any]
    reach: Number
    restitution: Number = 0.0
    restitution_tangential: Number = 0.0
    friction: Number | None = None
    torsional: Number | None = None
    rolling: Number | None = None


@record()
class GroupReach:
    """Gap up to which a step looks at the contacts of a group with a capacity [m]."""

    reach: Number


@record()
class Section:
    """Stiffness of a beam's section, EA, GA [N] and EI, GJ [N m^2], and inertia per length, line_mass
    [kg/m] and line_inertia [kg m]; GA, EI, line_inertia numbers or (2,) along and about both section axes.
    """

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

    points: Array
    section: Section
    first_axis: Array
    curvature: Number | None = None
    damping: Number | None = None
