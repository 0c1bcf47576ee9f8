"""Mechanisms from parts: bodies, joints, springs, loads and contacts, put together by `assemble`."""

from nsjax.multibody.assemble import assemble
from nsjax.multibody.body_sensors import Sensor, sensor
from nsjax.multibody.contacts.groups import contact_group
from nsjax.multibody.contacts.heightfields import heightfield
from nsjax.multibody.contacts.shape_parts import (
    Shape,
    box,
    capsule,
    contact,
    corners,
    cylinder,
    hole,
    hull,
    plane,
    point,
    points,
    profile,
    sphere,
    tube,
    walls,
)
from nsjax.multibody.contacts.spheres import pairs_of, spheres
from nsjax.multibody.couplings import coupling, gear, rack_pinion
from nsjax.multibody.files import LeftOutWarning, ModelFile, read_mjcf, read_urdf
from nsjax.multibody.flexible.beams import beam
from nsjax.multibody.flexible.sections import circular, rectangular, section
from nsjax.multibody.joints import (
    ball,
    cylindrical,
    distance,
    fixed,
    hinge,
    pin,
    revolute_spherical,
    rolling,
    screw,
    slide,
    universal,
)
from nsjax.multibody.loads import (
    actuator,
    ellipsoid_drag,
    fluid_drag,
    force,
    joint_spring,
    joint_tendon,
    line_load,
    spring,
    tendon,
    thruster,
    torque,
)
from nsjax.multibody.loads.servos import servo
from nsjax.multibody.parts import Part, body

__all__ = [
    "LeftOutWarning", "ModelFile", "Part", "Sensor", "Shape", "actuator", "assemble", "ball", "beam",
    "body", "box", "capsule", "circular", "contact", "contact_group", "corners", "coupling", "cylinder",
    "cylindrical", "distance", "ellipsoid_drag", "fixed", "fluid_drag", "force", "gear", "heightfield",
    "hinge", "hole", "hull", "joint_spring", "joint_tendon", "line_load", "pairs_of", "pin", "plane",
    "point", "points", "profile", "rack_pinion", "read_mjcf", "read_urdf", "rectangular",
    "revolute_spherical", "rolling", "screw", "section", "sensor", "servo", "slide", "sphere",
    "spheres", "spring", "tendon", "thruster", "torque", "tube", "universal", "walls",
]  # fmt: skip
