"""How bodies move on the joints of their parents, many at once.

Vectors of ``n`` bodies are arrays (3, n), turns (3, 3, n); (3, 1) is one for all of them, None is zero, or
no turn.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.math import picked, rotations, taken
from nsjax.multibody.coordinates import spatial_vectors as space
from nsjax.types import Array, record


@record()
class Geometry:
    """Joints as seen from their parents.

    Args:
        at, on: joint points (3, n) in the axes of the parents and of the bodies.
        axis, second_axis: (3, n) in the axes of the parents, and of the bodies.
        frame: rotations (3, 3, n) of the bodies' axes in the parents' where the coordinates are zero.
        own: numbers of the kind's own, side by side along a last axis.
        turns: ``(T0, T1, T2)`` for each angle: ``T0 + cos T1 + sin T2`` is its rotation, ``frame``
        included.
    """

    at: Any = None
    on: Any = None
    axis: Any = None
    second_axis: Any = None
    frame: Any = None
    own: Any = None
    turns: tuple[Any, ...] = ()


@record()
class FrameMotion:
    """Turns, origins, spins, velocities, and their rates at constant velocities of the coordinates."""

    turn: Any = None
    origin: Any = None
    spin: Any = None
    velocity: Any = None
    turning: Any = None
    acceleration: Any = None

    def at(self, arm: Any) -> FrameMotion:
        """The same for points of the bodies at ``arm``."""
        add, cross = space.add, space.cross
        swing = cross(self.spin, arm)
        change = add(cross(self.turning, arm), cross(self.spin, swing))
        return dataclasses.replace(
            self, origin=add(self.origin, arm), velocity=add(self.velocity, swing),
            acceleration=add(self.acceleration, change),
        )  # fmt: skip

    def of(self, places: np.ndarray | None) -> FrameMotion:
        """The motion of some of the bodies; None: of all."""
        if places is None:
            return self
        places = places[:1] if np.all(places == places[0]) else places  # one for all
        return jax.tree.map(lambda x: x if x.shape[-1] == 1 else picked(x, places), self)


@dataclasses.dataclass(frozen=True)
class At:
    """What a step from parents to bodies looks at.

    Args:
        kind: of the joints.
        links: of the bodies.
        base: motion of the parents.
        joint: geometry of the joints.
        q: all coordinates.
        x: those of the joints that are numbers (rows, n); turned: their sines and cosines.
        rate: of the joints' coordinates (rows, n).
    """

    kind: Any
    links: tuple[Any, ...]
    base: FrameMotion
    joint: Geometry
    q: Array
    x: Array
    turned: Any
    rate: Array | None

    def quaternions(self, first: int) -> Array:
        """Turns (3, 3, n) of balls and free bodies."""
        own = [taken(self.q, np.arange(x.q + first, x.q + first + 4)) for x in self.links]
        if len(own) == 1:
            return rotations.matrix(own[0])[:, :, None]
        return jnp.moveaxis(jax.vmap(rotations.matrix)(jnp.stack(own)), 0, -1)

    def joint_point(self) -> FrameMotion:
        """The parents at the joint points."""
        return self.base.at(space.turned(self.base.turn, self.joint.at))

    def body(self, point: FrameMotion) -> FrameMotion:
        """The bodies at their origins, from their joint points."""
        if self.joint.on is None:
            return point
        return point.at(space.negative(space.turned(point.turn, self.joint.on)))


Screws = list[tuple[Any, Any]]
"""Spins and velocities (3, n) of each of the joints' velocities; None: zero."""


def moved_along(at: At, point: FrameMotion, x: Any, rate: Any) -> tuple[FrameMotion, Screws]:
    """Joint points moved along ``axis`` by displacements, and their rates (None: not asked for)."""
    along = space.turned(at.base.turn, at.joint.axis)
    point = point.at(x * along)
    if rate is not None:
        point = dataclasses.replace(
            point, velocity=space.add(point.velocity, rate * along),
            acceleration=space.add(
                point.acceleration, space.scale(2.0 * rate, space.cross(at.base.spin, along))
            ),
        )  # fmt: skip
    return point, [(None, along)]


def spun(point: FrameMotion, own: Array) -> FrameMotion:
    """With a spin of the joint."""
    spin = space.add(point.spin, own)
    return dataclasses.replace(
        point, spin=spin, turning=space.add(point.turning, space.cross(point.spin, own))
    )


def turned_about(at: At, point: FrameMotion, first: int) -> tuple[FrameMotion, Screws]:
    """Turned about one axis or two by the coordinates from ``first`` on."""
    screws: Screws = []
    turn = point.turn
    for k, (t0, t1, t2) in enumerate(at.joint.turns):
        s, c = (y[first + k] for y in at.turned)
        before = turn
        turn = space.both(turn, t0 + c * t1 + s * t2)
        axis = space.turned(before if k == 0 else turn, getattr(at.joint, at.kind.turns[k]))
        screws.append((axis, space.cross(point.origin, axis)))
        if at.rate is not None:
            point = spun(point, at.rate[first + k] * axis)
    return dataclasses.replace(point, turn=turn), screws


def stepped(at: At) -> tuple[FrameMotion, Screws]:
    """Bodies on joints that displace them along an axis, then turn them about one axis or two."""
    point = at.joint_point()
    screws: Screws = []
    if at.kind.slides:
        point, screws = moved_along(at, point, at.x[0], None if at.rate is None else at.rate[0])
    if not at.kind.turns:
        return at.body(dataclasses.replace(point, turn=space.both(point.turn, at.joint.frame))), screws
    moved, more = turned_about(at, point, at.kind.slides)
    return at.body(moved), screws + more
