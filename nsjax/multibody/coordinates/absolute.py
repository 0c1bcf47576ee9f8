"""Absolute coordinates: a pose for every body, at its centre of mass, and all joints as constraints.

Bodies and joints of one kind are evaluated as a batch, so that the program does not grow with their number.
Nodes of beams are bodies, with elastic elements between them (`nsjax.multibody.elements`).
Where the bodies form a chain, in the order in which they are given, the rows of the joints are eliminated
together with the velocities (`nsjax.linalg.Interleaved`). Bodies that nothing joins are islands: the cost
of a step then is proportional to their number.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.linalg import BlockDiagonal, BlockTridiagonal, Interleaved
from nsjax.math import rotations, sin_cos, taken
from nsjax.multibody.coordinates import planar_vectors as plane
from nsjax.multibody.coordinates import spatial_vectors as space
from nsjax.multibody.coordinates.frames import ALGEBRA, Frame, Scene, TakenFrames, constants, ground
from nsjax.multibody.elements import Elastic, Piece, coupled_momenta, elastic_energy, elastic_forces, joined
from nsjax.multibody.elements import kind_of as element_kind
from nsjax.multibody.joints import FREE, kind_of
from nsjax.multibody.loads import ends_of
from nsjax.multibody.numbers import side_by_side
from nsjax.multibody.parts import GROUND, Part
from nsjax.multibody.topology import ENTRIES, Topology, counted, whole
from nsjax.types import Array, PyTree, record


@record()
class NumberArrays:
    """Numbers of all bodies, joints and beam elements as arrays.

    Args:
        mass, inertia, com: masses (n,) [kg], inertias (n,) or (n, 3, 3) [kg m^2] and mass centres (n, 2) or
            (n, 3) [m] of the bodies.
        joints: numbers of each group of equal joints; the first axis of each number counts the joints.
        elastic: beam elements; None without beams.
        chains: numbers of elements of other kinds, beam by beam.
    """

    mass: Array
    inertia: Array
    com: Array
    joints: tuple[Any, ...]
    elastic: Elastic | None = None
    chains: tuple[Any, ...] = ()


def folded(topology: Topology, groups: tuple[tuple[Part, ...], ...], p: PyTree) -> NumberArrays:
    """Numbers in absolute coordinates, stacked in arrays by ``groups`` of equal joints, from params."""
    d, pieces, coms = topology.dimension, [], []
    for part in topology.all_of("body", "beam"):
        x = p[part.name]
        if part.kind == "beam":
            pieces.append(element_kind(part).piece(x, part))
            coms.append(jnp.zeros((part.option("nodes"), d)))
            continue
        inertia = plane.value(x.inertia) if d == 2 else jnp.asarray(space.inertia_matrix(x.inertia), float)
        mass = jnp.asarray(x.mass, float)
        pieces.append(Piece(mass=mass[None], inertia=inertia[None], elastic=None))
        coms.append(ALGEBRA[d].array(ALGEBRA[d].vector(x.com))[None])
    return NumberArrays(
        mass=jnp.concatenate([x.mass for x in pieces]),
        inertia=jnp.concatenate([x.inertia for x in pieces]), com=jnp.concatenate(coms),
        joints=tuple(side_by_side([_filled(p[part.name], part, d) for part in group]) for group in groups),
        elastic=joined(pieces), chains=tuple(x.own for x in pieces if x.own is not None),
    )  # fmt: skip


def _filled(numbers: Any, part: Part, dimension: int) -> Any:
    """Numbers of a joint with points as vectors and defaults for None, so that joints can be stacked."""
    a = ALGEBRA[dimension]
    turned = numbers.turned
    if turned is None and kind_of(part).framed:
        turned = 0.0 if dimension == 2 else jnp.zeros(3)
    axis, first = numbers.axis, kind_of(part).first_axis
    if axis is None and first is not None:
        axis = jnp.asarray(first[:dimension])
    # numbers of the friction and motion in a coordinate are not those of the rows, unless they read it
    kind = kind_of(part)
    own = numbers.own if kind.measure is None or kind.reads_angle else None
    return type(numbers)(
        at=a.array(a.vector(numbers.at)), on=a.array(a.vector(numbers.on)),
        axis=None if axis is None else jnp.asarray(axis, float), turned=turned,
        second_axis=None if numbers.second_axis is None else jnp.asarray(numbers.second_axis, float),
        length=numbers.length, own=own,
        motion=None if part.option("path") is None else numbers.motion,
    )  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Bodies:
    """Functions of the bodies of a `Topology` in absolute coordinates."""

    topology: Topology

    @property
    def dimension(self) -> int:
        """2 or 3."""
        return self.topology.dimension

    @functools.cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the bodies in the order of their coordinates."""
        return tuple(x.body for x in sorted(self.topology.links, key=lambda x: x.q))

    @functools.cached_property
    def places(self) -> dict[str, Any]:
        """Number of each body (from 1), and slice of the nodes of each beam; None for the ground."""
        found: dict[str, Any] = {GROUND: None} | {name: k for k, name in enumerate(self.names, 1)}
        for part in self.topology.all_of("beam"):
            first = found[f"{part.name}.0"]
            found[part.name] = slice(first, first + part.option("nodes"))
        return found | {x: found[node] for x, node in self.topology.other_names.items()}

    @functools.cached_property
    def groups(self) -> tuple[tuple[Part, ...], ...]:
        """Groups of joints of one kind, with the same numbers given and the same path, if any."""
        found: dict[Any, list[Part]] = {}
        for name in self.topology.closures:
            part = self.topology.of[name]
            if kind_of(part).rows[self.dimension]:
                found.setdefault((part.kind, part.option("path"), part.option("alike")), []).append(part)
        return tuple(tuple(parts) for parts in found.values())

    @functools.cached_property
    def order(self) -> np.ndarray | None:
        """Index of each row of the joints among the rows of the groups; None if the order is the same."""
        places: dict[str, np.ndarray] = {}
        first = 0
        for group in self.groups:
            rows = len(kind_of(group[0]).rows[self.dimension])
            for part in group:
                places[part.name] = np.arange(first, first + rows)
                first += rows
        if not places:
            return None
        order = np.concatenate([places[name] for name in self.topology.closures if name in places])
        return None if np.array_equal(order, np.arange(len(order))) else order

    def folded(self, p: PyTree) -> NumberArrays:
        """Numbers of bodies, joints and beams, stacked in arrays."""
        return folded(self.topology, self.groups, p)

    @functools.cached_property
    def spans(self) -> tuple[tuple[Part, slice, slice], ...]:
        """Beams whose elements have forces of their own: part, slice of its nodes, slice of its ``q``."""
        found, first = [], 7 * len(self.names)
        for part in self.topology.all_of("beam"):
            if element_kind(part).forces is None:
                continue
            place, size = self.places[part.name], element_kind(part).entries(part)
            found.append((part, slice(place.start - 1, place.stop - 1), slice(first, first + size)))
            first += size
        return tuple(found)

    def poses(self, q: Array) -> Array:
        """Poses of all bodies (n, 3 or 7), without the entries of Gauss points and of turn counts."""
        n = len(self.names)
        return (q[: 7 * n] if self.spans or self.topology.counted else q).reshape(n, -1)

    def turned(self, q: Array) -> Array:
        """Accumulated rotation vectors (k, 3) of hinges with counted turns: `coordinates.turn_counts`."""
        k = len(self.topology.counted)
        return q[q.shape[0] - ENTRIES * k :].reshape(k, ENTRIES)

    @functools.cached_property
    def hinged(self) -> tuple[np.ndarray, np.ndarray]:
        """Numbers of the first and second bodies of the hinges with counted turns (ground: 0)."""
        pairs = [self.topology.of[name].bodies for name in self.topology.counted]
        places = {GROUND: 0} | {name: k for k, name in enumerate(self.names, 1)}
        return np.array([places[x] for x, _ in pairs]), np.array([places[x] for _, x in pairs])

    def with_points(self, q: Array) -> Array:
        """Poses, followed by the Gauss points of beams as one step from the reference shape gives them."""
        poses = q.reshape(len(self.names), -1)
        own = [(element_kind(part).placed, part, nodes) for part, nodes, _ in self.spans]
        return jnp.concatenate([q, *(place(poses[nodes], part) for place, part, nodes in own if place)])

    def ready(self, p: PyTree) -> NumberArrays:
        """Stacked numbers, from prepared params, or made from plain ones."""
        found: NumberArrays | None = constants(p).tree
        return self.folded(p) if found is None else found
        return found

    def all_frames(self, q: Array, v: Array | None, p: PyTree) -> tuple[Any, ...]:
        """Origins, turns, angles, velocities and spins of the ground and of all bodies, in this order."""
        x, d, n = self.ready(p), self.dimension, len(self.names)
        poses = self.poses(q)
        if d == 2:
            s, c = sin_cos(poses[:, 2])
            arm = -jnp.stack([c * x.com[:, 0] - s * x.com[:, 1], s * x.com[:, 0] + c * x.com[:, 1]], axis=1)
            turn: Any = (_padded(s), jnp.concatenate([jnp.ones(1), c]))
            angle = _padded(poses[:, 2])
        else:
            turn = jax.vmap(rotations.matrix)(poses[:, 3:])
            arm = -jnp.sum(turn * x.com[:, None, :], axis=2)
            turn, angle = jnp.concatenate([jnp.eye(3)[None], turn]), None
        # poses are those of mass centres, frames those of the origins in which users give their points
        origin = _padded(poses[:, :d] + arm)
        if v is None:
            zero = jnp.zeros((n + 1, 3)) if d == 3 else jnp.zeros(n + 1)
            return origin, turn, angle, jnp.zeros((n + 1, d)), zero
        rates = v.reshape(n, -1)
        if d == 2:
            spin = rates[:, 2]
            swing = jnp.stack([-spin * arm[:, 1], spin * arm[:, 0]], axis=1)
        else:
            spin = jnp.sum(turn[1:] * rates[:, None, 3:], axis=2)
            swing = jax.vmap(space.cross)(spin, arm)
        return origin, turn, angle, _padded(rates[:, :d] + swing), _padded(spin)

    def _frame(self, parts: tuple[Any, ...], k: Any) -> Frame:
        """The frame of body ``k`` (None: the ground; a slice: of several bodies) from `all_frames`."""
        if k is None:
            return ground(self.dimension)
        origin, turn, angle, velocity, spin = parts
        if isinstance(k, slice):
            return Frame(origin[k].T, turn[k], None, velocity[k].T, spin[k].T)
        if self.dimension == 3:
            return Frame(origin[k], turn[k], None, velocity[k], spin[k])
        place, motion = (origin[k][0], origin[k][1]), (velocity[k][0], velocity[k][1])
        return Frame(place, (turn[0][k], turn[1][k]), angle[k], motion, spin[k])

    def frames(self, q: Array, v: Array | None, p: PyTree) -> TakenFrames:
        """Frames of all bodies."""
        parts = self.all_frames(q, v, p)
        return TakenFrames(self.names, self.places, functools.partial(self._frame, parts), parts)

    def frames_and_screws(
        self, q: Array, v: Array | None, p: PyTree
    ) -> tuple[Mapping[str, Frame], Array, Array]:
        """Frames of all bodies in space, and the screws of all velocities: spins and velocities (nv, 3)."""
        n, none = len(self.names), jnp.zeros((len(self.names), 3, 3))
        frames, poses = self.frames(q, v, p), self.poses(q)
        axes = jnp.swapaxes(frames.parts[1][1:], 1, 2)
        spins = jnp.concatenate([none, axes], axis=1)
        own = space.cross(poses[:, None, :3], axes, axis=2)
        velocities = jnp.concatenate([none + jnp.eye(3), own], axis=1)
        return frames, spins.reshape(6 * n, 3), velocities.reshape(6 * n, 3)

    def moves_of(self, bodies: Sequence[str]) -> np.ndarray:
        """Mask (bodies, nv): whether each velocity moves each body; nothing moves the ground."""
        block, places = FREE.sizes[self.dimension][1], np.array([self.places[x] or 0 for x in bodies])
        return np.repeat(places[:, None] == np.arange(1, len(self.names) + 1), block, axis=1) * 1.0

    def alone(self, entries: tuple[Any, ...]) -> Frame:
        """The frame of one body, from its entries of `all_frames`."""
        return self._frame(jax.tree.map(lambda y: y[None], entries), 0)

    def rows(self, t: Array, q: Array, p: PyTree) -> Array:
        """Residuals of all joints, joint by joint."""
        parts, x, found = self.all_frames(q, None, p), self.ready(p), []
        index = {name: k for k, name in enumerate((GROUND, *self.names))}
        for group, numbers in zip(self.groups, x.joints, strict=True):
            ends = [np.array([index[part.bodies[k]] for part in group]) for k in (0, 1)]
            kind = dataclasses.replace(group[0], bodies=("first", "second"))
            one, other = (jax.tree.map(lambda y, k=k: taken(y, k), parts) for k in ends)
            gone = self._turned_of(group, q)

            def residuals(one: Any, other: Any, numbers: Any, gone: Any, kind: Part = kind) -> Array:
                frames = {"first": self.alone(one), "second": self.alone(other)}

                def measure(scene: Scene, name: str) -> tuple[Any, Any]:
                    x, rate = (kind_of(kind).measure or _unmeasured)(scene, kind, numbers)
                    return (x if gone is None else whole(x, jnp.sum(gone * numbers.axis))), rate

                rows = kind_of(kind).constraint(Scene(self.dimension, t, frames, measure), kind, numbers)
                return jnp.stack([plane.value(r) for r in rows])

            found.append(jax.vmap(residuals)(one, other, numbers, gone).reshape(-1))
        all_rows = jnp.concatenate(found) if found else jnp.zeros(0)
        return all_rows if self.order is None else taken(all_rows, self.order)

    def _turned_of(self, group: tuple[Part, ...], q: Array) -> Array | None:
        """Accumulated rotation vectors (k, 3) of joints whose rows read the angle; else None."""
        if not kind_of(group[0]).reads_angle or self.dimension == 2:
            return None
        return taken(self.turned(q), np.array([self.topology.counted.index(x.name) for x in group]))

    def inertia(self, w: Array, p: PyTree) -> Array:
        """Product ``M w`` (nv,) of the mass matrix, which does not depend on the position."""
        x, d, n = self.ready(p), self.dimension, len(self.names)
        rates = w.reshape(n, -1)
        turning = x.inertia[:, None] * rates[:, 2:] if d == 2 else _times(x.inertia, rates[:, 3:])
        moving = x.mass[:, None] * rates[:, :d]
        if x.elastic is not None and x.elastic.coupling is not None:
            moving = moving + coupled_momenta(x.elastic.coupling, rates[:, :3])
        for (part, nodes, _), chain in zip(self.spans, x.chains, strict=True):
            momenta = element_kind(part).momenta
            far = None if momenta is None else momenta(chain, rates[nodes, :3])
            if far is not None:
                moving = moving + jnp.pad(far, ((nodes.start, n - nodes.stop), (0, 0)))
        return jnp.concatenate([moving, turning], axis=1).reshape(-1)

    def weight_of(self, name: str, p: PyTree) -> tuple[Array, Array, Array]:
        """Mass, inertia and mass centre of a body, or of the part of a beam that a node carries."""
        x, k = self.ready(p), self.places[name] - 1
        return x.mass[k], x.inertia[k], x.com[k]

    def mass(self, q: Array, p: PyTree) -> Array:
        """Mass matrix (nv, nv)."""
        n = self.topology.sizes[1]
        return jax.vmap(lambda w: self.inertia(w, p))(jnp.eye(n))

    def force(self, q: Array, v: Array, gravity: Any, p: PyTree, wrenches: Mapping[str, Any]) -> Array:
        """Weights, gyroscopic moments and loads (nv,)."""
        x, d, n = self.ready(p), self.dimension, len(self.names)
        a = ALGEBRA[d]
        weight = x.mass[:, None] * a.array(gravity)[None, :]
        if d == 2:
            turning = jnp.zeros((n, 1))
        else:
            spin = v.reshape(n, -1)[:, 3:]
            turning = -jax.vmap(space.cross)(spin, _times(x.inertia, spin))
        total = jnp.concatenate([weight, turning], axis=1)
        if x.elastic is not None:
            total = total + elastic_forces(x.elastic, self.poses(q), v.reshape(n, -1))
        total = self._with_chains(total, x.chains, q, v)
        if wrenches:
            total = total + self._loads(q, p, wrenches)
        return total.reshape(-1)

    def _with_chains(self, total: Array, chains: tuple[Any, ...], q: Array, v: Array) -> Array:
        """Forces ``total`` plus those of beam elements with forces of their own."""
        n = len(self.names)
        for (part, nodes, own), chain in zip(self.spans, chains, strict=True):
            poses, rates = self.poses(q)[nodes], v.reshape(n, -1)[nodes]
            forces: Any = element_kind(part).forces
            push = forces(chain, q[own], poses, rates, part)
            total = total + jnp.pad(push, ((nodes.start, n - nodes.stop), (0, 0)))
        return total

    def _loads(self, q: Array, p: PyTree, wrenches: Mapping[str, Any]) -> Array:
        """Loads, given at the origins of bodies, about the mass centres; in space, moments in body axes."""
        a, com = ALGEBRA[self.dimension], self.ready(p).com
        total, frames = jnp.zeros((len(self.names), 3 * (self.dimension - 1))), self.frames(q, None, p)
        for name, (push, turning) in wrenches.items():
            k = self.places[name] - 1
            centre = (com[k, 0], com[k, 1]) if self.dimension == 2 else com[k]
            arm = a.turned(frames[name].turn, a.negative(centre))
            add = plane.plus if self.dimension == 2 else space.add
            turning = add(turning, a.moment(arm, push))
            own = plane.value(turning)[None] if self.dimension == 2 else space.array(
                space.turned_back(frames[name].turn, turning)
            )  # fmt: skip
            row = jnp.concatenate([a.array(push), own])
            total = total + (np.arange(len(self.names)) == k)[:, None] * row[None, :]
        return total

    def weigh(self, q: Array, p: PyTree, gravity: Any) -> Array:
        """Potential energy of gravity and strain energy [J]."""
        x, down = self.ready(p), ALGEBRA[self.dimension].array(gravity)
        poses = self.poses(q)
        heights = -jnp.sum(x.mass * jnp.sum(poses[:, : self.dimension] * down[None, :], axis=1))
        for (part, nodes, own), chain in zip(self.spans, x.chains, strict=True):
            energy = element_kind(part).energy
            heights = heights if energy is None else heights + energy(chain, q[own], poses[nodes], part)
        return heights if x.elastic is None else heights + elastic_energy(x.elastic, poses)

    def retract(self, q: Array, xi: Array) -> Array:
        """Poses moved along increments, with Gauss points of incremental elements and turns of hinges."""
        poses, steps = self.poses(q), xi.reshape(-1, 6)
        after = jax.vmap(rotations.move_pose)(poses, steps)
        moved = after.reshape(-1)
        points = [
            move(q[own], poses[nodes], steps[nodes], part)
            for part, nodes, own in self.spans
            if (move := element_kind(part).moved) is not None
        ]
        if self.topology.counted:
            points.append(counted(self.turned(q), poses[:, 3:], after[:, 3:], *self.hinged).reshape(-1))
        return jnp.concatenate([moved, *points]) if points else moved

    def difference(self, q0: Array, q1: Array) -> Array:
        """Inverse of `retract`, for the poses alone."""
        return jax.vmap(rotations.pose_between)(self.poses(q0), self.poses(q1)).reshape(-1)

    def chain(self) -> tuple[int, bool] | None:
        """Rows of each joint, and whether the first body hangs on the ground, if the first joints connect
        each body to the one before it, in the order of the bodies; else None.
        """
        ends = []
        for name in self.topology.closures:
            part = self.topology.of[name]
            ends.append((set(part.bodies), len(kind_of(part).rows[self.dimension])))
        grounded = bool(ends) and GROUND in ends[0][0]
        wanted = [{a, b} for a, b in zip((GROUND, *self.names), self.names, strict=False)][not grounded :]
        rows = {size for _, size in ends[: len(wanted)]}
        fits = [bodies for bodies, _ in ends[: len(wanted)]] == wanted and len(rows) == 1
        return (rows.pop(), grounded) if fits and len(self.names) > 1 else None

    @property
    def free(self) -> bool:
        """Whether only contacts join two bodies, and no joint, beam or load does."""
        loads, joints = self.topology.loads, self.topology.joints or self.topology.all_of("beam")
        alone = all((len(x.bodies) == 1 or GROUND in x.bodies) and not x.option("law") for x in loads)
        return alone and not joints and not self.topology.lines

    def loose(self, touching: tuple[str, ...]) -> bool:
        """Whether the bodies are islands: nothing joins two of them, and all have the same number of
        contacts with the ground, listed body by body. ``touching``: the body of every contact with the
        ground; "" for a contact between two bodies.
        """
        n = len(self.names)
        if n < 2 or not self.free:
            return False
        return touching == tuple(x for x in self.names for _ in range(len(touching) // n))

    @property
    def near(self) -> bool:
        """Whether loads act only between bodies that are neighbours in the order of the bodies."""
        loads = self.topology.loads
        ends = [ends_of(self.topology, x) for x in loads]
        ends = [x for x in ends if len(x) > 1]
        places = [[self.places[x] for x in pair if x != GROUND] for pair in ends]
        return len(self.names) > 1 and all(max(x) - min(x) <= 1 for x in places)

    def structure(self, functions: Any, touching: tuple[str, ...], bounded: bool = False) -> dict[str, Any]:
        """Mass functions and matrix structure, as arguments of the system.

        Args:
            functions: functions of the mechanism.
            touching: see `loose`.
            bounded: whether contacts have bounded rows or Poisson's law, for which islands are not made.
        """
        block = FREE.sizes[self.dimension][1]
        if self.topology.all_of("beam"):
            if not self.near:
                return {"mass": self.mass}
            structure: Any = BlockTridiagonal(block)
            if any(part.option("per") == 3 for part, *_ in self.spans):  # three nodes in two blocks
                structure = BlockTridiagonal(2 * block, lacking=block * (len(self.names) % 2))
            return {"inertia": functions.inertia, "structure": structure}
        chain = self.chain()
        if self.loose(touching):
            islands = len(self.names) if touching and not bounded else 0
            given = {"inertia": functions.inertia, "structure": BlockDiagonal(block)}
            return given | {"islands": islands}
        if chain is None:
            return {"mass": self.mass}
        structure = Interleaved(block, joint=chain[0], grounded=chain[1])
        return {"inertia": functions.inertia, "structure": structure}


def _unmeasured(scene: Scene, part: Part, numbers: Any) -> tuple[Any, Any]:
    """Measure of a joint without a coordinate: always an error."""
    raise TypeError(f"{part.kind} has no coordinate")


def _padded(x: Array) -> Array:
    """Values with zeros for the ground before them, so that a chain from the ground reads neighbours."""
    return jnp.concatenate([jnp.zeros_like(x[:1]), x])


def _times(matrices: Array, x: Array) -> Array:
    return jnp.sum(matrices * x[:, None, :], axis=2)
