"""Kinematics and dynamics of a spatial tree of rigid bodies whose topology is data.

Parents, kinds of joints, axes and the places of coordinates are arrays, so that one program serves all
trees with as many bodies, coordinates and velocities. Selections are masks of zeros and ones: a product
with one is a gather whose derivative is a product, too, not a scatter. Poses follow from the joints by
doubling: after ``k`` rounds the pose of a body is that in its ``2^k``-th ancestor.

Body 0 is the ground. Equations as in `nsjax.multibody.coordinates.spatial`: a velocity moves the bodies
that hang on its joint with a screw ``S = (spin, velocity of the body-fixed point at the origin)``.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.math import rotations, sin_cos
from nsjax.multibody.coordinates import spatial_vectors as space
from nsjax.types import Array, record


@record()
class TreeArrays:
    """Topology and numbers of a tree with n bodies, the ground not counted, and m quaternions.

    Args:
        jumps: (rounds, n + 1, n + 1) masks of the ``2^k``-th ancestor of each body.
        scalar: (n, nq) mask of the displacement or angle of each body's joint.
        turning, sliding: (n,) whether it is an angle, or a displacement.
        turned: (n, m) mask of the bodies that quaternions turn.
        origin: (n, 3, nq) masks of the positions of free bodies.
        fixed_in: (nv, n + 1) mask of the body in whose axes the axis of each velocity is fixed.
        spinning: (nv,) whether a velocity turns, or displaces.
        unit: (nv, 3) axes in these axes, for velocities whose axis is no number of a joint.
        jointed: (nv, n) mask of the body whose joint has the axis of a velocity; else zeros.
        moves: (n, nv) whether each velocity moves each body.
        before: (nv, nv) whether velocity j is on the path to velocity k, or belongs to the same joint.
        reverse: (n,) whether a joint was given from the body to its parent.
        at, on, axis, rotation: (n, 3) joint points in the axes of parents and bodies [m], axes, and
            rotation vectors at coordinate zero.
        mass: (n,); com: (n, 3); inertia: (n, 3, 3); armature: (nv,).
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
    mass: Any
    com: Any
    inertia: Any
    armature: Any


@dataclasses.dataclass(frozen=True)
class Layout:
    """Places of coordinates and velocities, the same for all trees of a class.

    Args:
        nq, nv: numbers of coordinates and of velocities.
        quaternions: first coordinate and first velocity of each quaternion. All other coordinates are
            scalars, in the order of their velocities.
    """

    nq: int
    nv: int
    quaternions: tuple[tuple[int, int], ...]

    @functools.cached_property
    def quaternion(self) -> np.ndarray:
        """(m, 4, nq) masks of the quaternions."""
        firsts = [q for q, _ in self.quaternions]
        return np.array([np.eye(self.nq)[k : k + 4] for k in firsts]).reshape(-1, 4, self.nq)

    @functools.cached_property
    def turns(self) -> np.ndarray:
        """(m, 3, nv) masks of the velocities of the quaternions."""
        firsts = [v for _, v in self.quaternions]
        return np.array([np.eye(self.nv)[k : k + 3] for k in firsts]).reshape(-1, 3, self.nv)

    @functools.cached_property
    def added(self) -> np.ndarray:
        """(nq, nv) mask of the velocities whose increments are added to coordinates."""
        q = np.flatnonzero(self.quaternion.sum((0, 1)) == 0)
        v = np.flatnonzero(self.turns.sum((0, 1)) == 0)
        found = np.zeros((self.nq, self.nv))
        found[q, v] = 1.0
        return found

    def retract(self, q: Array, xi: Array) -> Array:
        """``q`` moved along an increment (nv,): quaternions by rotation, the rest by addition."""
        own = jnp.sum(self.quaternion * q, axis=2)
        turned = jax.vmap(rotations.rotate)(own, jnp.sum(self.turns * xi, axis=2))
        moved = q + jnp.sum(self.added * xi, axis=1)
        return moved + jnp.sum(self.quaternion * (turned - own)[:, :, None], axis=(0, 1))

    def difference(self, q0: Array, q1: Array) -> Array:
        """Inverse of `retract`."""
        both = (jnp.sum(self.quaternion * q, axis=2) for q in (q0, q1))
        turned = jax.vmap(rotations.rotation_between)(*both)
        gone = jnp.sum(self.added * (q1 - q0)[:, None], axis=0)
        return gone + jnp.sum(self.turns * turned[:, :, None], axis=(0, 1))


@record()
class JointConstants:
    """Derived constants of the joints: axes in parents (n, 3), rotations (n, 3, 3) of the bodies in their
    parents at coordinate zero, and axes (nv, 3) of the velocities in the bodies that they are fixed in.
    """

    axis: Array
    frame: Array
    unit: Array


@record()
class Poses:
    """Rotations (n + 1, 3, 3) and origins (n + 1, 3) of all bodies, the ground first."""

    turn: Array
    origin: Array


@record()
class Screws:
    """Spins (nv, 3) and velocities (nv, 3) of all generalised velocities."""

    spin: Array
    velocity: Array

    @property
    def both(self) -> Array:
        """(nv, 6)."""
        return jnp.concatenate([self.spin, self.velocity], axis=1)


def product(a: Any, b: Any) -> Array:
    """Matrix product as a sum, one operation of a kernel."""
    return jnp.sum(a[:, :, None] * b[None], axis=1)


def times(a: Any, b: Array) -> Array:
    """Product of a matrix and a vector as a sum."""
    return jnp.sum(a * b, axis=1)


def _cross(a: Array, b: Array) -> Array:
    made: Array = space.cross(a, b, a.ndim - 1)
    return made


def _turned(turn: Array, a: Array) -> Array:
    """Vectors (n, 3) turned by (n, 3, 3)."""
    return jnp.sum(turn * a[:, None, :], axis=2)


def _both(a: Array, b: Array) -> Array:
    """Products of the matrices (n, 3, 3)."""
    return jnp.sum(a[:, :, :, None] * b[:, None, :, :], axis=2)


def joints_of(x: TreeArrays) -> JointConstants:
    """Derived constants of the joints."""
    back = jnp.asarray(x.reverse) > 0.5
    frame = jax.vmap(space.rotation_of)(jnp.asarray(x.rotation))
    frame = jnp.where(back[:, None, None], jnp.swapaxes(frame, 1, 2), frame)
    axis = jnp.where(back[:, None], -_turned(frame, x.axis), x.axis)
    own = _turned(jnp.swapaxes(frame, 1, 2), axis)  # in the axes of the bodies
    return JointConstants(axis=axis, frame=frame, unit=x.unit + product(jnp.asarray(x.jointed), own))


def poses(x: TreeArrays, layout: Layout, joints: JointConstants, q: Array) -> Poses:
    """Poses of all bodies at the position ``q`` (nq,)."""
    value = times(jnp.asarray(x.scalar), q)
    s, c = sin_cos(value)
    about, along = x.turning[:, None] * joints.axis, x.sliding[:, None] * joints.axis
    square = about[:, :, None] * about[:, None, :] - x.turning[:, None, None] * np.eye(3)
    crossed = jnp.moveaxis(space.skew(about.T), 2, 0)
    turn = np.eye(3) + s[:, None, None] * crossed + (1.0 - c)[:, None, None] * square
    if layout.quaternions:
        own = jax.vmap(rotations.matrix)(jnp.sum(layout.quaternion * q, axis=2)) - np.eye(3)
        turn = turn + jnp.sum(x.turned[:, :, None, None] * own, axis=1)
    turn = _both(turn, joints.frame)
    shift = x.at + along * value[:, None] - _turned(turn, x.on)
    if layout.quaternions:
        shift = shift + jnp.sum(x.origin * q, axis=2)
    ground = np.concatenate([np.eye(3), np.zeros((3, 1))], axis=1)[None]
    pose = jnp.concatenate([ground, jnp.concatenate([turn, shift[:, :, None]], axis=2)])
    for k in range(x.jumps.shape[0]):
        above = product(x.jumps[k], pose.reshape(-1, 12)).reshape(-1, 3, 4)
        moved = jnp.sum(above[:, :, :3, None] * pose[:, None], axis=2)
        pose = jnp.concatenate([moved[:, :, :3], moved[:, :, 3:] + above[:, :, 3:]], axis=2)
    return Poses(turn=pose[:, :, :3], origin=pose[:, :, 3])


def screws(x: TreeArrays, joints: JointConstants, at: Poses) -> Screws:
    """Screws of all velocities."""
    on = jnp.concatenate([jnp.zeros((1, 3)), jnp.asarray(x.on)])
    point = at.origin + _turned(at.turn, on)  # joint points
    found = product(x.fixed_in, jnp.concatenate([at.turn.reshape(-1, 9), point], axis=1))
    axis = _turned(found[:, :9].reshape(-1, 3, 3), joints.unit)
    spins = x.spinning[:, None]
    return Screws(spin=spins * axis, velocity=spins * _cross(found[:, 9:], axis) + (1.0 - spins) * axis)


def _centres(x: TreeArrays, at: Poses) -> tuple[Array, Array]:
    """Centres of mass (n, 3), and inertias (n, 3, 3) in the axes of the ground."""
    turn = at.turn[1:]
    own = _both(_both(turn, x.inertia), jnp.swapaxes(turn, 1, 2))
    return at.origin[1:] + _turned(turn, x.com), own


def mass(x: TreeArrays, s: Screws, at: Poses) -> Array:
    """Mass matrix (nv, nv), from the composite bodies that each velocity moves."""
    (c, own), m = _centres(x, at), jnp.asarray(x.mass)[:, None]
    second = own + m[:, :, None] * (
        jnp.sum(c * c, axis=1)[:, None, None] * np.eye(3) - c[:, :, None] * c[:, None, :]
    )
    each = jnp.concatenate([m, m * c, second.reshape(-1, 9)], axis=1)
    carried = product(jnp.asarray(x.moves).T, each)
    heavy, first, second = carried[:, :1], carried[:, 1:4], carried[:, 4:].reshape(-1, 3, 3)
    push = heavy * s.velocity + _cross(s.spin, first)
    twist = _turned(second, s.spin) + _cross(first, s.velocity)
    energies = product(s.both, jnp.concatenate([twist, push], axis=1).T)
    beside = x.before * x.before.T
    lower = x.before - beside
    return energies * x.before + (energies * lower).T + x.armature[:, None] * np.eye(len(x.spinning))


def motion(x: TreeArrays, s: Screws, v: Array) -> Array:
    """Spins, and velocities at the origin (n + 1, 6), of all bodies."""
    found = product(jnp.asarray(x.moves), s.both * v[:, None])
    return jnp.concatenate([jnp.zeros((1, 6)), found])


def force(x: TreeArrays, s: Screws, at: Poses, v: Array, gravity: Array) -> Array:
    """Generalised forces (nv,) of gravity, and of inertia at constant generalised velocities."""
    twists, own = motion(x, s, v), s.both * v[:, None]
    here = product(jnp.asarray(x.fixed_in), twists)
    w, u, a, b = here[:, :3], here[:, 3:], own[:, :3], own[:, 3:]
    drift = jnp.concatenate([_cross(w, a), _cross(w, b) + _cross(u, a)], axis=1)
    rate = product(jnp.asarray(x.moves), drift)
    (c, inertia), w, turning = _centres(x, at), twists[1:, :3], rate[:, :3]
    speed = twists[1:, 3:] + _cross(w, c)
    acceleration = rate[:, 3:] - gravity + _cross(turning, c) + _cross(w, speed)
    push = -jnp.asarray(x.mass)[:, None] * acceleration
    moment = _cross(c, push) - _turned(inertia, turning) - _cross(w, _turned(inertia, w))
    carried = product(jnp.asarray(x.moves).T, jnp.concatenate([moment, push], axis=1))
    return jnp.sum(s.both * carried, axis=1)


def weight(x: TreeArrays, at: Poses, gravity: Array) -> Array:
    """Potential energy of gravity [J]."""
    return -jnp.sum(x.mass[:, None] * _centres(x, at)[0] * gravity)
