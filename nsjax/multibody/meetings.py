"""Gaps and slips of contacts, from the frames of the bodies. The points of a body are looked at
together.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np

from nsjax.multibody import planar_vectors as plane
from nsjax.multibody.all_pairs import COUNTS, PAIRS
from nsjax.multibody.frames import Scene
from nsjax.multibody.parts import Part
from nsjax.multibody.placing import ends, rim_points, turn_of
from nsjax.types import Array


@dataclasses.dataclass(frozen=True)
class Meeting:
    """Contacts of two bodies at an instant, one or (k,) of them.

    Args:
        gap: [m].
        first, second: bodies.
        here, there: where they meet, on the first and on the second.
        normal: from the second to the first.
        tangents: directions across it.
        carried: velocity of ``there``; None: that of the second body.
        moving: velocity of ``here``; None: that of the first body.
    """

    gap: Any
    first: str
    second: str
    here: Any
    there: Any
    normal: Any
    tangents: tuple[Any, ...]
    carried: Any = None
    moving: Any = None

    def slip(self, scene: Scene) -> list[Any]:
        """Velocity of the first body against the second along the tangents [m/s]."""
        a = scene.algebra
        one = self.moving
        if one is None:
            one = scene.motion(self.first, a.subtract(self.here, scene.frame(self.first).origin))
        other = self.carried
        if other is None:
            other = scene.motion(self.second, a.subtract(self.there, scene.frame(self.second).origin))
        moved = a.subtract(one, other)
        return [a.dot(t, moved) for t in self.tangents]


CORNERS = {
    2: np.array([[-1.0, 1.0], [1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]]),
    3: np.array([[x, y, z] for z in (1.0, -1.0) for y in (1.0, -1.0) for x in (-1.0, 1.0)]),
}
"""Signs of the corners of a box: upper left, upper right, lower left, lower right."""


BOXES = {2: 2, 3: 8}
"""Contacts of two boxes."""


def count(part: Part, numbers: Any, dimension: int) -> int:
    """Contacts of a part."""
    first, second = part.option("shapes")
    nodes = part.option("nodes")
    if nodes is not None:
        return int(nodes)
    if (first, second) == ("box", "box"):
        return BOXES[dimension]
    if first in ("corners", "box"):
        return len(CORNERS[dimension])
    points = int(np.shape(numbers.first.at)[0]) if first == "points" else COUNTS.get((first, second), 1)
    return points * (2 if second == "walls" else 1)


def names(part: Part, numbers: Any, dimension: int) -> list[str]:
    """Names of its contacts."""
    n = count(part, numbers, dimension)
    return [part.name] if n == 1 else [f"{part.name}.{k}" for k in range(n)]


def _points(scene: Scene, part: Part, numbers: Any) -> tuple[Any, Any]:
    """Points of the first shape and their radius."""
    a, body, shape = scene.algebra, part.bodies[0], numbers.first
    kind = part.option("shapes")[0]
    if kind == "sphere":
        return scene.point(body, shape.at), shape.radius
    turn, origin = scene.frame(body).turn, scene.frame(body).origin
    if kind == "cylinder":  # its points follow from the plane
        return None, None
    if kind == "capsule":
        return a.vector(ends(scene, body, shape)), shape.radius
    if kind == "points":
        columns = jnp.asarray(shape.at).T
        several = (columns[0], columns[1]) if scene.dimension == 2 else columns
        return a.add(origin, a.turned(turn, several)), None
    half = [shape.half_length, shape.half_height, shape.half_depth][: scene.dimension]
    local: Any = tuple(signs * x for signs, x in zip(CORNERS[scene.dimension].T, half, strict=True))
    local = local if scene.dimension == 2 else jnp.stack(local)
    local = a.turned(turn_of(shape.turned, scene.dimension), local)
    return a.add(scene.point(body, shape.at), a.turned(turn, local)), None


def meetings(scene: Scene, part: Part, numbers: Any, near: Any = None) -> Meeting:
    """The contacts of a part; ``near`` is what `nearby` has found for it, None: it is looked for."""
    a, (first, second) = scene.algebra, part.bodies
    kinds = part.option("shapes")
    kind = kinds[1]
    if kinds in PAIRS:
        met = PAIRS[kinds](scene, part, numbers, near)
        here, there, normal = (a.vector(x) for x in (met.here, met.there, met.normal))
        across = a.tangents(normal)
        return Meeting(met.gap, first, second, here, there, normal, across, met.carried, met.moving)
    point, radius = _points(scene, part, numbers)
    if kind == "walls":
        return _between_walls(scene, part, numbers, point, radius)
    other = numbers.second
    there = scene.point(second, other.at)
    if kind == "sphere":
        apart = a.subtract(point, there)
        length = a.size(apart)
        normal = a.scale(1.0 / jnp.where(length > 0.0, length, 1.0), apart)
        gap = plane.plus(length, plane.minus(plane.plus(radius, other.radius)))
        there = a.add(there, a.scale(other.radius, normal))
        here = a.subtract(point, a.scale(radius, normal))
        return Meeting(gap, first, second, here, there, normal, a.tangents(normal))
    if other.normal is None:
        up = (None, 1.0) if scene.dimension == 2 else jnp.asarray([0.0, 0.0, 1.0])
    else:
        up = a.vector(other.normal)
    normal = a.turned(scene.frame(second).turn, up)
    if kinds[0] == "cylinder":
        point = rim_points(scene, first, numbers.first, normal)
    gap = plane.plus(a.dot(normal, a.subtract(point, there)), plane.minus(radius))
    here = a.subtract(point, a.scale(radius, normal))
    return Meeting(gap, first, second, here, here, normal, a.tangents(normal))


def _between_walls(scene: Scene, part: Part, numbers: Any, point: Any, radius: Any) -> Meeting:
    first, second = part.bodies
    frame = scene.frame(second)
    along = plane.turned(frame.turn, (1.0, None))
    up = plane.perp(along)
    if part.option("shapes")[0] == "corners":
        sides = CORNERS[2][:, 1]  # a corner meets the wall on its own side
    else:
        once = plane.value(plane.dot(along, point)).reshape(-1).shape[0]
        sides = np.repeat([[1.0, -1.0]], once, axis=0).reshape(-1)
        point = tuple(None if x is None else jnp.repeat(jnp.reshape(x, -1), 2) for x in point)
    height = plane.dot(up, plane.subtract(point, frame.origin))
    wall = jnp.where(sides > 0.0, numbers.second.upper, numbers.second.lower)
    gap = plane.plus(sides * (wall - plane.value(height)), plane.minus(radius))
    normal = plane.scale(-sides, up)
    here = plane.subtract(point, plane.scale(radius, normal))
    return Meeting(gap, first, second, here, here, normal, (along,))


def flat(rows: list[Any]) -> Array:
    """Scalars, None for zero, and arrays (k,) as one array."""
    if len(rows) == 1:
        return jnp.reshape(plane.value(rows[0]), -1)
    if all(x is None or jnp.ndim(x) == 0 for x in rows):
        return jnp.stack([plane.value(x) for x in rows])
    return jnp.concatenate([jnp.reshape(plane.value(x), -1) for x in rows])


def columns(rows: list[list[Any]], counts: list[int]) -> Array:
    """Slips of meetings with so many contacts as (nc, nt)."""
    found = [
        jnp.stack([jnp.broadcast_to(plane.value(x), (n,)) for x in row], axis=1)
        for row, n in zip(rows, counts, strict=True)
    ]
    return found[0] if len(found) == 1 else jnp.concatenate(found)
