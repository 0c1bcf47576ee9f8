"""Kinematics and dynamics of a planar tree of rigid bodies whose topology is data.

Angles are absolute, as in `nsjax.multibody.coordinates.planar`, so that the position of a body is the sum
of the joint vectors on its path: no pose is carried from body to body. Functions, masks and the order of
axes are those of `nsjax.multibody.size_classes.tree_arrays`.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from nsjax.forms import quantity
from nsjax.math import sin_cos
from nsjax.multibody.coordinates.frames import Frame
from nsjax.multibody.size_classes.tree_arrays import product, times
from nsjax.types import Array, record


@record()
class PlaneArrays:
    """Topology and numbers of a planar tree with n bodies and nv coordinates.

    Args:
        turns: (nv, n) mask of the coordinates that are the angles of the bodies.
        tilt: (n,) angles of bodies that a fixed joint or slide tilts against the body that turns them.
        parent: (n, n) mask of the parent of each body; zeros: the ground.
        parent_turns: (nv, n) mask of the coordinates that are the angles of the parents.
        slides: (nv, n) mask of the displacements of the joints.
        origin: (2, nv, n) masks of the positions of free bodies.
        path: (n, n) masks of the bodies between each body and the ground, itself included.
        at, on, axis: (2, n) joint points in the axes of parents and bodies [m], and axes of slides.
        drive: (nv, nv) mask of the velocities in the rate of each joint, which ``armature`` (nv,) resists.
        mass: (n,); com: (2, n); inertia: (n,).
    """

    turns: Any
    tilt: Any
    parent: Any
    parent_turns: Any
    slides: Any
    origin: Any
    path: Any
    at: Any
    on: Any
    axis: Any
    drive: Any
    armature: Any = quantity(least=0.0)
    mass: Any = quantity("kg", least=0.0)
    com: Any
    inertia: Any = quantity(least=0.0)


@record()
class PlanePoses:
    """Sines and cosines (2, n), angles (n,) and origins (2, n) of all bodies; vectors (2, n) from the
    parents' origins to the joints, along the slides, and from the origins to the joints.
    """

    turn: Array
    angle: Array
    origin: Array
    reach: Array
    axis: Array
    back: Array


@record()
class PlaneScrews:
    """Spins (nv, n) and velocities of the origins (2, nv, n) of all bodies by all velocities."""

    spin: Any
    velocity: Array


def _turned(turn: Array, a: Any) -> Array:
    s, c = turn
    return jnp.stack([c * a[0] - s * a[1], s * a[0] + c * a[1]])


def _perp(a: Array) -> Array:
    return jnp.stack([-a[1], a[0]])


def _of(mask: Any, q: Array) -> Array:
    """Sums (n,) of the coordinates of a mask (nv, n)."""
    return jnp.sum(mask * q[:, None], axis=0)


def joints_of(x: PlaneArrays) -> None:
    """The plane needs no derived constants."""


def poses(x: PlaneArrays, layout: Any, joints: None, q: Array) -> PlanePoses:
    """Poses of all bodies at the position ``q`` (nv,)."""
    angle = _of(x.turns, q) + x.tilt
    turn = jnp.stack(sin_cos(angle))
    found = product(turn, x.parent)
    above = jnp.stack([found[0], found[1] + 1.0 - jnp.sum(x.parent, axis=1)])
    reach, back = _turned(above, x.at + x.axis * _of(x.slides, q)), _turned(turn, x.on)
    step = reach - back + jnp.sum(x.origin * q[:, None], axis=1)
    return PlanePoses(
        turn=turn, angle=angle, origin=product(step, x.path), reach=reach, axis=_turned(above, x.axis),
        back=back,
    )  # fmt: skip


def screws(x: PlaneArrays, joints: None, at: PlanePoses) -> PlaneScrews:
    """Spins and velocities of all bodies by all velocities."""
    step = _perp(at.reach)[:, None] * x.parent_turns + at.axis[:, None] * x.slides + x.origin
    step = step - _perp(at.back)[:, None] * x.turns
    n = x.path.shape[0]
    return PlaneScrews(spin=x.turns, velocity=product(step.reshape(-1, n), x.path).reshape(step.shape))


def _centres(x: PlaneArrays, s: PlaneScrews, at: PlanePoses) -> tuple[Array, Array]:
    """Vectors (2, n) from origins to centres of mass, and velocities (2, nv, n) of these centres."""
    arm = _turned(at.turn, x.com)
    return arm, s.velocity + _perp(arm)[:, None] * s.spin


def mass(x: PlaneArrays, s: PlaneScrews, at: PlanePoses) -> Array:
    """Mass matrix (nv, nv)."""
    _, velocity = _centres(x, s, at)
    rates = jnp.concatenate([velocity[0], velocity[1], jnp.asarray(s.spin), jnp.asarray(x.drive).T], axis=1)
    weights = jnp.concatenate([x.mass, x.mass, x.inertia, x.armature])
    return product(rates * weights, rates)


def motion(x: PlaneArrays, s: PlaneScrews, v: Array) -> Array:
    """Spins, and velocities of the origins (3, n), of all bodies."""
    return jnp.concatenate([_of(s.spin, v)[None], jnp.sum(s.velocity * v[:, None], axis=1)])


def force(x: PlaneArrays, s: PlaneScrews, at: PlanePoses, v: Array, gravity: Array) -> Array:
    """Generalised forces (nv,) of gravity, and of inertia at constant generalised velocities."""
    spin, above, speed = _of(s.spin, v), _of(x.parent_turns, v), _of(x.slides, v)
    step = spin * spin * at.back - above * above * at.reach + 2.0 * above * speed * _perp(at.axis)
    arm, velocity = _centres(x, s, at)
    push = x.mass * (gravity[:, None] - product(step, x.path) + spin * spin * arm)
    return times(velocity[0], push[0]) + times(velocity[1], push[1])


def weight(x: PlaneArrays, at: PlanePoses, gravity: Array) -> Array:
    """Potential energy of gravity [J]."""
    return -jnp.sum(x.mass * (at.origin + _turned(at.turn, x.com)) * gravity[:, None])


def frames(at: PlanePoses, moving: Array | None, mask: Any) -> Frame:
    """Frames of the bodies of a mask (m, n) along a last axis, ``moving`` with their `motion`."""
    each = [at.turn, at.angle[None], at.origin, *([] if moving is None else [moving])]
    found = product(jnp.concatenate(each), mask)
    turn = found[0], found[1] + 1.0 - jnp.sum(mask, axis=1)
    here = Frame(origin=(found[3], found[4]), turn=turn, angle=found[2])
    if moving is None:
        return here
    return Frame(here.origin, turn, here.angle, velocity=(found[6], found[7]), spin=found[5])


def line(place: Array, way: Array) -> Array:
    """Moment about the origin and direction (3, ...) of directions at places, both (2, ...)."""
    return jnp.concatenate([(place[0] * way[1] - place[1] * way[0])[None], way])


def along(x: PlaneArrays, s: PlaneScrews, at: PlanePoses, mask: Any, lines: Array) -> Array:
    """Rates (m, r, nv) along lines (3, m, r) that are fixed to the bodies of a mask (m, n)."""
    at_origin = s.velocity - _perp(at.origin)[:, None] * s.spin
    every = jnp.concatenate([jnp.asarray(s.spin)[None], at_origin])
    own = product(every.reshape(-1, every.shape[2]), mask).reshape(3, every.shape[1], -1)
    return jnp.sum(lines[..., None] * jnp.swapaxes(own, 1, 2)[:, :, None], axis=0)
