"""Joint coordinates in space: Newton-Euler recursion generation by generation.

Each generalised velocity moves the bodies that hang on its joint with a screw ``S = (spin, velocity of the
body-fixed point at the origin of the ground)``: a hinge ``(a, o x a)``, a slide ``(0, a)``, a ball as three
hinges about its body axes. With the inertia ``I_k`` of all bodies that velocity ``k`` moves, the mass
matrix is ``M_jk = S_j . I_k S_k`` for all ``j`` on the path from the ground to ``k``. Gravity is an
acceleration of the ground.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.linalg import matmul
from nsjax.math import picked, rotations, sin_cos
from nsjax.multibody.coordinates import spatial_vectors as space
from nsjax.multibody.coordinates.frames import Frame, Frames, constants, ground
from nsjax.multibody.joints import FREE, JointKind
from nsjax.multibody.joints.joint_kind import At, FrameMotion, Geometry
from nsjax.multibody.numbers import side_by_side
from nsjax.multibody.parts import GROUND
from nsjax.multibody.topology import Link, Topology
from nsjax.types import Array, PyTree, record

# Generations of a tree: bodies at equal depth on joints of one kind, evaluated as a batch.
#
# A program that walks from body to body grows with their number. Here it grows with the depth of the
# tree: the four legs of a robot are arrays of four. Vectors of ``n`` bodies are arrays (3, n), turns (3,
# 3, n); (3, 1) is one vector for all bodies; None is zero, or no turn.


@dataclasses.dataclass(frozen=True)
class Generation:
    """Bodies on joints of one kind whose parents belong to one generation.

    Args:
        kind: of the joints.
        links: of the bodies.
        parent: number of the generation of the parents; None: the ground.
        places: index of each body's parent in that generation; None: the same order.
    """

    kind: JointKind
    links: tuple[Link, ...]
    parent: int | None
    places: tuple[int, ...] | None

    @property
    def of_parents(self) -> np.ndarray | None:
        """Indices of the parents in their generation; None: the same order."""
        return None if self.places is None else np.array(self.places)


def generations(links: tuple[Link, ...]) -> tuple[Generation, ...]:
    """Generations of a tree, parents first."""
    where: dict[str, tuple[int, int]] = {}
    found: list[tuple[JointKind, int | None, list[Link]]] = []
    waiting = list(links)
    while waiting:
        ready = [x for x in waiting if x.parent == GROUND or x.parent in where]
        groups: dict[Any, list[Link]] = {}
        for link in ready:
            above = None if link.parent == GROUND else where[link.parent][0]
            groups.setdefault((link.kind, above), []).append(link)
        for (kind, above), group in groups.items():
            # the order of the parents, so that the selection of parents is a slice
            group.sort(key=lambda x: (0, 0) if x.parent == GROUND else where[x.parent])
            found.append((kind, above, group))
            where |= {link.body: (len(found) - 1, k) for k, link in enumerate(group)}
        waiting = [x for x in waiting if x.body not in where]
    made = []
    for kind, above, group in found:
        places: Any = None
        if above is not None:
            places = tuple(where[x.parent][1] for x in group)
            places = None if places == tuple(range(len(found[above][2]))) else places
        made.append(Generation(kind, tuple(group), above, places))
    return tuple(made)


@dataclasses.dataclass(frozen=True)
class Walk:
    """Forward recursion over a tree, from the ground to the last bodies."""

    links: tuple[Link, ...]

    @functools.cached_property
    def generations(self) -> tuple[Generation, ...]:
        """Generations, parents first."""
        return generations(self.links)

    @functools.cached_property
    def order(self) -> tuple[Link, ...]:
        """All links, generation by generation."""
        return tuple(x for g in self.generations for x in g.links)

    @functools.cached_property
    def entries(self) -> np.ndarray:
        """Entries of ``q`` that are scalar coordinates, by generation: the first of all joints, ..."""
        own = [x.q + k for g in self.generations for k in range(g.kind.numbers) for x in g.links]
        return np.array(own, int)

    @functools.cached_property
    def rates(self) -> np.ndarray:
        """Entries of ``v``, generation by generation; within one, the first velocity of all, the next."""
        own = [x.v + k for g in self.generations for k in range(g.kind.sizes[3][1]) for x in g.links]
        return np.array(own, int)

    def __call__(
        self, q: Array, v: Array | None, joints: tuple[Geometry, ...], gravity: Any
    ) -> tuple[tuple[FrameMotion, ...], Array, Array]:
        """Motion of all generations, and the screws of all velocities: spins and velocities (nv, 3)."""
        x = picked(q, self.entries)
        # all sines at once: one pass over the coordinates, and not one for each joint
        turned = self._turned(x)
        rates = None if v is None else picked(v, self.rates)
        ground = FrameMotion(acceleration=gravity)
        made: list[FrameMotion] = []
        spins, velocities, first, entry = [], [], 0, 0
        for g, joint in zip(self.generations, joints, strict=True):
            base = ground if g.parent is None else made[g.parent].of(g.of_parents)
            n, own, size = len(g.links), g.kind.numbers, g.kind.sizes[3][1]
            here = slice(entry, entry + own * n)
            speed = None if rates is None else rates[first : first + size * n].reshape(size, n)
            at = At(
                g.kind, g.links, base, joint, q, x[here].reshape(own, n), _some(turned, here, own), speed
            )
            moved, screws = g.kind.step(at)
            made.append(moved)
            spins += [space.many(s, n) for s, _ in screws]
            velocities += [space.many(u, n) for _, u in screws]
            first, entry = first + size * n, entry + own * n
        both = jnp.concatenate([jnp.concatenate(spins, axis=1), jnp.concatenate(velocities, axis=1)])
        found = picked(both, np.argsort(self.rates)).T
        return tuple(made), found[:, :3], found[:, 3:]

    def _turned(self, x: Array) -> tuple[Array, Array] | None:
        """Sines and cosines of all scalar coordinates, of which only those of angles are used."""
        return sin_cos(x) if any(g.kind.numbers and g.kind.turns for g in self.generations) else None


def _some(turned: tuple[Array, Array] | None, here: slice, own: int) -> Any:
    if turned is None or not own:
        return None
    s, c = (y[here].reshape(own, -1) for y in turned)
    return s, c


# Joint coordinates in space: Newton-Euler recursion generation by generation, mass matrix from composite
# bodies.


@record()
class TreeConstants:
    """Constants of a spatial tree, derived from its params once: joints by generation, and inertias.

    Args:
        joints: geometry of the joints of each generation.
        mass: masses of all bodies (n,) [kg].
        com: mass centres (3, n) in body axes [m].
        inertia: inertias about the mass centres (3, 3, n) [kg m^2].
        armature: inertias that joint coordinates drive (nv,); None: none.
    """

    joints: tuple[Geometry, ...]
    mass: Any
    com: Any
    inertia: Any
    armature: Any


def _hinges(axis: Array, frame: Any) -> tuple[Array, Array, Array]:
    """Matrices ``(T0, T1, T2)`` of hinges about axes (3, n), see `Geometry`."""
    along = axis[:, None] * axis[None]
    found = along, np.eye(3)[:, :, None] - along, space.skew(axis)
    t0, t1, t2 = (space.both(x, frame) for x in found)
    return t0, t1, t2


def _beside(values: Sequence[Any], none: Any) -> Any:
    """Values stacked along a last axis, with ``none`` for each None; None if all are None."""
    if all(x is None for x in values):
        return None
    return jnp.stack([jnp.asarray(none if x is None else x, float) for x in values], axis=-1)


def _geometry(generation: Generation, p: PyTree) -> Geometry:
    """Geometry of the joints of a generation; joints given from body to parent are reversed."""
    kind, links = generation.kind, generation.links
    if kind is FREE:
        return Geometry()
    joints, back = [p[x.joint] for x in links], np.array([x.reversed for x in links])
    ends = [(x.on, x.at) if y else (x.at, x.on) for x, y in zip(joints, back, strict=True)]
    at, on = (_beside([space.vector(x[k]) for x in ends], np.zeros(3)) for k in (0, 1))
    turned, unit = _beside([x.turned for x in joints], np.zeros(3)), np.array([1.0, 0.0, 0.0])
    frame = None if turned is None else jnp.moveaxis(jax.vmap(space.rotation_of, 1)(turned), 0, -1)
    axes = [kind.first_axis if x.axis is None else x.axis for x in joints]
    axis, second = _beside(axes, unit), _beside([x.second_axis for x in joints], unit)
    # seen from the other body a joint has the inverse frame, and turns about the opposite axis
    if np.any(back):
        frame = None if frame is None else jnp.where(back, jnp.swapaxes(frame, 0, 1), frame)
        if kind.back is not None:
            given = kind.back(axis, second, frame)
            axis, second = jnp.where(back, given[0], axis), jnp.where(back, given[1], second)
        elif axis is not None:
            axis = jnp.where(back, -space.turned(frame, axis), axis)
    own = side_by_side([x.own for x in joints], -1)
    made = Geometry(at=at, on=on, axis=axis, second_axis=second, frame=frame, own=own)
    axes_of_turns = [getattr(made, x) for x in kind.turns]
    turns = tuple(_hinges(x, None if k else frame) for k, x in enumerate(axes_of_turns))
    return dataclasses.replace(made, turns=turns)


@dataclasses.dataclass(frozen=True)
class SpatialTree:
    """Functions of the tree of a spatial `Topology`."""

    topology: Topology

    def folded(self, p: PyTree) -> TreeConstants:
        """Constants of all joints, with their rotations multiplied, and of all bodies."""
        joints = tuple(_geometry(g, p) for g in self.steps.generations)
        bodies = [p[x.body] for x in self.steps.order]
        return TreeConstants(
            joints=joints, mass=jnp.stack([jnp.asarray(x.mass, float) for x in bodies]),
            com=_beside([space.vector(x.com) for x in bodies], np.zeros(3)),
            inertia=_beside(
                [None if x.inertia is None else space.inertia_matrix(x.inertia) for x in bodies],
                np.zeros((3, 3)),
            ),
            armature=self._armature(p),
        )  # fmt: skip

    def _ready(self, p: PyTree) -> TreeConstants:
        found: TreeConstants | None = constants(p).tree
        return self.folded(p) if found is None else found

    @functools.cached_property
    def steps(self) -> Walk:
        """Forward recursion from the ground to the last bodies."""
        return Walk(self.topology.links)

    @functools.cached_property
    def places(self) -> dict[str, tuple[int, int]]:
        """Generation of each body, and its index there."""
        groups = enumerate(self.steps.generations)
        return {link.body: (i, k) for i, g in groups for k, link in enumerate(g.links)}

    @functools.cached_property
    def moves(self) -> np.ndarray:
        """Mask (nv, bodies): whether each velocity moves each body, in the order of the recursion."""
        links = self.steps.order
        found = np.zeros((self.topology.sizes[1], len(links)))
        for k, link in enumerate(links):
            name = link.body
            while name != GROUND:
                one = self.topology.link_of[name]
                found[one.rates, k] = 1.0
                name = one.parent
        return found

    @functools.cached_property
    def before(self) -> np.ndarray:
        """Mask (nv, nv): whether velocity j is on the path to velocity k, or belongs to the same joint."""
        found = np.zeros((len(self.moves), len(self.moves)))
        for k, link in enumerate(self.steps.order):
            found[:, link.rates] = self.moves[:, k : k + 1]
        return found

    def walk(
        self, q: Array, v: Array | None, x: TreeConstants, gravity: Any = None
    ) -> tuple[tuple[FrameMotion, ...], Array, Array]:
        """Motion of all bodies, and the screws of all velocities: spins and velocities (nv, 3)."""
        up = None if gravity is None else -gravity[:, None]
        return self.steps(q, v, x.joints, up)

    def frames(self, q: Array, v: Array | None, p: PyTree) -> Frames:
        """Frames of all bodies; without velocities for ``v`` None."""
        x = self._ready(p)
        return self._frames(functools.cache(lambda: self.walk(q, v, x)[0]))

    def frames_and_screws(self, q: Array, v: Array | None, p: PyTree) -> tuple[Frames, Array, Array]:
        """Frames of all bodies, and the screws of all velocities: spins and velocities (nv, 3)."""
        moving, spins, velocities = self.walk(q, v, self._ready(p))
        return self._frames(lambda: moving), spins, velocities

    def moves_of(self, bodies: Sequence[str]) -> np.ndarray:
        """Mask (bodies, nv): whether each velocity moves each body; nothing moves the ground."""
        still, order = np.zeros(len(self.moves)), {x.body: k for k, x in enumerate(self.steps.order)}
        return np.stack([still if x == GROUND else self.moves[:, order[x]] for x in bodies])

    def _frames(self, moving: Callable[[], tuple[FrameMotion, ...]]) -> Frames:
        def frame(name: str) -> Frame:
            if name == GROUND:
                return ground(3)
            i, k = self.places[name]
            own = moving()[i]
            turn, origin, velocity, spin = (
                None if y is None else y[..., k if y.shape[-1] > 1 else 0]
                for y in (own.turn, own.origin, own.velocity, own.spin)
            )
            return Frame(origin=origin, turn=turn, velocity=velocity, spin=spin)

        def every() -> Frame:
            own = moving()
            origin, turn, velocity, spin = (
                self._all(own, x) for x in ("origin", "turn", "velocity", "spin")
            )
            return Frame(origin=origin, turn=turn, velocity=velocity, spin=spin)

        return Frames((GROUND, *self.places), frame, every=every)

    def named(self, every: Frame) -> Frames:
        """Frames by name, of those of all bodies along a last axis."""
        names = [x.body for g in self.steps.generations for x in g.links]

        def frame(name: str) -> Frame:
            k = None if name == GROUND else names.index(name)
            return ground(3) if k is None else jax.tree.map(lambda x: x[..., k], every)

        return Frames((GROUND, *self.places), frame, every=lambda: every)

    def _all(self, moving: tuple[FrameMotion, ...], name: str) -> Any:
        """Values (3, n) or (3, 3, n) of all bodies; None: zero, or no turn."""
        found = [getattr(x, name) for x in moving]
        if all(x is None for x in found):
            return None
        none, wide = np.eye(3)[:, :, None] if name == "turn" else np.zeros((3, 1)), []
        for x, g in zip(found, self.steps.generations, strict=True):
            x = none if x is None else x
            wide.append(jnp.broadcast_to(x, (*x.shape[:-1], len(g.links))))
        return jnp.concatenate(wide, axis=-1)

    def _centres(self, moving: tuple[FrameMotion, ...], x: TreeConstants) -> FrameMotion:
        """Motion of the centres of mass of all bodies, in the order of the recursion."""
        every = FrameMotion(**{f.name: self._all(moving, f.name) for f in dataclasses.fields(FrameMotion)})
        return every.at(space.turned(every.turn, x.com))

    def mass(self, q: Array, p: PyTree) -> Array:
        """Mass matrix (nv, nv)."""
        x = self._ready(p)
        moving, spins, velocities = self.walk(q, None, x)
        centres = self._centres(moving, x)
        mass = x.mass
        c = space.many(centres.origin, len(mass))
        # about the origin of the ground, so that moments of bodies that move together are added
        second = mass * (jnp.sum(c * c, axis=0) * np.eye(3)[:, :, None] - c[:, None] * c[None])
        own = inertia_in_ground(centres.turn, x.inertia)
        second = second if own is None else second + own
        carried = jnp.concatenate([mass[None], mass * c, second.reshape(9, -1)]).T
        carried = matmul(jnp.asarray(self.moves), carried)  # mass, first, second moment by velocity
        heavy, first, second = carried[:, :1], carried[:, 1:4], carried[:, 4:].reshape(-1, 3, 3)
        push = heavy * velocities + space.cross(spins, first, 1)
        twist = jnp.sum(second * spins[:, None, :], axis=2) + space.cross(first, velocities, 1)
        # the momentum of what one velocity moves, along another: entries of the mass matrix
        energies = matmul(
            jnp.concatenate([spins, velocities], axis=1), jnp.concatenate([twist, push], axis=1).T
        )
        before = self.before
        lower = before * (1.0 - before.T)  # on the path before, not in the same joint
        beside = before * before.T
        return energies * (beside + lower) + (energies * lower).T + _diagonal(x.armature, before.shape[0])

    def _armature(self, p: PyTree) -> Array | None:
        """Inertias (nv,) that the coordinates of joints and free bodies drive; None: none."""
        entries: list[Any] = [None] * self.topology.sizes[1]
        for link in self.topology.links:
            own = p[link.body if link.joint is None else link.joint].armature
            if own is not None:
                entries[link.rates] = [own] * link.size[1]
        return None if all(x is None for x in entries) else jnp.stack([space.value(x) for x in entries])

    def force(self, q: Array, v: Array, gravity: Any, p: PyTree, wrenches: dict[str, Any]) -> Array:
        """Generalised forces (nv,) of gravity, loads and inertia at constant generalised velocities."""
        x = self._ready(p)
        moving, spins, velocities = self.walk(q, v, x, gravity)
        centres = self._centres(moving, x)
        # inertia as a force; gravity is in it, as an acceleration of the ground
        push = space.negative(space.scale(x.mass, centres.acceleration))
        twist = space.cross(centres.origin, push)
        own = inertia_in_ground(centres.turn, x.inertia)
        if own is not None and centres.spin is not None:
            gyro = space.cross(centres.spin, jnp.sum(own * centres.spin[None], axis=1))
            twist = space.subtract(twist, gyro)
            if centres.turning is not None:
                twist = space.subtract(twist, jnp.sum(own * centres.turning[None], axis=1))
        if wrenches:
            extra, moment = self._wrenches(wrenches)
            push = space.add(push, extra)
            lever = None if extra is None else space.cross(self._all(moving, "origin"), extra)
            twist = space.add(space.add(twist, lever), moment)
        both = jnp.concatenate([space.many(y, len(x.mass)) for y in (push, twist)])
        both = matmul(jnp.asarray(self.moves), both.T)
        return jnp.sum(jnp.concatenate([velocities, spins], axis=1) * both, axis=1)

    def _wrenches(self, wrenches: dict[str, Any]) -> tuple[Any, Any]:
        """Forces and moments about the origins (3, n) of all bodies."""
        found = [wrenches.get(link.body, (None, None)) for link in self.steps.order]
        push, moment = (_beside([x[i] for x in found], np.zeros(3)) for i in (0, 1))
        return push, moment

    def retract(self, q: Array, xi: Array) -> Array:
        """``q`` moved along an increment: quaternions by rotation, the rest by addition."""
        return jnp.concatenate([_moved(*x, q, xi) for x in self._runs])

    def difference(self, q0: Array, q1: Array) -> Array:
        """Inverse of `retract`."""
        found = []
        for turn_at, of_q, _, many in self._runs:
            a, b = q0[of_q], q1[of_q]
            if turn_at is None:
                found.append(b - a)
            else:
                between = rotations.pose_between if turn_at else rotations.rotation_between
                found.append(_body_by_body(between, many, a, b))
        return jnp.concatenate(found)

    @functools.cached_property
    def _runs(self) -> tuple[tuple[int | None, slice, slice, int], ...]:
        """Runs of adjacent coordinates: entry of a body at which its quaternion begins (None: scalar
        coordinates), slices of ``q`` and of ``v``, and number of equal bodies in the run.
        """
        made: list[tuple[int | None, slice, slice, int]] = []
        for link in sorted(self.topology.links, key=lambda x: (x.q, x.v)):
            turn_at, own, rates = link.kind.turn_at, link.entries, link.rates
            if made and turn_at == made[-1][0]:
                _, q, v, many = made[-1]
                alike = turn_at is None or q.stop - q.start == many * (own.stop - own.start)
                if alike and (q.stop, v.stop) == (own.start, rates.start):
                    many = 1 if turn_at is None else many + 1
                    made[-1] = turn_at, slice(q.start, own.stop), slice(v.start, rates.stop), many
                    continue
            if own.stop > own.start:
                made.append((turn_at, own, rates, 1))
        return tuple(made)

    @property
    def flat(self) -> bool:
        """Whether increments of positions are added, which needs coordinates without quaternions."""
        return all(x.kind.turn_at is None for x in self.topology.links)


def _moved(turn_at: int | None, of_q: slice, of_v: slice, many: int, q: Array, xi: Array) -> Array:
    own, step = q[of_q], xi[of_v]
    if turn_at is None:
        return own + step
    return _body_by_body(rotations.move_pose if turn_at else rotations.rotate, many, own, step)


def _body_by_body(function: Any, many: int, a: Array, b: Array) -> Array:
    """``function`` mapped over the coordinates of ``many`` equal bodies."""
    if many == 1:
        return function(a, b)
    made: Array = jax.vmap(function)(a.reshape(many, -1), b.reshape(many, -1))
    return made.reshape(-1)


def _diagonal(entries: Array | None, n: int) -> Any:
    return 0.0 if entries is None else entries[:, None] * np.eye(n)


def inertia_in_ground(turn: Any, inertia: Any) -> Any:
    """Inertias (3, 3, n) in the axes of the ground; None for point masses."""
    if inertia is None or turn is None:
        return inertia
    return space.both(space.both(turn, inertia), jnp.swapaxes(turn, 0, 1))
