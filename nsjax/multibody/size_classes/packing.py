"""Topology and numbers of a mechanism as arrays, in the sizes of a class."""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from nsjax.core import InputError
from nsjax.multibody.contacts import gap_functions
from nsjax.multibody.contacts.batches import LONG, Batch
from nsjax.multibody.coordinates.frames import downwards
from nsjax.multibody.couplings import KINDS as COUPLINGS
from nsjax.multibody.joints import BALL, FREE, JointKind
from nsjax.multibody.joints import kind_of as joint_kind
from nsjax.multibody.joints.joint_kind import stepped
from nsjax.multibody.loads import has_line
from nsjax.multibody.loads import kind_of as load_kind
from nsjax.multibody.numbers import LAW, SPEEDS, Joint
from nsjax.multibody.parts import Part, takes_numbers
from nsjax.multibody.size_classes.size_class import (
    AlikeParts,
    BoundArrays,
    MechanismArrays,
    MemberArrays,
    SizeClass,
)
from nsjax.multibody.size_classes.tree_arrays import Layout
from nsjax.multibody.size_classes.tree_packing import TreePacking, masked, stacked
from nsjax.types import PyTree, is_traced

if TYPE_CHECKING:
    from nsjax.multibody.mechanism import Mechanism

PLACES = ("joint", "joints", "group", "capacity", "asked", "switch", "loop", "turns")
"""Options of parts that are data, or that a program without them does not need."""


def _described(kind: JointKind, dimension: int) -> bool:
    """Whether arrays describe a joint of a tree: in the plane all, in space those of one axis, balls."""
    plain = kind.step is stepped and kind.back is None and kind.turns in ((), ("axis",))
    return dimension == 2 or kind in (FREE, BALL) or (plain and kind.numbers <= 1)


def _on_bodies(part: Part) -> bool:
    """Whether a load acts on bodies of its own, and reads nothing else."""
    kind = load_kind(part)
    outside = part.option("joint") is None and part.option("joints") is None
    return outside and (kind.pushes or kind.line) is not None and not kind.sees_scene(part)


def _coordinate(part: Part) -> str | None:
    """Name of the joint or tendon on whose coordinate a load acts: that of a `joint_tendon` is its own."""
    return part.name if part.option("joints") is not None else part.option("joint")


def missing(tree: TreePacking) -> str:
    """The first feature of a mechanism that arrays do not describe, in words; empty without any."""
    topology, presence, of = tree.made.topology, tree.made.presence, tree.made.topology.of
    if topology.coordinates == "absolute":
        return "absolute coordinates"
    pieces = [(x.part, x.names[0]) if isinstance(x, Batch) else (x, x.name) for x in presence.named.pieces]
    in_joints = [x for x in topology.loads if (on := _coordinate(x)) is not None and tree.linear(on)]
    ends = [name for x in presence.couplings for name in of[x].option("joints")]
    names = {
        "rolling joints": [x for x in topology.closures if joint_kind(of[x]).rates is not None],
        "joints of this kind": [
            str(x.joint) for x in topology.links if not _described(x.kind, topology.dimension)
        ],
        "torsional and rolling friction": presence.turning,
        "capstan friction": [x.name for x in tree.made.capstans],
        "contact laws that depend on the speed": [
            name for part, name in pieces if any(getattr(part.numbers, x, None) is not None for x in SPEEDS)
        ],
        "friction that depends on the direction": [
            name for part, name in pieces if part.option("grain") is not None
        ],
        "restitution of impulses": [name for part, name in pieces if part.option("poisson")],
        "groups of which a step evaluates few contacts": [str(x.group) for x in presence.named.chosen],
        "groups of free bodies": [x.part.name for x in presence.found],
        "shapes whose features are searched for": [
            name
            for part, name in pieces
            if not gap_functions.kind_of(part).rate_at_points or set(LONG) & set(part.option("shapes"))
        ],
        "laws that jump": [x.name for x in topology.loads if x.option("switch") is not None],
        "loads that read other bodies, or act in a joint without a coordinate of the tree": [
            x.name for x in topology.loads if x not in in_joints and not _on_bodies(x)
        ],
        "limits of joints that close loops, or of tendons through points": [
            x for x, _ in presence.limits if not tree.linear(x)
        ],
        "dry friction of joints that close loops, or of tendons through points": [
            x for x in presence.dry_frictions if not tree.linear(x)
        ],
        "joints and couplings that come and go": [name for name, _ in presence.switched],
        "laws of friction": [x for x in presence.dry_frictions if of[x].option("friction_law") is not None],
        "motions of joints that close loops": [x for x in presence.motions if not tree.linear(x)],
        "couplings of joints that close loops, or of tendons through points": [
            x for x in ends if not tree.linear(x)
        ],
    }
    return next((f"{what} ({found[0]!r})" for what, found in names.items() if found), "")


def _group(part: Part, given: Any, bodies: int, rows: int = 1) -> AlikeParts:
    """The group of parts like this one, on a number of bodies, with these numbers."""
    leaves, structure = jax.tree.flatten(given)
    kept = tuple((k, x) for k, x in part.options if k not in PLACES)
    frictionless = part.kind == "contact" and part.numbers is None
    ends = ("first", "second", *(f"end{k}" for k in range(2, bodies)))[:bodies]
    return AlikeParts(
        part=Part(part.kind, "group", ends, None, kept), rows=rows, frictionless=frictionless,
        structure=structure, shapes=tuple(np.shape(x) for x in leaves),
    )  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Member:
    """A part in a group: name, bodies or joints, numbers, and the numbers of its rows among all."""

    name: str
    on: tuple[str, ...]
    numbers: Any
    places: tuple[int, ...] = ()


Grouped = dict[AlikeParts, list[Member]]


@dataclasses.dataclass(frozen=True)
class Packing:
    """A mechanism for which `missing` finds nothing, with its params."""

    made: Mechanism
    params: PyTree

    @functools.cached_property
    def tree(self) -> TreePacking:
        """Its bodies and joints."""
        return TreePacking(self.made, self.params)

    def _loads(self, in_joints: bool) -> Grouped:
        found: Grouped = {}
        for part in self.made.topology.loads:
            joint, own = _coordinate(part), self.params[part.name]
            if has_line(part):  # limits and friction are rows, factors those of the coordinate
                gone = dict.fromkeys(("lower", "upper", "restitution", "friction"))
                own = dataclasses.replace(own, **gone, **({} if joint is None else {"ratios": ()}))
            if in_joints and joint is not None and load_kind(part).effort is not None:
                found.setdefault(_group(part, own, 0), []).append(Member(part.name, (joint,), own))
            elif not in_joints and joint is None:
                member = Member(part.name, part.bodies, own)
                found.setdefault(_group(part, own, len(part.bodies)), []).append(member)
        return found

    @functools.cached_property
    def efforts(self) -> Grouped:
        """Loads in joints."""
        return self._loads(True)

    @functools.cached_property
    def pushes(self) -> Grouped:
        """Loads on bodies."""
        return self._loads(False)

    @functools.cached_property
    def pairs(self) -> Grouped:
        """Pairs of shapes."""
        named, found = self.made.presence.named, Grouped()
        for piece, numbers in zip(named.pieces, named.numbers, strict=True):
            if isinstance(piece, Batch):
                part, names, ends = piece.part, piece.names, piece.bodies
            else:
                part, names, ends = piece, (piece.name,), ((piece.bodies[0], piece.bodies[1]),)
            for name, bodies, places in zip(names, ends, numbers.reshape(len(names), -1), strict=True):
                own = self.params[name]
                shapes = own.first, own.second
                group = _group(dataclasses.replace(part, numbers=own.friction), shapes, 2, len(places))
                pair = Member(name, bodies, shapes, tuple(int(k) for k in places))
                found.setdefault(group, []).append(pair)
        return found

    @functools.cached_property
    def closures(self) -> Grouped:
        """Joints that close loops, with the numbers of their rows."""
        found, first, of = Grouped(), 0, self.made.topology.of
        for name in self.made.topology.closures:
            part, own = of[name], self.params[name]
            rows = len(joint_kind(part).rows[self.made.dimension])
            gone = dict.fromkeys(("lower", "upper", "restitution", "friction", "armature"))
            numbers = dataclasses.replace(own, **gone)
            bare = dataclasses.replace(part, options=())  # its motion is another row
            member = Member(name, part.bodies, numbers, tuple(range(first, first + rows)))
            found.setdefault(_group(bare, numbers, 2, rows), []).append(member)
            first += rows
        return found

    @functools.cached_property
    def followers(self) -> Grouped:
        """Prescribed motions and couplings, with the numbers of their rows."""
        found, presence, of = Grouped(), self.made.presence, self.made.topology.of
        first = sum(len(x.places) for members in self.closures.values() for x in members)
        for k, name in enumerate((*presence.motions, *presence.couplings)):
            part = of[name]
            coupled = part.kind in COUPLINGS
            own, joints = (self.params[name], part.option("joints")) if coupled else ((), (name,))
            motion = () if coupled else (("motion", part.option("motion")),)
            if not coupled and takes_numbers(part.option("motion")):
                own = Joint(own=self.params[name].own, motion=self.params[name].motion)
            bare = Part(part.kind if coupled else "hinge", "group", (), None, motion)
            found.setdefault(_group(bare, own, len(joints)), []).append(
                Member(name, joints, own, (first + k,))
            )
        return found

    @property
    def _layout(self) -> Layout:
        m = len(self.tree.turning)
        return Layout(quaternions=m, scalars=self.made.topology.sizes[1] - 3 * m)

    def size_class(self) -> SizeClass:
        """The least class of the mechanism."""
        presence, tree = self.made.presence, self.tree
        groups: Any = {
            name: tuple((group, len(x)) for group, x in getattr(self, name).items())
            for name in ("efforts", "pushes", "pairs", "closures", "followers")
        }
        return SizeClass(
            dimension=self.made.dimension, layout=self._layout, bodies=len(tree.links),
            rounds=int(np.ceil(np.log2(max(tree.depth, 2)))) if self.made.dimension == 3 else 0,
            constraints=len(self.made.rows.present), limits=len(presence.limits),
            dry_frictions=len(presence.dry_frictions), tangents=presence.tangents, **groups,
        ).ordered()  # fmt: skip

    def arrays(self, of: SizeClass) -> MechanismArrays:
        """The topology and the numbers of the mechanism, in the sizes of a class."""
        sides = np.array([1.0 if which == "lower" else -1.0 for _, which in self.made.presence.limits])
        limits = [
            s * getattr(self.params[x], which)
            for s, (x, which) in zip(sides, self.made.presence.limits, strict=True)
        ]
        rubbing = self.made.presence.dry_frictions
        bounds = [self.params[name].friction for name in rubbing]
        joints, bound = [x for x, _ in self.made.presence.limits], self._bound
        return MechanismArrays(
            tree=self.tree.arrays(of),
            efforts=tuple(self._in_joints(of, self.efforts, *x) for x in of.efforts),
            pushes=tuple(self._between(of, self.pushes, *x) for x in of.pushes),
            pairs=tuple(self._between(of, self.pairs, *x) for x in of.pairs),
            closures=tuple(self._between(of, self.closures, *x) for x in of.closures),
            followers=tuple(self._in_joints(of, self.followers, *x) for x in of.followers),
            kept=self._kept(of), law=self._law(of), gravity=self._gravity(),
            limits=bound(of, of.limits, joints, limits, -1.0, sides) if of.limits else None,
            dry_frictions=bound(of, of.dry_frictions, rubbing, bounds, 0.0) if of.dry_frictions else None,
        )  # fmt: skip

    def _in_joints(self, of: SizeClass, groups: Grouped, group: AlikeParts, count: int) -> MemberArrays:
        members = groups.get(group, [])
        ends = len(members[0].on) if members else len(group.part.bodies) or 1
        on = [self.tree.coordinates([x.on[k] for x in members], count, of) for k in range(ends)]
        numbers = group.side_by_side([x.numbers for x in members], count, stacked)
        return MemberArrays(on=tuple(on), numbers=numbers, used=np.arange(count) < len(members))

    def _between(self, of: SizeClass, groups: Grouped, group: AlikeParts, count: int) -> MemberArrays:
        members = groups.get(group, [])
        body, spare = self.tree.body, [-1] * (count - len(members))  # between the ground and itself
        on = [
            masked([body[x.on[k]] for x in members] + spare, of.bodies)
            for k in range(len(group.part.bodies))
        ]
        numbers = group.side_by_side([x.numbers for x in members], count, stacked)
        return MemberArrays(on=tuple(on), numbers=numbers, used=np.arange(count) < len(members))

    def contacts(self, of: SizeClass) -> np.ndarray:
        """Number, among the contacts and limits of a class, of each contact and limit of the mechanism."""
        presence = self.made.presence
        found, last = _places(of.pairs, self.pairs, len(presence.contacts))
        return np.concatenate([found, last + np.arange(len(presence.limits))]).astype(int)

    def _kept(self, of: SizeClass) -> np.ndarray:
        """See `MechanismArrays`."""
        rows = self.made.rows
        found, last = _places(
            (*of.closures, *of.followers), {**self.closures, **self.followers}, len(rows.names)
        )
        places = [found[k] for k in rows.kept_numbers[0]]
        every = last + of.layout.nq
        # from the last coordinate backwards, which is a spare one
        spare = [every - 1 - k for k in range(of.constraints - len(places))]
        assert of.layout.scalars - self._layout.scalars >= len(spare)
        return masked([*places, *spare], every)

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
        return tuple(stacked(x) if x else np.zeros(0) for x in columns)

    def _bound(
        self, of: SizeClass, count: int, joints: Any, bounds: list[Any], spare: float, signs: Any = 1.0
    ) -> BoundArrays:
        every = [*bounds, *[spare] * (count - len(bounds))]
        return BoundArrays(on=self.tree.coordinates(joints, count, of, signs), bound=stacked(every))

    def _gravity(self) -> Any:
        """Gravity (dimension,)."""
        gravity, d = self.params["gravity"], self.made.dimension
        if d == 3 and is_traced(gravity):
            return downwards(gravity, 3)
        if gravity is None or np.ndim(gravity) == 0:
            return stacked([*[0.0] * (d - 1), 0.0 if gravity is None else -gravity])
        return gravity if is_traced(gravity) else np.asarray(gravity, float)


def _places(groups: Any, members: Grouped, count: int) -> tuple[np.ndarray, int]:
    """Places of the ``count`` rows of a mechanism among those of all groups of a class; number of these."""
    found, first = np.zeros(count, int), 0
    for group, many in groups:
        for k, member in enumerate(members.get(group, [])):
            found[list(member.places)] = first + k * group.rows + np.arange(group.rows)
        first += many * group.rows
    return found, first


def packed(made: Any, params: PyTree) -> Packing:
    """The packing of a mechanism. Raises `InputError` for a system that is no mechanism of parts, and
    features that arrays do not describe.
    """
    if not hasattr(made, "presence"):
        raise InputError("side_by_side: the problem is no mechanism of parts; give what assemble returns")
    found = Packing(made, params)
    lack = missing(found.tree)
    if lack:
        raise InputError(
            f"side_by_side: the mechanism has {lack}, which programs of size classes do not know; give the "
            "problem to simulate itself"
        )
    return found
