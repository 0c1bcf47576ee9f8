"""The program of all mechanisms of a size class, and their numbers and topologies as arrays."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.contact import ContactLaw
from nsjax.core import InputError, System, add, subtract
from nsjax.core.keys import Prepared
from nsjax.multibody import numbers
from nsjax.multibody.contacts import gap_functions
from nsjax.multibody.contacts.batches import scene_of, spread_out
from nsjax.multibody.coordinates import spatial_vectors as space
from nsjax.multibody.coordinates.frames import Frame, Scene
from nsjax.multibody.loads import kind_of as load_kind
from nsjax.multibody.parts import Part
from nsjax.multibody.size_classes import tree_arrays as trees
from nsjax.multibody.size_classes.tree_arrays import (
    Layout,
    Poses,
    Screws,
    TreeArrays,
    product,
    times,
)
from nsjax.types import Array, record

JOINT = Part("hinge", "joint", ("first", "second"))
"""Stands for the joint of a load, whose coordinate is given as a number."""


@dataclasses.dataclass(frozen=True)
class AlikeParts:
    """Contacts or loads that are evaluated as a batch: they have one kind, one law, and equal numbers.

    Args:
        part: a contact or load with the options of all.
        rows: contacts of each pair of shapes; 1 for loads.
        smooth: whether the contacts are frictionless.
        structure, shapes: structure and shapes of the numbers of each.
    """

    part: Part
    rows: int
    smooth: bool
    structure: Any
    shapes: tuple[tuple[int, ...], ...]

    def side_by_side(self, given: list[Any], count: int, stack: Any, axis: int) -> Any:
        """Numbers of ``count`` members along an axis, those of spare members zero."""
        none = jax.tree.unflatten(self.structure, [np.zeros(x) for x in self.shapes])
        every = [*given, *[none] * (count - len(given))]
        return jax.tree.map(lambda *x: stack(x, axis), *every)


@record()
class EffortArrays:
    """Loads of one kind in joints: masks (n, nq) and (n, nv) of their coordinates and rates, and numbers
    with the loads along the first axis.
    """

    of_q: Any
    of_v: Any
    numbers: Any


@record()
class PairArrays:
    """Pairs of two kinds of shapes: masks (n, bodies + 1) of both bodies, the ground first; numbers of both
    shapes with the pairs along the last axis; and which pairs are no spare ones (n,).
    """

    first: Any
    second: Any
    shapes: Any
    used: Any


@record()
class LimitArrays:
    """Limits of joints: masks (k, nq) and (k, nv), the sign of the upper ones negative; bounds (k,)."""

    of_q: Any
    of_v: Any
    bound: Any


@record()
class DragArrays:
    """Dry friction of joints: mask (nd, nv) of their rates, and bounds (nd,)."""

    of_v: Any
    bound: Any


@record()
class MechanismArrays:
    """A mechanism as arrays by kind.

    Args:
        tree: bodies and joints.
        efforts: loads in joints, group by group.
        pairs: pairs of shapes, group by group.
        law: restitution, tangential restitution and friction (nc,), limits last.
        limits, drags: None without them.
        gravity: (3,).
    """

    tree: TreeArrays
    efforts: tuple[EffortArrays, ...]
    pairs: tuple[PairArrays, ...]
    law: tuple[Any, ...]
    limits: LimitArrays | None
    drags: DragArrays | None
    gravity: Any


@dataclasses.dataclass(frozen=True)
class SizeClass:
    """Sizes and kinds of a mechanism; its methods are the functions of the system of all mechanisms of this
    class, whose topology and numbers are their params (`MechanismArrays`).

    Args:
        layout: places of coordinates and velocities.
        bodies: number of bodies.
        rounds: logarithm to base 2 of the number of joints between a body and the ground.
        efforts, pairs: groups of loads and of pairs of shapes, with the number of members.
        limits, drags: numbers of limits, and of rows of dry friction.
        tangents: number of tangents of a contact.
    """

    layout: Layout
    bodies: int
    rounds: int
    efforts: tuple[tuple[AlikeParts, int], ...]
    pairs: tuple[tuple[AlikeParts, int], ...]
    limits: int
    drags: int
    tangents: int

    @property
    def contacts(self) -> int:
        """Number of contacts, limits included."""
        return sum(group.rows * count for group, count in self.pairs) + self.limits

    @property
    def smooth(self) -> int:
        """Number of frictionless contacts, the last ones, limits included."""
        return sum(x.rows * count for x, count in self.pairs if x.smooth) + self.limits

    def ordered(self) -> SizeClass:
        """The class with groups in an order that depends on them alone, frictionless contacts last."""

        def key(entry: tuple[AlikeParts, int]) -> Any:
            group = entry[0]
            laws = [(k, getattr(x, "__qualname__", repr(x))) for k, x in group.part.options]
            return group.smooth, group.part.kind, str(laws), group.rows, str(group.structure), group.shapes

        efforts, pairs = (tuple(sorted(x, key=key)) for x in (self.efforts, self.pairs))
        return dataclasses.replace(self, efforts=efforts, pairs=pairs)

    def joined(self, other: SizeClass) -> SizeClass:
        """The least class that holds the mechanisms of both.

        Raises:
            InputError: for quaternions at different places.
        """
        one, two = self.layout, other.layout
        if one.quaternions != two.quaternions:
            here, there = ([q for q, _ in x.quaternions] for x in (one, two))
            raise InputError(
                f"side_by_side: quaternions begin at the coordinates {here} of one mechanism and {there} "
                "of another; free bodies and ball joints must be as many in all, and come first"
            )
        larger = {
            x: max(getattr(self, x), getattr(other, x))
            for x in ("bodies", "rounds", "limits", "drags", "tangents")
        }
        layout = Layout(max(one.nq, two.nq), max(one.nv, two.nv), one.quaternions)
        efforts, pairs = (
            tuple(
                (x, max(dict(a).get(x, 0), dict(b).get(x, 0))) for x in dict.fromkeys([*dict(a), *dict(b)])
            )
            for a, b in ((self.efforts, other.efforts), (self.pairs, other.pairs))
        )
        return SizeClass(layout=layout, efforts=efforts, pairs=pairs, **larger).ordered()

    def prepare(self, p: MechanismArrays) -> Prepared:
        """Params with the derived constants of the joints."""
        return Prepared(params=p, constants=trees.joints_of(p.tree))

    def _at(self, q: Array, p: Prepared) -> tuple[Poses, Screws]:
        poses = trees.poses(p.params.tree, self.layout, p.constants, q)
        return poses, trees.screws(p.params.tree, p.constants, poses)

    def mass(self, q: Array, p: Prepared) -> Array:
        """Mass matrix (nv, nv)."""
        poses, screws = self._at(q, p)
        return trees.mass(p.params.tree, screws, poses)

    def force(self, t: Array, q: Array, v: Array, p: Prepared) -> Array:
        """Generalised forces (nv,)."""
        poses, screws = self._at(q, p)
        found = trees.force(p.params.tree, screws, poses, v, p.params.gravity)
        for (group, _), x in zip(self.efforts, p.params.efforts, strict=True):
            found = found + _effort(group.part, x, t, q, v)
        return found

    def potential(self, t: Array, q: Array, p: Prepared) -> Array:
        """Potential energy of gravity and springs [J]."""
        poses, _ = self._at(q, p)
        found = trees.weight(p.params.tree, poses, p.params.gravity)
        for (group, _), x in zip(self.efforts, p.params.efforts, strict=True):
            energy = load_kind(group.part).energy
            if energy is None:
                continue

            def one(x: Array, own: Any, part: Part = group.part, energy: Any = energy) -> Array:
                scene = Scene(3, t, {}, lambda scene, name: (x, None))
                return space.value(energy(scene, part, own, (JOINT, None)))

            found = found + jnp.sum(jax.vmap(one)(times(x.of_q, q), x.numbers))
        return found

    def _meetings(self, poses: Poses, motion: Array | None, p: Prepared) -> list[Any]:
        """Gap (rows, n), points, normal and tangents (3, rows, n), and slip (nt, rows, n) of each group."""
        found = []
        for (group, _), x in zip(self.pairs, p.params.pairs, strict=True):
            rows = group.rows
            ends = [_frames(poses, motion, mask) for mask in (x.first, x.second)]

            def one(ends: Any, shapes: Any, used: Any, part: Part = group.part, rows: int = rows) -> Any:
                scene = scene_of(3, jnp.zeros(()), *ends)
                both = numbers.Contact(first=shapes[0], second=shapes[1])
                m = gap_functions.meetings(scene, part, both)
                places = [spread_out(space, rows, y) for y in (m.here, m.there, m.normal, *m.tangents)]
                slip = [jnp.broadcast_to(y, (rows,)) for y in m.slip(scene)] if motion is not None else []
                gap = jnp.where(used, m.gap, 1.0)  # a spare pair is open
                return jnp.broadcast_to(gap, (rows,)), places, slip

            found.append(jax.vmap(one, -1, -1)(ends, x.shapes, x.used))
        return found

    def gap(self, t: Array, q: Array, p: Prepared) -> Array:
        """Gaps (nc,) of the contacts, then of the limits."""
        x, found = p.params, []
        if self.pairs:
            meetings = self._meetings(trees.poses(x.tree, self.layout, p.constants, q), None, p)
            found = [gap.T.reshape(-1) for gap, *_ in meetings]
        if x.limits is not None:
            found.append(times(x.limits.of_q, q) - x.limits.bound)
        return jnp.concatenate(found)

    def slip(self, t: Array, q: Array, v: Array, p: Prepared) -> Array:
        """Slip velocities (nc, nt) of the contacts, then zeros of the limits."""
        poses, screws = self._at(q, p)
        meetings = self._meetings(poses, trees.motion(p.params.tree, screws, v), p)
        found = [jnp.stack(x[2]).T.reshape(-1, self.tangents) for x in meetings]
        return jnp.concatenate([*found, jnp.zeros((self.limits, self.tangents))])

    def rows(self, t: Array, q: Array, p: Prepared) -> tuple[Array, Array]:
        """Rows (nc, 1 + nt, nv) of the contacts and limits, and their rates at zero velocity."""
        (poses, screws), d, x = self._at(q, p), 1 + self.tangents, p.params
        columns = jnp.concatenate([screws.velocity, screws.spin], axis=1).T
        found = []
        for (_, places, _), (group, _), own in zip(
            self._meetings(poses, None, p), self.pairs, x.pairs, strict=True
        ):
            here, there, *ways = (jnp.swapaxes(y, 1, 2).reshape(3, -1) for y in places[: 2 + d])
            way, made = jnp.stack(ways, axis=2), jnp.zeros(())
            for mask, place, sign in ((own.first, here, 1.0), (own.second, there, -1.0)):
                line = jnp.concatenate([way, space.cross(place[:, :, None], way)]).reshape(6, -1)
                along = product(line.T, columns).reshape(-1, d, self.layout.nv)
                moves = product(mask[:, 1:], jnp.asarray(x.tree.moves))
                made = made + sign * jnp.repeat(moves, group.rows, axis=0)[:, None] * along
            found.append(made)
        if x.limits is not None:
            found.append(jnp.pad(jnp.asarray(x.limits.of_v)[:, None], ((0, 0), (0, d - 1), (0, 0))))
        wt = jnp.concatenate(found)
        return wt, jnp.zeros(wt.shape[:2])

    def law(self, p: Prepared) -> ContactLaw:
        """The law of all contacts."""
        given: dict[str, Any] = dict(zip(numbers.LAW, p.params.law, strict=True))
        return ContactLaw(**given)

    def drag(self, t: Array, q: Array, v: Array, p: Prepared) -> Array:
        """Rates (nd,) of the joints with dry friction."""
        return times(p.params.drags.of_v, v)

    def drag_bound(self, p: Prepared) -> Array:
        """Bounds (nd,) of dry friction."""
        found: Array = jnp.asarray(p.params.drags.bound)
        return found

    @functools.cached_property
    def system(self) -> System:
        """The system of the class."""
        nc, flat = self.contacts, not self.layout.quaternions
        return System(
            nq=self.layout.nq, nv=self.layout.nv, nc=nc, nt=self.tangents if nc else 0, nd=self.drags,
            smooth=self.smooth, mass=self.mass, force=self.force, potential=self.potential,
            gap=self.gap if nc else None, slip=self.slip if nc and self.tangents else None,
            rows=self.rows if nc else None, law=self.law if nc else None,
            drag=self.drag if self.drags else None, drag_bound=self.drag_bound if self.drags else None,
            retract=add if flat else self.layout.retract,
            difference=subtract if flat else self.layout.difference,
            prepare=self.prepare, tangent_hint="mass",
        )  # fmt: skip


def _effort(part: Part, x: EffortArrays, t: Array, q: Array, v: Array) -> Array:
    """Forces (nv,) of a group of loads on the velocities of their joints."""
    effort: Any = load_kind(part).effort
    made = jax.vmap(functools.partial(effort, part), (0, None, 0, 0))(
        x.numbers, t, times(x.of_q, q), times(x.of_v, v)
    )
    return times(jnp.asarray(x.of_v).T, made)


def _frames(poses: Poses, motion: Array | None, mask: Array) -> Frame:
    """Frames of the bodies of a mask (n, bodies + 1), along a last axis."""
    each = [poses.turn.reshape(-1, 9), poses.origin, *([] if motion is None else [motion])]
    found = product(mask, jnp.concatenate(each, axis=1)).T
    turn, origin = found[:9].reshape(3, 3, -1), found[9:12]
    if motion is None:
        return Frame(origin=origin, turn=turn)
    spin = found[12:15]
    return Frame(origin=origin, turn=turn, spin=spin, velocity=found[15:] + space.cross(spin, origin))
