"""Forces and moments on two bodies from the multipliers of a joint that is a constraint."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp

from nsjax.multibody import loads
from nsjax.multibody.coordinates import planar_vectors as plane
from nsjax.multibody.coordinates import spatial_vectors as space
from nsjax.multibody.coordinates.frames import Frame, Scene
from nsjax.multibody.joints import kind_of
from nsjax.multibody.parts import GROUND, Part
from nsjax.types import Array


def no_moment(scene: Scene) -> Array:
    """A zero moment: a number in the plane, a vector (3,) in space."""
    return jnp.zeros(()) if scene.dimension == 2 else jnp.zeros(3)


def joint_pushes(scene: Scene, part: Part, numbers: Any, x: Array) -> Iterator[loads.Push]:
    """Forces and moments of the multipliers ``x`` of a joint, by virtual work of its second body."""

    def rows(moved: str, shift: Array, turn: Array, point: Array) -> Any:
        frame = _displaced(scene, scene.frame(moved), shift, turn, point)
        there = dataclasses.replace(scene, frames={**_both(scene, part), moved: frame})
        return kind_of(part).constraint(there, part, numbers)

    yield from _by_work(scene, part, numbers, x, rows)


def rate_pushes(scene: Scene, part: Part, numbers: Any, x: Array) -> Iterator[loads.Push]:
    """Forces and moments of the multipliers ``x`` of rows on velocities alone, by virtual power."""
    a, rates = scene.algebra, kind_of(part).rates
    assert rates is not None
    still = {k: dataclasses.replace(y, velocity=a.ZERO, spin=None) for k, y in _both(scene, part).items()}

    def rows(moved: str, shift: Array, turn: Array, point: Array) -> Any:
        arm = a.subtract(scene.frame(moved).origin, a.vector(point))
        along = a.add(a.vector(shift), a.swing(turn, arm))
        frame = dataclasses.replace(scene.frame(moved), velocity=along, spin=turn)
        return rates(dataclasses.replace(scene, frames={**still, moved: frame}), part, numbers)

    yield from _by_work(scene, part, numbers, x, rows)


def _by_work(scene: Scene, part: Part, numbers: Any, x: Array, rows: Any) -> Iterator[loads.Push]:
    """Forces and moments by the work of ``x`` on the ``rows`` of a body moved by a shift and a turn."""
    a, (one, other) = scene.algebra, part.bodies
    moved, rest = (one, other) if other == GROUND else (other, one)
    point = scene.position(other, numbers.on)

    def work(shift: Array, turn: Array) -> Array:
        return jnp.sum(x * jnp.stack([plane.value(r) for r in rows(moved, shift, turn, point)]))

    force, turning = jax.grad(work, argnums=(0, 1))(jnp.zeros(scene.dimension), no_moment(scene))
    yield moved, a.vector(force), a.vector(point), turning
    yield rest, a.vector(-force), a.vector(point), -turning


def _both(scene: Scene, part: Part) -> dict[str, Frame]:
    return {name: scene.frame(name) for name in part.bodies}


def _displaced(scene: Scene, frame: Frame, shift: Array, turn: Array, point: Array) -> Frame:
    """A frame after a small displacement and a small rotation about a point."""
    origin = scene.algebra.array(frame.origin)
    if scene.dimension == 2:
        s, c = (0.0, 1.0) if frame.turn is None else frame.turn
        arm = origin - point
        place = origin + shift + turn * jnp.stack([-arm[1], arm[0]])
        angle = plane.plus(frame.angle, turn)
        return dataclasses.replace(
            frame, origin=(place[0], place[1]), turn=(s + c * turn, c - s * turn), angle=angle
        )
    place = origin + shift + jnp.cross(turn, origin - point)
    body = jnp.eye(3) if frame.turn is None else frame.turn
    return dataclasses.replace(frame, origin=place, turn=body + space.skew(turn) @ body)
