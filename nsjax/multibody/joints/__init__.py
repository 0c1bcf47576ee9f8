"""Kinds of joints, one file for each. A new joint is a file with a `JointKind`, and an entry here."""

from __future__ import annotations

from nsjax.multibody.joints.ball import BALL, ball
from nsjax.multibody.joints.cylindrical import CYLINDRICAL, cylindrical
from nsjax.multibody.joints.distance import DISTANCE, distance
from nsjax.multibody.joints.fixed import FIXED, fixed
from nsjax.multibody.joints.free import FREE
from nsjax.multibody.joints.hinge import HINGE, hinge, pin
from nsjax.multibody.joints.joint_kind import JointKind
from nsjax.multibody.joints.revolute_spherical import REVOLUTE_SPHERICAL, revolute_spherical
from nsjax.multibody.joints.rolling import ALONE, ROLLING, rolling
from nsjax.multibody.joints.screw import SCREW, screw
from nsjax.multibody.joints.slide import SLIDE, slide
from nsjax.multibody.joints.universal import UNIVERSAL, universal
from nsjax.multibody.parts import Part, registered

KINDS: dict[str, JointKind] = {
    x.name: x
    for x in (
        HINGE, SLIDE, BALL, UNIVERSAL, CYLINDRICAL, SCREW, FIXED, DISTANCE, REVOLUTE_SPHERICAL, ROLLING,
        ALONE,
    )
}  # fmt: skip
"""Kinds of joints by the kinds of their parts."""

__all__ = [
    "FREE", "KINDS", "JointKind", "ball", "cylindrical", "distance", "fixed", "hinge", "kind_of", "pin",
    "revolute_spherical", "rolling", "screw", "slide", "universal",
]  # fmt: skip


def kind_of(part: Part) -> JointKind:
    """The kind of a joint."""
    return registered(KINDS, part.kind)
