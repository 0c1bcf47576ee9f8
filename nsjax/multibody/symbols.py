"""Symbols of engineering drawings: links, supports, springs, dampers, drives, stops.

A symbol has the same size in every picture: its points are places on bodies, its ``marks`` say how
far from there it is drawn, in shares of the picture's diagonal (`nsjax.shapes.Shape`).
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from nsjax import shapes
from nsjax.multibody.parts import GROUND
from nsjax.shapes import Shape
from nsjax.types import Array

LINK = 0.012
"""Half the thickness of a link, in shares of the picture's diagonal as all sizes of symbols."""

BLOCK, FRAME = (0.045, 0.03), 0.045
"""Half edges of the block in a slide, and half the height of a body in which a block slides."""

NONE = [np.nan, np.nan]
AROUND, RINGS = 8, 4
"""Edges of links in space around their axis, and rings of the half sphere at their ends."""


def _zigzag() -> np.ndarray:
    """Share of the way and displacement across of a coil."""
    way = np.concatenate([[0.0], np.linspace(0.15, 0.85, 2 * shapes.COILS + 1), [1.0]])
    swing = np.concatenate([[0.0, 0.0], np.tile([0.02, -0.02], shapes.COILS)[:-1], [0.0, 0.0]])
    return np.stack([way, swing], axis=1)


def _ball() -> np.ndarray:
    """Directions (rings around, 3), ring after ring along z."""
    up = np.repeat(np.linspace(-0.5 * np.pi, 0.5 * np.pi, 2 * RINGS + 1), AROUND)
    around = np.tile(2.0 * np.pi * np.arange(AROUND) / AROUND, 2 * RINGS + 1)
    return np.stack([np.cos(up) * np.cos(around), np.cos(up) * np.sin(around), np.sin(up)], axis=1)


BALL = _ball()
"""Directions in which links of space are rounded."""

COIL = _zigzag()
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
    found: Array = jnp.where(
        length > 0.0, gone / jnp.where(length > 0.0, length, 1.0), jnp.eye(gone.shape[0])[0]
    )
    return found


def upright(dimension: int) -> list[Array]:
    """Axes of a symbol that stands on the ground: x and the vertical."""
    return [jnp.eye(dimension)[0], jnp.eye(dimension)[-1]]


def drawn_at(
    point: Any, axes: list[Any], drawing: np.ndarray, name: str, role: str, at: Any = (0.0, 0.0)
) -> Shape:
    """A symbol around a point.

    Args:
        point: (d,) [m].
        axes: unit vectors of its two axes.
        drawing: (n, 2).
        name, role: of the shape.
        at: displacement of the whole symbol along its axes.
    """
    marks = jnp.asarray(drawing + np.asarray(at)) @ jnp.stack(axes[:2])
    return Shape(points=jnp.broadcast_to(point, marks.shape), name=name, role=role, marks=marks)


def between(
    start: Any, end: Any, drawing: np.ndarray, name: str, along: Any = None, lead: float = 0.0
) -> Shape:
    """A spring or damper between two points.

    Args:
        start, end: (d,) [m].
        drawing: (n, 2), `COIL`, `DASHPOT` or `BOTH`.
        name: of the shape.
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


def hull(points: Any, radii: Any, name: str, thickness: float = LINK) -> Shape:
    """What a thread around all points would enclose, with round corners: a bar between two points.

    Args:
        points: (n, d) [m].
        radii: (n,) added to the thickness around each point [m].
        name: of the body.
        thickness: of the round corners.
    """
    d = points.shape[1]
    out = _arc(1.0, 0.0, 2.0 * np.pi, shapes.ROUND + 1) if d == 2 else BALL
    kind, faces = ("area", ()) if d == 2 else ("mesh", shapes.lathe_faces(2 * RINGS + 1, AROUND))
    reach = jnp.sum(out[:, None] * points[None], axis=2) + radii
    far = jnp.argmax(reach, axis=1)
    marks = jnp.asarray(thickness * out)
    return Shape(
        points=points[far] + radii[far][:, None] * out, name=name, kind=kind, faces=faces, marks=marks
    )


def disc(centre: Any, axis: Any, radius: Any, name: str, toward: Any, thickness: float = LINK) -> Shape:
    """A wheel: a disc in the plane, with a spoke; a flat cylinder in space.

    Args:
        centre: (d,) [m].
        axis: unit vector (3,), in space.
        radius: [m].
        name: of the body.
        toward: direction of the spoke (2,), in the plane.
        thickness: half that of the cylinder.
    """
    if centre.shape[0] == 2:
        out = sides(toward)
        return Shape(points=centre + shapes.disc(radius) @ jnp.stack(out), name=name, kind="area")
    faces, flat = shapes.lathe_faces(4), jnp.zeros(4)
    edge = radius * np.array([0.0, 1.0, 1.0, 0.0])
    marks = thickness * jnp.repeat(np.array([-1.0, -1.0, 1.0, 1.0]), shapes.AROUND)[:, None] * axis
    points = centre + shapes.lathe(flat, edge, axis)
    return Shape(points=points, name=name, kind="mesh", faces=faces, marks=marks)
