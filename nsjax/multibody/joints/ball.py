"""Ball joints, which leave all rotations about a point free."""

from __future__ import annotations

import dataclasses
from typing import Any

from nsjax.multibody.coordinates import spatial_vectors as space
from nsjax.multibody.coordinates.frames import Scene
from nsjax.multibody.joints.joint_kind import (
    At,
    FrameMotion,
    JointKind,
    Screws,
    components,
    joint,
    separation,
    spun,
)
from nsjax.multibody.parts import Part


def ball(
    name: str, first: str, second: str, *, at: Any = None, on: Any = None, armature: Any = None,
    loop: bool = False, active: Any = None,
) -> Part:  # fmt: skip
    """A ball joint: the second body turns freely about a point of the first. In space.

    Args:
        name, first, second, at, on, loop, active: see `hinge`.
        armature: inertia that the rotation about each body axis drives [kg m^2].

    Raises:
        InputError: for a body that is joined to itself.

    Example:
        >>> from nsjax.multibody import ball
        >>> ball("shoulder", "ground", "upper", at=(0.0, 0.0, 0.8)).bodies
        ('ground', 'upper')
    """
    return joint("ball", name, first, second, None, loop, at=at, on=on, armature=armature, active=active)


def _residuals(scene: Scene, part: Part, numbers: Any) -> list[Any]:
    return components(scene, separation(scene, part, numbers))


def _step(at: At) -> tuple[FrameMotion, Screws]:
    point = at.joint_point()
    turn = space.both(point.turn, at.quaternions(0))
    screws = [(turn[:, k], space.cross(point.origin, turn[:, k])) for k in range(3)]
    if at.rate is not None:
        point = spun(point, space.turned(turn, at.rate))
    return at.body(dataclasses.replace(point, turn=turn)), screws


def _labels(body: str, joint: str, dimension: int) -> tuple[list[str], list[str]]:
    return [f"{joint}.q{x}" for x in "wxyz"], [f"{joint}.omega{k} [rad/s]" for k in (1, 2, 3)]


BALL = JointKind(
    name="ball", rows={3: ("x", "y", "z")}, residuals=_residuals, sizes={3: (4, 3)}, step=_step, turn_at=0,
    swivels=True, labels=_labels, framed=False,
)  # fmt: skip
