"""Generations of a tree: bodies at equal depth on joints of one kind, evaluated as a batch.

A program that walks from body to body grows with their number. Here it grows with the depth of the tree:
the four legs of a robot are arrays of four. Vectors of ``n`` bodies are arrays (3, n), turns (3, 3, n);
(3, 1) is one vector for all bodies; None is zero, or no turn.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax.numpy as jnp
import numpy as np

from nsjax.math import picked, sin_cos
from nsjax.multibody.coordinates import spatial_vectors as space
from nsjax.multibody.joints import JointKind
from nsjax.multibody.joints.motion import At, FrameMotion, Geometry
from nsjax.multibody.parts import GROUND
from nsjax.multibody.topology import Link
from nsjax.types import Array


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
        """Entries of ``q`` that are scalar joint coordinates, generation by generation; within one, the
        first coordinate of all its joints, then the second.
        """
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
