"""Massless links with a hinge at one end and a ball at the other."""

from __future__ import annotations

from typing import Any

from nsjax.multibody.coordinates import spatial_vectors as space
from nsjax.multibody.coordinates.frames import Scene
from nsjax.multibody.joints.joint_kind import JointKind, axis_of, joint, separation
from nsjax.multibody.parts import AXIS, LENGTH, Part


def revolute_spherical(
    name: str, first: str, second: str, *, length: Any, axis: Any, at: Any = None, on: Any = None
) -> Part:
    """A massless link with a hinge at the first body and a ball at the second: the vector between the
    points has a constant length and stays perpendicular to ``axis`` of the first body. In space.

    Args:
        name, first, second, at, on: see `hinge`.
        length: of the link [m].
        axis: of the hinge, a unit vector (3,) in the axes of the first body.

    Raises:
        InputError: for an axis that is no unit vector.

    Example:
        >>> from nsjax.multibody import revolute_spherical
        >>> revolute_spherical("link", "crank", "arm", length=0.4, axis=(0.0, 0.0, 1.0)).numbers.length
        0.4
    """
    return joint(
        "revolute_spherical", name, first, second, None, True, at=at, on=on, length=length, axis=axis,
        forms={"axis": AXIS, "length": LENGTH},
    )  # fmt: skip


def _residuals(scene: Scene, part: Part, numbers: Any) -> list[Any]:
    gone = separation(scene, part, numbers)
    along = space.turned(scene.frame(part.bodies[0]).turn, axis_of(numbers, 3))
    return [space.size(gone) - numbers.length, space.dot(along, gone)]


REVOLUTE_SPHERICAL = JointKind(
    name="revolute_spherical", rows={3: ("length", "axis")}, residuals=_residuals, framed=False,
    drawn="line",
)  # fmt: skip
