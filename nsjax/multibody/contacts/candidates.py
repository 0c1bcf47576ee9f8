"""Pairs of a group of shapes that are near each other, found in every step by spheres around them."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.multibody.contacts.all_pairs import KINDS
from nsjax.multibody.contacts.closest_points import of_segments
from nsjax.multibody.contacts.shape_places import along_of, normal_of, solid_box
from nsjax.multibody.coordinates.absolute import Bodies
from nsjax.multibody.coordinates.frames import Scene
from nsjax.types import Array, PyTree, record

SOLIDS = ("sphere", "box", "capsule", "cylinder", "plane")
"""Shapes that a group with a capacity knows."""

REACH = 0.2
"""Gap up to which a pair is a candidate, in parts of the smallest radius around a shape, unless given."""

Members = tuple[tuple[str, str], ...]
"""Kind and body of each shape."""


@record()
class Found:
    """Pairs that are near: their numbers (capacity,) in the list of all, ascending; places that hold one;
    () whether there were more.
    """

    which: Array
    used: Array
    lost: Array


@functools.cache
def listed(
    members: Members, split: int | None, apart: tuple[tuple[str, str], ...]
) -> dict[Any, np.ndarray]:
    """All pairs of a group by their kinds, in the order of these: rows of the two shapes (m, 2) among those
    of their kinds.

    Args:
        split: shapes from here on meet those before; None: all meet each other.
        apart: bodies that do not meet.
    """
    row, counts = [], dict.fromkeys((kind for kind, _ in members), 0)
    for kind, _ in members:
        row.append(counts[kind])
        counts[kind] += 1
    banned = {frozenset(x) for x in apart}
    found: dict[Any, list[tuple[int, int]]] = {}
    for i, j in _all_pairs(len(members), split):
        (one, here), (other, there) = members[i], members[j]
        if here == there or (banned and frozenset((here, there)) in banned):
            continue
        known = (one, other) in KINDS
        kinds, rows = ((one, other), (row[i], row[j])) if known else ((other, one), (row[j], row[i]))
        found.setdefault(kinds, []).append(rows)
    return {kinds: np.array(rows) for kinds, rows in found.items()}


def _all_pairs(n: int, split: int | None) -> Iterator[tuple[int, int]]:
    if split is None:
        return itertools.combinations(range(n), 2)
    return itertools.product(range(split), range(split, n))


@dataclasses.dataclass(frozen=True)
class Candidates:
    """Pairs of two kinds of shapes of a group.

    Args:
        group: its name.
        kinds: of the first and of the second shape.
        pairs_of: what `listed` makes all pairs of.
        places: of the bodies (after the ground, which is 0) of the shapes of the two kinds.
        capacity: places for pairs that are near.
        dimension: 2 or 3.
    """

    group: str
    kinds: tuple[str, str]
    pairs_of: tuple[Members, int | None, tuple[tuple[str, str], ...]]
    places: tuple[tuple[int, ...], tuple[int, ...]]
    capacity: int
    dimension: int

    @functools.cached_property
    def rows(self) -> np.ndarray:
        """Rows of the shapes of all pairs (m, 2)."""
        return listed(*self.pairs_of)[self.kinds]

    @property
    def many(self) -> int:
        """Pairs."""
        return len(self.rows)

    def pairs(self, slots: Found, p: PyTree) -> tuple[Array, Array, Any]:
        """Bodies (capacity,) of the pairs, after the ground, and numbers of their shapes."""
        which = jnp.where(slots.used, slots.which, 0)
        rows = [jnp.asarray(x)[which] for x in self.rows.T]
        stacks = [p[self.group].shapes[kind] for kind in self.kinds]
        shapes = tuple(jax.tree.map(lambda y, k=k: y[k], x) for x, k in zip(stacks, rows, strict=True))
        first, second = (jnp.asarray(x)[k] for x, k in zip(self.places, rows, strict=True))
        return first, second, shapes

    def near(self, tree: Bodies, frames: Any, p: PyTree) -> Found:
        """Pairs whose surroundings are nearer to each other than the reach of the group."""
        (i, j), group = self.rows.T, p[self.group]
        one, other = (
            self._around(tree, frames, kind, np.array(places), group.shapes[kind])
            for kind, places in zip(self.kinds, self.places, strict=True)
        )
        ends = jax.tree.map(lambda x: x[i], one), jax.tree.map(lambda x: x[j], other)
        near = jax.vmap(functools.partial(apart, self.kinds))(*ends) < group.reach
        (which,) = jnp.nonzero(near, size=self.capacity, fill_value=self.many)
        return Found(which=which, used=which < self.many, lost=jnp.sum(near) > self.capacity)

    def _around(self, tree: Bodies, frames: Any, kind: str, places: np.ndarray, shapes: Any) -> Around:
        """Spheres around all shapes of a kind."""
        own = jax.tree.map(lambda x: x[places], frames)

        def one(frame: Any, shape: Any) -> Around:
            scene = Scene(self.dimension, jnp.zeros(()), {"body": tree.alone(frame)})
            return around(scene, "body", kind, shape)

        return jax.vmap(one)(own, shapes)


@record()
class Around:
    """What is looked at of a shape to tell whether it may be near another.

    Args:
        centre: (d,).
        radius: of a sphere around the shape; of a plane zero.
        axes: (d, d) of a box, (d, 1) of a capsule or cylinder; (d, 1) normal of a plane; None: a sphere.
        half: edges (d,), or length (1,).
        thick: radius around what axes and half edges span.
    """

    centre: Array
    radius: Array
    axes: Any = None
    half: Any = None
    thick: Any = 0.0


ROUND = ("capsule", "cylinder")
"""Shapes inside a ball that moves along a segment."""


def apart(kinds: tuple[str, str], one: Around, other: Around) -> Array:
    """Bound of the gap of two shapes from below [m]: exact for spheres and capsules, and against a plane
    but for cylinders; else the largest gap along an axis of one of them, or of a sphere around one.
    """
    if kinds[1] == "plane":
        normal = other.axes[:, 0]
        reach = one.radius if one.axes is None else one.thick + _half(one, normal)
        return jnp.sum(normal * (one.centre - other.centre)) - reach
    if kinds[0] in ROUND and kinds[1] in ROUND:
        here, there = of_segments(*((x.centre, x.axes[:, 0], x.half[0]) for x in (one, other)))
        return jnp.sqrt(jnp.sum(jnp.square(here - there))) - one.thick - other.thick
    bounds = [_from(one, other.centre) - other.radius, _from(other, one.centre) - one.radius]
    if one.axes is not None and other.axes is not None:
        ways = jnp.concatenate([one.axes, other.axes], axis=1).T
        bounds += [_along(one, other, way) for way in ways]
    return jnp.max(jnp.stack(bounds))


def _along(one: Around, other: Around, way: Array) -> Array:
    """Gap of two shapes along a direction: a plane across it is between them."""
    size = one.thick + _half(one, way) + other.thick + _half(other, way)
    return jnp.abs(jnp.sum(way * (one.centre - other.centre))) - size


def _half(x: Around, way: Array) -> Array:
    """How far axes and half edges reach along a direction."""
    return jnp.sum(jnp.abs(jnp.sum(x.axes * way[:, None], axis=0)) * x.half)


def _from(x: Around, point: Array) -> Array:
    """Distance of a point from a shape, or less; inside of a box minus its thickness."""
    away = point - x.centre
    if x.axes is not None:
        along = jnp.sum(x.axes * away[:, None], axis=0)
        clipped = jnp.clip(along, -x.half, x.half)
        away = away - jnp.sum(x.axes * clipped, axis=1)
    return jnp.sqrt(jnp.sum(away * away)) - x.thick


def radius_of(kind: str, x: Any, dimension: int) -> Any:
    """The radius of a sphere around a shape, which a plane has not."""
    if kind == "box":
        edges = [x.half_length, x.half_height, x.half_depth][:dimension]
        return jnp.sqrt(sum(jnp.square(jnp.asarray(e, float)) for e in edges))
    if kind == "cylinder":
        return jnp.sqrt(jnp.square(x.radius) + jnp.square(x.half_length))
    radius = 0.0 if x.radius is None else x.radius
    return radius if kind == "sphere" else radius + x.half_length


def around(scene: Scene, body: str, kind: str, x: Any) -> Around:
    """Around a shape of a body."""
    centre, a = scene.position(body, x.at), scene.algebra
    if kind == "plane":
        normal = a.array(normal_of(scene, body, x))
        return Around(centre=centre, radius=jnp.zeros(()), axes=normal[:, None])
    radius = jnp.asarray(radius_of(kind, x, scene.dimension), float)
    if kind == "sphere":
        return Around(centre=centre, radius=radius, thick=radius)
    if kind == "box":
        solid = solid_box(scene, body, x)
        return Around(centre=centre, radius=radius, axes=solid.axes, half=solid.half)
    half = jnp.asarray(x.half_length, float)[None]
    axis = along_of(scene, body, x.axis)[:, None]
    return Around(centre=centre, radius=radius, axes=axis, half=half, thick=jnp.asarray(x.radius, float))


def first_of(near: Array, size: int) -> tuple[Array, Array]:
    """The first ``size`` true entries of ``near`` (n,): their places (size,), n where there are fewer; and
    which of them each entry is (n,), ``size`` for those that are none.
    """
    count = jnp.cumsum(near)
    which = jnp.searchsorted(count, np.arange(1, size + 1), method="compare_all")
    place = jnp.where(near & (count <= size), count - 1, size)
    return which, place
