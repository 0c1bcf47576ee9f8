"""Quantities of bodies and loads at a row, for `Trajectory.body` and `Trajectory.load`."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from nsjax.multibody.coordinates import planar_vectors as plane
from nsjax.multibody.coordinates import spatial_vectors as space
from nsjax.multibody.coordinates.frames import Scene
from nsjax.multibody.joints import KINDS as JOINTS
from nsjax.multibody.loads import ends_of, energy_of, kind_of, pushes_of
from nsjax.multibody.parts import Part
from nsjax.multibody.topology import Topology, is_measured
from nsjax.types import Array, PyTree


def body_row(scene: Scene, name: str, gravity: Any, weight: tuple[Any, Any, Any]) -> dict[str, Array]:
    """Motion and energies of a body; ``weight`` is its mass, inertia and mass centre."""
    a, (mass, inertia, com), frame = scene.algebra, weight, scene.frame(name)
    centre = scene.velocity(name, com)
    if scene.dimension == 2:
        turning = plane.value(plane.times(inertia, plane.times(frame.spin, frame.spin)))
    else:
        spin = space.array(space.turned_back(frame.turn, frame.spin))
        inertia = jnp.zeros(3) if inertia is None else jnp.asarray(inertia, float)
        own = jnp.sum(inertia * spin, axis=1) if inertia.ndim == 2 else inertia * spin
        turning = jnp.sum(spin * own)
    height = plane.times(-mass, a.dot(gravity, scene.point(name, com)))
    return {
        "position": scene.position(name), "rotation": scene.rotation(name),
        "velocity": scene.velocity(name), "spin": scene.spin(name),
        "kinetic": 0.5 * (mass * jnp.sum(centre * centre) + turning), "potential": plane.value(height),
    }  # fmt: skip


def load_row(scene: Scene, topology: Topology, name: str, p: PyTree) -> dict[str, Array]:
    """Force, moment, power and energy of a force element."""
    a, part = scene.algebra, topology.of[name]
    onto = ends_of(topology, part)[-1]
    force, power = jnp.zeros(scene.dimension), jnp.zeros(())
    torque = jnp.zeros(()) if scene.dimension == 2 else jnp.zeros(3)
    for body, push, point, turning in pushes_of(scene, topology, part, p):
        spin = scene.spin(body)
        turn = plane.value(turning) if scene.dimension == 2 else space.array(turning)
        power = power + jnp.sum(turn * spin)
        if push is not None:
            arm = a.subtract(point, scene.frame(body).origin)
            power = power + plane.value(a.dot(push, scene.motion(body, arm)))
            force = force + a.array(push) if body == onto else force
        torque = torque + turn if body == onto else torque
    stored = energy_of(scene, topology, part, p)
    exerts = kind_of(part).exerts
    effort = (
        coordinate_effort(scene, topology, part, p)
        if exerts is None
        else exerts(scene, part, p[name], force, torque)
    )
    return {
        "force": force,
        "torque": torque,
        "power": power,
        "energy": plane.value(stored),
        "effort": plane.value(effort),
    }


def coordinate_effort(scene: Scene, topology: Topology, part: Part, p: PyTree) -> Any:
    """Effort of a load on the coordinate of its joint, or on the length of a tendon; None: it has none."""
    effort, driven = kind_of(part).effort, topology.of[part.option("joint") or part.name]
    if effort is None or not is_measured(driven):
        return None
    return effort(part, p[part.name], scene.time, *scene.coordinates(driven.name))


def part_unit(topology: Topology, name: str, field: str) -> str:
    """Unit of a coordinate, its rate, or the effort of a load; empty for other quantities."""
    part = topology.of.get(name)
    if part is None or field not in ("coordinate", "rate", "effort"):
        return ""
    driven = topology.of[part.option("joint") or name]
    angle = driven.kind in JOINTS and JOINTS[driven.kind].winds
    units = {"coordinate": ("m", "rad"), "rate": ("m/s", "rad/s"), "effort": ("N", "N m")}
    return units[field][angle]


def weigh(scene: Scene, topology: Topology, p: PyTree, gravity: Any) -> Array:
    """Potential energy of gravity [J]."""
    a, total = scene.algebra, None
    for part in topology.all_of("body"):
        height = a.dot(a.negative(gravity), scene.point(part.name, p[part.name].com))
        total = plane.plus(total, plane.times(p[part.name].mass, height))
    return plane.value(total)
