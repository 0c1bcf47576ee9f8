"""Coordinates of bodies without a joint."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np

from nsjax.multibody.coordinates import spatial_vectors as space
from nsjax.multibody.coordinates.frames import Scene
from nsjax.multibody.joints.joint_kind import At, FrameMotion, JointKind, Screws
from nsjax.multibody.parts import Part


def _residuals(scene: Scene, part: Part, numbers: Any) -> list[Any]:
    return []


def _step(at: At) -> tuple[FrameMotion, Screws]:
    turn, links = at.quaternions(3), at.links
    origin = jnp.stack([at.q[x.q : x.q + 3] for x in links], axis=1)
    screws: Screws = [(None, jnp.asarray(np.eye(3)[:, k : k + 1])) for k in range(3)]
    screws += [(turn[:, k], space.cross(origin, turn[:, k])) for k in range(3)]
    moved = FrameMotion(turn=turn, origin=origin, acceleration=at.base.acceleration)
    if at.rate is not None:
        spin = space.turned(turn, at.rate[3:])
        moved = dataclasses.replace(moved, spin=spin, velocity=at.rate[:3])
    return moved, screws


def _labels(body: str, joint: str, dimension: int) -> tuple[list[str], list[str]]:
    names = "xyz"[:dimension]
    places, rates = [f"{body}.{x} [m]" for x in names], [f"{body}.v{x} [m/s]" for x in names]
    if dimension == 2:
        return [*places, f"{body}.angle [rad]"], [*rates, f"{body}.omega [rad/s]"]
    turns, spins = [f"{body}.q{x}" for x in "wxyz"], [f"{body}.omega{k} [rad/s]" for k in (1, 2, 3)]
    return places + turns, rates + spins


FREE = JointKind(
    name="free", rows={2: (), 3: ()}, residuals=_residuals, sizes={2: (3, 3), 3: (7, 6)}, slides=2,
    turns=("axis",), step=_step, turn_at=3, labels=_labels,
)  # fmt: skip
"""Coordinates of a body without a joint; in the plane two displacements and an angle."""
