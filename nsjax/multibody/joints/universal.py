"""Universal joints: rotations about two perpendicular axes, one of each body."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from nsjax.core import InputError
from nsjax.forms import form_of
from nsjax.math import rotations
from nsjax.multibody.coordinates import spatial_vectors as space
from nsjax.multibody.coordinates.frames import Scene
from nsjax.multibody.joints.joint_kind import JointKind, axis_of, components, joint, separation
from nsjax.multibody.numbers import Joint
from nsjax.multibody.parts import AXIS, UNIT_TOLERANCE, Part, number, unit
from nsjax.types import is_traced


def universal(
    name: str, first: str, second: str, *, axis: Any, second_axis: Any, at: Any = None, on: Any = None,
    turned: Any = None, loop: bool = False,
) -> Part:  # fmt: skip
    """A universal (Hooke) joint: ``axis`` of the first body stays perpendicular to ``second_axis`` of the
    second. In space.

    Args:
        name, first, second, at, on, turned, loop: see `hinge`.
        axis, second_axis: unit vectors in the axes of the first and of the second body; at zero
            coordinates, with ``turned``, they must be perpendicular.

    Raises:
        InputError: for axes that are not perpendicular.

    Example:
        >>> from nsjax.multibody import universal
        >>> universal("cross", "ground", "shaft", axis=(0, 1, 0), second_axis=(0, 0, 1)).kind
        'universal'
    """
    axis = unit("universal", name, "axis", axis, AXIS)
    second_axis = unit("universal", name, "second_axis", second_axis, AXIS)
    turned = number("universal", name, "turned", turned, form=form_of(Joint, "turned"))
    if not is_traced((axis, second_axis, turned)):
        by = jnp.zeros(3) if turned is None else jnp.asarray(turned, float)
        frame = rotations.matrix(rotations.exponential(by))
        lean = float(np.asarray(axis, float) @ np.asarray(frame) @ np.asarray(second_axis, float))
        if abs(lean) > UNIT_TOLERANCE:
            raise InputError(
                f"universal {name!r}: axis and second_axis form {np.degrees(np.arccos(lean)):.6g} degrees "
                "at coordinates zero; they must be perpendicular: change an axis, or give turned"
            )
    return joint(
        "universal", name, first, second, None, loop, at=at, on=on, axis=axis, second_axis=second_axis,
        turned=turned, forms={"axis": AXIS, "second_axis": AXIS},
    )  # fmt: skip


def _residuals(scene: Scene, part: Part, numbers: Any) -> list[Any]:
    first, second = (scene.frame(x) for x in part.bodies)
    along = space.turned(first.turn, axis_of(numbers, 3))
    other = space.turned(second.turn, jnp.asarray(numbers.second_axis, float))
    return [*components(scene, separation(scene, part, numbers)), space.dot(along, other)]


def _back(axis: Any, second: Any, frame: Any) -> tuple[Any, Any]:
    return -second, -axis


UNIVERSAL = JointKind(
    name="universal", rows={3: ("x", "y", "z", "tilt")}, residuals=_residuals, sizes={3: (2, 2)},
    turns=("axis", "second_axis"), framed=False, back=_back,
)  # fmt: skip
