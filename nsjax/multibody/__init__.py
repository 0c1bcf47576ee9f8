"""Mechanisms from parts: bodies, joints, springs, loads and contacts, put together by `assemble`."""

from nsjax.multibody.assemble import assemble
from nsjax.multibody.beams import beam, circular, rectangular, section
from nsjax.multibody.elements import actuator, force, joint_spring, spring, torque
from nsjax.multibody.parts import (
    Part,
    ball,
    body,
    cylindrical,
    distance,
    fixed,
    hinge,
    pin,
    revolute_spherical,
    slide,
    universal,
)
from nsjax.multibody.touching import Shape, contact, corners, plane, point, points, sphere, walls

__all__ = [
    "Part", "Shape", "actuator", "assemble", "ball", "beam", "body", "circular", "contact", "corners",
    "cylindrical", "distance", "fixed", "force", "hinge", "joint_spring", "pin", "plane", "point",
    "points", "rectangular", "revolute_spherical", "section", "slide", "sphere", "spring", "torque",
    "universal", "walls",
]  # fmt: skip
