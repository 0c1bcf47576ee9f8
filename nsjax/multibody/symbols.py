"""Symbols of engineering drawings, and pictures of the shapes of contacts.

A symbol has the same size in every picture: its points are places on bodies, its ``marks`` say how
far from there it is drawn, in shares of the picture's diagonal (`nsjax.shapes.Shape`).
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax import shapes
from nsjax.multibody.contacts import curves
from nsjax.multibody.coordinates import planar_vectors as plane
from nsjax.multibody.coordinates.frames import Scene
from nsjax.multibody.coordinates.spatial_vectors import rotation_of
from nsjax.multibody.parts import GROUND
from nsjax.shapes import Shape
from nsjax.types import Array

LINK, BLOCK, FRAME = 0.012, (0.045, 0.03), 0.045
"""Half the thickness of a link, half edges of the block in a slide, and half the height of a body in which
a block slides, in shares of the picture's diagonal as all sizes of symbols.
"""

NONE = [np.nan, np.nan]
AROUND, RINGS = 8, 4
"""Edges of links in space around their axis, and rings of the half sphere at their ends."""


def _ball() -> np.ndarray:
    """Directions (rings around, 3), ring after ring along z."""
    up = np.repeat(np.linspace(-0.5 * np.pi, 0.5 * np.pi, 2 * RINGS + 1), AROUND)
    around = np.tile(2.0 * np.pi * np.arange(AROUND) / AROUND, 2 * RINGS + 1)
    return np.stack([np.cos(up) * np.cos(around), np.cos(up) * np.sin(around), np.sin(up)], axis=1)


BALL = _ball()
"""Directions in which links of space are rounded."""

COIL = shapes.COILS * [1.0, 0.02]
DASHPOT = np.array([
    [0.0, 0.0], [0.4, 0.0], NONE, [0.7, 0.018], [0.4, 0.018], [0.4, -0.018], [0.7, -0.018], NONE,
    [0.58, 0.013], [0.58, -0.013], NONE, [0.58, 0.0], [1.0, 0.0],
])  # fmt: skip
"""Share of the way, and displacement across, of a spring and of a damper."""

ASIDE = np.array([0.0, 0.025])
BARS = np.array([NONE, [0.0, 0.025], [0.0, -0.025], NONE, [1.0, 0.025], [1.0, -0.025]])
BOTH = np.concatenate([COIL + ASIDE, [NONE], DASHPOT - ASIDE, BARS])
"""Spring and damper side by side."""

HATCH = np.concatenate(
    [[[x, 0.0], [x - 0.011, -0.014], NONE] for x in np.linspace(-0.028, 0.04, 6)]
)  # fmt: skip
WALL = np.concatenate([[[-0.04, 0.0], [0.04, 0.0], NONE], HATCH])
"""A hatched piece of ground; its solid side points along the second axis."""

SUPPORT = np.concatenate([
    [[0.0, 0.0], [-0.024, -0.04], [0.024, -0.04], [0.0, 0.0], NONE], WALL - np.array([0.0, 0.04]),
])  # fmt: skip
"""A triangle on hatched ground, below a pin."""


def _arc(radius: Any, start: float, end: float, n: int = 24) -> np.ndarray:
    angles = np.linspace(start, end, n)
    return np.stack([radius * np.cos(angles), radius * np.sin(angles)], axis=1)


SPIRAL = _arc(np.linspace(0.014, 0.04, 40), 0.0, 5.0 * np.pi, 40)
"""A torsion spring around a pin."""

DRUM = _arc(0.03, 0.0, 2.0 * np.pi)
"""A drum around a pin, over which a tendon runs."""

DRIVE = np.concatenate(
    [_arc(0.034, -0.6, 3.6), [NONE, [-0.043, -0.008], [-0.0305, -0.015], [-0.02, -0.004]]]
)
"""Arrow around a pin that a motor or a prescribed motion turns."""

PUSH = np.array([
    [-0.07, 0.0], [0.07, 0.0], NONE, [0.055, 0.01], [0.07, 0.0], [0.055, -0.01], NONE,
    [-0.055, 0.01], [-0.07, 0.0], [-0.055, -0.01],
])  # fmt: skip
"""Arrow along a slide that a motor or a prescribed motion pushes."""


def sides(along: Any) -> list[Array]:
    """Unit vectors: a direction and all directions across it."""
    along = jnp.asarray(along, float)
    if along.shape[0] == 2:
        return [along, jnp.stack([-along[1], along[0]])]
    return [along, *shapes.across(along)]


def _unit(gone: Any) -> Array:
    """Direction of a vector; the x axis where it is zero."""
    length = jnp.sqrt(jnp.sum(gone * gone))
    return jnp.where(length > 0.0, gone / jnp.where(length > 0.0, length, 1.0), jnp.eye(gone.shape[0])[0])


def upright(dimension: int) -> list[Array]:
    """Axes of a symbol that stands on the ground: x and the vertical."""
    return [jnp.eye(dimension)[0], jnp.eye(dimension)[-1]]


def drawn_at(
    point: Any, axes: list[Any], drawing: np.ndarray, name: str, role: str, at: Any = (0.0, 0.0)
) -> Shape:
    """A symbol around a point, whose axes are its pose.

    Args:
        point: (d,) [m].
        axes: unit vectors of its two axes, at right angles.
        drawing: (n, 2).
        at: displacement of the whole symbol along its axes.
    """
    flat, d = drawing + np.asarray(at), len(axes[0])
    marks = jnp.asarray(np.concatenate([flat, np.zeros((len(flat), d - 2))], axis=1))
    return Shape(
        points=jnp.zeros(marks.shape), name=name, role=role, marks=marks, pose=placed_axes(point, axes)
    )


def placed_axes(point: Any, axes: list[Any]) -> Array:
    """Pose (d, d + 1) of axes at a point, of which the third may be left out."""
    both = [jnp.asarray(x, float) for x in axes[:2]]
    third = [jnp.cross(both[0], both[1])] if both[0].shape[0] == 3 else []
    return jnp.stack([*both, *third, jnp.asarray(point, float)], axis=1)


def between(
    start: Any, end: Any, drawing: np.ndarray, name: str, along: Any = None, lead: float = 0.0
) -> Shape:
    """A spring or damper between two points.

    Args:
        start, end: (d,) [m].
        drawing: (n, 2), `COIL`, `DASHPOT` or `BOTH`.
        along: unit vector from start to end, where they may coincide.
        lead: by how much the symbol begins before ``start``.
    """
    gone = end - start
    axes = sides(_unit(gone) if along is None else along)
    way, swing = drawing[:, :1], drawing[:, 1:]
    marks = jnp.asarray(swing) * axes[1] - lead * (1.0 - way) * axes[0]
    return Shape(points=start + way * gone, name=name, role="spring", marks=marks)


def bellows(x: Any, law: Any) -> np.ndarray:
    """Symbol of a spring with these numbers: a coil, a damper, or both side by side."""
    damps = x.damping is not None or getattr(x, "quadratic_damping", None) is not None
    given = (getattr(x, y, None) for y in ("stiffness", "quadratic", "cubic"))
    pulls = law is not None or any(y is not None for y in given)
    return BOTH if damps and pulls else DASHPOT if damps else COIL


def wall(point: Any, normal: Any, name: str, at: float = 0.0) -> Shape:
    """A hatched piece of ground that faces along ``normal``, by ``at`` in front of a point."""
    out = sides(normal)
    return drawn_at(point, [-out[1], out[0]], WALL, name, "ground", at=(0.0, at))


def walls_at(ends: list[tuple[str, Any, Any]], name: str) -> list[Shape]:
    """Hatched ground at those ends ``(body, point, vector to the other end)`` that are on the ground."""
    return [wall(point, _unit(gone), name) for body, point, gone in ends if body == GROUND]


def hull(points: Any, radii: Any, name: str, thickness: float = LINK, pose: Any = None) -> Shape:
    """What a thread around all points would enclose, with round corners: a bar between two points.

    Args:
        points: (n, d) [m].
        radii: (n,) added to the thickness around each point [m].
        thickness: of the round corners.
        pose: of the axes of the points; None: those of the world.
    """
    d = points.shape[1]
    out = _arc(1.0, 0.0, 2.0 * np.pi, shapes.ROUND + 1) if d == 2 else BALL
    kind, faces = ("area", ()) if d == 2 else ("mesh", shapes.lathe_faces(2 * RINGS + 1, AROUND))
    reach = jnp.sum(out[:, None] * points[None], axis=2) + radii
    far = jnp.argmax(reach, axis=1)
    marks = jnp.asarray(thickness * out)
    reached = points[far] + radii[far][:, None] * out
    return Shape(points=reached, name=name, kind=kind, faces=faces, marks=marks, pose=pose)


def disc(centre: Any, axis: Any, radius: Any, name: str, toward: Any) -> Shape:
    """A wheel: a disc in the plane, with a spoke; a flat cylinder in space.

    Args:
        centre: (d,) [m].
        axis: unit vector (3,), in space.
        radius: [m].
        toward: direction of the spoke (2,), in the plane.
    """
    if centre.shape[0] == 2:
        out = sides(toward)
        return Shape(points=centre + shapes.disc(radius) @ jnp.stack(out), name=name, kind="area")
    faces, flat = shapes.lathe_faces(4), jnp.zeros(4)
    edge = radius * np.array([0.0, 1.0, 1.0, 0.0])
    marks = LINK * jnp.repeat(np.array([-1.0, -1.0, 1.0, 1.0]), shapes.AROUND)[:, None] * axis
    points = centre + shapes.lathe(flat, edge, axis)
    return Shape(points=points, name=name, kind="mesh", faces=faces, marks=marks)


# Pictures of the shapes of contacts: functions ``(scene, name, body, numbers)``.


def pose_of(scene: Scene, body: str) -> Array:
    """Rotation matrix and place (d, d + 1) of the axes of a body."""
    turn = scene.frame(body).turn
    if turn is None:
        turn = jnp.eye(scene.dimension)
    elif scene.dimension == 2:
        s, c = map(plane.value, turn)
        turn = jnp.stack([c, -s, s, c]).reshape(2, 2)
    return jnp.concatenate([turn, scene.position(body)[:, None]], axis=1)


def on_body(
    scene: Scene, name: str, body: str, place: Any, local: Any, own: Any = None, **drawn: Any
) -> Shape:
    """A rigid shape around the point ``place`` of a body.

    Args:
        body, place: the body, and a point of it.
        local: points (n, d) around that point.
        own: their rotation relative to the body; None: none.
        drawn: fields of the shape; else it is a body, or ground.
    """
    a = scene.algebra
    points = shapes.placed(local, a.array(a.vector(place)), own)
    fields: dict[str, Any] = {"role": role_of(body)} | drawn
    return Shape(points=points, name=name, pose=pose_of(scene, body), **fields)


def _turned(scene: Scene, name: str, body: str, x: Any, kind: str) -> tuple[Shape, ...]:
    """A sphere, capsule, cylinder or hole: an outline in the plane, a mesh in space."""
    axis = getattr(x, "axis", None)
    half = getattr(x, "half_length", None)
    long = axis is not None if kind == "hole" else kind in ("capsule", "cylinder")
    if scene.dimension == 2:
        flat = not long or half is None
        local = shapes.disc(x.radius, kind == "sphere") if flat else shapes.stadium(half, x.radius)
        shown = "line" if kind == "hole" else "area"
        turn = None if flat or axis is None else jnp.arctan2(jnp.asarray(axis[1]), jnp.asarray(axis[0]))
        return (on_body(scene, name, body, x.at, local, turn, kind=shown),)
    if not long or half is None:
        heights, radii = shapes.ball_rings(x.radius)
    elif kind == "capsule":
        heights, radii = shapes.capsule_rings(x.radius, half)
    else:
        heights, radii = shapes.cylinder_rings(x.radius, half)
    local = shapes.lathe(heights, radii, axis)
    faces = shapes.lathe_faces(local.shape[0] // shapes.AROUND)
    role = "ground" if kind == "hole" else role_of(body)
    return (on_body(scene, name, body, x.at, local, kind="mesh", role=role, faces=faces),)


def role_of(body: str) -> str:
    """Role, in a picture, of shapes on a body."""
    return "ground" if body == GROUND else "body"


def of_points(scene: Scene, name: str, body: str, x: Any) -> tuple[Shape, ...]:
    """Points as dots."""
    return (on_body(scene, name, body, None, jnp.asarray(x.at, float), kind="dots"),)


def of_sphere(scene: Scene, name: str, body: str, x: Any) -> tuple[Shape, ...]:
    """A ball or disc; without a radius a dot."""
    if x.radius is None:
        return (on_body(scene, name, body, x.at, np.zeros((1, scene.dimension)), kind="dots"),)
    return _turned(scene, name, body, x, "sphere")


of_capsule = functools.partial(_turned, kind="capsule")
of_cylinder = functools.partial(_turned, kind="cylinder")
of_hole = functools.partial(_turned, kind="hole")


def of_box(scene: Scene, name: str, body: str, x: Any) -> tuple[Shape, ...]:
    """A box or rectangle."""
    if scene.dimension == 2:
        local = shapes.rectangle(x.half_length, x.half_height)
        return (on_body(scene, name, body, x.at, local, x.turned, kind="area"),)
    half = jnp.stack([jnp.asarray(k, float) for k in (x.half_length, x.half_height, x.half_depth)])
    drawn = {"kind": "mesh", "faces": shapes.BOX_FACES}
    return (on_body(scene, name, body, x.at, shapes.box(half), rotation_of(x.turned), **drawn),)


def of_hull(scene: Scene, name: str, body: str, x: Any) -> tuple[Shape, ...]:
    """The triangles of a hull."""
    return (on_body(scene, name, body, None, jnp.asarray(x.vertices, float), kind="mesh", faces=x.faces),)


def of_profile(scene: Scene, name: str, body: str, x: Any) -> tuple[Shape, ...]:
    """A cam."""
    control = jnp.asarray(x.control, float)
    # points drawn for each control point of a profile
    knot = 4
    knots = np.arange(knot * control.shape[0] + 1) / knot
    points = jax.vmap(lambda s: curves.evaluated(control, s)[0])(knots)
    return (on_body(scene, name, body, None, points, kind="area"),)


def of_plane(scene: Scene, name: str, body: str, x: Any) -> tuple[Shape, ...]:
    """The border of a half space."""
    a = scene.algebra
    up = np.eye(scene.dimension)[-1] if x.normal is None else x.normal
    normal = a.array(a.turned(scene.frame(body).turn, a.vector(jnp.asarray(up, float))))
    return (shapes.level(scene.position(body, x.at), normal, name),)


def of_walls(scene: Scene, name: str, body: str, x: Any) -> tuple[Shape, ...]:
    """The two walls of a guide."""
    a = scene.algebra
    normal = a.array(a.turned(scene.frame(body).turn, (None, 1.0)))
    heights = ((x.lower, normal, "lower"), (x.upper, -normal, "upper"))
    zero = jnp.zeros(())
    return tuple(
        shapes.level(scene.position(body, jnp.stack([zero, jnp.asarray(y, float)])), n, f"{name} {which}")
        for y, n, which in heights
    )


def no_picture(scene: Scene, name: str, body: str, x: Any) -> tuple[Shape, ...]:
    """Nothing: a beam is drawn itself."""
    return ()
