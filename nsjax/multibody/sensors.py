"""Names of coordinates, quantities of bodies and loads at a row, and sensors on bodies and joints."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.core import InputError
from nsjax.core.errors import check_known, listed
from nsjax.math import norm
from nsjax.multibody.coordinates import planar_vectors as plane
from nsjax.multibody.coordinates import spatial_vectors as space
from nsjax.multibody.coordinates.frames import Scene
from nsjax.multibody.coordinates.spatial_vectors import quaternion
from nsjax.multibody.elements import kind_of as element_kind
from nsjax.multibody.joints import KINDS as JOINTS
from nsjax.multibody.loads import ends_of, energy_of, kind_of, pushes_of
from nsjax.multibody.parts import NEEDED, POINT, Part, number
from nsjax.multibody.reactions import Instant, row_loads
from nsjax.multibody.topology import Link, Topology, is_measured, labels
from nsjax.types import Array, PyTree, is_traced

# Names of coordinates, and observables of bodies by name.


def titled(topology: Topology) -> str:
    """The name of a mechanism in reports."""
    bodies = tuple(x.name for x in topology.all_of("body", "beam"))
    return f"mechanism of {listed(bodies)}"


def coordinate_labels(topology: Topology) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Labels of positions, velocities and observables."""
    q: list[str] = []
    v: list[str] = []
    for link in sorted(topology.links, key=lambda x: x.q):
        one, other = link.kind.coordinate_names(link.body, link.joint or "", topology.dimension)
        q, v = q + one, v + other
    for part in topology.all_of("beam"):
        q = q + element_kind(part).labels(part)
    q = q + labels(topology.counted)
    known = {x.split(" [")[0] for x in q}
    names = [f"{link.body}.{x} [m]" for link in _observed(topology) for x in "xyz"[: topology.dimension]]
    return tuple(q), tuple(v), tuple(x for x in names if x.split(" [")[0] not in known)


def units_of_gaps(contacts: int, limits: Sequence[tuple[str, str]], topology: Topology) -> tuple[str, ...]:
    """Units of the gaps of contacts, then of the limits of joints: of an angle, or of a displacement."""
    angles = {x.name for x in topology.parts if x.kind in JOINTS and JOINTS[x.kind].turns}
    return ("m",) * contacts + tuple("rad" if name in angles else "m" for name, _ in limits)


def _observed(topology: Topology) -> list[Link]:
    # number of bodies up to which their positions are observables; with more, use `Trajectory.body`
    observed = 12
    return sorted(topology.links, key=lambda x: x.q) if len(topology.links) <= observed else []


def observed(scene: Scene, topology: Topology) -> dict[str, Array]:
    """Observables: positions of the origins of the bodies by name [m]."""
    found = {}
    for link in _observed(topology):
        if link.free:
            continue
        place = scene.position(link.body)
        for k, x in enumerate("xyz"[: topology.dimension]):
            found[f"{link.body}.{x}"] = place[k]
    return found


def input_name(name: str, params: PyTree) -> str:
    """Path, in params, of the input of a load: its value, or the target of its law."""
    given = params[name]
    if not hasattr(given, "value"):
        return name
    if given.value is not None:
        return f"{name}.value"
    target = getattr(given.own, "target", None)
    return name if target is None else f"{name}.own.{target}"


# Quantities of bodies and loads at a row, for `Trajectory.body` and `Trajectory.load`.


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
        "force": force, "torque": torque, "power": power, "energy": plane.value(stored),
        "effort": plane.value(effort),
    }  # fmt: skip


def coordinate_effort(scene: Scene, topology: Topology, part: Part, p: PyTree) -> Any:
    """Effort of a load on the coordinate of its joint, or on the length of a tendon; None: it has none."""
    effort, driven = kind_of(part).effort, topology.of[part.option("joint") or part.name]
    if effort is None or not is_measured(driven):
        return None
    return effort(part, p[part.name], scene.time, *scene.coordinates(driven.name))


def part_unit(topology: Topology, name: str, field: str) -> str:
    """Unit of the position or rate of a joint, or of the effort of a load; empty for other quantities."""
    part = topology.of.get(name)
    if part is None or part.kind == "body" or field not in ("position", "rate", "effort"):
        return ""
    driven = topology.of[part.option("joint") or name]
    angle = driven.kind in JOINTS and JOINTS[driven.kind].winds
    units = {"position": ("m", "rad"), "rate": ("m/s", "rad/s"), "effort": ("N", "N m")}
    return units[field][angle]


def weigh(scene: Scene, topology: Topology, p: PyTree, gravity: Any) -> Array:
    """Potential energy of gravity [J]."""
    a, total = scene.algebra, None
    for part in topology.all_of("body"):
        height = a.dot(a.negative(gravity), scene.point(part.name, p[part.name].com))
        total = plane.plus(total, plane.times(p[part.name].mass, height))
    return plane.value(total)


# Sensors on the bodies and joints of a mechanism.


KINDS = {
    "position": "body", "velocity": "body", "acceleration": "body", "rotation": "body", "axis": "body",
    "quaternion": "body", "spin": "body", "angular_acceleration": "body", "distance": "body",
    "mass_centre": "body", "coordinate": "joint", "rate": "joint", "effort": "load",
}  # fmt: skip
"""Quantities that sensors measure, with the kind of part that has each."""

RELATIVE = ("position", "velocity", "spin", "axis", "quaternion")
"""Quantities that may be measured relative to a moving frame."""

NEED_FORCES = ("acceleration", "angular_acceleration")


@dataclasses.dataclass(frozen=True)
class Sensor:
    """A sensor as `sensor` makes it; its numbers are fixed.

    Args:
        name, kind, of, at, axes, on, scale, proper: see `sensor`; numbers are tuples.
        frame: body, point and axes, see `sensor`, or None.
    """

    name: str
    kind: str
    of: tuple[str, ...]
    at: tuple[float, ...] | None = None
    axes: tuple[tuple[float, ...], ...] | None = None
    on: tuple[float, ...] | None = None
    scale: float = 1.0
    proper: bool = False
    frame: tuple[str, Any, Any] | None = None

    def __str__(self) -> str:
        return self.name

    @property
    def needs_forces(self) -> bool:
        """Whether the measured quantity depends on contact forces."""
        return self.kind in NEED_FORCES

    @property
    def looks_at(self) -> tuple[tuple[str, str], ...]:
        """Kinds and names of the parts that the sensor reads."""
        names = self.of if self.frame is None else (*self.of, self.frame[0])
        return tuple((KINDS[self.kind], name) for name in names)


def sensor(
    name: str, kind: str, of: str | tuple[str, ...], *, at: Any = None, axes: Any = None, on: Any = None,
    scale: float = 1.0, proper: bool = False, frame: tuple[str, Any, Any] | None = None,
) -> Sensor:  # fmt: skip
    """A sensor, for ``outputs`` of `nsjax.stepper` and `nsjax.analysis.linearise`, and `Trajectory.sensor`.

    Args:
        name: name of the measured signal.
        kind: of a point of a body ``"position"``, ``"velocity"`` or ``"acceleration"``; of points of two
            bodies their ``"distance"``; of a body ``"rotation"`` (angle or matrix), ``"quaternion"``,
            ``"spin"``, ``"angular_acceleration"`` or ``"axis"`` (the first of ``axes``, in the axes of the
            ground); of bodies their ``"mass_centre"``; of a hinge, slide or tendon ``"coordinate"`` or
            ``"rate"``; of a motor or spring of a hinge or slide, and of a tendon, ``"effort"``.
        of: name of the part, or names.
        at: the point in body axes [m]; None: the origin.
        on: the point of the second body of a distance, in its axes [m]; None: the origin.
        axes: (3, 3) or (2, 2), rows are the axes of the sensor in body axes, along which vectors are
            measured; None: the axes of the ground.
        scale: factor of the measured value.
        proper: whether to subtract gravity from an acceleration, as accelerometers do.
        frame: ``(body, point, axes)``, point and axes as ``at`` and ``axes`` or None: measures a position,
            velocity, spin, axis or quaternion of a body relative to this moving frame, in its axes.

    Raises:
        InputError: for an unknown kind, a wrong number of parts, numbers that are traced, and a frame for a
            kind that has no relative measure.

    Limits: accelerations follow from the contact forces that the scheme gives at the end of a step.

    Example:
        >>> from nsjax.multibody import sensor
        >>> str(sensor("tip", "position", "arm", at=(0.5, 0.0)))
        'tip'
    """
    check_known(f"sensor {name!r}: unknown kind", kind, list(KINDS))
    names = (of,) if isinstance(of, str) else tuple(of) if isinstance(of, tuple | list) else ()
    count = 2 if kind == "distance" else None if kind == "mass_centre" else 1
    words = bool(names) and all(isinstance(x, str) for x in names)
    if not words or (count is not None and len(names) != count):
        raise InputError(
            f"sensor {name!r}: {kind} of {of!r}; give the names of {count or 'its'} parts, each a "
            f"{KINDS[kind]}"
        )
    if frame is not None and kind not in RELATIVE:
        raise InputError(
            f"sensor {name!r}: {kind} against the frame of {frame[0]!r}; leave frame out, or measure one "
            f"of {', '.join(RELATIVE)}"
        )
    if is_traced((at, axes, on, scale, frame)):
        raise InputError(f"sensor {name!r}: its point or axes are traced; give numbers")
    given = (("at", at, POINT), ("on", on, POINT), ("scale", scale, NEEDED))
    at, on, scale = (number("sensor", name, k, x, form=form) for k, x, form in given)
    against = None if frame is None else (frame[0], _tuple(frame[1]), _rows(frame[2]))
    return Sensor(
        name, kind, names, _tuple(at), _rows(axes), _tuple(on), float(scale), bool(proper), against,
    )  # fmt: skip


def _rows(axes: Any) -> Any:
    return None if axes is None else tuple(map(_tuple, np.asarray(axes)))


def _tuple(x: Any) -> Any:
    return None if x is None else tuple(float(y) for y in np.ravel(np.asarray(x, float)))


def _point(x: tuple[float, ...] | None) -> Any:
    return None if x is None else np.array(x)


def sensed(mechanism: Any, own: Sensor, *row: Any) -> Array:
    """Value of a sensor at a row ``t, q, v, output, p`` of a trajectory."""
    t, q, v, _, p = row
    scene: Scene = mechanism.scene(t, q, v, p)
    if own.frame is not None:
        return own.scale * _against(own, scene)
    found = own.scale * jnp.asarray(_value(mechanism, own, scene, row))
    turned = own.kind in ("position", "velocity", "acceleration", "spin", "angular_acceleration")
    if own.axes is None or not turned or found.ndim == 0:
        return found
    return jnp.sum(_axes(scene, own) * found, axis=1)


def _axes(scene: Scene, own: Sensor) -> Array:
    """Axes of the sensor, as rows, in the axes of the ground."""
    return _turned(scene, own.of[0], own.axes)


def _turned(scene: Scene, body: str, axes: Any) -> Array:
    """Axes given in a body (None: the body axes), as rows, in the axes of the ground."""
    turn = scene.rotation(body)
    if scene.dimension == 2:
        s, c = jnp.sin(turn), jnp.cos(turn)
        turn = jnp.stack([jnp.stack([c, -s]), jnp.stack([s, c])])
    if axes is None:
        return turn.T
    return jnp.sum(np.array(axes)[:, None, :] * turn[None], axis=2)


def _against(own: Sensor, scene: Scene) -> Array:
    """Value of a sensor relative to its moving frame."""
    (body, point, axes), name, at = own.frame or ("", None, None), own.of[0], _point(own.at)
    rows, on, kind = _turned(scene, body, axes), _point(point), own.kind

    def inside(x: Array) -> Array:
        return jnp.sum(rows * x, axis=1)

    if kind == "spin":
        gone = scene.spin(name) - scene.spin(body)
        return inside(gone) if gone.ndim else gone
    if kind == "axis":
        return inside(_axes(scene, own)[0])
    if kind == "quaternion":
        return quaternion(jnp.stack([inside(x) for x in _turned(scene, name, own.axes)], axis=1))
    between = scene.position(name, at) - scene.position(body, on)
    if kind == "position":
        return inside(between)
    spin = scene.spin(body)
    carried = jnp.cross(spin, between) if spin.ndim else spin * jnp.stack([-between[1], between[0]])
    return inside(scene.velocity(name, at) - scene.velocity(body, on) - carried)


def _value(mechanism: Any, own: Sensor, scene: Scene, row: tuple[Any, ...]) -> Any:
    p = row[-1]
    name, kind, at = own.of[0], own.kind, _point(own.at)
    if kind == "position":
        return scene.position(name, at)
    if kind == "velocity":
        return scene.velocity(name, at)
    if kind == "spin":
        return scene.spin(name)
    if kind == "rotation":
        return scene.rotation(name)
    if kind == "quaternion":
        return quaternion(scene.rotation(name) if own.axes is None else _axes(scene, own).T)
    if kind == "axis":
        return _axes(scene, own)[0]
    if kind == "distance":
        return norm(scene.position(own.of[1], _point(own.on)) - scene.position(name, at))
    if kind == "mass_centre":
        whole = sum(p[x].mass for x in own.of)
        return sum(p[x].mass * scene.position(x, p[x].com) for x in own.of) / whole
    if kind in ("coordinate", "rate"):
        return plane.value(scene.coordinates(name)[kind == "rate"])
    if kind == "effort":
        topology = mechanism.topology
        return plane.value(coordinate_effort(scene, topology, topology.of[name], p))
    return _accelerated(mechanism, own, row)


def _accelerated(mechanism: Any, own: Sensor, row: tuple[Any, ...]) -> Array:
    """Acceleration of a point, or angular acceleration of a body."""
    t, q, v, output, p = row
    a = Instant(mechanism, t, q, v, p, row_loads(output)[0]).balance[0]
    system, name, at = mechanism.system(), own.of[0], _point(own.at)

    def moving(s: Array) -> Array:
        scene = mechanism.scene(t + s, system.retract(q, s * v), v + s * a, p)
        return scene.spin(name) if own.kind != "acceleration" else scene.velocity(name, at)

    found: Array = jax.jvp(moving, (jnp.zeros(()),), (jnp.ones(()),))[1]
    if own.proper:
        scene = mechanism.scene(t, q, v, p)
        found = found - scene.algebra.array(mechanism.gravity(p))
    return found
