"""Forces of springs, dampers, actuators and loads on the bodies, and their potential."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax.numpy as jnp

from nsjax.multibody import planar_vectors as plane
from nsjax.multibody.frames import Scene
from nsjax.multibody.joints import axis_of
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


def _load(scene: Scene, part: Part, numbers: Any) -> Iterator[Push]:
    a, body = scene.algebra, part.bodies[0]
    law = part.option("law")
    given = numbers.value if law is None else law(scene.time, scene, numbers.own)
    scalar = part.kind == "torque" and scene.dimension == 2
    value = given if scalar else a.vector(given)
    if part.option("follower") and not scalar:
        value = a.turned(scene.frame(body).turn, value)
    if part.kind == "torque":
        yield body, None, None, value
    else:
        yield body, value, scene.point(body, numbers.at), None


def pushes(scene: Scene, topology: Topology, p: PyTree) -> Iterator[Push]:
    """Of all force elements."""
    for part in topology.all_of(*LOADS):
        numbers = p[part.name]
        if part.kind == "spring":
            yield from _spring(scene, part, numbers)
        elif part.kind in ("joint_spring", "actuator"):
            joint = topology.of[part.option("joint")]
            x, rate = scene.coordinates(joint.name)
            if part.kind == "joint_spring":
                pull = tension(part, numbers, plane.plus(x, plane.minus(numbers.rest)), rate)
                effort = plane.minus(pull)
            else:
                law = part.option("law")
                own = (scene.time, plane.value(x), plane.value(rate), numbers.own)
                effort = numbers.value if law is None else law(*own)
            yield from joint_effort(scene, joint, p[joint.name], effort)
        else:
            yield from _load(scene, part, numbers)


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
    a, total = scene.algebra, None
    for part in topology.all_of("spring", "joint_spring"):
        numbers = p[part.name]
        if part.kind == "spring":
            gone = a.subtract(
                scene.point(part.bodies[1], numbers.on), scene.point(part.bodies[0], numbers.at)
            )
            if only_pull(part, numbers):
                total = plane.plus(
                    total, plane.times(0.5, plane.times(numbers.stiffness, a.dot(gone, gone)))
                )
                continue
            extension = plane.plus(a.size(gone), plane.minus(numbers.rest))
        else:
            x, _ = scene.coordinates(part.option("joint"))
            extension = plane.plus(x, plane.minus(numbers.rest))
        total = plane.plus(total, stored(part, numbers, extension))
    return plane.value(total)
