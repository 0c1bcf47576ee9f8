"""Topology and numbers of the bodies and joints of a tree as arrays."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np

from nsjax.multibody.coordinates import spatial_vectors as space
from nsjax.multibody.joints import KINDS as JOINTS
from nsjax.multibody.joints import kind_of
from nsjax.multibody.parts import GROUND
from nsjax.multibody.size_classes.plane_arrays import PlaneArrays
from nsjax.multibody.size_classes.size_class import CoordinateArrays, SizeClass
from nsjax.multibody.size_classes.tree_arrays import TreeArrays
from nsjax.multibody.topology import Link
from nsjax.types import PyTree, is_traced

if TYPE_CHECKING:
    from nsjax.multibody.mechanism import Mechanism


def stacked(values: Sequence[Any], axis: int = 0) -> Any:
    """Numbers side by side, an array of numpy unless any is traced."""
    xp: Any = jnp if is_traced(tuple(values)) else np
    return xp.stack([xp.asarray(x, float) for x in values], axis=axis)


def masked(places: Any, size: int) -> np.ndarray:
    """One row for each place, with a one there; a row of zeros for a place below zero."""
    return (np.arange(size) == np.asarray(places, int).reshape(-1, 1)).astype(float)


def widened(x: Any, *shape: int) -> Any:
    """An array with zeros behind its entries along each of the first axes, up to a shape."""
    pads = [(0, n - m) for n, m in zip(shape, x.shape, strict=False)]
    pads += [(0, 0)] * (x.ndim - len(pads))
    return (jnp if is_traced(x) else np).pad(x, pads)


def placed(x: Any, places: np.ndarray, size: int) -> Any:
    """An array whose entries along the last axis stand at places among zeros."""
    return x @ masked(places, size)


def _vector(x: Any, dimension: int) -> Any:
    """A point (dimension,) from None, a number along the x axis, or a vector."""
    if x is None:
        return np.zeros(dimension)
    return x if np.ndim(x) else stacked([x, *[0.0] * (dimension - 1)])


@dataclasses.dataclass(frozen=True)
class TreePacking:
    """Bodies and joints of a mechanism in joint coordinates, with its params."""

    made: Mechanism
    params: PyTree

    @functools.cached_property
    def dimension(self) -> int:
        """2 or 3."""
        return self.made.dimension

    @functools.cached_property
    def links(self) -> tuple[Link, ...]:
        """Links of all bodies, parents first."""
        return self.made.topology.links

    @functools.cached_property
    def body(self) -> dict[str, int]:
        """Numbers of the bodies; the ground has -1."""
        return {GROUND: -1} | {x.body: k for k, x in enumerate(self.links)}

    @functools.cached_property
    def turning(self) -> list[Link]:
        """Links with a quaternion, in the order of the coordinates."""
        return sorted((x for x in self.links if x.turn_at is not None), key=lambda x: x.q)

    def places(self, of: SizeClass) -> tuple[np.ndarray, np.ndarray]:
        """Places of the coordinates (nq,) and the velocities (nv,) in those of a class."""
        m, (nq, nv) = of.layout.quaternions, self.made.topology.sizes
        at = [(x.q + int(x.turn_at or 0), x.v + x.size[1] - 3) for x in self.turning]
        found = []
        for n, width, firsts in ((nq, 4, [q for q, _ in at]), (nv, 3, [v for _, v in at])):
            turns = [k for first in firsts for k in range(first, first + width)]
            others = np.setdiff1d(np.arange(n), turns)
            places = np.zeros(n, int)
            places[turns], places[others] = np.arange(len(turns)), width * m + np.arange(len(others))
            found.append(places)
        return found[0], found[1]

    def spread(self, of: SizeClass, q: Any, v: Any) -> tuple[Any, Any]:
        """Coordinates and velocities of a class; spare quaternions do not turn."""
        at_q, at_v = self.places(of)
        rest = np.zeros(of.layout.nq)
        rest[4 * len(self.turning) : 4 * of.layout.quaternions : 4] = 1.0
        return rest + placed(q, at_q, of.layout.nq), placed(v, at_v, of.layout.nv)

    @property
    def depth(self) -> int:
        """Largest number of joints between a body and the ground."""
        depth = {GROUND: 0}
        for x in self.links:
            depth[x.body] = depth[x.parent] + 1
        return max(depth.values())

    def arrays(self, of: SizeClass) -> TreeArrays | PlaneArrays:
        """The tree in the sizes of a class."""
        return self._plane(of) if self.dimension == 2 else self._space(of)

    @functools.cached_property
    def _path(self) -> np.ndarray:
        """(n, n) mask of the bodies between each body and the ground, itself included."""
        found = np.eye(len(self.links))
        for k, x in enumerate(self.links):
            if x.parent != GROUND:
                found[k] += found[self.body[x.parent]]
        return found

    # space

    def _space(self, of: SizeClass) -> TreeArrays:
        links, n, nv, nq = self.links, of.bodies, of.layout.nv, of.layout.nq
        own_q, own_v = self.places(of)
        of_q = lambda k: -1 if k < 0 else own_q[k]  # noqa: E731
        jumps = [widened(masked([self.body[x.parent] for x in links], n), n)]
        for _ in range(of.rounds - 1):
            jumps.append(jumps[-1] @ jumps[-1])
        origin = [masked([of_q(x.q + k) if x.free else -1 for k in range(3)], nq) for x in links]
        turned = np.array([[x is y for y in self.turning] for x in links], float).reshape(len(links), -1)
        scalar = [of_q(x.q if x.kind.numbers == 1 and not x.free else -1) for x in links]
        slides = np.array([x.kind.slides > 0 for x in links], float)
        moves = placed(self._path @ self._own, own_v, nv)
        before = np.zeros((nv, nv))
        for k, x in enumerate(links):
            before[:, own_v[x.rates]] = moves[k][:, None]
        masks = {
            "jumps": np.stack(jumps), "scalar": widened(masked(scalar, nq), n),
            "turned": widened(turned, n, of.layout.quaternions),
            "origin": widened(np.stack(origin, axis=2), 3, nq, n),
            "turning": widened((np.array(scalar) >= 0) * (1.0 - slides), n),
            "sliding": widened((np.array(scalar) >= 0) * slides, n),
            "moves": widened(moves, n), "before": before,
            "reverse": widened(np.array([x.reversed for x in links], float), n),
        }  # fmt: skip
        inertia = stacked([space.inertia_matrix(self.params[x.body].inertia) for x in links], 2)
        return TreeArrays(
            **masks, **self._screws(of), **self._bodies(of), **self._joints(of),
            inertia=widened(inertia, 3, 3, n),
        )  # fmt: skip

    @functools.cached_property
    def _own(self) -> np.ndarray:
        """(n, nv) mask of the velocities of each body's joint."""
        found = np.zeros((len(self.links), self.made.topology.sizes[1]))
        for k, x in enumerate(self.links):
            found[k, x.rates] = 1.0
        return found

    def _screws(self, of: SizeClass) -> dict[str, Any]:
        """Bodies and axes of all velocities."""
        nv, places = of.layout.nv, self.places(of)[1]
        where, jointed, unit, spinning = np.full(nv, -1), np.full(nv, -1), np.zeros((3, nv)), np.zeros(nv)
        for k, x in enumerate(self.links):
            one = x.kind.numbers == 1 and not x.free  # an axis of its joint's own
            for j in range(x.size[1]):
                v, displaced = places[x.v + j], (one and x.kind.slides > 0) or (x.free and j < 3)
                spinning[v], where[v] = not displaced, -1 if x.free and displaced else k
                if one:
                    jointed[v] = k
                else:
                    unit[j % 3, v] = 1.0
        return {
            "fixed_in": masked(where, of.bodies), "jointed": masked(jointed, of.bodies), "unit": unit,
            "spinning": spinning,
        }  # fmt: skip

    def _bodies(self, of: SizeClass) -> dict[str, Any]:
        """Masses, centres and armatures; those of spare velocities are one."""
        bodies, d = [self.params[x.body] for x in self.links], self.dimension
        driven: list[Any] = [1.0] * of.layout.nv
        places = self.places(of)[1]
        for x, own in zip(self.links, bodies, strict=True):
            given = (own if x.joint is None else self.params[x.joint]).armature
            for k in places[x.rates]:
                driven[k] = 0.0 if given is None else given
        return {
            "mass": widened(stacked([x.mass for x in bodies]), of.bodies), "armature": stacked(driven),
            "com": widened(stacked([_vector(x.com, d) for x in bodies], 1), d, of.bodies),
        }  # fmt: skip

    def _joints(self, of: SizeClass) -> dict[str, Any]:
        """Points, axes and rotations of the joints, from parents to bodies."""
        columns: dict[str, list[Any]] = {"at": [], "on": [], "axis": [], "rotation": []}
        for x in self.links:
            own = None if x.joint is None else self.params[x.joint]
            at, on, axis, turned = (None,) * 4 if own is None else (own.at, own.on, own.axis, own.turned)
            at, on = (on, at) if x.reversed else (at, on)
            axis = x.kind.first_axis or (1.0, 0.0, 0.0) if axis is None else axis
            given = _vector(at, 3), _vector(on, 3), axis, _vector(turned, 3)
            for column, value in zip(columns.values(), given, strict=True):
                column.append(value)
        return {k: widened(stacked(x, 1), 3, of.bodies) for k, x in columns.items()}

    # the plane

    @functools.cached_property
    def _turns(self) -> np.ndarray:
        """(n, nv) mask of the coordinate that is the angle of each body."""
        found = np.zeros((len(self.links), self.made.topology.sizes[1]))
        for k, x in enumerate(self.links):
            if x.kind.turns:
                found[k, x.v + x.kind.slides] = 1.0
            elif x.parent != GROUND:
                found[k] = found[self.body[x.parent]]
        return found

    @functools.cached_property
    def _tilts(self) -> list[Any]:
        """Angles of all bodies against the bodies that turn them."""
        found: list[Any] = []
        for x in self.links:
            tilt = None if x.kind.turns or x.joint is None else self.params[x.joint].turned
            above = 0.0 if x.kind.turns or x.parent == GROUND else found[self.body[x.parent]]
            found.append(above if tilt is None else above + (-tilt if x.reversed else tilt))
        return found

    def _plane(self, of: SizeClass) -> PlaneArrays:
        links, n, nv = self.links, of.bodies, of.layout.nv
        parent = masked([self.body[x.parent] for x in links], len(links))
        slides = [x.v if x.kind.slides and not x.free else -1 for x in links]
        origin = [masked([x.v, x.v + 1] if x.free else [-1] * 2, nv) for x in links]
        above = parent @ self._turns
        drive = np.eye(nv)
        for k, x in enumerate(links):
            if x.kind.turns and not x.free:
                drive[x.v + x.kind.slides, : above.shape[1]] -= above[k]
        inertia = [self.params[x.body].inertia for x in links]
        masks = {
            "turns": widened(self._turns.T, nv, n), "parent_turns": widened(above.T, nv, n),
            "slides": widened(masked(slides, nv).T, nv, n),
            "origin": widened(np.stack(origin, axis=2), 2, nv, n),
            "parent": widened(parent, n, n), "path": widened(self._path, n, n), "drive": drive,
        }  # fmt: skip
        return PlaneArrays(
            **masks, **self._bodies(of), **self._plane_joints(n), tilt=widened(stacked(self._tilts), n),
            inertia=widened(stacked([0.0 if x is None else x for x in inertia]), n),
        )  # fmt: skip

    def _plane_joints(self, n: int) -> dict[str, Any]:
        """Points and axes of the joints, from parents to bodies."""
        columns: dict[str, list[Any]] = {"at": [], "on": [], "axis": []}
        for x in self.links:
            own = None if x.joint is None else self.params[x.joint]
            at, on, axis = (None,) * 3 if own is None else (own.at, own.on, own.axis)
            axis = _vector(1.0 if axis is None else axis, 2)
            if x.reversed:
                at, on = on, at
                turned = 0.0 if own is None or own.turned is None else own.turned
                xp: Any = jnp if is_traced((turned, axis)) else np
                s, c = xp.sin(turned), xp.cos(turned)
                axis = stacked([-c * axis[0] - s * axis[1], s * axis[0] - c * axis[1]])
            for column, value in zip(columns.values(), (_vector(at, 2), _vector(on, 2), axis), strict=True):
                column.append(value)
        return {k: widened(stacked(x, 1), 2, n) for k, x in columns.items()}

    # coordinates of joints

    def linear(self, name: str) -> bool:
        """Whether the coordinate of a joint or tendon is a sum of entries of ``q``: that of a joint of the
        tree, in the plane the angle of every hinge, and the length of a `joint_tendon` on such joints.
        """
        part, link = self.made.topology.of[name], self.made.topology.link_of_joint.get(name)
        if part.kind not in JOINTS:  # a tendon
            joints = part.option("joints")
            return joints is not None and all(self.linear(x) for x in joints)
        kind = kind_of(part)
        if kind.measure is None or self.dimension == 3:
            return kind.measure is not None and link is not None
        return bool(kind.turns) or (link is not None and kind.has_coordinate(2))

    def _row(self, name: str) -> tuple[Any, Any, Any]:
        """Factors (nq,) and (nv,) of the coordinates and velocities in a coordinate, and its constant."""
        link, part = self.made.topology.link_of_joint.get(name), self.made.topology.of[name]
        if part.kind not in JOINTS:
            factors = self.params[name].ratios
            rows = zip(factors, map(self._row, part.option("joints")), strict=True)
            of_q, of_v, shift = zip(*(tuple(k * x for x in row) for k, row in rows), strict=True)
            return sum(of_q), sum(of_v), sum(shift)
        nq, nv = self.made.topology.sizes
        if link is not None and kind_of(part).has_coordinate(self.dimension):
            return np.eye(nq)[link.q], np.eye(nv)[link.v], 0.0
        one, two = (self.body[x] for x in part.bodies)
        turns, tilts = np.pad(self._turns, ((0, 1), (0, 0))), [*self._tilts, 0.0]  # the ground comes last
        row = turns[two] - turns[one]
        return row, row, tilts[two] - tilts[one]

    def coordinates(
        self, names: Sequence[str], count: int, of: SizeClass, signs: Any = 1.0
    ) -> CoordinateArrays:
        """Coordinates of joints and tendons, times signs, and spare ones."""
        if not names:
            none = (np.zeros((count, n)) for n in (of.layout.nq, of.layout.nv))
            return CoordinateArrays(of_q=next(none), of_v=next(none), shift=np.zeros(count))
        signs = np.broadcast_to(signs, len(names))
        of_q, of_v, shift = (stacked(x) for x in zip(*map(self._row, names), strict=True))
        masks = (
            widened(placed(signs[:, None] * x, places, n), count)
            for x, places, n in zip(
                (of_q, of_v), self.places(of), (of.layout.nq, of.layout.nv), strict=True
            )
        )
        return CoordinateArrays(of_q=next(masks), of_v=next(masks), shift=widened(signs * shift, count))
