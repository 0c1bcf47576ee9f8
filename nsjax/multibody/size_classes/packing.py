"""Topology and numbers of a mechanism as arrays, in the sizes of a class."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.core import InputError
from nsjax.multibody.contacts import gap_functions
from nsjax.multibody.contacts.batches import Batch
from nsjax.multibody.coordinates import spatial_vectors as space
from nsjax.multibody.coordinates.frames import downwards
from nsjax.multibody.joints import BALL, FREE, JointKind
from nsjax.multibody.joints.joint_kind import stepped
from nsjax.multibody.loads import kind_of as load_kind
from nsjax.multibody.numbers import LAW
from nsjax.multibody.parts import GROUND, Part
from nsjax.multibody.size_classes.size_class import (
    AlikeParts,
    DragArrays,
    EffortArrays,
    LimitArrays,
    MechanismArrays,
    PairArrays,
    SizeClass,
)
from nsjax.multibody.size_classes.tree_arrays import Layout, TreeArrays
from nsjax.multibody.topology import Link
from nsjax.types import PyTree, is_traced

if TYPE_CHECKING:
    from nsjax.multibody.mechanism import Mechanism

KEPT = ("shapes", "law", "potential")
"""Options of contacts and loads that are part of a program."""


def _described(kind: JointKind) -> bool:
    """Whether arrays describe a joint: a quaternion, or at most one displacement or angle, along or about
    the axis of the joint.
    """
    plain = kind.step is stepped and kind.back is None and kind.turns in ((), ("axis",))
    return kind in (FREE, BALL) or (plain and kind.numbers <= 1)


def missing(made: Mechanism) -> str:
    """The first feature of a mechanism that arrays do not describe, in words; empty without any."""
    topology, presence = made.topology, made.presence
    if topology.dimension == 2:
        return "the plane"
    if topology.coordinates == "absolute":
        return "absolute coordinates"
    own = made.own
    pieces = [(x.part, x.names[0]) if isinstance(x, Batch) else (x, x.name) for x in presence.named.pieces]
    chosen = [str(x.group) for x in presence.named.chosen]
    names = {
        "joints that close a loop": topology.closures,
        "joints of this kind": [str(x.joint) for x in topology.links if not _described(x.kind)],
        "prescribed motions": presence.motions,
        "couplings": presence.couplings,
        "torsional and rolling friction": presence.turning,
        "groups of which a step evaluates few contacts": chosen,
        "groups of free bodies": [x.part.name for x in presence.batches],
        "shapes whose features are searched for": [
            name for part, name in pieces if gap_functions.kind_of(part).hold is not None
        ],
        "loads that do not act in a hinge or slide": [x.name for x in own.others],
        "laws that jump": [x.name for x in own.loads if x.option("switch") is not None],
        "limits of tendons": [name for name, _ in own.limits_apart],
        "dry friction of tendons": [] if own.hold_drags else presence.drags,
    }
    return next((f"{what} ({found[0]!r})" for what, found in names.items() if found), "")


def _stack(values: Sequence[Any], axis: int = 0) -> Any:
    """Numbers side by side, an array of numpy unless any is traced."""
    xp: Any = jnp if is_traced(tuple(values)) else np
    return xp.stack([xp.asarray(x, float) for x in values], axis=axis)


def _vector(x: Any) -> Any:
    """A point (3,) from None, a number along the x axis, or a vector."""
    if x is None:
        return np.zeros(3)
    return x if np.ndim(x) else _stack([x, 0.0, 0.0])


def _mask(places: Any, size: int) -> np.ndarray:
    """One row for each place, with a one there; a row of zeros for a place below zero."""
    return (np.arange(size) == np.asarray(places, int).reshape(-1, 1)).astype(float)


def _wide(x: Any, *shape: int) -> Any:
    """An array with zeros behind its entries along each of the first axes, up to a shape."""
    pads = [(0, n - m) for n, m in zip(shape, x.shape, strict=False)]
    pads += [(0, 0)] * (x.ndim - len(pads))
    return (jnp if is_traced(x) else np).pad(x, pads)


def _group(part: Part, given: Any, rows: int = 1) -> AlikeParts:
    """The group of a load or contact with these numbers."""
    leaves, structure = jax.tree.flatten(given)
    kept = tuple((k, x) for k, x in part.options if k in KEPT)
    bodies = ("first", "second") if part.kind == "contact" else ()
    smooth = part.kind == "contact" and part.numbers is None
    return AlikeParts(
        part=Part(part.kind, "group", bodies, None, kept), rows=rows, smooth=smooth, structure=structure,
        shapes=tuple(np.shape(x) for x in leaves),
    )  # fmt: skip


@dataclasses.dataclass(frozen=True)
class ShapePair:
    """A pair of shapes: its contact's name, its bodies, and the numbers of its contacts among all."""

    name: str
    bodies: tuple[str, ...]
    places: tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class Packing:
    """A mechanism for which `missing` finds nothing, with its params."""

    made: Mechanism
    params: PyTree

    @functools.cached_property
    def links(self) -> tuple[Link, ...]:
        """Links of all bodies, parents first."""
        made: tuple[Link, ...] = self.made.tree.steps.order
        return made

    @functools.cached_property
    def body(self) -> dict[str, int]:
        """Numbers of the bodies, the ground first."""
        return {GROUND: 0} | {x.body: k + 1 for k, x in enumerate(self.links)}

    @functools.cached_property
    def turning(self) -> list[Link]:
        """Links with a quaternion, in the order of the coordinates."""
        return sorted((x for x in self.links if x.turn_at is not None), key=lambda x: x.q)

    @functools.cached_property
    def efforts(self) -> dict[AlikeParts, list[Part]]:
        """Loads by group."""
        found: dict[AlikeParts, list[Part]] = {}
        for part in self.made.own.loads:
            if load_kind(part).effort is not None:
                found.setdefault(_group(part, self.params[part.name]), []).append(part)
        return found

    @functools.cached_property
    def pairs(self) -> dict[AlikeParts, list[ShapePair]]:
        """Pairs of shapes by group."""
        named, found = self.made.presence.named, dict[AlikeParts, list[ShapePair]]()
        for piece, numbers in zip(named.pieces, named.numbers, strict=True):
            if isinstance(piece, Batch):
                part, names, ends = piece.part, piece.names, piece.bodies
            else:
                part, names, ends = piece, (piece.name,), ((piece.bodies[0], piece.bodies[1]),)
            for name, bodies, places in zip(names, ends, numbers.reshape(len(names), -1), strict=True):
                own = self.params[name]
                bare = dataclasses.replace(part, numbers=own.friction)
                group = _group(bare, (own.first, own.second), len(places))
                pair = ShapePair(name, bodies, tuple(int(k) for k in places))
                found.setdefault(group, []).append(pair)
        return found

    def size_class(self) -> SizeClass:
        """The least class of the mechanism."""
        depth = {GROUND: 0}
        for x in self.links:
            depth[x.body] = depth[x.parent] + 1
        presence = self.made.presence
        nq, nv = self.made.topology.sizes
        places = tuple((x.q + int(x.turn_at or 0), x.v + x.size[1] - 3) for x in self.turning)
        return SizeClass(
            layout=Layout(nq, nv, places), bodies=len(self.links),
            rounds=max(1, int(np.ceil(np.log2(max(depth.values()))))),
            efforts=tuple((group, len(x)) for group, x in self.efforts.items()),
            pairs=tuple((group, len(x)) for group, x in self.pairs.items()),
            limits=len(presence.limits), drags=len(presence.drags), tangents=presence.tangents,
        ).ordered()  # fmt: skip

    def arrays(self, of: SizeClass) -> MechanismArrays:
        """The topology and the numbers of the mechanism, in the sizes of a class."""
        gravity = self.params["gravity"]
        return MechanismArrays(
            tree=self._tree(of), efforts=tuple(self._efforts(of, *x) for x in of.efforts),
            pairs=tuple(self._pairs(of, *x) for x in of.pairs), law=self._law(of),
            limits=self._limits(of), drags=self._drags(of),
            gravity=downwards(gravity, 3) if is_traced(gravity) else _downwards(gravity),
        )  # fmt: skip

    def _tree(self, of: SizeClass) -> TreeArrays:
        links, n, nv, nq = self.links, of.bodies, of.layout.nv, of.layout.nq
        parents = np.zeros(n + 1, int)
        parents[1 : len(links) + 1] = [self.body[x.parent] for x in links]
        jumps = [_mask(parents, n + 1)]
        for _ in range(of.rounds - 1):
            jumps.append(jumps[-1] @ jumps[-1])
        origin = [_mask([x.q, x.q + 1, x.q + 2] if x.free else [-1] * 3, nq) for x in links]
        turned = np.array([[x is y for y in self.turning] for x in links], float).reshape(len(links), -1)
        scalar = [x.q if x.kind.numbers == 1 and not x.free else -1 for x in links]
        slides = np.array([x.kind.slides > 0 for x in links], float)
        masks = {
            "jumps": np.stack(jumps), "scalar": _wide(_mask(scalar, nq), n), "turned": _wide(turned, n),
            "origin": _wide(np.stack(origin), n),
            "turning": _wide((np.array(scalar) >= 0) * (1.0 - slides), n),
            "sliding": _wide((np.array(scalar) >= 0) * slides, n),
            "moves": _wide(np.ascontiguousarray(self.made.tree.moves.T), n, nv),
            "before": _wide(self.made.tree.before, nv, nv),
            "reverse": _wide(np.array([x.reversed for x in links], float), n),
        }  # fmt: skip
        return TreeArrays(**masks, **self._screws(of), **self._bodies(of), **self._joints(of))

    def _screws(self, of: SizeClass) -> dict[str, Any]:
        """Bodies and axes of all velocities."""
        nv = of.layout.nv
        where, jointed, unit, spinning = np.zeros(nv, int), np.full(nv, -1), np.zeros((nv, 3)), np.zeros(nv)
        for k, x in enumerate(self.links):
            one = x.kind.numbers == 1 and not x.free  # an axis of its joint's own
            for j in range(x.size[1]):
                v, displaced = x.v + j, (one and x.kind.slides > 0) or (x.free and j < 3)
                spinning[v], where[v] = not displaced, 0 if x.free and displaced else k + 1
                if one:
                    jointed[v] = k
                else:
                    unit[v, j % 3] = 1.0
        return {
            "fixed_in": _mask(where, of.bodies + 1), "jointed": _mask(jointed, of.bodies), "unit": unit,
            "spinning": spinning,
        }  # fmt: skip

    def _bodies(self, of: SizeClass) -> dict[str, Any]:
        """Masses, centres, inertias, and armatures; those of spare velocities are one."""
        bodies = [self.params[x.body] for x in self.links]
        driven: list[Any] = [0.0] * self.made.topology.sizes[1]
        for x, own in zip(self.links, bodies, strict=True):
            given = (own if x.joint is None else self.params[x.joint]).armature
            driven[x.rates] = [0.0 if given is None else given] * x.size[1]
        driven += [1.0] * (of.layout.nv - len(driven))
        found = {
            "mass": _stack([x.mass for x in bodies]), "com": _stack([_vector(x.com) for x in bodies]),
            "inertia": _stack([space.inertia_matrix(x.inertia) for x in bodies]),
        }  # fmt: skip
        return {k: _wide(x, of.bodies) for k, x in found.items()} | {"armature": _stack(driven)}

    def _joints(self, of: SizeClass) -> dict[str, Any]:
        """Points, axes and rotations of the joints, from parents to bodies."""
        columns: dict[str, list[Any]] = {"at": [], "on": [], "axis": [], "rotation": []}
        for x in self.links:
            own = None if x.joint is None else self.params[x.joint]
            at, on, axis, turned = (None,) * 4 if own is None else (own.at, own.on, own.axis, own.turned)
            at, on = (on, at) if x.reversed else (at, on)
            axis = x.kind.first_axis or (1.0, 0.0, 0.0) if axis is None else axis
            given = _vector(at), _vector(on), axis, _vector(turned)
            for column, value in zip(columns.values(), given, strict=True):
                column.append(value)
        return {k: _wide(_stack(x), of.bodies) for k, x in columns.items()}

    def _places(self, joints: Sequence[str], of: SizeClass) -> tuple[np.ndarray, np.ndarray]:
        """Masks of the coordinates and of the rates of joints."""
        links = [self.made.own.links[x] for x in joints]
        return _mask([x.q for x in links], of.layout.nq), _mask([x.v for x in links], of.layout.nv)

    def _efforts(self, of: SizeClass, group: AlikeParts, count: int) -> EffortArrays:
        parts = self.efforts.get(group, [])
        of_q, of_v = self._places([x.option("joint") for x in parts], of)
        numbers = group.side_by_side([self.params[x.name] for x in parts], count, _stack, 0)
        return EffortArrays(of_q=_wide(of_q, count), of_v=_wide(of_v, count), numbers=numbers)

    def _pairs(self, of: SizeClass, group: AlikeParts, count: int) -> PairArrays:
        pairs, n = self.pairs.get(group, []), of.bodies + 1
        spare = count - len(pairs)  # between the ground and itself
        first, second = (_mask([self.body[x.bodies[k]] for x in pairs] + [0] * spare, n) for k in (0, 1))
        own = [self.params[x.name] for x in pairs]
        shapes = group.side_by_side([(x.first, x.second) for x in own], count, _stack, -1)
        return PairArrays(first=first, second=second, shapes=shapes, used=np.arange(count) < len(pairs))

    def contacts(self, of: SizeClass) -> np.ndarray:
        """Number, among the contacts and limits of a class, of each contact and limit of the mechanism."""
        presence = self.made.presence
        found, first = np.zeros(len(presence.contacts), int), 0
        for group, count in of.pairs:
            for k, pair in enumerate(self.pairs.get(group, [])):
                found[list(pair.places)] = first + k * group.rows + np.arange(group.rows)
            first += count * group.rows
        return np.concatenate([found, first + np.arange(len(presence.limits))]).astype(int)

    def _law(self, of: SizeClass) -> tuple[Any, ...]:
        """Numbers of the law of each contact and limit of the class."""
        columns: list[list[Any]] = [[0.0] * of.contacts for _ in LAW]
        places, presence = self.contacts(of), self.made.presence
        for column, key in zip(columns, LAW, strict=True):
            for pair in (x for pairs in self.pairs.values() for x in pairs):
                given = getattr(self.params[pair.name], key)
                if given is not None:
                    each = given if np.size(given) > 1 else [given] * len(pair.places)
                    for k, x in zip(pair.places, each, strict=True):
                        column[places[k]] = x if is_traced(x) else np.reshape(x, ())
        for k, (name, _) in enumerate(presence.limits):
            columns[0][places[len(presence.contacts) + k]] = self.params[name].restitution
        return tuple(_stack(x) if x else np.zeros(0) for x in columns)

    def _limits(self, of: SizeClass) -> LimitArrays | None:
        limits = self.made.presence.limits
        if not of.limits:
            return None
        spare = of.limits - len(limits)
        sides = np.array([1.0 if which == "lower" else -1.0 for _, which in limits])
        of_q, of_v = (
            _wide(sides[:, None] * x, of.limits) for x in self._places([x for x, _ in limits], of)
        )
        bounds = [s * getattr(self.params[x], which) for s, (x, which) in zip(sides, limits, strict=True)]
        return LimitArrays(of_q=of_q, of_v=of_v, bound=_stack([*bounds, *[-1.0] * spare]))

    def _drags(self, of: SizeClass) -> DragArrays | None:
        drags = self.made.presence.drags
        if not of.drags:
            return None
        of_v = _wide(self._places(drags, of)[1], of.drags)
        bounds = [self.params[name].friction for name in drags]
        return DragArrays(of_v=of_v, bound=_stack([*bounds, *[0.0] * (of.drags - len(drags))]))


def _downwards(gravity: Any) -> np.ndarray:
    """Gravity (3,) of numbers that are not traced."""
    if gravity is None or np.ndim(gravity) == 0:
        return np.array([0.0, 0.0, -float(gravity or 0.0)])
    return np.asarray(gravity, float)


def packed(made: Any, params: PyTree) -> Packing:
    """The packing of a mechanism.

    Raises:
        InputError: for a system that is no mechanism of parts, and features that arrays do not describe.
    """
    if not hasattr(made, "presence"):
        raise InputError("side_by_side: the problem is no mechanism of parts; give what assemble returns")
    lack = missing(made)
    if lack:
        raise InputError(
            f"side_by_side: the mechanism has {lack}, which programs of size classes do not know; give the "
            "problem to simulate itself"
        )
    return Packing(made, params)
