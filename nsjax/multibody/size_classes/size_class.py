"""The program of all mechanisms of a size class, and their numbers and topologies as arrays."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax.contact import ContactLaw
from nsjax.core import InputError, System, add, subtract
from nsjax.core.keys import Prepared
from nsjax.core.signals import ready
from nsjax.multibody import numbers
from nsjax.multibody.contacts import gap_functions
from nsjax.multibody.contacts.batches import scene_of, spread_out
from nsjax.multibody.coordinates.frames import ALGEBRA, Scene, still_frames
from nsjax.multibody.couplings import KINDS as COUPLINGS
from nsjax.multibody.joints import kind_of as joint_kind
from nsjax.multibody.loads import kind_of as load_kind
from nsjax.multibody.loads import wrenches
from nsjax.multibody.parts import Part, prescribed, user_laws
from nsjax.multibody.size_classes import plane_arrays, tree_arrays
from nsjax.multibody.size_classes.tree_arrays import Layout, times
from nsjax.types import Array, record

JOINT = Part("hinge", "joint", ("first", "second"))
"""Stands for the joint of a load, whose coordinate is given as a number."""


@dataclasses.dataclass(frozen=True)
class AlikeParts:
    """Parts that are evaluated as a batch: they have one kind, one law, and equal numbers.

    Args:
        part: one with the options of all, between bodies ``"first"`` and ``"second"``.
        rows: contacts or constraint rows of each; 1 for loads.
        frictionless: whether the contacts have no friction.
        structure, shapes: structure and shapes of the numbers of each.
    """

    part: Part
    rows: int
    frictionless: bool
    structure: Any
    shapes: tuple[tuple[int, ...], ...]

    def side_by_side(self, given: list[Any], count: int, stack: Any) -> Any:
        """Numbers of ``count`` members along a last axis; spare members have those of the first one."""
        none = jax.tree.unflatten(self.structure, [np.zeros(x) for x in self.shapes])
        every = [*given, *[given[0] if given else none] * (count - len(given))]
        return jax.tree.map(lambda *x: stack(x, -1), *every)


@record()
class CoordinateArrays:
    """Coordinates of m joints: masks (m, nq) and (m, nv), with signs, of the coordinates and velocities
    that add up to them and their rates, and constants (m,).
    """

    of_q: Any
    of_v: Any
    shift: Any

    def at(self, q: Array) -> Array:
        """Values (m,)."""
        return times(self.of_q, q) + self.shift

    def rates(self, v: Array) -> Array:
        """Rates (m,)."""
        return times(self.of_v, v)


@record()
class MemberArrays:
    """Members of a group of parts.

    Args:
        on: masks (m, n) of their bodies, one or two, rows of zeros for the ground; or `CoordinateArrays`
            of their joints.
        numbers: with the members along the last axis.
        used: which members are no spare ones (m,).
    """

    on: tuple[Any, ...]
    numbers: Any
    used: Any


@record()
class BoundArrays:
    """Limits or dry friction of joints: coordinates that grow away from upper limits, and bounds (m,)."""

    on: CoordinateArrays
    bound: Any


@record()
class MechanismArrays:
    """A mechanism as arrays by kind.

    Args:
        tree: bodies and joints, `tree_arrays.TreeArrays` or `plane_arrays.PlaneArrays`.
        efforts, pushes: loads in joints and on bodies, group by group.
        pairs: pairs of shapes, group by group.
        closures, followers: joints that close loops; prescribed motions and couplings; group by group.
        kept: (nb, r + nq) mask of the constraint rows among the r rows of all groups. A spare row keeps a
            spare coordinate at zero.
        law: restitution, tangential restitution and friction (nc,), limits last.
        limits, dry_frictions: None without them.
        gravity: (dimension,).
    """

    tree: Any
    efforts: tuple[MemberArrays, ...]
    pushes: tuple[MemberArrays, ...]
    pairs: tuple[MemberArrays, ...]
    closures: tuple[MemberArrays, ...]
    followers: tuple[MemberArrays, ...]
    kept: Any
    law: tuple[Any, ...]
    limits: BoundArrays | None
    dry_frictions: BoundArrays | None
    gravity: Any


def of_parts(n: int) -> int:
    """``n`` springs, limits or contacts rounded up: to 1, 2, 3, 4, 6, 8, 12, 16, 24 and so on."""
    two = 2 ** max(1, n - 1).bit_length()  # the power of two from n on
    return n if n < 4 else 3 * two // 4 if 4 * n <= 3 * two else two


def of_bodies(n: int) -> int:
    """``n`` bodies or velocities rounded up: 6 and 7 to 8, and 9 to 11 to 12."""
    return 8 if 6 <= n <= 8 else 12 if 9 <= n <= 12 else n


Groups = tuple[tuple[AlikeParts, int], ...]
"""Groups of parts with the number of their members."""

GROUPS = ("efforts", "pushes", "pairs", "closures", "followers")
"""Fields of a class that are groups."""

ROUNDED = ("efforts", "pushes", "pairs")
"""Groups whose spare members are inert. Spare members of the others would be constraint rows."""

SIZES = ("bodies", "rounds", "limits", "dry_frictions", "tangents")
"""Fields of a class that are numbers, of which a joined class has the largest."""


@dataclasses.dataclass(frozen=True)
class SizeClass:
    """Sizes and kinds of a mechanism; its methods are the functions of the system of all mechanisms of this
    class, whose topology and numbers are their params (`MechanismArrays`).

    Args:
        dimension: 2 or 3.
        layout: places of coordinates and velocities.
        bodies: number of bodies.
        rounds: logarithm to base 2 of the number of joints between a body and the ground.
        efforts, pushes, pairs, closures, followers: groups of parts, see `MechanismArrays`.
        constraints: number of constraint rows.
        limits, dry_frictions: numbers of limits, and of rows of dry friction.
        tangents: number of tangents of a contact.
    """

    dimension: int
    layout: Layout
    bodies: int
    rounds: int
    efforts: Groups
    pushes: Groups
    pairs: Groups
    closures: Groups
    followers: Groups
    constraints: int
    limits: int
    dry_frictions: int
    tangents: int

    @property
    def contacts(self) -> int:
        """Number of contacts, limits included."""
        return sum(group.rows * count for group, count in self.pairs) + self.limits

    @property
    def frictionless(self) -> int:
        """Number of frictionless contacts, the last ones, limits included."""
        return sum(x.rows * count for x, count in self.pairs if x.frictionless) + self.limits

    @property
    def tree(self) -> Any:
        """Functions of trees in this dimension."""
        return plane_arrays if self.dimension == 2 else tree_arrays

    def part_names(self, kind: str) -> tuple[str, ...]:
        """None: the parts of a class have no names, see `nsjax.sweep.mechanisms.SideBySide.named`."""
        return ()

    def with_rotations(self, p: Prepared) -> bool | Array:
        """Whether a mechanism of the class has quaternions."""
        return bool(self.layout.quaternions) and jnp.sum(p.params.tree.turned) > 0.0

    @property
    def own_laws(self) -> bool:
        """Whether loads have laws of a user, which may jump."""
        return user_laws(group.part for group, _ in (*self.efforts, *self.pushes))

    def ordered(self) -> SizeClass:
        """The class with groups in an order that depends on them alone, frictionless contacts last."""

        def key(entry: tuple[AlikeParts, int]) -> Any:
            group = entry[0]
            laws = [(k, getattr(x, "__qualname__", repr(x))) for k, x in group.part.options]
            return (
                group.frictionless, group.part.kind, str(laws), group.rows, str(group.structure),
                group.shapes,
            )  # fmt: skip

        groups: Any = {x: tuple(sorted(getattr(self, x), key=key)) for x in GROUPS}
        return dataclasses.replace(self, **groups)

    def joined(self, other: SizeClass) -> SizeClass:
        """The least class that holds the mechanisms of both.

        Raises:
            InputError: for the plane and space.
        """
        if self.dimension != other.dimension:
            raise InputError("side_by_side: one mechanism is planar, another spatial; run them apart")
        larger: Any = {x: max(getattr(self, x), getattr(other, x)) for x in SIZES}
        for x in GROUPS:
            a, b = dict(getattr(self, x)), dict(getattr(other, x))
            larger[x] = tuple((k, max(a.get(k, 0), b.get(k, 0))) for k in dict.fromkeys([*a, *b]))
        rows = max(self.constraints, other.constraints)
        both = self.layout, other.layout
        # spare rows need spare coordinates
        needs = [x.layout.scalars + rows - x.constraints for x in (self, other)]
        layout = Layout(max(x.quaternions for x in both), max(*needs, *(x.scalars for x in both)))
        return dataclasses.replace(self, layout=layout, constraints=rows, **larger).ordered()

    def rounded(self) -> SizeClass:
        """The class with sizes rounded up (`of_parts`, `of_bodies`); what is absent stays absent."""
        larger: Any = {x: tuple((k, of_parts(n)) for k, n in getattr(self, x)) for x in ROUNDED}
        larger |= {x: of_parts(getattr(self, x)) for x in ("limits", "dry_frictions")}
        more = of_bodies(self.layout.nv) - self.layout.nv
        layout = dataclasses.replace(self.layout, scalars=self.layout.scalars + more)
        return dataclasses.replace(self, layout=layout, bodies=of_bodies(self.bodies), **larger)

    def prepare(self, p: MechanismArrays) -> Prepared:
        """Params with the derived constants of the joints."""
        return Prepared(params=ready(p), constants=self.tree.joints_of(p.tree))

    def _poses(self, q: Array, p: Prepared) -> Any:
        return self.tree.poses(p.params.tree, self.layout, p.constants, q)

    def _at(self, q: Array, p: Prepared) -> tuple[Any, Any]:
        """Poses and screws."""
        poses = self._poses(q, p)
        return poses, self.tree.screws(p.params.tree, p.constants, poses)

    def mass(self, q: Array, p: Prepared) -> Array:
        """Mass matrix (nv, nv)."""
        poses, screws = self._at(q, p)
        return self.tree.mass(p.params.tree, screws, poses)

    def force(self, t: Array, q: Array, v: Array, p: Prepared) -> Array:
        """Generalised forces (nv,)."""
        (poses, screws), x, tree = self._at(q, p), p.params, self.tree
        found: Array = tree.force(x.tree, screws, poses, v, x.gravity)
        for (group, _), own in zip(self.efforts, x.efforts, strict=True):
            effort: Any = load_kind(group.part).effort
            effort, (on,) = functools.partial(effort, group.part), own.on
            made = jax.vmap(effort, (-1, None, 0, 0))(own.numbers, t, on.at(q), on.rates(v))
            if made is not None:
                found = found + times(jnp.asarray(on.of_v).T, made)
        moving = tree.motion(x.tree, screws, v) if self.pushes else None
        for (group, _), own in zip(self.pushes, x.pushes, strict=True):
            ends = [tree.frames(poses, moving, mask) for mask in own.on]
            one = functools.partial(self._wrenches, group.part, t)
            for mask, wrench in zip(own.on, jax.vmap(one, -1, -1)(ends, own.numbers), strict=True):
                found = found + jnp.sum(tree.along(x.tree, screws, poses, mask, wrench[..., None]), (0, 1))
        return found

    def _wrenches(self, part: Part, t: Array, ends: Any, own: Any) -> list[Array]:
        """Moment about the origin and force on each body of a load."""
        a, kind = ALGEBRA[self.dimension], load_kind(part)
        scene = Scene(self.dimension, t, dict(zip(part.bodies, ends, strict=True)))
        pushes: Any = iter(()) if kind.pushes is None else kind.pushes(scene, part, own, None)
        if kind.line is not None:
            line, effort = kind.line(scene, None, part, {part.name: own}), kind.effort
            tension = None if effort is None else effort(part, own, t, line.length, line.rate)
            pushes = iter(()) if tension is None else line.act(tension)
        found, made = wrenches(scene, pushes), []
        for body in part.bodies:
            push, turning = found.get(body, (a.ZERO, None))
            wrench = self.tree.line(scene.position(body), a.array(push))
            moment = jnp.atleast_1d(a.value(turning) if self.dimension == 2 else a.array(turning))
            made.append(wrench + jnp.pad(moment, (0, self.dimension)))
        return made

    def potential(self, t: Array, q: Array, p: Prepared) -> Array:
        """Potential energy of gravity and springs [J]."""
        poses, x = self._poses(q, p), p.params
        found: Array = self.tree.weight(x.tree, poses, x.gravity)
        for groups, members in ((self.efforts, x.efforts), (self.pushes, x.pushes)):
            for (group, _), own in zip(groups, members, strict=True):
                each = self._energies(group.part, own, t, q, poses)
                found = found if each is None else found + jnp.sum(jnp.where(own.used, each, 0.0))
        return found

    def _energies(self, part: Part, own: MemberArrays, t: Array, q: Array, poses: Any) -> Array | None:
        """Energies (m,) of the loads of a group; None: they store none."""
        energy, joint = load_kind(part).energy, isinstance(own.on[0], CoordinateArrays)
        if energy is None:
            return None
        on = own.on[0].at(q) if joint else [self.tree.frames(poses, None, mask) for mask in own.on]

        line: Any = load_kind(part).line

        def one(on: Any, numbers: Any) -> Array:
            if joint:
                scene = Scene(self.dimension, t, {}, lambda scene, name: (on, None))
                return jnp.reshape(ALGEBRA[2].value(energy(scene, part, numbers, (JOINT, None))), ())
            frames = dict(zip(part.bodies, on, strict=True))
            length = lambda scene, name: (line(scene, None, part, {name: numbers}).length, None)  # noqa: E731
            scene = Scene(self.dimension, t, frames, length)
            scene = dataclasses.replace(scene, frames=still_frames(scene))
            return jnp.reshape(ALGEBRA[2].value(energy(scene, part, numbers, None)), ())

        return jax.vmap(one, -1)(on, own.numbers)

    def _meetings(self, poses: Any, moving: Array | None, p: Prepared) -> list[Any]:
        """Gap (rows, m), points, normal and tangents (d, rows, m), and slip (nt, rows, m) of each group."""
        found, d = [], self.dimension
        held = (None,) * len(self.pairs) if p.held is None else p.held
        for (group, _), x, near in zip(self.pairs, p.params.pairs, held, strict=True):
            rows = group.rows
            ends = [self.tree.frames(poses, moving, mask) for mask in x.on]

            def one(
                ends: Any, shapes: Any, used: Any, near: Any, part: Part = group.part, rows: int = rows
            ) -> Any:
                scene = scene_of(d, jnp.zeros(()), *ends)
                both = numbers.Contact(first=shapes[0], second=shapes[1])
                m, a = gap_functions.meetings(scene, part, both, near), ALGEBRA[d]
                places = [spread_out(a, rows, y) for y in (m.here, m.there, m.normal, *m.tangents)]
                slip = [] if moving is None else [jnp.broadcast_to(y, (rows,)) for y in m.slip(scene)]
                gap = jnp.where(used, m.gap, 1.0)  # a spare pair is open
                return jnp.broadcast_to(gap, (rows,)), places, slip

            found.append(jax.vmap(one, -1, -1)(ends, x.numbers, x.used, near))
        return found

    def refresh(self, t: Array, q: Array, p: Prepared) -> Prepared:
        """Params with the closest points, corners, edges and faces that a step holds fixed."""
        poses, found = lax.stop_gradient(self._poses(q, p)), []
        for (group, _), x in zip(self.pairs, p.params.pairs, strict=True):

            def one(ends: Any, shapes: Any, part: Part = group.part) -> Any:
                both = numbers.Contact(first=shapes[0], second=shapes[1])
                return gap_functions.hold(scene_of(self.dimension, t, *ends), part, both)

            ends = [self.tree.frames(poses, None, mask) for mask in x.on]
            search = gap_functions.kind_of(group.part).hold is not None
            shapes = lax.stop_gradient(x.numbers)
            found.append(jax.vmap(one, -1, -1)(ends, shapes) if search else None)
        return dataclasses.replace(p, held=tuple(found))

    def gap(self, t: Array, q: Array, p: Prepared) -> Array:
        """Gaps (nc,) of the contacts, then of the limits."""
        x, found = p.params, []
        if self.pairs:
            found = [gap.T.reshape(-1) for gap, *_ in self._meetings(self._poses(q, p), None, p)]
        if x.limits is not None:
            found.append(x.limits.on.at(q) - x.limits.bound)
        return jnp.concatenate(found)

    def slip(self, t: Array, q: Array, v: Array, p: Prepared) -> Array:
        """Slip velocities (nc, nt) of the contacts, then zeros of the limits."""
        poses, screws = self._at(q, p)
        meetings = self._meetings(poses, self.tree.motion(p.params.tree, screws, v), p)
        found = [jnp.stack(x[2]).T.reshape(-1, self.tangents) for x in meetings]
        return jnp.concatenate([*found, jnp.zeros((self.limits, self.tangents))])

    def rows(self, t: Array, q: Array, p: Prepared) -> tuple[Array, Array]:
        """Rows (nc, 1 + nt, nv) of the contacts and limits, and their rates at zero velocity."""
        (poses, screws), d, x = self._at(q, p), 1 + self.tangents, p.params
        found = []
        for (_, places, _), own in zip(self._meetings(poses, None, p), x.pairs, strict=True):
            here, there, *ways = places[: 2 + d]
            way, made = jnp.stack(ways, axis=2), jnp.zeros(())  # (dimension, rows, 1 + nt, m)
            for mask, place, sign in ((own.on[0], here, 1.0), (own.on[1], there, -1.0)):
                line = jnp.moveaxis(self.tree.line(place[:, :, None], way), -1, 1)
                each = self.tree.along(
                    x.tree, screws, poses, mask, line.reshape(line.shape[0], mask.shape[0], -1)
                )
                made = made + sign * each.reshape(-1, d, self.layout.nv)
            found.append(made)
        if x.limits is not None:
            found.append(jnp.pad(jnp.asarray(x.limits.on.of_v)[:, None], ((0, 0), (0, d - 1), (0, 0))))
        wt = jnp.concatenate(found)
        return wt, jnp.zeros(wt.shape[:2])

    def law(self, p: Prepared) -> ContactLaw:
        """The law of all contacts."""
        given: dict[str, Any] = dict(zip(numbers.LAW, p.params.law, strict=True))
        return ContactLaw(**given)

    def constraint(self, t: Array, q: Array, p: Prepared) -> Array:
        """Residuals (nb,) of joints that close loops, of prescribed motions, and of couplings."""
        x, found = p.params, []
        poses = self._poses(q, p) if self.closures else None
        for (group, _), own in zip(self.closures, x.closures, strict=True):
            ends = [self.tree.frames(poses, None, mask) for mask in own.on]

            def closed(ends: Any, own: Any, part: Part = group.part) -> Array:
                scene = scene_of(self.dimension, t, *ends)
                return gap_functions.flat(joint_kind(part).constraint(scene, part, own))

            found.append(jax.vmap(closed, -1)(ends, own.numbers).reshape(-1))
        for (group, _), own in zip(self.followers, x.followers, strict=True):
            at = [on.at(q) for on in own.on]
            if group.part.kind in COUPLINGS:
                found.append(jax.vmap(COUPLINGS[group.part.kind].residual, -1)(own.numbers, at))
            else:
                wanted = functools.partial(prescribed, group.part, "motion", t=t)
                each = jax.vmap(wanted, -1)(own.numbers) if jax.tree.leaves(own.numbers) else wanted(None)
                found.append(at[0] - each)
        return times(x.kept, jnp.concatenate([*found, q]))

    def dry_friction(self, t: Array, q: Array, v: Array, p: Prepared) -> Array:
        """Rates (nd,) of the joints with dry friction."""
        return p.params.dry_frictions.on.rates(v)

    def dry_friction_bound(self, p: Prepared) -> Array:
        """Bounds (nd,) of dry friction."""
        return jnp.asarray(p.params.dry_frictions.bound)

    @functools.cached_property
    def system(self) -> System:
        """The system of the class."""
        nc, nb, flat = self.contacts, self.constraints, not self.layout.quaternions
        searched = any(gap_functions.kind_of(group.part).hold is not None for group, _ in self.pairs)
        return System(
            nq=self.layout.nq, nv=self.layout.nv, nc=nc, nt=self.tangents if nc else 0, nb=nb,
            nd=self.dry_frictions, frictionless=self.frictionless, mass=self.mass, force=self.force,
            potential=self.potential, gap=self.gap if nc else None,
            slip=self.slip if nc and self.tangents else None,
            rows=self.rows if nc else None, law=self.law if nc else None,
            constraint=self.constraint if nb else None,
            dry_friction=self.dry_friction if self.dry_frictions else None,
            dry_friction_bound=self.dry_friction_bound if self.dry_frictions else None,
            retract=add if flat else self.layout.retract,
            difference=subtract if flat else self.layout.difference,
            prepare=self.prepare, refresh=self.refresh if searched else None, tangent_hint="mass",
            parts=self,
        )  # fmt: skip
