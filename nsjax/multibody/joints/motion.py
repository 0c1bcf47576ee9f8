"""Motion of bodies on the joints of their parents, for many bodies as a batch.

Vectors of ``n`` bodies are arrays (3, n), turns (3, 3, n); (3, 1) is one vector for all bodies; None is
zero, or no turn.
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
    """Geometry of n joints, from the parents to the bodies.

    Args:
        at, on: joint points (3, n) in the axes of the parents and of the bodies [m].
        axis, second_axis: (3, n) in the axes of the parents, and of the bodies.
        frame: rotations (3, 3, n) of the axes of the bodies in those of the parents at zero coordinates.
        own: numbers of this kind of joint alone, stacked along a last axis.
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
    """Turns, origins, spins and velocities of bodies, and the rates of spins and velocities (``turning``,
    ``acceleration``) at constant generalised velocities.
    """

    turn: Any = None
    origin: Any = None
    spin: Any = None
    velocity: Any = None
    turning: Any = None
    acceleration: Any = None

    def at(self, arm: Any) -> FrameMotion:
        """The motion of the points of the bodies at ``arm`` from the origins."""
        add, cross = space.add, space.cross
        swing = cross(self.spin, arm)
        change = add(cross(self.turning, arm), cross(self.spin, swing))
        return dataclasses.replace(
            self, origin=add(self.origin, arm), velocity=add(self.velocity, swing),
            acceleration=add(self.acceleration, change),
        )  # fmt: skip

    def of(self, places: np.ndarray | None) -> FrameMotion:
        """The motion of the bodies at ``places``; None: of all bodies."""
        if places is None:
            return self
        places = places[:1] if np.all(places == places[0]) else places  # one vector for all
        return jax.tree.map(lambda x: x if x.shape[-1] == 1 else picked(x, places), self)


@dataclasses.dataclass(frozen=True)
class At:
    """Arguments of a step of the recursion from parents to bodies.

    Args:
        kind: of the joints.
        links: of the bodies.
        base: motion of the parents.
        joint: geometry of the joints.
        q: all coordinates.
        x: scalar coordinates (rows, n) of the joints; turned: their sines and cosines.
        rate: velocities (rows, n) of the joints; None: not needed.
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
        """Turns (3, 3, n) of quaternions that begin at entry ``first`` of the coordinates of each body."""
        own = [taken(self.q, np.arange(x.q + first, x.q + first + 4)) for x in self.links]
        if len(own) == 1:
            return rotations.matrix(own[0])[:, :, None]
        return jnp.moveaxis(jax.vmap(rotations.matrix)(jnp.stack(own)), 0, -1)

    def joint_point(self) -> FrameMotion:
        """Motion of the joint points of the parents."""
        return self.base.at(space.turned(self.base.turn, self.joint.at))

    def body(self, point: FrameMotion) -> FrameMotion:
        """Motion of the origins of the bodies, from that of their joint points."""
        if self.joint.on is None:
            return point
        return point.at(space.negative(space.turned(point.turn, self.joint.on)))


Screws = list[tuple[Any, Any]]
"""Spin and velocity (3, n) of the screw of each velocity of the joints; None: zero."""


def moved_along(at: At, point: FrameMotion, x: Any, rate: Any) -> tuple[FrameMotion, Screws]:
    """Motion of joint points displaced along ``axis`` by ``x`` with ``rate`` (None: not needed), and its
    screw.
    """
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
    """Motion with the spin of the joint added."""
    spin = space.add(point.spin, own)
    return dataclasses.replace(
        point, spin=spin, turning=space.add(point.turning, space.cross(point.spin, own))
    )


def turned_about(at: At, point: FrameMotion, first: int) -> tuple[FrameMotion, Screws]:
    """Motion turned about one or two axes by the coordinates from ``first`` on, and its screws."""
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
    """Motion of bodies on joints with a displacement along an axis, then angles about one or two axes."""
    point = at.joint_point()
    screws: Screws = []
    if at.kind.slides:
        point, screws = moved_along(at, point, at.x[0], None if at.rate is None else at.rate[0])
    if not at.kind.turns:
        return at.body(dataclasses.replace(point, turn=space.both(point.turn, at.joint.frame))), screws
    moved, more = turned_about(at, point, at.kind.slides)
    return at.body(moved), screws + more
