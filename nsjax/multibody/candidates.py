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

from nsjax.multibody.absolute import Bodies
from nsjax.multibody.all_pairs import KINDS
from nsjax.multibody.frames import Scene
from nsjax.multibody.placing import solid_box
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
        """Of the shapes of all pairs (m, 2)."""
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
        apart = one.centre[i] - other.centre[j]
        if self.kinds[1] == "plane":
            gap = jnp.sum(apart * other.axes[j, :, 0], axis=1) - one.radius[i]
        else:
            gap = jnp.sqrt(jnp.sum(apart * apart, axis=1)) - one.radius[i] - other.radius[j]
            if self.kinds[1] == "box":  # also from its faces: a floor is one
                gap = jnp.maximum(gap, _from_faces(other, j, apart) - one.radius[i])
            if self.kinds[0] == "box":
                gap = jnp.maximum(gap, _from_faces(one, i, -apart) - other.radius[j])
        near = gap < group.reach
        (which,) = jnp.nonzero(near, size=self.capacity, fill_value=self.many)
        return Found(which=which, used=which < self.many, lost=jnp.sum(near) > self.capacity)

    def _around(self, tree: Bodies, frames: Any, kind: str, places: np.ndarray, shapes: Any) -> Around:
        """Of all shapes of a kind."""
        own = jax.tree.map(lambda x: x[places], frames)

        def one(frame: Any, shape: Any) -> Around:
            scene = Scene(self.dimension, jnp.zeros(()), {"body": tree.alone(frame)})
            return _around(scene, kind, shape)

        return jax.vmap(one)(own, shapes)


@record()
class Around:
    """A sphere around a shape; axes (d, d) and half edges of a box, or the normal of a plane (d, 1)."""

    centre: Array
    radius: Array
    axes: Any = None
    half: Any = None


def _from_faces(box: Around, k: np.ndarray, way: Array) -> Array:
    """Distances (m,) of points at ``way`` (m, d) from the centres of boxes ``k``; zero inside."""
    local = jnp.abs(jnp.sum(box.axes[k] * way[:, :, None], axis=1)) - box.half[k]
    out = jnp.where(local > 0.0, local, 0.0)
    return jnp.sqrt(jnp.sum(out * out, axis=1))


def radius_of(kind: str, x: Any, dimension: int) -> Any:
    """Of a sphere around a shape, which a plane has not."""
    if kind == "box":
        edges = [x.half_length, x.half_height, x.half_depth][:dimension]
        return jnp.sqrt(sum(jnp.square(jnp.asarray(e, float)) for e in edges))
    if kind == "cylinder":
        return jnp.sqrt(jnp.square(x.radius) + jnp.square(x.half_length))
    return x.radius if kind == "sphere" else x.radius + x.half_length


def _around(scene: Scene, kind: str, x: Any) -> Around:
    """Around a shape of the body of a scene."""
    a = scene.algebra
    if kind == "plane":
        normal = a.array(a.turned(scene.frame("body").turn, a.vector(x.normal)))
        return Around(centre=scene.position("body", x.at), radius=jnp.zeros(()), axes=normal[:, None])
    radius = jnp.asarray(radius_of(kind, x, scene.dimension), float)
    if kind != "box":
        return Around(centre=scene.position("body", x.at), radius=radius)
    solid = solid_box(scene, "body", x)
    return Around(centre=solid.centre, radius=radius, axes=solid.axes, half=solid.half)
