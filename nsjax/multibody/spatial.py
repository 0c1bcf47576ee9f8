"""Joint coordinates in space: Newton-Euler recursion body by body, mass matrix from composite bodies.

Every velocity moves what hangs on it as a screw ``S = (spin, velocity of the point at the origin)``: a
hinge ``(a, o x a)``, a slide ``(0, a)``, a ball three hinges about its body axes. With the inertia ``I_k``
of everything that velocity ``k`` moves, ``M_jk = S_j . I_k S_k`` for those ``j`` on the way to ``k``.
Gravity is an acceleration of the ground.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax.numpy as jnp
import numpy as np

from nsjax.linalg import matmul
from nsjax.math import rotations, sin_cos
from nsjax.multibody import spatial_vectors as space
from nsjax.multibody.frames import Frame, ground
from nsjax.multibody.parts import GROUND
from nsjax.multibody.topology import SIZES, Link, Topology
from nsjax.types import Array, PyTree, record

FOLDED = ""
"""Key of the derived constants in prepared params; no part has it, since names are words."""


@record()
class Geometry:
    """A joint as seen from the parent.

    Args:
        at, on: joint point in the axes of the parent and of the body.
        axis, second: in the axes of the parent, and of the body.
        frame: rotation of the body's axes in the parent's where the coordinates are zero.
        turns: ``(T0, T1, T2)`` for each hinge: ``T0 + cos T1 + sin T2`` is its rotation, ``frame``
        included.
    """

    at: Any = None
    on: Any = None
    axis: Any = None
    second: Any = None
    frame: Any = None
    turns: tuple[Any, ...] = ()


@dataclasses.dataclass(frozen=True)
class Moving:
    """A body's turn, origin, spin, velocity, and their rates at constant velocities of the coordinates."""

    turn: Any
    origin: Any
    spin: Any
    velocity: Any
    turning: Any
    acceleration: Any

    def at(self, arm: Any) -> Moving:
        """The same for a point of the body at ``arm``."""
        add, cross = space.add, space.cross
        swing = cross(self.spin, arm)
        change = add(cross(self.turning, arm), cross(self.spin, swing))
        return dataclasses.replace(
            self, origin=add(self.origin, arm), velocity=add(self.velocity, swing),
            acceleration=add(self.acceleration, change),
        )  # fmt: skip


def rotation_of(turned: Any) -> Any:
    """Matrix of a rotation vector (3,); None: no rotation."""
    return None if turned is None else rotations.matrix(rotations.exponential(jnp.asarray(turned, float)))


def _hinge(axis: Any, frame: Any) -> tuple[Any, Any, Any]:
    along = axis[:, None] * axis[None, :]
    found = along, jnp.eye(3) - along, space.skew(axis)
    t0, t1, t2 = (space.both(x, frame) for x in found)
    return t0, t1, t2


@dataclasses.dataclass(frozen=True)
class Tree:
    """Functions of the tree of a spatial `Topology`."""

    topology: Topology

    def folded(self, p: PyTree) -> dict[str, Geometry]:
        """Constants of all joints, with rotations multiplied out."""
        return {x.body: self._geometry(x, p) for x in self.topology.links if x.joint is not None}

    def _geometry(self, link: Link, p: PyTree) -> Geometry:
        x = p[link.joint]
        at, on, frame = space.vector(x.at), space.vector(x.on), rotation_of(x.turned)
        axis: Any = x.axis
        second: Any = x.second_axis
        if axis is None and link.kind == "slide":
            axis = jnp.asarray([1.0, 0.0, 0.0])
        axis, second = (None if a is None else jnp.asarray(a, float) for a in (axis, second))
        if link.reversed:
            at, on = on, at
            frame = None if frame is None else frame.T
            if link.kind == "universal":
                axis, second = -second, -axis
            elif axis is not None:
                axis = -space.turned(frame, axis)
        turns: tuple[Any, ...] = ()
        if link.kind in ("hinge", "cylindrical"):
            turns = (_hinge(axis, frame),)
        if link.kind == "universal":
            turns = _hinge(axis, frame), _hinge(second, None)
        return Geometry(at=at, on=on, axis=axis, second=second, frame=frame, turns=turns)

    @functools.cached_property
    def angles(self) -> dict[str, tuple[int, ...]]:
        """Entries of ``q`` that are angles of hinges, by body."""
        places = {"hinge": (0,), "cylindrical": (1,), "universal": (0, 1)}
        return {
            x.body: tuple(x.q + k for k in places[x.kind]) for x in self.topology.links if x.kind in places
        }

    @functools.cached_property
    def moves(self) -> np.ndarray:
        """Whether a velocity (nv,) moves a body (bodies,), in the order of the links."""
        table, links = SIZES[3], self.topology.links
        found = np.zeros((self.topology.sizes[1], len(links)))
        for k, link in enumerate(links):
            name = link.body
            while name != GROUND:
                one = self.topology.link_of[name]
                found[one.v : one.v + table[one.kind][1], k] = 1.0
                name = one.parent
        return found

    @functools.cached_property
    def before(self) -> np.ndarray:
        """Whether velocity j stands on the way to velocity k, or beside it in one joint (nv, nv)."""
        table, found = SIZES[3], np.zeros((len(self.moves), len(self.moves)))
        for k, link in enumerate(self.topology.links):
            own = slice(link.v, link.v + table[link.kind][1])
            found[:, own] = self.moves[:, k : k + 1]
        return found

    def walk(
        self, q: Array, v: Array | None, p: PyTree, gravity: Any = None
    ) -> tuple[dict[str, Moving], Array, Array]:
        """Motion of all bodies, and the screws of all velocities: spins and velocities (nv, 3)."""
        folded = p[FOLDED] if FOLDED in p else self.folded(p)
        turning = self._turning(q)
        moving = {GROUND: Moving(None, None, None, None, None, space.negative(gravity))}
        screws: list[tuple[Any, Any]] = [(None, None)] * self.topology.sizes[1]
        for link in self.topology.links:
            base = moving[link.parent]
            if link.kind == "free":
                moving[link.body] = self._free(link, base, q, v, screws)
                continue
            x = folded[link.body]
            moving[link.body] = self._hung(link, x, base, q, v, turning.get(link.body, ()), screws)
            if x.on is not None:
                arm = space.negative(space.turned(moving[link.body].turn, x.on))
                moving[link.body] = moving[link.body].at(arm)
        spins, velocities = (jnp.stack([space.array(s[k]) for s in screws]) for k in (0, 1))
        return moving, spins, velocities

    def _turning(self, q: Array) -> dict[str, tuple[tuple[Any, Any], ...]]:
        """Sine and cosine of all hinges, computed at once."""
        entries = [k for group in self.angles.values() for k in group]
        if not entries:
            return {}
        s, c = sin_cos(jnp.stack([q[k] for k in entries]))
        where = {k: (s[i], c[i]) for i, k in enumerate(entries)}
        return {body: tuple(where[k] for k in group) for body, group in self.angles.items()}

    def _free(self, link: Link, base: Moving, q: Array, v: Array | None, screws: list[Any]) -> Moving:
        turn, origin = rotations.matrix(q[link.q + 3 : link.q + 7]), q[link.q : link.q + 3]
        for k in range(3):
            screws[link.v + k] = None, jnp.asarray(np.eye(3)[k])
            screws[link.v + 3 + k] = turn[:, k], space.cross(origin, turn[:, k])
        if v is None:
            return Moving(turn, origin, None, None, None, base.acceleration)
        spin = space.turned(turn, v[link.v + 3 : link.v + 6])
        return Moving(turn, origin, spin, v[link.v : link.v + 3], None, base.acceleration)

    def _hung(
        self,
        link: Link,
        x: Geometry,
        base: Moving,
        q: Array,
        v: Array | None,
        turning: Any,
        screws: list[Any],
    ) -> Moving:
        """The body at its joint point."""
        add, cross, scale = space.add, space.cross, space.scale
        point = base.at(space.turned(base.turn, x.at))
        if link.kind in ("slide", "cylindrical"):
            along = space.turned(base.turn, x.axis)
            screws[link.v] = None, along
            point = point.at(q[link.q] * along)
            if v is not None:
                rate = v[link.v]
                point = dataclasses.replace(
                    point, velocity=add(point.velocity, rate * along),
                    acceleration=add(point.acceleration, scale(2.0 * rate, cross(base.spin, along))),
                )  # fmt: skip
        turn, spin, change = base.turn, base.spin, base.turning
        if link.kind in ("slide", "fixed"):
            return dataclasses.replace(point, turn=space.both(turn, x.frame))
        first = link.v + (1 if link.kind == "cylindrical" else 0)
        if link.kind == "ball":
            turn = space.both(turn, rotations.matrix(q[link.q : link.q + 4]))
            for k in range(3):
                screws[link.v + k] = turn[:, k], cross(point.origin, turn[:, k])
            if v is not None:
                own = space.turned(turn, v[link.v : link.v + 3])
                spin, change = add(spin, own), add(change, cross(spin, own))
            return dataclasses.replace(point, turn=turn, spin=spin, turning=change)
        for k, ((s, c), (t0, t1, t2)) in enumerate(zip(turning, x.turns, strict=True)):
            axis = space.turned(turn, x.axis) if k == 0 else None
            turn = space.both(turn, t0 + c * t1 + s * t2)
            axis = space.turned(turn, x.second) if axis is None else axis
            screws[first + k] = axis, cross(point.origin, axis)
            if v is not None:
                own = v[first + k] * axis
                spin, change = add(spin, own), add(change, cross(spin, own))
        return dataclasses.replace(point, turn=turn, spin=spin, turning=change)

    def frames(self, q: Array, v: Array | None, p: PyTree) -> dict[str, Frame]:
        """Frames of all bodies; without velocities for ``v`` None."""
        moving, _, _ = self.walk(q, v, p)
        found = {
            name: Frame(origin=x.origin, turn=x.turn, velocity=x.velocity, spin=x.spin)
            for name, x in moving.items()
        }
        return found | {GROUND: ground(3)}

    def masses(self, p: PyTree) -> Array:
        """Masses in the order of the links (bodies,)."""
        return jnp.stack([jnp.asarray(p[x.body].mass, float) for x in self.topology.links])

    def _centres(self, moving: dict[str, Moving], p: PyTree) -> list[Moving]:
        """Motion of the centres of mass, in the order of the links."""
        found = []
        for link in self.topology.links:
            body = moving[link.body]
            found.append(body.at(space.turned(body.turn, space.vector(p[link.body].com))))
        return found

    def mass(self, q: Array, p: PyTree) -> Array:
        """Mass matrix (nv, nv)."""
        moving, spins, velocities = self.walk(q, None, p)
        masses, centres, inertias = self.masses(p), self._centres(moving, p), []
        for link, mass, centre in zip(self.topology.links, masses, centres, strict=True):
            c = space.array(centre.origin)
            about = mass * (jnp.sum(c * c) * jnp.eye(3) - c[:, None] * c[None, :])
            own = inertia_in_ground(centre.turn, p[link.body].inertia)
            inertias.append(about if own is None else about + own)
        places = jnp.stack([space.array(x.origin) for x in centres])
        carried = jnp.concatenate(
            [masses[:, None], masses[:, None] * places, jnp.stack(inertias).reshape(-1, 9)], axis=1
        )
        carried = matmul(jnp.asarray(self.moves), carried)  # by velocity: mass, first and second moment
        heavy, first, second = carried[:, :1], carried[:, 1:4], carried[:, 4:].reshape(-1, 3, 3)
        push = heavy * velocities + space.cross(spins, first, 1)
        twist = jnp.sum(second * spins[:, None, :], axis=2) + space.cross(first, velocities, 1)
        met = matmul(spins, twist.T) + matmul(velocities, push.T)
        before = self.before
        lower = before * (1.0 - before.T)  # those that stand before, not beside
        beside = before * before.T
        return met * (beside + lower) + (met * lower).T + _diagonal(self.armature(p), before.shape[0])

    def armature(self, p: PyTree) -> Array | None:
        """Inertias driven with the coordinates (nv,), None without any."""
        entries: list[Any] = [None] * self.topology.sizes[1]
        for link in self.topology.links:
            if link.joint is not None and p[link.joint].armature is not None:
                entries[link.v] = p[link.joint].armature
        return None if all(x is None for x in entries) else jnp.stack([space.value(x) for x in entries])

    def force(self, q: Array, v: Array, gravity: Any, p: PyTree, wrenches: dict[str, Any]) -> Array:
        """Generalized forces (nv,) of gravity, loads and inertia at constant velocities."""
        moving, spins, velocities = self.walk(q, v, p, gravity)
        pushes, twists = [], []
        for link, centre in zip(self.topology.links, self._centres(moving, p), strict=True):
            push = space.negative(space.scale(p[link.body].mass, centre.acceleration))
            own = inertia_in_ground(centre.turn, p[link.body].inertia)
            twist = space.cross(centre.origin, push)
            if own is not None and centre.spin is not None:
                gyro = space.cross(centre.spin, jnp.sum(own * centre.spin[None, :], axis=1))
                twist = space.subtract(twist, gyro)
                if centre.turning is not None:
                    twist = space.subtract(twist, jnp.sum(own * centre.turning[None, :], axis=1))
            if link.body in wrenches:
                extra, turning = wrenches[link.body]
                push = space.add(push, extra)
                lever = space.cross(moving[link.body].origin, extra)
                twist = space.add(space.add(twist, lever), turning)
            pushes.append(space.array(push))
            twists.append(space.array(twist))
        both = matmul(
            jnp.asarray(self.moves), jnp.concatenate([jnp.stack(pushes), jnp.stack(twists)], axis=1)
        )
        return jnp.sum(spins * both[:, 3:] + velocities * both[:, :3], axis=1)

    def retract(self, q: Array, xi: Array) -> Array:
        """``q`` moved along an increment: quaternions by rotation, the rest by addition."""
        return jnp.concatenate([_moved(x, q, xi) for x in sorted(self.topology.links, key=_place)])

    def difference(self, q0: Array, q1: Array) -> Array:
        """Inverse of `retract`."""
        return jnp.concatenate([_between(x, q0, q1) for x in sorted(self.topology.links, key=_place)])

    @property
    def flat(self) -> bool:
        """Whether positions are added: no quaternions."""
        return all(x.kind not in ("ball", "free") for x in self.topology.links)


def _place(link: Link) -> tuple[int, int]:
    return link.q, link.v


def _parts(link: Link, q: Array, xi: Array) -> tuple[Array, Array]:
    nq, nv = SIZES[3][link.kind]
    return q[link.q : link.q + nq], xi[link.v : link.v + nv]


def _moved(link: Link, q: Array, xi: Array) -> Array:
    own, step = _parts(link, q, xi)
    if link.kind == "ball":
        return rotations.rotate(own, step)
    return rotations.move_pose(own, step) if link.kind == "free" else own + step


def _between(link: Link, q0: Array, q1: Array) -> Array:
    nq = SIZES[3][link.kind][0]
    a, b = q0[link.q : link.q + nq], q1[link.q : link.q + nq]
    if link.kind == "ball":
        return rotations.rotation_between(a, b)
    return rotations.pose_between(a, b) if link.kind == "free" else b - a


def _diagonal(entries: Array | None, n: int) -> Any:
    return 0.0 if entries is None else entries[:, None] * np.eye(n)


def inertia_in_ground(turn: Any, inertia: Any) -> Any:
    """Inertia of a body (3, 3) in the axes of the ground; None for a point mass."""
    if inertia is None:
        return None
    inertia = jnp.asarray(inertia, float)
    if inertia.ndim == 0:
        inertia = jnp.broadcast_to(inertia, (3,))
    if turn is None:
        return inertia if inertia.ndim == 2 else inertia[:, None] * np.eye(3)
    left = turn * inertia[None, :] if inertia.ndim == 1 else space.both(turn, inertia)
    return space.both(left, turn.T)
