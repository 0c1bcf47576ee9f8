"""Starts and sensors of a model file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from nsjax.multibody.contacts.groups import unused
from nsjax.multibody.files.actuators import acting_in, acting_on, driven_by, servo_of, thrusts
from nsjax.multibody.files.source import Place, Source, gathered, identifier
from nsjax.multibody.files.tree import BALL, FREE, HINGE, SLIDE, ball_pose, following, limits
from nsjax.multibody.mechanism import Mechanism
from nsjax.multibody.sensors import RELATIVE, Sensor, sensor
from nsjax.multibody.start import given_coordinates

CHANGE_TOLD = 1e-3
"""Least change of a coordinate of a start with loops or couplings that is told [rad, m]."""

STILL: dict[int, Any] = {FREE: [0, 0, 0, 1, 0, 0, 0], BALL: [1, 0, 0, 0]}
"""Default start coordinates of free bodies and balls; those of hinges and slides are zero."""

Start = dict[str, Any]


def start(source: Source) -> tuple[Start, list[str]]:
    """Coordinates of the file's reference position that are not at their default, for
    `assemble(start=...)`; and sentences about corrections. A coordinate that follows another one has the
    value of the coupling there.
    """
    said: list[tuple[str, str]] = []
    found: Start = {}
    coordinates = _coordinates(source, source.model.qpos0, "", said)
    for follower, leader, law in following(source):
        given, x = coordinates[follower], float(law(0.0 if leader is None else coordinates[leader]))
        if given and abs(x - given) > CHANGE_TOLD:
            what = "coordinates of start that contradict the coupling which they follow are read by it"
            said.append((what, f"{source.called('joint', follower)} {given:.6g} -> {x:.6g}"))
        coordinates[follower] = x
    for k, x in enumerate(coordinates):
        if not np.array_equal(x, STILL.get(int(source.model.jnt_type[k]), 0.0)):
            found |= _entry(source, k, x, None)
    return found, gathered(said)


def key_names(source: Source) -> list[str]:
    """Names of the key frames; frames without a name are ``key0``, ``key1``, ..."""
    own = [str(source.model.key(n).name) for n in range(source.model.nkey)]
    taken = set(own)
    return [name or unused(f"key{n}", taken) for n, name in enumerate(own)]


def starts(
    source: Source, driven: set[str], place: Callable[[str], str]
) -> tuple[dict[str, Start], dict[str, dict[str, float]], list[str]]:
    """Every key frame as a start with all coordinates; the controls of its actuators by their paths in
    params; and sentences about corrections. ``driven``: names of the actuators that are parts; ``place``:
    function from the name of an actuator to the path of its control in params.
    """
    model = source.model
    found: dict[str, Start] = {}
    controls: dict[str, dict[str, float]] = {}
    said: list[tuple[str, str]] = []
    for n, name in enumerate(key_names(source)):
        found[name] = {}
        rates = model.key_qvel[n]
        for k, x in enumerate(_coordinates(source, model.key_qpos[n], f"{name!r}: ", said)):
            dof, size = int(model.jnt_dofadr[k]), {FREE: 6, BALL: 3}.get(int(model.jnt_type[k]), 1)
            found[name] |= _entry(source, k, x, rates[dof : dof + size] if np.any(rates) else None)
        words = [source.names["actuator", k] for k in range(source.actuators)]
        controls[name] = {
            place(word): float(model.key_ctrl[n][source.control(k)])
            for k, word in enumerate(words)
            if word in driven
        }
        said += [(f"{what} of key frames are left out", repr(name)) for what in _beside(source, n)]
    return found, controls, gathered(said)


def moved_far(mechanism: Mechanism, q: Any, given: Start, which: str) -> str:
    """A sentence about a start ``q`` of a mechanism in joint coordinates that loops and couplings moved far
    from the ``given`` one of the file; else empty. ``which``: what the file calls it.
    """
    if mechanism.topology.coordinates != "joint":
        return ""
    wanted = given_coordinates(mechanism, given, "start")[0]
    change = np.asarray(mechanism.system().difference(jnp.asarray(wanted), jnp.asarray(q)))
    worst = int(np.argmax(np.abs(change)))
    if not abs(change[worst]) > CHANGE_TOLD:
        return ""
    link = next(x for x in mechanism.topology.links if x.v <= worst < x.v + x.size[1])
    return (
        f"{which} does not close the loops or couplings: the start is the nearest position that does, "
        f"with {link.joint or link.body!r} moved by {abs(change[worst]):.3g}"
    )


def _coordinates(source: Source, q: Any, whose: str, said: list[tuple[str, str]]) -> list[Any]:
    """Coordinates of every joint in this package's conventions, those of hinges and slides in limits."""
    found: list[Any] = []
    # largest violation of a limit that counts as rounding and is corrected without a warning [rad, m]
    least = 1e-9
    for k in range(source.model.njnt):
        at, kind = int(source.model.jnt_qposadr[k]), int(source.model.jnt_type[k])
        if kind in (FREE, BALL):
            turn = np.array(q[at : at + (7 if kind == FREE else 4)], float)
            found.append(turn if kind == FREE else ball_pose(source, k, turn))
            continue
        x = float(q[at])
        lower, upper = limits(source, k) or (x, x)
        near = min(max(x, lower), upper)
        if abs(near - x) > least:
            what = (
                f"coordinates of {'key frames' if whose else 'start'} outside the limits of joints are read"
            )
            said.append(
                (f"{what} at the nearest end", f"{whose}{source.called('joint', k)} {x:.6g} -> {near:.6g}")
            )
        found.append(near)
    return found


def _entry(source: Source, k: int, x: Any, rate: Any) -> Start:
    """The start of a joint, for `assemble(start=...)`."""
    kind = int(source.model.jnt_type[k])
    if kind == FREE:
        own = source.names["body", int(source.model.jnt_bodyid[k])]
        return {own: ((x[:3], x[3:]), None if rate is None else np.array(rate, float))}
    name = source.names["joint", k]
    if kind == BALL:
        return {name: x if rate is None else (x, np.array(rate, float))}
    return {name: x if rate is None else (x, float(rate[0]))}


def _beside(source: Source, n: int) -> list[str]:
    """Other contents of a key frame, which are left out."""
    model, found = source.model, []
    for b in range(model.nbody):
        m = int(model.body_mocapid[b])
        if m < 0:
            continue
        place = model.key_mpos[n].reshape(-1, 3)[m], model.key_mquat[n].reshape(-1, 4)[m]
        if not all(map(np.allclose, place, (model.body_pos[b], model.body_quat[b]))):
            found.append("poses of mocap bodies")
            break
    return found


# Sensors of a model file that have an equivalent here.


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
    """Sensors with an equivalent, by name, and sentences about the others."""
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
