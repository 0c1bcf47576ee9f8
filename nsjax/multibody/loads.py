"""Forces of springs, dampers, actuators and loads on the bodies, and their potential."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax.numpy as jnp

from nsjax.multibody import planar_vectors as plane
from nsjax.multibody import spatial_vectors as space
from nsjax.multibody.frames import Scene
from nsjax.multibody.joints import axis_of, rotation_of
from nsjax.multibody.parts import GROUND, Part
from nsjax.multibody.topology import LOADS, Topology
from nsjax.types import Array, PyTree

Push = tuple[str, Any, Any, Any]
"""A body, a force on it, the point where it acts, and a moment; None for what is absent."""


def signed_square(x: Array) -> Array:
    """``|x| x``."""
    return jnp.abs(x) * x


def tension(part: Part, numbers: Any, extension: Any, rate: Any) -> Any:
    """Of a spring and damper; a scalar or None."""
    law = part.option("law")
    if law is not None:
        return law(plane.value(extension), plane.value(rate), numbers.own)
    terms = (
        (numbers.stiffness, extension, None), (numbers.quadratic, extension, signed_square),
        (numbers.cubic, extension, lambda x: x**3), (numbers.damping, rate, None),
        (numbers.quadratic_damping, rate, signed_square),
    )  # fmt: skip
    total = None
    for factor, x, shape in terms:
        if factor is not None and x is not None:
            total = plane.plus(total, plane.times(factor, x if shape is None else shape(x)))
    return total


def stored(part: Part, numbers: Any, extension: Any) -> Any:
    """Energy of a spring [J]; a scalar or None."""
    if part.option("law") is not None:
        own = part.option("potential")
        return None if own is None else own(plane.value(extension), numbers.own)
    e, total = plane.value(extension), None
    for factor, energy in (
        (numbers.stiffness, e * e / 2.0), (numbers.quadratic, jnp.abs(e) ** 3 / 3.0),
        (numbers.cubic, e**4 / 4.0),
    ):  # fmt: skip
        total = plane.plus(total, plane.times(factor, energy))
    return total


def only_pull(part: Part, numbers: Any) -> bool:
    """Whether a spring is linear with free length zero, so that its force needs no direction."""
    others = (numbers.rest, numbers.quadratic, numbers.cubic, numbers.damping, numbers.quadratic_damping)
    return part.option("law") is None and all(x is None for x in others)


def _spring(scene: Scene, part: Part, numbers: Any) -> Iterator[Push]:
    a, (first, second) = scene.algebra, part.bodies
    one, other = scene.point(first, numbers.at), scene.point(second, numbers.on)
    gone = a.subtract(other, one)
    if only_pull(part, numbers):
        pull = a.scale(numbers.stiffness, gone)
    else:
        length = a.size(gone)
        along = a.scale(1.0 / jnp.where(length > 0.0, length, 1.0), gone)
        speed = a.subtract(
            scene.motion(second, scene.arm(second, numbers.on)),
            scene.motion(first, scene.arm(first, numbers.at)),
        )
        extension = plane.plus(length, plane.minus(numbers.rest))
        pull = a.scale(tension(part, numbers, extension, a.dot(along, speed)), along)
    yield first, pull, one, None
    yield second, a.negative(pull), other, None


def effort_of(part: Part, numbers: Any, t: Any, x: Any, rate: Any) -> Any:
    """Of a spring or motor in a hinge or slide, at its coordinate and rate; a scalar or None."""
    if part.kind == "joint_spring":
        return plane.minus(tension(part, numbers, plane.plus(x, plane.minus(numbers.rest)), rate))
    law = part.option("law")
    return numbers.value if law is None else law(t, plane.value(x), plane.value(rate), numbers.own)


def joint_effort(scene: Scene, joint: Part, numbers: Any, effort: Any) -> Iterator[Push]:
    """A moment or force in a hinge or slide, on its second body, and back on its first."""
    a, (first, second) = scene.algebra, joint.bodies
    if effort is None:
        return
    if joint.kind == "hinge" and scene.dimension == 2:
        yield second, None, None, effort
        yield first, None, None, -effort
        return
    axis = a.turned(scene.frame(first).turn, axis_of(joint, numbers, scene.dimension))
    push = a.scale(effort, axis)
    if joint.kind == "hinge":
        yield second, None, None, push
        yield first, None, None, a.negative(push)
        return
    where = scene.point(second, numbers.on)
    yield second, push, where, None
    yield first, a.negative(push), where, None


SERIES = 1e-8
"""Squared sine below which an angle over its sine is ``1 + sine^2 / 6``, to rounding."""


def rotation_vector(scene: Scene, joint: Part, rest: Any) -> Array:
    """Of the second body of a joint of space, from where it stands turned by ``rest`` (3,) against the
    first; in the axes of the ground (3,), below half a turn; zero for half a turn, which has no direction.
    """
    one, other = (scene.rotation(x) for x in joint.bodies)
    one = one if rest is None else space.both(one, rotation_of(rest))
    m = space.both(other, one.T)
    across = 0.5 * jnp.stack([m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1]])
    cosine, square = 0.5 * (m[0, 0] + m[1, 1] + m[2, 2] - 1.0), jnp.sum(across * across)
    small = square < SERIES
    sine = jnp.sqrt(jnp.where(small, 1.0, square))
    wide = jnp.where(small, 0.0, jnp.arctan2(sine, cosine) / sine)
    return across * jnp.where(small, jnp.where(cosine > 0.0, 1.0 + square / 6.0, 0.0), wide)


def _ball_spring(scene: Scene, joint: Part, numbers: Any) -> Iterator[Push]:
    first, second = joint.bodies
    spun = scene.algebra.subtract(scene.frame(second).spin, scene.frame(first).spin)
    pull = scene.algebra.scale(numbers.damping, spun)
    if numbers.stiffness is not None:
        pull = scene.algebra.add(pull, numbers.stiffness * rotation_vector(scene, joint, numbers.rest))
    yield first, None, None, pull
    yield second, None, None, scene.algebra.negative(pull)


def _load(scene: Scene, part: Part, numbers: Any) -> Iterator[Push]:
    a, body = scene.algebra, part.bodies[0]
    law = part.option("law")
    given = numbers.value if law is None else law(scene.time, scene.given(), numbers.own)
    scalar = part.kind == "torque" and scene.dimension == 2
    value = given if scalar else a.vector(given)
    if part.option("follower") and not scalar:
        value = a.turned(scene.frame(body).turn, value)
    if part.kind == "torque":
        yield body, None, None, value
    else:
        yield body, value, scene.point(body, numbers.at), None


def pushes(
    scene: Scene, topology: Topology, p: PyTree, which: tuple[Part, ...] | None = None
) -> Iterator[Push]:
    """Of all force elements, or of some."""
    for part in topology.all_of(*LOADS) if which is None else which:
        yield from pushes_of(scene, topology, part, p)


def pushes_of(scene: Scene, topology: Topology, part: Part, p: PyTree) -> Iterator[Push]:
    """Of one."""
    numbers = p[part.name]
    if part.kind == "spring":
        yield from _spring(scene, part, numbers)
        return
    if part.kind not in ("joint_spring", "actuator"):
        yield from _load(scene, part, numbers)
        return
    joint = topology.of[part.option("joint")]
    if joint.kind == "ball":
        yield from _ball_spring(scene, joint, numbers)
        return
    x, rate = scene.coordinates(joint.name)
    effort = effort_of(part, numbers, scene.time, x, rate)
    yield from joint_effort(scene, joint, p[joint.name], effort)


def wrenches(scene: Scene, found: Iterator[Push]) -> dict[str, tuple[Any, Any]]:
    """Force and moment about the body's origin by body, in the axes of the ground."""
    a = scene.algebra
    total: dict[str, tuple[Any, Any]] = {}
    add = plane.plus if scene.dimension == 2 else a.add
    for body, force, point, turning in found:
        if body == GROUND:
            continue
        if force is not None:
            turning = add(turning, a.moment(a.subtract(point, scene.frame(body).origin), force))
        old, before = total.get(body, (a.ZERO, None))
        total[body] = (old if force is None else a.add(old, force)), add(before, turning)
    return total


def weigh(scene: Scene, topology: Topology, p: PyTree, gravity: Any) -> Array:
    """Energy of gravity [J]."""
    a, total = scene.algebra, None
    for part in topology.all_of("body"):
        height = a.dot(a.negative(gravity), scene.point(part.name, p[part.name].com))
        total = plane.plus(total, plane.times(p[part.name].mass, height))
    return plane.value(total)


def potential(scene: Scene, topology: Topology, p: PyTree) -> Array:
    """Energy of all springs [J]."""
    total = None
    for part in topology.all_of("spring", "joint_spring"):
        total = plane.plus(total, energy_of(scene, topology, part, p[part.name]))
    return plane.value(total)


def energy_of(scene: Scene, topology: Topology, part: Part, numbers: Any) -> Any:
    """Of a spring [J]; a scalar, or None for none."""
    a = scene.algebra
    if part.kind == "spring":
        gone = a.subtract(scene.point(part.bodies[1], numbers.on), scene.point(part.bodies[0], numbers.at))
        if only_pull(part, numbers):
            return plane.times(0.5, plane.times(numbers.stiffness, a.dot(gone, gone)))
        return stored(part, numbers, plane.plus(a.size(gone), plane.minus(numbers.rest)))
    joint = topology.of[part.option("joint")]
    if joint.kind == "ball":
        turned = rotation_vector(scene, joint, numbers.rest)
        return plane.times(0.5, plane.times(numbers.stiffness, a.dot(turned, turned)))
    x, _ = scene.coordinates(joint.name)
    return stored(part, numbers, plane.plus(x, plane.minus(numbers.rest)))
