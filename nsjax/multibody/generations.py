"""Bodies of a tree that stand equally far from the ground, on joints of one kind, moved at once.

A program that walks from body to body grows with their number. Here it grows with the depth of the tree:
the four legs of a robot are arrays of four. Vectors of ``n`` bodies are arrays (3, n), turns (3, 3, n);
(3, 1) is one for all of them, None is zero, or no turn.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.math import picked, rotations, sin_cos, taken
from nsjax.multibody import spatial_vectors as space
from nsjax.multibody.parts import GROUND
from nsjax.multibody.topology import SIZES, Link
from nsjax.types import Array, record

ADDED = {"hinge": 1, "slide": 1, "universal": 2, "cylindrical": 2}
"""Coordinates of joints that are numbers."""

TURNING = ("hinge", "universal", "cylindrical")
"""Joints of which some are angles."""


@record()
class Geometry:
    """Joints as seen from their parents.

    Args:
        at, on: joint points (3, n) in the axes of the parents and of the bodies.
        axis, second: (3, n) in the axes of the parents, and of the bodies.
        frame: rotations (3, 3, n) of the bodies' axes in the parents' where the coordinates are zero.
        turns: ``(T0, T1, T2)`` for each hinge: ``T0 + cos T1 + sin T2`` is its rotation, ``frame``
        included.
    """

    at: Any = None
    on: Any = None
    axis: Any = None
    second: Any = None
    frame: Any = None
    turns: tuple[Any, ...] = ()


@record()
class Motion:
    """Turns, origins, spins, velocities, and their rates at constant velocities of the coordinates."""

    turn: Any = None
    origin: Any = None
    spin: Any = None
    velocity: Any = None
    turning: Any = None
    acceleration: Any = None

    def at(self, arm: Any) -> Motion:
        """The same for points of the bodies at ``arm``."""
        add, cross = space.add, space.cross
        swing = cross(self.spin, arm)
        change = add(cross(self.turning, arm), cross(self.spin, swing))
        return dataclasses.replace(
            self, origin=add(self.origin, arm), velocity=add(self.velocity, swing),
            acceleration=add(self.acceleration, change),
        )  # fmt: skip

    def of(self, places: np.ndarray | None) -> Motion:
        """That of some of the bodies; None: of all."""
        if places is None:
            return self
        places = places[:1] if np.all(places == places[0]) else places  # one for all
        return jax.tree.map(lambda x: x if x.shape[-1] == 1 else picked(x, places), self)


@dataclasses.dataclass(frozen=True)
class Generation:
    """Bodies on joints of one kind whose parents are of one generation.

    Args:
        kind: of the joints.
        links: of the bodies.
        parent: generation of the parents; None: the ground.
        places: of the parents in theirs; None: the same.
    """

    kind: str
    links: tuple[Link, ...]
    parent: int | None
    places: tuple[int, ...] | None

    @property
    def of_parents(self) -> np.ndarray | None:
        """Places of the parents in their generation."""
        return None if self.places is None else np.array(self.places)


def generations(links: tuple[Link, ...]) -> tuple[Generation, ...]:
    """Of a tree, parents first."""
    where: dict[str, tuple[int, int]] = {}
    found: list[tuple[str, int | None, list[Link]]] = []
    waiting = list(links)
    while waiting:
        ready = [x for x in waiting if x.parent == GROUND or x.parent in where]
        groups: dict[Any, list[Link]] = {}
        for link in ready:
            above = None if link.parent == GROUND else where[link.parent][0]
            groups.setdefault((link.kind, above), []).append(link)
        for (kind, above), group in groups.items():
            # in the order of their parents, so that these are slices
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
    """From the ground to the last bodies of a tree."""

    links: tuple[Link, ...]

    @functools.cached_property
    def generations(self) -> tuple[Generation, ...]:
        """Parents first."""
        return generations(self.links)

    @functools.cached_property
    def order(self) -> tuple[Link, ...]:
        """All links, generation by generation."""
        return tuple(x for g in self.generations for x in g.links)

    @functools.cached_property
    def entries(self) -> np.ndarray:
        """Entries of ``q`` that are numbers, generation by generation, each one's first ones first."""
        own = [x.q + k for g in self.generations for k in range(ADDED.get(g.kind, 0)) for x in g.links]
        return np.array(own, int)

    @functools.cached_property
    def rates(self) -> np.ndarray:
        """Velocities, generation by generation, each one's first ones first."""
        own = [x.v + k for g in self.generations for k in range(SIZES[3][g.kind][1]) for x in g.links]
        return np.array(own, int)

    def __call__(
        self, q: Array, v: Array | None, joints: tuple[Geometry, ...], gravity: Any
    ) -> tuple[tuple[Motion, ...], Array, Array]:
        """Motion of all generations, and the screws of all velocities: spins and velocities (nv, 3)."""
        x = picked(q, self.entries)
        turned = self._turned(x)
        rates = None if v is None else picked(v, self.rates)
        ground = Motion(acceleration=gravity)
        made: list[Motion] = []
        spins, velocities, first, entry = [], [], 0, 0
        for g, joint in zip(self.generations, joints, strict=True):
            base = ground if g.parent is None else made[g.parent].of(g.of_parents)
            n, own, size = len(g.links), ADDED.get(g.kind, 0), SIZES[3][g.kind][1]
            here = slice(entry, entry + own * n)
            speed = None if rates is None else rates[first : first + size * n].reshape(size, n)
            at = _At(g, base, joint, q, x[here].reshape(own, n), _some(turned, here, own), speed)
            moved, screws = STEPS[g.kind](at)
            made.append(moved)
            spins += [space.many(s, n) for s, _ in screws]
            velocities += [space.many(u, n) for _, u in screws]
            first, entry = first + size * n, entry + own * n
        both = jnp.concatenate([jnp.concatenate(spins, axis=1), jnp.concatenate(velocities, axis=1)])
        found = picked(both, np.argsort(self.rates)).T
        return tuple(made), found[:, :3], found[:, 3:]

    def _turned(self, x: Array) -> tuple[Array, Array] | None:
        """Sines and cosines of all numbers, of which those of angles are read."""
        return sin_cos(x) if any(g.kind in TURNING for g in self.generations) else None


def _some(turned: tuple[Array, Array] | None, here: slice, own: int) -> Any:
    if turned is None or not own:
        return None
    s, c = (y[here].reshape(own, -1) for y in turned)
    return s, c


@dataclasses.dataclass(frozen=True)
class _At:
    """What a step from parents to bodies looks at: all of ``q``; numbers among the own coordinates, their
    sines and cosines, and own rates (rows, n).
    """

    generation: Generation
    base: Motion
    joint: Geometry
    q: Array
    x: Array
    turned: Any
    rate: Array | None

    def quaternions(self, first: int) -> Array:
        """Turns (3, 3, n) of balls and free bodies."""
        links = self.generation.links
        own = [taken(self.q, np.arange(x.q + first, x.q + first + 4)) for x in links]
        if len(own) == 1:
            return rotations.matrix(own[0])[:, :, None]
        return jnp.moveaxis(jax.vmap(rotations.matrix)(jnp.stack(own)), 0, -1)

    def joint_point(self) -> Motion:
        """The parents at the joint points."""
        return self.base.at(space.turned(self.base.turn, self.joint.at))

    def body(self, point: Motion) -> Motion:
        """The bodies at their origins, from their joint points."""
        if self.joint.on is None:
            return point
        return point.at(space.negative(space.turned(point.turn, self.joint.on)))


Screws = list[tuple[Any, Any]]
"""Spins and velocities (3, n) of each of the joints' velocities; None: zero."""


def _free(at: _At) -> tuple[Motion, Screws]:
    turn, links = at.quaternions(3), at.generation.links
    origin = jnp.stack([at.q[x.q : x.q + 3] for x in links], axis=1)
    screws: Screws = [(None, jnp.asarray(np.eye(3)[:, k : k + 1])) for k in range(3)]
    screws += [(turn[:, k], space.cross(origin, turn[:, k])) for k in range(3)]
    moved = Motion(turn=turn, origin=origin, acceleration=at.base.acceleration)
    if at.rate is not None:
        spin = space.turned(turn, at.rate[3:])
        moved = dataclasses.replace(moved, spin=spin, velocity=at.rate[:3])
    return moved, screws


def _fixed(at: _At) -> tuple[Motion, Screws]:
    point = at.joint_point()
    moved = dataclasses.replace(point, turn=space.both(point.turn, at.joint.frame))
    return at.body(moved), []


def _along(at: _At, point: Motion) -> tuple[Motion, Screws]:
    """Moved along the axis by the first coordinate."""
    along = space.turned(at.base.turn, at.joint.axis)
    point = point.at(at.x[0] * along)
    if at.rate is not None:
        rate = at.rate[0]
        point = dataclasses.replace(
            point, velocity=space.add(point.velocity, rate * along),
            acceleration=space.add(
                point.acceleration, space.scale(2.0 * rate, space.cross(at.base.spin, along))
            ),
        )  # fmt: skip
    return point, [(None, along)]


def _slide(at: _At) -> tuple[Motion, Screws]:
    point, screws = _along(at, at.joint_point())
    moved = dataclasses.replace(point, turn=space.both(point.turn, at.joint.frame))
    return at.body(moved), screws


def _spun(point: Motion, own: Array) -> Motion:
    """With a spin of the joint."""
    spin = space.add(point.spin, own)
    return dataclasses.replace(
        point, spin=spin, turning=space.add(point.turning, space.cross(point.spin, own))
    )


def _hinges(at: _At, point: Motion, first: int) -> tuple[Motion, Screws]:
    """Turned about one axis or two by the coordinates from ``first`` on."""
    screws: Screws = []
    turn = point.turn
    for k, (t0, t1, t2) in enumerate(at.joint.turns):
        s, c = (y[first + k] for y in at.turned)
        own = at.joint.axis if k == 0 else at.joint.second
        before = turn
        turn = space.both(turn, t0 + c * t1 + s * t2)
        axis = space.turned(before if k == 0 else turn, own)
        screws.append((axis, space.cross(point.origin, axis)))
        if at.rate is not None:
            point = _spun(point, at.rate[first + k] * axis)
    return dataclasses.replace(point, turn=turn), screws


def _hinge(at: _At) -> tuple[Motion, Screws]:
    moved, screws = _hinges(at, at.joint_point(), 0)
    return at.body(moved), screws


def _cylindrical(at: _At) -> tuple[Motion, Screws]:
    point, along = _along(at, at.joint_point())
    moved, screws = _hinges(at, point, 1)
    return at.body(moved), along + screws


def _ball(at: _At) -> tuple[Motion, Screws]:
    point = at.joint_point()
    turn = space.both(point.turn, at.quaternions(0))
    screws = [(turn[:, k], space.cross(point.origin, turn[:, k])) for k in range(3)]
    if at.rate is not None:
        point = _spun(point, space.turned(turn, at.rate))
    return at.body(dataclasses.replace(point, turn=turn)), screws


STEPS: dict[str, Callable[[_At], tuple[Motion, Screws]]] = {
    "free": _free, "fixed": _fixed, "slide": _slide, "hinge": _hinge, "universal": _hinge,
    "cylindrical": _cylindrical, "ball": _ball,
}  # fmt: skip
"""From parents to bodies by kinds of joints: their motion, and the screws of the velocities."""
