"""Joint coordinates in the plane: absolute angles of the bodies, displacements of slides.

Bodies between two hinges turn together. They form a *group*, named by the body whose hinge turns it. With
absolute angles, the rotation of a group moves the bodies that hang on it without turning them. Therefore

* the mass matrix has constant diagonal entries of groups, ``S . rho`` between two groups, and ``S x e``
  between a group and a slide that move common bodies, with the first moment ``S`` of these bodies;
* forces are passed on to the parent, moments are not.

Gravity is an acceleration of the ground. Terms that are zero by construction are left out
(`nsjax.multibody.coordinates.planar_vectors`).
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax.numpy as jnp

from nsjax.math import sin_cos
from nsjax.multibody.coordinates import planar_vectors as plane
from nsjax.multibody.coordinates.frames import Frame, ground
from nsjax.multibody.parts import GROUND
from nsjax.multibody.topology import Link, Topology
from nsjax.types import Array, PyTree

Vector = plane.Vector


@dataclasses.dataclass(frozen=True)
class PlanarPlacement:
    """Place of a body in its group, the bodies that turn together. Vectors are in the axes of the group,
    from the point about which the group turns.

    Args:
        hang: the body's joint point on its parent, in the group of the parent.
        joint: the same point in the body's own group; zero for the first body of a group.
        com: centre of mass of the body.
        turn, tilt: rotation of the body's axes relative to the group, as sine and cosine, and as an angle.
        axis: axis of the slide on which the body hangs.
    """

    hang: Vector = plane.ZERO
    joint: Vector = plane.ZERO
    com: Vector = plane.ZERO
    turn: plane.Turn = None
    tilt: Any = None
    axis: Vector = plane.ZERO


@dataclasses.dataclass(frozen=True)
class PlanarTree:
    """Functions of the tree of a planar `Topology`."""

    topology: Topology

    @functools.cached_property
    def links(self) -> tuple[Link, ...]:
        """Links of all bodies, parents first."""
        return self.topology.links

    @functools.cached_property
    def group(self) -> dict[str, str]:
        """The body whose angle turns each body."""
        found = {GROUND: GROUND}
        for link in self.links:
            found[link.body] = link.body if link.kind.turns else found[link.parent]
        return found

    @functools.cached_property
    def children(self) -> dict[str, tuple[Link, ...]]:
        """The bodies that hang on each body, by its name."""
        names = [GROUND, *(link.body for link in self.links)]
        return {name: tuple(x for x in self.links if x.parent == name) for name in names}

    def path(self, body: str) -> list[str]:
        """Names of the bodies from a body to the ground, both included."""
        found = [body]
        while found[-1] != GROUND:
            found.append(self.topology.link_of[found[-1]].parent)
        return found

    @functools.cached_property
    def turns(self) -> dict[str, int]:
        """Entries of ``q`` and of ``v`` that are angles of groups."""
        return {x.body: x.v + x.kind.slides for x in self.links if x.kind.turns}

    @functools.cached_property
    def moves(self) -> tuple[tuple[Link, int, int], ...]:
        """Displacements: link, entry of ``v``, and number of the direction (0 or 1; 0 for a slide)."""
        return tuple((x, x.v + k, k) for x in self.links for k in range(x.kind.slides))

    def places(self, q: Array, p: PyTree) -> dict[str, PlanarPlacement]:
        """Place of every body in its group."""
        found = {GROUND: PlanarPlacement()}
        for link in self.links:
            found[link.body] = self._place(link, found[link.parent], q, p)
        return found

    def _place(self, link: Link, parent: PlanarPlacement, q: Array, p: PyTree) -> PlanarPlacement:
        at, on, axis, tilt = self._geometry(link, p)
        com = plane.subtract(plane.vector(p[link.body].com), on)
        if link.free:
            return PlanarPlacement(com=com)
        at = plane.subtract(at, self._on(link.parent, p))
        hang = plane.add(parent.joint, plane.turned(parent.turn, at))
        if link.kind.slides:
            axis = plane.turned(parent.turn, axis)
            hang = plane.add(hang, plane.scale(q[link.v], axis))
        if link.kind.turns:
            # a hinge begins a group: places behind it count from its own joint point
            return PlanarPlacement(hang=hang, com=com, axis=axis)
        turn = parent.turn if tilt is None else plane.both(parent.turn, (jnp.sin(tilt), jnp.cos(tilt)))
        com = plane.add(hang, plane.turned(turn, com))
        return PlanarPlacement(
            hang=hang, joint=hang, com=com, turn=turn, tilt=plane.plus(parent.tilt, tilt), axis=axis
        )

    def _geometry(self, link: Link, p: PyTree) -> tuple[Vector, Vector, Vector, Any]:
        """Joint point on the parent and on the body, axis on the parent, tilt of the body."""
        if link.joint is None:
            return plane.ZERO, plane.ZERO, plane.ZERO, None
        x = p[link.joint]
        at, on, tilt = plane.vector(x.at), plane.vector(x.on), x.turned
        axis = plane.vector(1.0 if x.axis is None else x.axis)
        if not link.reversed:
            return at, on, axis, tilt
        if tilt is not None:
            axis = plane.turned_back((jnp.sin(tilt), jnp.cos(tilt)), axis)
        return on, at, plane.negative(axis), plane.minus(tilt)

    def _on(self, body: str, p: PyTree) -> Vector:
        """Joint point of a body in its own axes."""
        return plane.ZERO if body == GROUND else self._geometry(self.topology.link_of[body], p)[1]

    def turn_of(self, q: Array) -> dict[str, plane.Turn]:
        """Sine and cosine of the angle of every group, computed in one call."""
        if not self.turns:
            return {GROUND: None}
        entries = list(self.turns.values())
        angles = q if len(entries) == q.shape[0] else jnp.stack([q[k] for k in entries])
        s, c = sin_cos(angles)
        where = range(len(entries)) if angles is not q else entries
        return {GROUND: None} | {b: (s[k], c[k]) for b, k in zip(self.turns, where, strict=True)}

    def frames(self, q: Array, v: Array | None, p: PyTree) -> dict[str, Frame]:
        """Frames of all bodies; without velocities for ``v`` None."""
        places, turns = self.places(q, p), self.turn_of(q)
        joints: dict[str, tuple[Vector, Vector]] = {GROUND: (plane.ZERO, plane.ZERO)}
        frames = {GROUND: ground(2)}
        for link in self.links:
            body, group = link.body, self.group[link.body]
            point, motion = self._joint_point(link, places, turns, joints, q, v)
            joints[body] = point, motion
            turn = plane.both(turns[group], places[body].turn)
            spin = None if group == GROUND or v is None else v[self.turns[group]]
            angle = None if group == GROUND else q[self.turns[group]]
            arm = plane.turned(turn, plane.negative(self._on(body, p)))
            frames[body] = Frame(
                origin=plane.add(point, arm), turn=turn, angle=plane.plus(angle, places[body].tilt),
                velocity=plane.add(motion, plane.swing(spin, arm)), spin=spin,
            )  # fmt: skip
        return frames

    def _joint_point(
        self, link: Link, places: dict[str, PlanarPlacement], turns: dict[str, plane.Turn],
        joints: dict[str, tuple[Vector, Vector]], q: Array, v: Array | None,
    ) -> tuple[Vector, Vector]:  # fmt: skip
        """Position and velocity of the joint of a body."""
        if link.free:
            return (q[link.v], q[link.v + 1]), plane.ZERO if v is None else (v[link.v], v[link.v + 1])
        group = self.group[link.parent]
        arm = plane.turned(turns[group], places[link.body].hang)
        base, motion = joints[group]
        point = plane.add(base, arm)
        if v is None:
            return point, plane.ZERO
        spin = None if group == GROUND else v[self.turns[group]]
        # a point of a group moves with the rotation of the group and with the slides before it
        motion = plane.add(motion, plane.swing(spin, arm))
        for one in self.slides(link):
            axis = plane.turned(turns[group], places[one.body].axis)
            motion = plane.add(motion, plane.scale(v[one.v], axis))
        return point, motion

    def slides(self, link: Link) -> list[Link]:
        """Slides between a body's joint and the point about which its parent's group turns."""
        group, found = self.group[link.parent], [link] if link.kind.slides else []
        for name in self.path(link.parent):
            if name == GROUND or self.group[name] != group:
                break
            one = self.topology.link_of[name]
            # a joint that slides and turns moves the point about which its group turns
            found += [one] if one.kind.slides and not one.kind.turns else []
        return found


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
        """Mass of a body and all that hangs on it, and their first moment in the axes of its group."""
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
        """First moment of the part of ``body`` that ``group`` moves, about its point of rotation."""
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
            # a turn moves all bodies that its group carries: two turns share what the inner one carries
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
        """Accelerations of joints and mass centres at constant velocities, minus gravity."""
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
        # from the tips to the ground: forces on a body, inertia among them, act on all that carries it
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
