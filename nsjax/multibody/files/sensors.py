"""Sensors of a model file that have an equivalent here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from nsjax.multibody.body_sensors import RELATIVE, Sensor, sensor
from nsjax.multibody.contacts.groups import unused
from nsjax.multibody.files.actuators import acting_in, acting_on, driven_by, servo_of
from nsjax.multibody.files.source import Place, Source, gathered, identifier
from nsjax.multibody.files.thrusters import thrusts
from nsjax.multibody.files.tree import HINGE, SLIDE

FRAMES: dict[str, tuple[str, dict[str, Any]]] = {
    "FRAMEPOS": ("position", {}), "FRAMELINVEL": ("velocity", {}), "FRAMEANGVEL": ("spin", {}),
    "FRAMELINACC": ("acceleration", {"proper": True}), "FRAMEANGACC": ("angular_acceleration", {}),
    "FRAMEQUAT": ("quaternion", {}), "FRAMEXAXIS": ("axis", {"first": 0}),
    "FRAMEYAXIS": ("axis", {"first": 1}), "FRAMEZAXIS": ("axis", {"first": 2}),
    "VELOCIMETER": ("velocity", {"own": True}), "GYRO": ("spin", {"own": True}),
    "ACCELEROMETER": ("acceleration", {"own": True, "proper": True}),
}  # fmt: skip
"""Sensors on frames of bodies, geometries and sites: the equivalent kind, and options: ``first`` axis, the
measured one; ``own`` axes, those of the frame; ``proper`` acceleration.
"""

JOINTS = {"JOINTPOS": "coordinate", "JOINTVEL": "rate"}
TENDONS = {"TENDONPOS": "coordinate", "TENDONVEL": "rate"}
TOTALS = ("JOINTACTFRC", "TENDONACTFRC")
"""Total efforts of all actuators, which have an equivalent if a single actuator acts."""

MOTORS = {"ACTUATORPOS": "coordinate", "ACTUATORVEL": "rate", "ACTUATORFRC": "effort"}


def sensors(source: Source, driven: set[str], lines: set[str]) -> tuple[dict[str, Sensor], list[str]]:
    """Sensors with an equivalent, by name, and sentences about the others.

    Args:
        source: the model file.
        driven, lines: names of the actuators and of the tendons that are parts.
    """
    found: dict[str, Sensor] = {}
    said: list[tuple[str, str]] = []
    model, taken = source.model, set[str]()
    for k in range(model.nsensor):
        own = str(model.sensor(k).name)
        name = unused(identifier(own or f"sensor{k}"), taken)
        made = _made(source, k, name, driven, lines)
        if made is None:
            said.append(("sensors that have no equal are left out", repr(own) if own else f"number {k}"))
            continue
        found[name] = made
        if model.sensor_cutoff[k] > 0.0:
            said.append(("sensors whose cutoff is left out", repr(own) if own else f"number {k}"))
    return found, gathered(said)


def _made(source: Source, k: int, name: str, driven: set[str], lines: set[str]) -> Sensor | None:
    model, mujoco = source.model, source.mujoco
    kind = mujoco.mjtSensor(int(model.sensor_type[k])).name.removeprefix("mjSENS_")
    of = int(model.sensor_objid[k])
    if int(model.sensor_refid[k]) >= 0 and kind not in FRAMES:
        return None
    if kind in JOINTS and int(model.jnt_type[of]) in (HINGE, SLIDE):
        return sensor(name, JOINTS[kind], source.names["joint", of])
    if kind in TENDONS and source.names["tendon", of] in lines:
        return sensor(name, TENDONS[kind], source.names["tendon", of])
    if kind in MOTORS and source.names["actuator", of] in driven and not thrusts(source, of):
        gear, motor = source.gear(of), source.names["actuator", of]
        if kind == "ACTUATORFRC":
            bounded = servo_of(source, of).joint_range is not None  # MuJoCo measures before this bound
            return sensor(name, "effort", motor, scale=1.0 / gear) if gear and not bounded else None
        return sensor(name, MOTORS[kind], driven_by(source, of), scale=gear)
    if kind in TOTALS:
        alone = acting_on(source, of) if kind == "JOINTACTFRC" else acting_in(source, of)
        if len(alone) != 1 or source.names["actuator", alone[0]] not in driven or thrusts(source, alone[0]):
            return None
        gear = source.gear(alone[0])
        scale = 1.0 if kind == "JOINTACTFRC" else 1.0 / gear if gear else 0.0
        return sensor(name, "effort", source.names["actuator", alone[0]], scale=scale)
    if kind == "SUBTREECOM":
        return sensor(name, "mass_centre", _below(source, of))
    if kind in FRAMES:
        return _of_frame(source, k, name, *FRAMES[kind])
    return None


def _of_frame(source: Source, k: int, name: str, kind: str, how: dict[str, Any]) -> Sensor | None:
    place = _frame(source, int(source.model.sensor_objtype[k]), int(source.model.sensor_objid[k]))
    if place is None:
        return None
    # rows are the axes of the frame in body axes
    axes: Any = place.turn.T
    first = how.get("first")
    if first is not None:
        axes = np.roll(axes, -first, axis=0)
    elif not how.get("own") and kind != "quaternion":
        axes = None
    against, base = None, int(source.model.sensor_refid[k])
    if base >= 0:
        home = _frame(source, int(source.model.sensor_reftype[k]), base)
        if home is None or kind not in RELATIVE:
            return None
        against = home.body, home.origin, home.turn.T
    proper = how.get("proper", False)
    return sensor(name, kind, place.body, at=place.origin, axes=axes, proper=proper, frame=against)


def _frame(source: Source, kind: int, of: int) -> Place | None:
    """A frame of the file in the axes of a part."""
    model, objects = source.model, source.mujoco.mjtObj
    named: dict[int, tuple[Callable[[int], int], Any, Any]] = {
        int(objects.mjOBJ_BODY): (lambda b: b, model.body_ipos, model.body_iquat),
        int(objects.mjOBJ_GEOM): (lambda g: int(model.geom_bodyid[g]), model.geom_pos, model.geom_quat),
        int(objects.mjOBJ_SITE): (lambda s: int(model.site_bodyid[s]), model.site_pos, model.site_quat),
    }
    if kind == int(objects.mjOBJ_XBODY):
        return source.place(of)
    if kind not in named:
        return None
    body, places, turns = named[kind]
    home = source.place(body(of))
    return Place(home.body, home.turn @ source.turn(turns[of]), home.point(places[of]))


def _below(source: Source, b: int) -> tuple[str, ...]:
    """Names of the bodies with mass of the subtree of a body."""
    model = source.model
    inside = {b}
    for k in range(b + 1, model.nbody):
        if int(model.body_parentid[k]) in inside:
            inside.add(k)
    return tuple(source.names["body", k] for k in sorted(inside) if k and model.body_mass[k] > 0.0)
