"""Sensors on the bodies and joints of a mechanism."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.core import InputError, nearest
from nsjax.core.checks import is_traced
from nsjax.multibody.coordinates import planar_vectors as plane
from nsjax.multibody.coordinates.frames import Scene
from nsjax.multibody.coordinates.spatial_vectors import quaternion
from nsjax.multibody.number_checks import NEEDED, POINT, number
from nsjax.multibody.reactions import Instant, row_loads
from nsjax.multibody.views_of_rows import coordinate_effort
from nsjax.types import Array

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
    if not isinstance(kind, str) or kind not in KINDS:
        raise InputError(f"sensor {name!r}: unknown kind {kind!r}; {nearest(kind, list(KINDS))}")
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
    apart = scene.position(name, at) - scene.position(body, on)
    if kind == "position":
        return inside(apart)
    spin = scene.spin(body)
    carried = jnp.cross(spin, apart) if spin.ndim else spin * jnp.stack([-apart[1], apart[0]])
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
        apart = scene.position(own.of[1], _point(own.on)) - scene.position(name, at)
        square = jnp.sum(apart * apart)
        return jnp.sqrt(jnp.where(square > 0.0, square, 1.0)) * (square > 0.0)
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
        found: Array = scene.spin(name) if own.kind != "acceleration" else scene.velocity(name, at)
        return found

    found: Array = jax.jvp(moving, (jnp.zeros(()),), (jnp.ones(()),))[1]
    if own.proper:
        scene = mechanism.scene(t, q, v, p)
        found = found - scene.algebra.array(mechanism.gravity(p))
    return found
