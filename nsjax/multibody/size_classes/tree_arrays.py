"""Kinematics and dynamics of a spatial tree of rigid bodies whose topology is data.

Parents, kinds of joints, axes and the places of coordinates are arrays, so that one program serves all
trees with as many bodies, coordinates and velocities. Selections are masks of zeros and ones: a product
with one is a gather whose derivative is a product, too, not a scatter. Poses follow from the joints by
doubling: after ``k`` rounds the pose of a body is that in its ``2^k``-th ancestor.

Bodies, and velocities, stand along the last axis of every array, where the compiler works on four or eight
at once. Rows of zeros in a mask of bodies stand for the ground. Equations as in
`nsjax.multibody.coordinates.spatial`: a velocity moves the bodies that hang on its joint with a screw
``S = (spin, velocity of the body-fixed point at the origin)``.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.forms import quantity
from nsjax.math import rotations, sin_cos
from nsjax.multibody.coordinates import spatial_vectors as space
from nsjax.multibody.coordinates.frames import Frame
from nsjax.types import Array, record


@record()
class TreeArrays:
    """Topology and numbers of a tree with n bodies, the ground not counted, and m quaternions.

    Args:
        jumps: (rounds, n, n) masks of the ``2^k``-th ancestor of each body; zeros: the ground.
        scalar: (n, nq) mask of the displacement or angle of each body's joint.
        turning, sliding: (n,) whether it is an angle, or a displacement.
        turned: (n, m) mask of the bodies that quaternions turn.
        origin: (3, nq, n) masks of the positions of free bodies.
        fixed_in: (nv, n) mask of the body in whose axes the axis of each velocity is fixed.
        spinning: (nv,) whether a velocity turns, or displaces.
        unit: (3, nv) axes in these axes, for velocities whose axis is no number of a joint.
        jointed: (nv, n) mask of the body whose joint has the axis of a velocity; else zeros.
        moves: (n, nv) whether each velocity moves each body.
        before: (nv, nv) whether velocity j is on the path to velocity k, or belongs to the same joint.
        reverse: (n,) whether a joint was given from the body to its parent.
        at, on, axis, rotation: (3, n) joint points in the axes of parents and bodies [m], axes, and
            rotation vectors at coordinate zero.
        mass: (n,); com: (3, n); inertia: (3, 3, n); armature: (nv,).
    """

    jumps: Any
    scalar: Any
    turning: Any
    sliding: Any
    turned: Any
    origin: Any
    fixed_in: Any
    spinning: Any
    unit: Any
    jointed: Any
    moves: Any
    before: Any
    reverse: Any
    at: Any
    on: Any
    axis: Any
    rotation: Any
    mass: Any = quantity("kg", least=0.0)
    com: Any
    inertia: Any = quantity(least=0.0, moments=True, members=True)
    armature: Any = quantity(least=0.0)


@dataclasses.dataclass(frozen=True)
class Layout:
    """Places of coordinates and velocities, the same for all trees of a class: quaternions come first, then
    scalars, each in the order of the mechanism. ``quaternions``: number of quaternions; ``scalars``: number
    of all other coordinates.
    """

    quaternions: int
    scalars: int

    @property
    def nq(self) -> int:
        """Number of coordinates."""
        return 4 * self.quaternions + self.scalars

    @property
    def nv(self) -> int:
        """Number of velocities."""
        return 3 * self.quaternions + self.scalars

    def turns(self, q: Array) -> Array:
        """The quaternions (m, 4)."""
        return q[: 4 * self.quaternions].reshape(self.quaternions, 4)

    def retract(self, q: Array, xi: Array) -> Array:
        """``q`` moved along an increment (nv,): quaternions by rotation, the rest by addition."""
        m = self.quaternions
        turned = jax.vmap(rotations.rotate)(self.turns(q), xi[: 3 * m].reshape(m, 3))
        return jnp.concatenate([turned.reshape(-1), q[4 * m :] + xi[3 * m :]])

    def difference(self, q0: Array, q1: Array) -> Array:
        """Inverse of `retract`."""
        turned = jax.vmap(rotations.rotation_between)(self.turns(q0), self.turns(q1))
        return jnp.concatenate([turned.reshape(-1), (q1 - q0)[4 * self.quaternions :]])


@record()
class JointConstants:
    """Derived constants of the joints: axes in parents (3, n), rotations (3, 3, n) of the bodies in their
    parents at coordinate zero, and axes (3, nv) of the velocities in the bodies that they are fixed in.
    """

    axis: Array
    frame: Array
    unit: Array


@record()
class Poses:
    """Rotations (3, 3, n) and origins (3, n) of all bodies."""

    turn: Array
    origin: Array


@record()
class Screws:
    """Spins (3, nv) and velocities (3, nv) of all generalised velocities."""

    spin: Array
    velocity: Array

    @property
    def both(self) -> Array:
        """(6, nv)."""
        return jnp.concatenate([self.spin, self.velocity])


def product(a: Any, mask: Any) -> Array:
    """Columns (k, m) of a matrix (k, n), added up by the rows of a mask (m, n).

    It is a sum, one operation of a kernel, in parts that the compiler writes out.
    """
    width = 8
    parts = (slice(k, k + width) for k in range(0, mask.shape[1], width))
    each = [jnp.sum(a[:, x, None] * jnp.asarray(mask[:, x]).T[None], axis=1) for x in parts]
    return functools.reduce(jnp.add, each)


def times(a: Any, b: Array) -> Array:
    """Product of a matrix and a vector as a sum."""
    return jnp.sum(a * b, axis=1)


def turn_of_ground(mask: Any) -> Array:
    """(3, 3, m): the rotation of the ground in the rows of zeros of a mask (m, n); else zeros."""
    return jnp.asarray(np.eye(3))[:, :, None] * (1.0 - jnp.sum(mask, axis=1))


def joints_of(x: TreeArrays) -> JointConstants:
    """Derived constants of the joints."""
    back = jnp.asarray(x.reverse) > 0.5
    frame = jax.vmap(space.rotation_of, -1, -1)(jnp.asarray(x.rotation))
    frame = jnp.where(back, jnp.swapaxes(frame, 0, 1), frame)
    axis = jnp.where(back, -space.turned(frame, x.axis), x.axis)
    own = space.turned_back(frame, axis)  # in the axes of the bodies
    return JointConstants(axis=axis, frame=frame, unit=x.unit + product(own, x.jointed))


def poses(x: TreeArrays, layout: Layout, joints: JointConstants, q: Array) -> Poses:
    """Poses of all bodies at the position ``q`` (nq,)."""
    value = times(x.scalar, q)
    s, c = sin_cos(value)
    about, along = x.turning * joints.axis, x.sliding * joints.axis
    square = about[:, None] * about[None] - x.turning * np.eye(3)[:, :, None]
    turn = np.eye(3)[:, :, None] + s * space.skew(about) + (1.0 - c) * square
    if layout.quaternions:
        own = jax.vmap(rotations.matrix, out_axes=-1)(layout.turns(q))
        own = own - np.eye(3)[:, :, None]
        turn = turn + product(own.reshape(9, -1), x.turned).reshape(turn.shape)
    turn = space.both(turn, joints.frame)
    shift = x.at + along * value - space.turned(turn, x.on)
    if layout.quaternions:
        shift = shift + jnp.sum(x.origin * q[:, None], axis=1)
    for jump in x.jumps:
        found = product(jnp.concatenate([turn.reshape(9, -1), shift]), jump)
        above = found[:9].reshape(turn.shape) + turn_of_ground(jump)
        turn, shift = space.both(above, turn), space.turned(above, shift) + found[9:]
    return Poses(turn=turn, origin=shift)


def screws(x: TreeArrays, joints: JointConstants, at: Poses) -> Screws:
    """Screws of all velocities."""
    point = at.origin + space.turned(at.turn, jnp.asarray(x.on))  # joint points
    found = product(jnp.concatenate([at.turn.reshape(9, -1), point]), x.fixed_in)
    turn = found[:9].reshape(3, 3, -1) + turn_of_ground(x.fixed_in)
    axis, spins = space.turned(turn, joints.unit), x.spinning
    swung = space.cross(found[9:], axis)
    return Screws(spin=spins * axis, velocity=spins * swung + (1.0 - spins) * axis)


def _centres(x: TreeArrays, at: Poses) -> tuple[Array, Array]:
    """Centres of mass (3, n), and inertias (3, 3, n) in the axes of the ground."""
    own = space.both(space.both(at.turn, x.inertia), jnp.swapaxes(at.turn, 0, 1))
    return at.origin + space.turned(at.turn, jnp.asarray(x.com)), own


def mass(x: TreeArrays, s: Screws, at: Poses) -> Array:
    """Mass matrix (nv, nv), from the composite bodies that each velocity moves."""
    (c, own), m = _centres(x, at), x.mass
    second = own + m * (jnp.sum(c * c, axis=0) * np.eye(3)[:, :, None] - c[:, None] * c[None])
    each = jnp.concatenate([jnp.asarray(m)[None], m * c, second.reshape(9, -1)])
    carried = product(each, jnp.asarray(x.moves).T)
    heavy, first, second = carried[:1], carried[1:4], carried[4:].reshape(3, 3, -1)
    push = heavy * s.velocity + space.cross(s.spin, first)
    twist = space.turned(second, s.spin) + space.cross(first, s.velocity)
    energies = jnp.sum(s.both[:, :, None] * jnp.concatenate([twist, push])[:, None], axis=0)
    beside = x.before * x.before.T
    lower = x.before - beside
    return energies * x.before + (energies * lower).T + x.armature[:, None] * np.eye(len(x.spinning))


def motion(x: TreeArrays, s: Screws, v: Array) -> Array:
    """Spins, and velocities at the origin (6, n), of all bodies."""
    return product(s.both * v, x.moves)


def force(x: TreeArrays, s: Screws, at: Poses, v: Array, gravity: Array) -> Array:
    """Generalised forces (nv,) of gravity, and of inertia at constant generalised velocities."""
    twists, own = motion(x, s, v), s.both * v
    here = product(twists, x.fixed_in)
    w, u, a, b = here[:3], here[3:], own[:3], own[3:]
    drift = jnp.concatenate([space.cross(w, a), space.cross(w, b) + space.cross(u, a)])
    rate = product(drift, x.moves)
    (c, inertia), w, turning = _centres(x, at), twists[:3], rate[:3]
    speed = twists[3:] + space.cross(w, c)
    acceleration = rate[3:] - gravity[:, None] + space.cross(turning, c) + space.cross(w, speed)
    push = -x.mass * acceleration
    moment = (
        space.cross(c, push) - space.turned(inertia, turning) - space.cross(w, space.turned(inertia, w))
    )
    carried = product(jnp.concatenate([moment, push]), jnp.asarray(x.moves).T)
    return jnp.sum(s.both * carried, axis=0)


def weight(x: TreeArrays, at: Poses, gravity: Array) -> Array:
    """Potential energy of gravity [J]."""
    return -jnp.sum(x.mass * _centres(x, at)[0] * gravity[:, None])


def frames(at: Poses, moving: Array | None, mask: Array) -> Frame:
    """Frames of the bodies of a mask (m, n) along a last axis, ``moving`` with their `motion`."""
    each = [at.turn.reshape(9, -1), at.origin, *([] if moving is None else [moving])]
    found = product(jnp.concatenate(each), mask)
    turn, origin = found[:9].reshape(3, 3, -1) + turn_of_ground(mask), found[9:12]
    if moving is None:
        return Frame(origin=origin, turn=turn)
    spin = found[12:15]
    return Frame(origin=origin, turn=turn, spin=spin, velocity=found[15:] + space.cross(spin, origin))


def line(place: Array, way: Array) -> Array:
    """Moment about the origin and direction (6, ...) of directions at places, both (3, ...)."""
    return jnp.concatenate([space.cross(place, way), way])


def along(x: TreeArrays, s: Screws, at: Poses, mask: Array, lines: Array) -> Array:
    """Rates (m, r, nv) along lines (6, m, r) that are fixed to the bodies of a mask (m, n)."""
    rates = jnp.sum(lines[..., None] * s.both[:, None, None], axis=0)
    return rates * product(jnp.asarray(mask), jnp.asarray(x.moves).T)[:, None]
