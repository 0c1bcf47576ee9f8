"""Fixed joints: two bodies move as one, or with a prescribed relative motion."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from nsjax.core import InputError
from nsjax.multibody.coordinates import planar_vectors as plane
from nsjax.multibody.coordinates import spatial_vectors as space
from nsjax.multibody.coordinates.frames import Scene
from nsjax.multibody.joints.joint_kind import (
    JointKind,
    across,
    axis_of,
    components,
    joint,
    separation,
    tilt,
    tilts,
)
from nsjax.multibody.parts import Part, prescribed


def fixed(
    name: str, first: str, second: str, *, at: Any = None, on: Any = None, turned: Any = None,
    path: Any = None, loop: bool = False, own: Any = None, active: Any = None,
) -> Part:  # fmt: skip
    """A fixed joint: the second body does not move relative to the first, or only as prescribed.

    Args:
        name, first, second, at, on, turned, loop: see `hinge`.
        path: prescribed motion ``(t) -> (displacement, turn)`` of the second body in the axes of the first:
            displacement (3,) of its joint point [m] and rotation vector (3,) [rad]; in the plane (2,) and
            an angle [rad]. The joint exerts the force and moment of this motion. ``(t, own)`` reads the
            numbers ``own``. A spline (`nsjax.signal`, ``kind="cubic"``) has displacement and turn as
            columns, (n, 6), in the plane (n, 3).
        own: numbers of the path, ``params[name].own``.
        active: whether the joint is there, True or False: a weld that closes or opens within a run, see
            `hinge`. It holds the bodies as they are to each other when it closes.

    Example:
        >>> from nsjax.multibody import fixed
        >>> shaken = fixed("clamp", "ground", "arm", path=lambda t: ((0.0, 0.01 * t, 0.0), (0.0, 0.0, t)))
    """
    loop = loop or path is not None  # a prescribed motion is a constraint in all coordinates
    return joint(
        "fixed", name, first, second, None, loop, at=at, on=on, turned=turned, own=own, path=path,
        active=active,
    )  # fmt: skip


def _residuals(scene: Scene, part: Part, numbers: Any) -> list[Any]:
    a, gone, frame = scene.algebra, separation(scene, part, numbers), None
    path = part.option("path")
    if path is not None:
        moved, turn = prescribed(part, "path", numbers, scene.time)
        moved = a.vector(jnp.asarray(moved, float))
        gone = a.subtract(gone, a.turned(scene.frame(part.bodies[0]).turn, moved))
    if scene.dimension == 2:
        angle = tilt(scene, part, numbers)
        return [*gone, angle if path is None else plane.plus(angle, -jnp.asarray(turn, float))]
    if path is not None:
        frame = space.both(space.rotation_of(turn), space.rotation_of(numbers.turned))
    one = space.turned(scene.frame(part.bodies[0]).turn, across(axis_of(numbers, 3))[0])
    return [*components(scene, gone), *tilts(scene, part, numbers, one, frame)]


def _check(part: Part, dimension: int) -> None:
    table = part.numbers.motion
    if table is not None and np.shape(table.values)[1:] != ((3,) if dimension == 2 else (6,)):
        raise InputError(
            f"fixed {part.name!r}: path is a table of values {np.shape(table.values)} in a mechanism of "
            f"{dimension} dimensions; give (n, {3 if dimension == 2 else 6})"
        )


FIXED = JointKind(
    name="fixed", rows={2: ("x", "y", "angle"), 3: ("x", "y", "z", "tilt1", "tilt2", "angle")},
    residuals=_residuals, sizes={2: (0, 0), 3: (0, 0)}, rigid=True, check=_check,
)  # fmt: skip
