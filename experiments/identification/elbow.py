"""Measured tosses of an elbow, two boxes on a hinge: reading them, their flights, and the model.

Data: 109 tosses, every fifth of those beside M. Halm's and M. Posa's `dair_pll` (``contactnets_elbow``).
The model is the authors' file ``elbow.urdf``, read by `nsjax.multibody.read_urdf`, on a floor, with
friction in the hinge. Lengths are those of the data, which reads them about 2 % short: with the scale ``s``
all edges and arms are ``s`` times those of the file and gravity is ``9.81 s``.

The axes of the data lean against gravity by 1.6 degrees: the middle of both boxes falls with 0.24 and
-0.13 m/s^2 along x and y, five and three deviations from none. The floor of the model leans with them.
Every recording was shifted so that its last sample lies at height zero, wherever that is on the floor.
"""

from __future__ import annotations

import dataclasses
import functools
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import nsjax
from nsjax import Problem, State, schemes
from nsjax.math import rotations
from nsjax.multibody import LeftOutWarning, assemble, box, contact, joint_spring, plane, read_urdf
from nsjax.types import Array, record

from . import tosses
from .tosses import GRAVITY, SAMPLE, matrices, turns

STEPS = 4
"""Steps per sample; with two of them the same numbers predict the hinge worse."""
TOLERANCE = 1e-8
"""Tolerance of contact problems, relative: with restitution some of them, in one toss of seven, reach no
1e-11."""
EDGES = np.array([0.1, 0.05, 0.05])
"""Edges of both boxes [m]."""
ARM = np.array([-0.035, 0.06, 0.0])
"""The hinge, about y, in the axes of link 1 [m]."""
REACH = np.array([0.035, 0.0, 0.0])
"""Middle of box 2 in the axes of link 2, whose origin is the hinge [m]."""
CLEAR = 0.002
"""Height [m]: a flight ends before the lowest corner, extrapolated, is below it at the next sample."""
BLOW = 40.0
"""Upward acceleration that no flight has [m/s^2]: the noise of second differences is 5 to 14."""
TRAVEL = 0.37
"""Distance to the place of rest over the initial velocity of a toss [s]: at the place of rest the authors
have shifted the recording to height zero."""
CURVED = 10
"""Least number of samples of a flight whose rotation and hinge angle are fitted by parabolas, not lines."""


@record()
class Elbow:
    """Numbers of the measured elbow; the defaults are those of ``elbow.urdf``, contacts without restitution
    and a hinge without friction.

    Args:
        friction, restitution: of the corners on the floor.
        hinge_friction, hinge_damping: dry [N m] and viscous [N m s].
        along, across: moments of inertia of a box about its long axis and about the two others [kg m^2].
        first, second: mass centres of the boxes beside their middles (3,) [m].
        scale: of lengths.
        slope: of the floor along x and y of the data (2,); gravity is across the floor.
        ground: height of the floor where a toss is expected to come to rest [m].
        zero: angle of box 2 where the hinge angle of the data is zero [rad].
    """

    friction: Array | float = 0.3
    restitution: Array | float = 0.0
    hinge_friction: Array | float = 0.0
    hinge_damping: Array | float = 0.0
    along: Array | float = 6.167e-4
    across: Array | float = 6.167e-4
    first: Array | tuple[float, float, float] = (0.0, 0.0, 0.0)
    second: Array | tuple[float, float, float] = (0.0, 0.0, 0.0)
    scale: Array | float = 1.0
    slope: Array | tuple[float, float] = (0.0, 0.0)
    ground: Array | float = 0.0
    zero: Array | float = 0.0


@dataclasses.dataclass(frozen=True)
class Measured:
    """One toss: number in the original set, ``position`` (n, 3) [m] of the middle of box 1, ``attitude``
    (n, 4), ``angle`` (n,) of the hinge [rad], samples before the first contact.
    """

    number: int
    position: np.ndarray
    attitude: np.ndarray
    angle: np.ndarray
    flight: int


def _about_y(angle: np.ndarray) -> np.ndarray:
    cos, sin, none, one = np.cos(angle), np.sin(angle), 0.0 * angle, 1.0 + 0.0 * angle
    rows = [[cos, none, sin], [none, one, none], [-sin, none, cos]]
    return np.moveaxis(np.asarray(rows), 2, 0)


def apart(attitude: np.ndarray, angle: np.ndarray) -> np.ndarray:
    """From the middle of box 1 to that of box 2 (n, 3) [m]."""
    turn = matrices(attitude)
    return np.asarray(turn @ ARM + turn @ _about_y(angle) @ REACH)


def lowest(position: np.ndarray, attitude: np.ndarray, angle: np.ndarray) -> np.ndarray:
    """Height of the lowest corner (n,) [m]."""
    turn = matrices(attitude)
    tilts = [np.abs(x[:, 2]) @ (0.5 * EDGES) for x in (turn, turn @ _about_y(angle))]
    second = position[:, 2] + apart(attitude, angle)[:, 2] - tilts[1]
    return np.asarray(np.minimum(position[:, 2] - tilts[0], second))


def _flight(position: np.ndarray, attitude: np.ndarray, angle: np.ndarray) -> int:
    """Samples before the first contact, the last one of them left out: it may lie between both."""
    height = lowest(position, attitude, angle)
    near = np.minimum(height[1:-1], 2.0 * height[1:-1] - height[:-2]) < CLEAR
    middle = position[:, 2] + 0.5 * apart(attitude, angle)[:, 2]
    near |= np.diff(middle, 2) / SAMPLE**2 > BLOW
    return max(4, int(np.argmax(near)))


@functools.cache
def read(place: Path) -> tuple[Measured, ...]:
    """All tosses."""
    with np.load(place / "elbow_tosses.npz") as file:
        data, ids = file["data"].astype(float), file["ids"]
    found = []
    for number, rows in zip(ids, data, strict=True):
        attitude = rows[:, :4] / np.linalg.norm(rows[:, :4], axis=1, keepdims=True)
        flight = _flight(rows[:, 4:7], attitude, rows[:, 7])
        found.append(Measured(int(number), rows[:, 4:7], attitude, rows[:, 7], flight))
    return tuple(found)


def free_fall(measured: Sequence[Measured]) -> np.ndarray:
    """Gravity (3,) [m/s^2] in the axes and lengths of the data: median over the flights of that of the
    point between both middles. Flights of fewer than `CURVED` samples have no say.
    """
    found = []
    for toss in measured:
        n = toss.flight
        if n >= CURVED:
            middle = toss.position[:n] + 0.5 * apart(toss.attitude[:n], toss.angle[:n])
            found.append(2.0 * np.polyfit(SAMPLE * np.arange(n), middle, 2)[0])
    return np.asarray(np.median(found, axis=0))


def start(toss: Measured, gravity: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Position (8,) and velocity (7,) at sample 0: the point between both middles falls freely, rotation
    vector and hinge angle are parabolas, straight in short flights.
    """
    n = toss.flight
    t = SAMPLE * np.arange(n)
    line = np.stack([np.ones(n), t], axis=1)
    curve = np.stack([np.ones(n), t, t * t], axis=1) if n >= CURVED else line
    turn, spin = np.linalg.lstsq(curve, turns(toss.attitude[:n]), rcond=None)[0][:2]
    angle, rate = np.linalg.lstsq(curve, toss.angle[:n], rcond=None)[0][:2]
    half = 0.5 * apart(toss.attitude[:n], toss.angle[:n])
    fall = toss.position[:n] + half - np.outer(0.5 * t**2, gravity)
    centre, speed = np.linalg.lstsq(line, fall, rcond=None)[0]
    attitude = np.asarray(rotations.rotate(jnp.asarray(toss.attitude[0]), jnp.asarray(turn)))
    here, angles = attitude[None], np.array([angle])
    frame = matrices(here)[0]
    arm = _about_y(angles)[0] @ REACH
    swing = frame @ (np.cross(spin, ARM + arm) + rate * np.cross([0.0, 1.0, 0.0], arm))
    q = np.concatenate([centre - 0.5 * apart(here, angles)[0], attitude, angles])
    return q, np.concatenate([speed - 0.5 * swing, spin, [rate]])


def starts(measured: Sequence[Measured], gravity: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Starts of all tosses: (K, 8), (K, 7)."""
    both = [start(toss, gravity) for toss in measured]
    return np.stack([q for q, _ in both]), np.stack([v for _, v in both])


@functools.cache
def problem(place: Path) -> Problem:
    """The authors' elbow on a floor."""
    with warnings.catch_warnings():  # friction is given here; the boxes meet no box
        warnings.simplefilter("ignore", LeftOutWarning)
        file = read_urdf(place / "elbow.urdf", free=True)
    floor, half = plane(at=(0.0, 0.0, 0.0), normal=(0.0, 0.0, 1.0)), 0.5 * EDGES
    law = {"restitution": 0.0, "friction": 0.3}
    parts = [_with(x, friction=0.0, turned=np.zeros(3), on=np.zeros(3)) if x.kind == "hinge" else x
             for x in file]  # fmt: skip
    boxes = box("elbow_1", *half, at=np.zeros(3)), box("elbow_2", *half, at=REACH, turned=np.zeros(3))
    parts += [contact(f"floor_{k + 1}", x, floor, **law) for k, x in enumerate(boxes)]
    parts += [joint_spring("hinge_damping", "hinge_1_to_2", damping=0.0)]
    return assemble(*parts, gravity=file.gravity)


def _with(x: Any, **changes: Any) -> Any:
    return dataclasses.replace(x, numbers=dataclasses.replace(x.numbers, **changes))


def params(there: Any, p: Elbow, foot: Array) -> Any:
    """Numbers of the parts; forces scale with lengths, moments with their squares. ``foot`` (2,) is where a
    toss is expected to come to rest [m].
    """
    s, mass = jnp.asarray(p.scale), there["elbow_1"].mass
    square = s * s
    moments = square * jnp.stack([jnp.asarray(p.along), jnp.asarray(p.across), jnp.asarray(p.across)])
    law = {"restitution": jnp.asarray(p.restitution), "friction": jnp.asarray(p.friction)}
    half = 0.5 * EDGES * s
    turned = jnp.stack([jnp.zeros(()), jnp.asarray(p.zero), jnp.zeros(())])
    reach = turned_about_y(jnp.asarray(p.zero), s * (REACH + jnp.asarray(p.second)))
    middle = turned_about_y(jnp.asarray(p.zero), s * jnp.asarray(REACH))
    edges = {"half_length": half[0], "half_height": half[1], "half_depth": half[2]}
    normal = jnp.concatenate([-jnp.asarray(p.slope), jnp.ones(1)])
    normal = normal / jnp.sqrt(jnp.sum(normal * normal))
    under = jnp.concatenate([foot, jnp.asarray(p.ground)[None]])
    floor = dataclasses.replace(there["floor_1"].second, at=under, normal=normal)
    contacts = [
        dataclasses.replace(
            there[name], **law, second=floor, first=dataclasses.replace(there[name].first, **edges, **more)
        ) for name, more in (("floor_1", {}), ("floor_2", {"at": middle, "turned": turned}))
    ]  # fmt: skip
    joint, damping = there["hinge_1_to_2"], jnp.asarray(p.hinge_damping) * square
    return there | {
        "elbow_1": dataclasses.replace(there["elbow_1"], mass=mass, inertia=moments,
                                       com=s * jnp.asarray(p.first)),
        "elbow_2": dataclasses.replace(there["elbow_2"], mass=mass, inertia=moments, com=reach),
        "hinge_1_to_2": dataclasses.replace(
            joint, at=s * jnp.asarray(ARM), friction=jnp.asarray(p.hinge_friction) * square),
        "hinge_damping": dataclasses.replace(there["hinge_damping"], damping=damping),
        "floor_1": contacts[0], "floor_2": contacts[1], "gravity": -GRAVITY * s * normal,
    }  # fmt: skip


def turned_about_y(angle: Array, x: Array) -> Array:
    """A vector (3,) turned about the hinge."""
    cos, sin = jnp.cos(angle), jnp.sin(angle)
    return jnp.stack([cos * x[0] + sin * x[2], x[1], cos * x[2] - sin * x[0]])


@functools.cache
def program(place: Path, samples: int) -> Any:
    """Compiled ``(Elbow, q (K, 8), v (K, 7)) -> (q (K, samples, 8), status (K,))``, each toss with numbers
    of its own.
    """
    system, there, _ = problem(place)

    def run(x: tuple[Elbow, Array, Array]) -> tuple[Array, Array]:
        numbers, q, v = x
        foot, state = q[:2] + TRAVEL * v[:2], State(t=0.0, q=q, v=v)
        traj = nsjax.simulate(
            system, params(there, numbers, foot), state, schemes.moreau(contact_tolerance=TOLERANCE),
            dt=SAMPLE / STEPS, steps=STEPS * samples, every=STEPS, save=[], gradient="discrete",
        )  # fmt: skip
        return jnp.asarray(traj.q)[1:], traj.status

    return jax.jit(lambda points, q, v: lax.map(run, (points, q, v)))


def each(
    place: Path, points: Elbow, q: np.ndarray, v: np.ndarray, samples: int
) -> tuple[np.ndarray, np.ndarray]:
    """Samples (K, samples, 8) after the start, and status (K,), of starts with a set of numbers each; not a
    number where a run failed.
    """
    rows, status = (np.asarray(x) for x in program(place, samples)(points, q, v))
    rows = np.where(status[:, None, None] == 0, rows, np.nan)
    return rows.astype(np.float32), status


def tracks(
    place: Path, points: Elbow, q: np.ndarray, v: np.ndarray, samples: int
) -> tuple[np.ndarray, np.ndarray]:
    """Samples (M, K, samples, 8), and status (M, K), of all starts with each of M sets of numbers."""
    found = []
    for m in range(len(np.asarray(points.friction))):
        one = jax.tree.map(lambda x, m=m: np.broadcast_to(x[m], (len(q), *np.shape(x)[1:])), points)
        found.append(each(place, one, q, v, samples))
    return np.stack([rows for rows, _ in found]), np.stack([status for _, status in found])


def recorded(number: int, q: np.ndarray) -> Measured:
    """A toss of samples (n, 8), as if it had been measured."""
    return Measured(number, q[:, :3], q[:, 3:7], q[:, 7], 0)


def errors(model: np.ndarray, measured: Sequence[Measured], samples: int) -> np.ndarray:
    """Errors (..., K, samples, 3): position as a part of 0.1 m, rotation and hinge angle in degrees."""
    place = np.stack([x.position[1 : samples + 1] for x in measured])
    attitude = np.stack([x.attitude[1 : samples + 1] for x in measured])
    angle = np.stack([x.angle[1 : samples + 1] for x in measured])
    size = np.linalg.norm(model[..., 3:7], axis=-1)
    lean = np.abs(np.sum(model[..., 3:7] * attitude, axis=-1)) / size
    turn = 2.0 * np.degrees(np.arccos(np.minimum(lean, 1.0)))
    moved = np.linalg.norm(model[..., :3] - place, axis=-1) / EDGES[0]
    return np.stack([moved, turn, np.degrees(np.abs(model[..., 7] - angle))], axis=-1)


def folder() -> Path | None:
    """Folder of the data, found as by `tosses.folder`."""
    return tosses.folder("elbow_toss", "elbow_tosses.npz")
