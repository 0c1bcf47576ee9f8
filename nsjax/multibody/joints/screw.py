"""Screws: an angle about an axis, and a proportional displacement along it."""

from __future__ import annotations

from typing import Any

import numpy as np

from nsjax.forms import quantity
from nsjax.multibody.coordinates import spatial_vectors as space
from nsjax.multibody.coordinates.frames import Scene
from nsjax.multibody.joints.joint_kind import (
    At,
    FrameMotion,
    JointKind,
    Screws,
    across,
    axis_of,
    joint,
    moment_about,
    moved_along,
    relative_angle,
    separation,
    tilts,
    turned_about,
)
from nsjax.multibody.parts import AXIS, Part, record_of
from nsjax.types import Array, record


@record()
class Pitch:
    """Advance of a screw in one turn [m]."""

    pitch: Array | float = quantity("m", shape="one", needed=True)


def screw(
    name: str, first: str, second: str, *, pitch: Any, axis: Any, at: Any = None, on: Any = None,
    turned: Any = None, limits: Any = None, restitution: Any = 0.0, friction: Any = None,
    armature: Any = None, motion: Any = None, loop: bool = False,
) -> Part:  # fmt: skip
    """A screw joint: the second body turns about an axis of the first by ``x`` and moves along it by
    ``pitch x / (2 pi)``. In space.

    Args:
        name, first, second, at, on, axis, turned, limits, restitution, friction, armature, motion, loop:
            see `hinge`; the coordinate is the angle [rad].
        pitch: advance in a turn [m], negative for a left-hand thread; ``params[name].own.pitch``.

    Raises:
        InputError: see `hinge`.

    Limits: the angle of a screw that closes a loop in joint coordinates is between -pi and pi. Let another
    joint close the loop (``loop=True``); `assemble` chooses one where it can.

    Example:
        >>> import nsjax
        >>> from nsjax import schemes
        >>> from nsjax.multibody import assemble, body, screw
        >>> problem = assemble(
        ...     body("nut", mass=1.0, inertia=(0.1, 0.1, 0.1)),
        ...     screw("thread", "ground", "nut", pitch=0.5, axis=(0.0, 0.0, 1.0)), gravity=9.81,
        ... )
        >>> traj = nsjax.simulate(problem, schemes.moreau(), dt=1e-3, steps=100)
        >>> k = 0.5 / 6.283185307179586
        >>> rate = -9.81 * k / (0.1 + k * k) * 0.1  # m g k over the inertia about the axis and m k^2
        >>> abs(float(traj["thread.omega"][-1]) - rate) < 1e-9
        True
    """
    own = record_of(Pitch, "screw", name, pitch=pitch)
    return joint(
        "screw", name, first, second, motion, loop, own=own, at=at, on=on, axis=axis, turned=turned,
        limits=limits, restitution=restitution, friction=friction, armature=armature,
        forms={"axis": AXIS},
    )  # fmt: skip


def _advance(own: Any) -> Any:
    """Displacement of a screw for each radian [m/rad]."""
    return own.pitch / (2.0 * np.pi)


def _residuals(scene: Scene, part: Part, numbers: Any) -> list[Any]:
    turn, gone = scene.frame(part.bodies[0]).turn, separation(scene, part, numbers)
    axis = axis_of(numbers, 3)
    one, two = (space.turned(turn, x) for x in across(axis))
    advanced = space.dot(space.turned(turn, axis), gone)
    angle = scene.coordinates(part.name)[0]
    off = [space.dot(one, gone), space.dot(two, gone)]
    return [*off, *tilts(scene, part, numbers), advanced - _advance(numbers.own) * angle]


def _step(at: At) -> tuple[FrameMotion, Screws]:
    point, k = at.joint_point(), _advance(at.joint.own)
    rate = None if at.rate is None else k * at.rate[0]
    point, [(_, along)] = moved_along(at, point, k * at.x[0], rate)
    moved, [(axis, swing)] = turned_about(at, point, 0)
    return at.body(moved), [(axis, space.add(swing, k * along))]


SCREW = JointKind(
    name="screw", rows={3: ("across1", "across2", "tilt1", "tilt2", "advance")}, residuals=_residuals,
    sizes={3: (1, 1)}, turns=("axis",), step=_step, measure=relative_angle, effort=moment_about,
    reads_angle=True,
)  # fmt: skip
