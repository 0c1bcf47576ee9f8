"""The model of the tossed cube: rounded corners, mass centre beside the middle; flights that measure it.

Lengths are those of the data. ``offset`` leads from the mass centre to the tracked middle, in the body
frame: it moves every corner relative to the mass centre, and the tracked point around it.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import nsjax
from nsjax import State, schemes
from nsjax.math import rotations
from nsjax.models.block import BoxDynamics, cross
from nsjax.types import Array, record

from .tosses import GRAVITY, HALF, SAMPLE, Measured, lowest, matrices, turns

STEPS = 4
"""Steps per sample: with twice as many, held-out errors change by one or two parts in a hundred."""
CONTACT = 1e-3
"""Lowest corners of the nominal cube below this height touch [m]."""


@record()
class Toss:
    """Numbers of the measured cube; the defaults are the authors' nominal ones."""

    friction: Array | float = 0.18
    restitution: Array | float = 0.125
    inertia: Array | float = 8.1e-4
    scale: Array | float = 1.0
    ground: Array | float = 0.0
    radius: Array | float = 0.0
    offset: Array | tuple[float, float, float] = (0.0, 0.0, 0.0)
    mass: Array | float = 0.37


@record()
class Cube:
    """What `RoundedCube` needs: a `Block` with the radius of its corners and its offset."""

    size: Array
    mass: Array
    inertia: Array
    gravity: Array
    slope: Array
    ground: Array
    restitution: Array
    restitution_tangential: Array
    friction: Array
    radius: Array
    offset: Array


def prepare(p: Toss) -> Cube:
    """The cube in the lengths of the data; forces scale with them."""
    scale, none = jnp.asarray(p.scale), jnp.zeros(())
    return Cube(
        size=2.0 * HALF * scale * jnp.ones(3), mass=jnp.asarray(p.mass),
        inertia=p.inertia * scale**2 * jnp.ones(3), gravity=GRAVITY * scale, slope=none,
        ground=jnp.asarray(p.ground), restitution=jnp.asarray(p.restitution), restitution_tangential=none,
        friction=jnp.asarray(p.friction), radius=jnp.asarray(p.radius), offset=jnp.asarray(p.offset),
    )  # fmt: skip


@dataclasses.dataclass(frozen=True)
class RoundedCube(BoxDynamics):
    """A box whose corners are spheres; its pose is that of the mass centre."""

    def levers(self, q: Array, p: Any) -> Array:
        """Lowest points of the corners in the body frame (8, 3)."""
        inner = 0.5 * self.signs * (p.size - 2.0 * p.radius) + p.offset
        return inner - p.radius * rotations.matrix(q[3:])[2]

    def corners(self, q: Array, p: Any) -> Array:
        """The same in the axes of the plane."""
        return jnp.sum(rotations.matrix(q[3:])[None] * self.levers(q, p)[:, None], axis=2)

    def slip(self, t: Array, q: Array, v: Array, p: Any) -> Array:
        """Their velocities along the plane (8, 2)."""
        levers = self.levers(q, p)
        local = cross(jnp.broadcast_to(v[3:], levers.shape), levers)
        turn = rotations.matrix(q[3:])[:2]
        return v[:2] + jnp.sum(turn[None] * local[:, None], axis=2)


SYSTEM = dataclasses.replace(RoundedCube(3).system(), prepare=prepare, name="measured cube")


def _track(p: Toss, q: Array, v: Array, samples: int) -> Array:
    """Tracked middle (samples, 3) at the samples after the start, given as that of the middle."""
    offset, turn = jnp.asarray(p.offset), rotations.matrix(q[3:])
    centre = q[:3] - jnp.sum(turn * offset, axis=1)
    speed = v[:3] - jnp.sum(turn * cross(v[3:], offset), axis=1)
    start = State(t=0.0, q=jnp.concatenate([centre, q[3:]]), v=jnp.concatenate([speed, v[3:]]))
    traj = nsjax.simulate(
        SYSTEM, p, start, schemes.moreau(), dt=SAMPLE / STEPS, steps=STEPS * samples, every=STEPS, save=[]
    )
    back = jax.vmap(lambda x: x[:3] + jnp.sum(rotations.matrix(x[3:]) * offset, axis=1))
    return jnp.where(traj.status == 0, back(jnp.asarray(traj.q)[1:]), jnp.nan)


@functools.partial(jax.jit, static_argnames=("samples",))
def tracks_each(points: Toss, q: Array, v: Array, samples: int) -> Array:
    """Tracked middles (K, samples, 3) of starts (K, 7), (K, 6) with a set of numbers each; not a number
    where a run failed.
    """
    return lax.map(lambda x: _track(x[0], x[1], x[2], samples), (points, q, v))


def tracks(points: Toss, q: np.ndarray, v: np.ndarray, samples: int) -> np.ndarray:
    """Tracked middles (M, K, samples, 3) of all starts with each of M sets of numbers, in single precision:
    M calls of one program, which takes a minute to compile.
    """
    found = []
    for m in range(len(np.asarray(points.friction))):
        one = jax.tree.map(lambda x, m=m: np.broadcast_to(x[m], (len(q), *np.shape(x)[1:])), points)
        found.append(np.asarray(tracks_each(one, q, v, samples), np.float32))
    return np.stack(found)


def starts(measured: Sequence[Measured], gravity: float | None) -> tuple[np.ndarray, np.ndarray]:
    """Poses (K, 7) and velocities (K, 6) of the middle at sample 0, from the flights with this gravity;
    None: as `tosses` reads them, each with a gravity of its own.
    """
    found = []
    for toss in measured:
        if gravity is None:
            found.append(np.concatenate([toss.start.q, toss.start.v]))
            continue
        n = toss.flight
        t = SAMPLE * np.arange(n)
        line = np.stack([np.ones(n), t], axis=1)
        fall = toss.position[:n] + np.outer(0.5 * gravity * t**2, [0.0, 0.0, 1.0])
        centre, speed = np.linalg.lstsq(line, fall, rcond=None)[0]
        turn, spin = np.linalg.lstsq(line, turns(toss.attitude[:n]), rcond=None)[0]
        attitude: Any = rotations.rotate(toss.attitude[0], turn)
        found.append(np.concatenate([centre, attitude, speed, spin]))
    rows = np.stack(found)
    return rows[:, :7], rows[:, 7:]


def free_fall(measured: Sequence[Measured]) -> float:
    """Gravity [m/s^2] in the lengths of the data: that of all flights, each with a start of its own, and
    the mass centre anywhere in the cube.
    """
    rows, right = [], []
    for toss in measured:
        n = toss.flight
        t = SAMPLE * np.arange(n)
        line = np.stack([np.ones(n), t], axis=1)
        rest = np.eye(n) - line @ np.linalg.pinv(line)
        turn = matrices(toss.attitude[:n])
        for axis in range(3):
            bend = np.outer(-0.5 * t**2, [1.0 if axis == 2 else 0.0])
            rows.append(rest @ np.concatenate([bend, turn[:, axis]], axis=1))
            right.append(rest @ toss.position[:n, axis])
    return float(np.linalg.lstsq(np.concatenate(rows), np.concatenate(right), rcond=None)[0][0])


def geometry(measured: Sequence[Measured]) -> Toss:
    """Scale, ground and corner radius, measured without any impact law.

    Scale: that of free fall. Ground: below the middle of the resting cube by half a side. Radius: a cube
    that stands on an edge or a corner, ``S`` the sum of the three cosines of its axes with the normal
    (1 on a face), has its middle at ``s half S - radius (S - 1)`` above the ground; slope of the least
    heights over ``S - 1``.
    """
    scale = free_fall(measured) / GRAVITY
    rest = float(np.median([toss.position[-1, 2] for toss in measured]))
    low, sums = [], []
    for toss in measured:
        height = lowest(toss.position, toss.attitude)
        inside = (height[1:-1] < height[:-2]) & (height[1:-1] <= height[2:]) & (height[1:-1] < CONTACT)
        inside &= np.arange(1, len(height) - 1) > toss.flight
        low.append(height[1:-1][inside])
        sums.append(np.abs(matrices(toss.attitude)[1:-1, 2][inside]).sum(axis=1) - 1.0)
    slope = np.polyfit(np.concatenate(sums), np.concatenate(low), 1)[0]
    radius = max(0.0, float(-slope - HALF * (1.0 - scale)))
    return Toss(scale=scale, ground=rest - HALF * scale, radius=radius)
