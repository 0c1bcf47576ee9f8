"""Mass matrix and generalised forces of a planar tree, by scalar recursion over its groups."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax.numpy as jnp

from nsjax.multibody.coordinates import planar_vectors as plane
from nsjax.multibody.coordinates.planar import PlanarPlacement, PlanarTree
from nsjax.multibody.parts import GROUND
from nsjax.multibody.topology import Link
from nsjax.types import Array, PyTree

Vector = plane.Vector
Wrenches = dict[str, tuple[Vector, Any]]
"""Force on a body and moment about the body's origin, by name; bodies without loads are left out."""


@dataclasses.dataclass(frozen=True)
class Dynamics:
    """Mass matrix and forces of a tree at a position.

    Args:
        tree: the tree.
        q: coordinates (nq,).
        p: params.
    """

    tree: PlanarTree
    q: Array
    p: PyTree

    @functools.cached_property
    def places(self) -> dict[str, PlanarPlacement]:
        """Places of the bodies in their groups."""
        return self.tree.places(self.q, self.p)

    @functools.cached_property
    def turns(self) -> dict[str, plane.Turn]:
        """Sine and cosine of the groups."""
        return self.tree.turn_of(self.q)

    @functools.cached_property
    def carried(self) -> dict[str, tuple[Any, Vector]]:
        """Mass of a body and of all bodies that hang on it, and their first moment in the axes of the
        body's group; the mass behind a hinge counts at the hinge.
        """
        found: dict[str, tuple[Any, Vector]] = {}
        for link in reversed(self.tree.links):
            mass = self.p[link.body].mass
            first = plane.scale(mass, self.places[link.body].com)
            for child in self.tree.children[link.body]:
                heavy, inner = found[child.body]
                mass = mass + heavy
                hangs = bool(child.kind.turns)
                inner = plane.scale(heavy, self.places[child.body].hang) if hangs else inner
                first = plane.add(first, inner)
            found[link.body] = mass, first
        return found

    @functools.cached_property
    def coms(self) -> dict[str, Vector]:
        """Centres of mass from the point about which their group turns, in the axes of the ground."""
        return {
            x.body: self.in_ground(self.tree.group[x.body], self.places[x.body].com)
            for x in self.tree.links
        }

    @functools.cached_property
    def hangs(self) -> dict[str, Vector]:
        """Joint points from the point about which the parent's group turns, in the axes of the ground."""
        return {
            x.body: self.in_ground(self.tree.group[x.parent], self.places[x.body].hang)
            for x in self.tree.links
        }

    def in_ground(self, group: str, a: Vector) -> Vector:
        """A vector, given in the axes of a group, in the axes of the ground."""
        return plane.turned(self.turns[group], a)

    def exit(self, group: str, body: str) -> str:
        """The body behind the hinge through which a path leaves ``group`` towards ``body``."""
        path = self.tree.path(body)
        inner = next(k for k, name in enumerate(path) if self.tree.group[name] == group)
        return path[inner - 1]

    def lever(self, group: str, body: str) -> Vector:
        """First moment of the part of ``body`` and its children that ``group`` moves, about the point of
        rotation of the group, in the axes of the ground.
        """
        if self.tree.group[body] == group:
            return self.in_ground(group, self.carried[body][1])
        return plane.scale(self.carried[body][0], self.hangs[self.exit(group, body)])

    def axis(self, link: Link, which: int) -> Vector:
        """Direction of a displacement in the axes of the ground."""
        if link.free:
            return (1.0, None) if which == 0 else (None, 1.0)
        return self.in_ground(self.tree.group[link.parent], self.places[link.body].axis)

    def _inertia(self, group: str) -> Any:
        """Moment of inertia of a group about its point of rotation; masses behind hinges count at these."""
        total = None
        for link in self.tree.links:
            place, numbers = self.places[link.body], self.p[link.body]
            if self.tree.group[link.body] == group:
                com = plane.times(numbers.mass, plane.dot(place.com, place.com))
                total = plane.plus(plane.plus(total, numbers.inertia), com)
            if link.kind.turns and self.tree.group[link.parent] == group:
                heavy = plane.times(self.carried[link.body][0], plane.dot(place.hang, place.hang))
                total = plane.plus(total, heavy)
        return total

    def mass(self) -> Array:
        """Mass matrix (nv, nv)."""
        tree, n = self.tree, self.tree.topology.sizes[1]
        entries: dict[tuple[int, int], Any] = {}
        for group, k in tree.turns.items():
            entries[k, k] = self._inertia(group)
            for inner, j in tree.turns.items():
                if inner != group and group in tree.path(inner):
                    lever = self.in_ground(inner, self.carried[inner][1])
                    entries[k, j] = plane.dot(self.hangs[self.exit(group, inner)], lever)
            for link, j, which in tree.moves:
                if group in tree.path(link.body) or link.body in tree.path(group):
                    above = group in tree.path(link.body)
                    moved = self.lever(group, link.body if above else group)
                    entries[k, j] = plane.dot(plane.perp(moved), self.axis(link, which))
        for link, j, which in tree.moves:
            for other, i, way in tree.moves:
                if i <= j and (link.body in tree.path(other.body) or other.body in tree.path(link.body)):
                    deeper = link if other.body in tree.path(link.body) else other
                    along = plane.dot(self.axis(link, which), self.axis(other, way))
                    entries[i, j] = plane.times(self.carried[deeper.body][0], along)
        self._armature(entries)
        rows = [plane.value(entries.get((i, j), entries.get((j, i)))) for i in range(n) for j in range(n)]
        return jnp.stack(rows).reshape(n, n)

    def _armature(self, entries: dict[tuple[int, int], Any]) -> None:
        """Add to the mass matrix the inertias that the coordinates of joints and free bodies drive."""
        for link in self.tree.links:
            extra = self.p[link.body if link.joint is None else link.joint].armature
            if extra is None:
                continue
            if link.joint is None:
                for k in range(link.v, link.v + link.size[1]):
                    entries[k, k] = plane.plus(entries[k, k], extra)
                continue
            own, group = link.v, self.tree.group[link.parent]
            entries[own, own] = plane.plus(entries[own, own], extra)
            if link.kind.turns and group != GROUND:  # the angle is measured from the parent
                k = self.tree.turns[group]
                entries[k, k] = plane.plus(entries[k, k], extra)
                place = (k, own) if (k, own) in entries else (own, k)
                entries[place] = plane.plus(entries.get(place), -extra)

    def _accelerations(self, v: Array, gravity: Vector) -> dict[str, tuple[Vector, Vector]]:
        """Accelerations of joints and mass centres at constant generalised velocities, for a ground that
        accelerates against gravity.
        """
        found = {GROUND: (plane.negative(gravity), plane.ZERO)}
        base = {GROUND: plane.negative(gravity)}
        for link in self.tree.links:
            group = self.tree.group[link.body]
            joint = base[GROUND] if link.free else self._of_point(
                self.tree.group[link.parent], self.hangs[link.body], self.tree.slides(link), v, base
            )  # fmt: skip
            if link.kind.turns:
                base[link.body] = joint
            slides = [] if group == link.body else self.tree.slides(link)
            com = self._of_point(group, self.coms[link.body], slides, v, base)
            found[link.body] = joint, com
        return found

    def _of_point(
        self, group: str, arm: Vector, slides: list[Link], v: Array, base: dict[str, Vector]
    ) -> Vector:
        """Acceleration of a point of a group, at ``arm`` from the point about which the group turns."""
        if group == GROUND:
            return base[GROUND]
        spin = v[self.tree.turns[group]]
        found = plane.subtract(base[group], plane.scale(spin * spin, arm))
        for one in slides:
            turning = plane.perp(self.in_ground(group, self.places[one.body].axis))
            found = plane.add(found, plane.scale(2.0 * spin * v[one.v], turning))
        return found

    def force(self, v: Array, gravity: Vector, wrenches: Wrenches) -> Array:
        """Generalised forces (nv,) of gravity, loads and inertia at constant generalised velocities."""
        tree, n = self.tree, self.tree.topology.sizes[1]
        acceleration = self._accelerations(v, gravity)
        total: dict[str, Vector] = {}
        moments: dict[str, Any] = dict.fromkeys(tree.turns)
        entries: list[Any] = [None] * n
        for link in reversed(tree.links):
            body, group, place = link.body, tree.group[link.body], self.places[link.body]
            push = plane.negative(plane.scale(self.p[body].mass, acceleration[body][1]))
            if group != GROUND:
                moments[group] = plane.plus(moments[group], plane.moment(self.coms[body], push))
            if body in wrenches:
                extra, turning = wrenches[body]
                push = plane.add(push, extra)
                if group != GROUND:
                    offset = plane.subtract(place.joint, plane.turned(place.turn, tree._on(body, self.p)))
                    more = plane.moment(self.in_ground(group, offset), extra)
                    moments[group] = plane.plus(plane.plus(moments[group], more), turning)
            for child in tree.children[body]:
                push = plane.add(push, total[child.body])
                if child.kind.turns and group != GROUND:
                    turning = plane.moment(self.hangs[child.body], total[child.body])
                    moments[group] = plane.plus(moments[group], turning)
            total[body] = push
        for group, k in tree.turns.items():
            entries[k] = moments[group]
        for link, k, which in tree.moves:
            entries[k] = plane.dot(self.axis(link, which), total[link.body])
        return jnp.stack([plane.value(x) for x in entries])
