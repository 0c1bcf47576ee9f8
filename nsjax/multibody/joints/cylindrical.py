"""Cylindrical joints: a displacement along an axis and a rotation about it."""

from __future__ import annotations

from typing import Any

from nsjax.multibody.coordinates import spatial_vectors as space
from nsjax.multibody.coordinates.frames import Scene
from nsjax.multibody.joints.joint_kind import JointKind, across, axis_of, joint, separation, tilts
from nsjax.multibody.parts import AXIS, Part


def cylindrical(
    name: str, first: str, second: str, *, axis: Any, at: Any = None, on: Any = None, turned: Any = None,
    loop: bool = False,
) -> Part:  # fmt: skip
    """A cylindrical joint: the second body moves along an axis of the first and turns about it. In space.

    Args:
        name, first, second, at, on, turned, loop: see `hinge`.
        axis: unit vector (3,) in the axes of the first body.

    Raises:
        InputError: for an axis that is no unit vector.

    Example:
        >>> from nsjax.multibody import cylindrical
        >>> cylindrical("sleeve", "ground", "slider", axis=(1.0, 0.0, 0.0)).kind
        'cylindrical'
    """
    return joint(
        "cylindrical", name, first, second, None, loop, at=at, on=on, axis=axis, turned=turned,
        forms={"axis": AXIS},
    )  # fmt: skip


def _residuals(scene: Scene, part: Part, numbers: Any) -> list[Any]:
    turn, gone = scene.frame(part.bodies[0]).turn, separation(scene, part, numbers)
    one, two = (space.turned(turn, x) for x in across(axis_of(numbers, 3)))
    return [space.dot(one, gone), space.dot(two, gone), *tilts(scene, part, numbers)]


CYLINDRICAL = JointKind(
    name="cylindrical", rows={3: ("across1", "across2", "tilt1", "tilt2")}, residuals=_residuals,
    sizes={3: (2, 2)}, slides=1, turns=("axis",),
)  # fmt: skip
