"""Measured cube tosses: reading them, and their flights.

Data: S. Pfrommer, M. Halm, M. Posa, "ContactNets", Conference on Robot Learning (CoRL) 2020; every
fifth of 570 tosses. Lengths in the file are in half sides of 52.4 mm.

Free fall in the data is 9.61 m/s^2 and the cube rests at 0.978 half sides: lengths are read about 2 %
short. The model (`cube`) works in the lengths of the data: with the scale ``s`` the cube has the side
``0.1048 s`` and falls with ``9.81 s``.
"""

from __future__ import annotations

import dataclasses
import functools
import json
from pathlib import Path
from typing import Any

import numpy as np

from nsjax import State
from nsjax.math import rotations

from .. import common

HALF = 0.0524
"""Half side of the cube, the unit of length of the data [m]."""
GRAVITY = 9.81
SAMPLE = 1.0 / 148.0
"""Sampling interval [s]."""
CLEAR = 0.002
"""A cube whose corners are higher than this above the ground at a sample is in flight [m]."""


@dataclasses.dataclass(frozen=True)
class Measured:
    """One toss: ``position`` (n, 3) [m], ``attitude`` (n, 4) quaternions of continuous sign, number in the
    original set, samples before the first contact, and the state at sample 0 from these.
    """

    number: int
    position: np.ndarray
    attitude: np.ndarray
    flight: int
    start: State

    @property
    def times(self) -> np.ndarray:
        return SAMPLE * np.arange(len(self.position))


def folder(name: str = "cube_toss", file: str = "cube_tosses.npz") -> Path | None:
    """Folder of the data, see `common.reference_data`; None if they are absent."""
    place = common.reference_data(name)
    return place if (place / file).is_file() else None


def nominal(place: Path) -> dict[str, Any]:
    """The authors' parameters, in the lengths of the data."""
    given = json.loads((place / "nominal_parameters.json").read_text(encoding="utf-8"))
    return {
        "friction": given["mu"], "restitution": given["restitution"], "inertia": given["inertia"] * HALF**2,
        "mass": given["mass"],
    }  # fmt: skip


def matrices(attitude: np.ndarray) -> np.ndarray:
    """Rotation matrices (n, 3, 3) of quaternions (n, 4)."""
    w, x, y, z = attitude.T
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.moveaxis(np.asarray(rows), 2, 0)


def lowest(position: np.ndarray, attitude: np.ndarray) -> np.ndarray:
    """Height of the lowest corner of the nominal cube (n,)."""
    up = matrices(attitude)[:, 2]
    return np.asarray(position[:, 2] - HALF * np.abs(up).sum(axis=1))


def turns(attitude: np.ndarray) -> np.ndarray:
    """Rotation vectors (n, 3) in the body frame from the first attitude to each, up to a whole turn (where
    `nsjax.math.rotations.rotation_between` takes the shortest way).
    """
    w, v = attitude[0, 0], -attitude[0, 1:]
    vector = w * attitude[:, 1:] + attitude[:, :1] * v + np.cross(v, attitude[:, 1:])
    scalar = w * attitude[:, 0] - attitude[:, 1:] @ v
    size = np.linalg.norm(vector, axis=1)
    angle = 2.0 * np.arctan2(size, scalar)
    return np.asarray(vector * np.where(size > 1e-12, angle / np.maximum(size, 1e-12), 2.0)[:, None])


def _start(position: np.ndarray, attitude: np.ndarray) -> State:
    """State at the first sample from a flight: parabola with free gravity, constant angular velocity (the
    inertia is isotropic).
    """
    t = SAMPLE * np.arange(len(position))
    line = np.stack([np.ones_like(t), t], axis=1)
    along = np.linalg.lstsq(line, position[:, :2], rcond=None)[0]
    up = np.linalg.lstsq(np.stack([np.ones_like(t), t, t * t], axis=1), position[:, 2], rcond=None)[0]
    turn = np.linalg.lstsq(line, turns(attitude), rcond=None)[0]
    centre = np.array([*along[0], up[0]])
    q: Any = np.concatenate([centre, rotations.rotate(attitude[0], turn[0])])
    v: Any = np.concatenate([along[1], up[1:2], turn[1]])
    return State(t=0.0, q=q, v=v)


@functools.cache
def read(place: Path) -> tuple[Measured, ...]:
    """All tosses."""
    with np.load(place / "cube_tosses.npz") as file:
        data, offsets, ids = file["data"].astype(float), file["offsets"], file["ids"]
    found = []
    for number, first, last in zip(ids, offsets[:-1], offsets[1:], strict=True):
        position, attitude = HALF * data[first:last, :3], data[first:last, 3:7]
        flips = np.cumprod(np.where(np.sum(attitude[1:] * attitude[:-1], axis=1) < 0.0, -1.0, 1.0))
        attitude = attitude * np.concatenate([[1.0], flips])[:, None]
        attitude = attitude / np.linalg.norm(attitude, axis=1, keepdims=True)
        flight = max(3, int(np.argmax(lowest(position, attitude) < CLEAR)) - 1)
        start = _start(position[:flight], attitude[:flight])
        found.append(Measured(int(number), position, attitude, flight, start))
    return tuple(found)
