"""Mechanisms from parts: bodies, joints, springs, loads and contacts, put together by `assemble`."""

from typing import TYPE_CHECKING

from nsjax.lazy import lazily

if TYPE_CHECKING:
    from nsjax.multibody.assemble import assemble
    from nsjax.multibody.beams import beam, circular, rectangular, section
    from nsjax.multibody.changes import Change, change, reaction
    from nsjax.multibody.contacts.distance_fields import distance_field
    from nsjax.multibody.contacts.groups import contact_group
    from nsjax.multibody.contacts.heightfields import heightfield
    from nsjax.multibody.contacts.shape_parts import (
        Shape,
        box,
        capsule,
        contact,
        convex_pieces,
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
    from nsjax.multibody.couplings.coupling_kind import coupling, gear, rack_pinion
    from nsjax.multibody.files import LeftOutWarning, ModelFile, read_mjcf, read_urdf
    from nsjax.multibody.joint_forces import servo
    from nsjax.multibody.joints.ball import ball
    from nsjax.multibody.joints.cylindrical import cylindrical
    from nsjax.multibody.joints.distance import distance
    from nsjax.multibody.joints.fixed import fixed
    from nsjax.multibody.joints.friction_laws import OneWay, Stribeck
    from nsjax.multibody.joints.hinge import hinge, pin
    from nsjax.multibody.joints.revolute_spherical import revolute_spherical
    from nsjax.multibody.joints.rolling import rolling
    from nsjax.multibody.joints.screw import screw
    from nsjax.multibody.joints.slide import slide
    from nsjax.multibody.joints.universal import universal
    from nsjax.multibody.loads.actuator import actuator
    from nsjax.multibody.loads.ellipsoid_drag import ellipsoid_drag
    from nsjax.multibody.loads.fluid_drag import fluid_drag
    from nsjax.multibody.loads.force import force
    from nsjax.multibody.loads.joint_spring import joint_spring
    from nsjax.multibody.loads.joint_tendon import joint_tendon
    from nsjax.multibody.loads.line_load import line_load
    from nsjax.multibody.loads.spring import spring
    from nsjax.multibody.loads.tendon import tendon
    from nsjax.multibody.loads.thruster import thruster
    from nsjax.multibody.loads.torque import torque
    from nsjax.multibody.meshes import Mesh, mesh
    from nsjax.multibody.parts import Part, body
    from nsjax.multibody.sensors import Sensor, sensor

__all__ = [
    "Change", "LeftOutWarning", "Mesh", "ModelFile", "OneWay", "Part", "Sensor", "Shape", "Stribeck",
    "actuator", "assemble", "ball", "beam",
    "body", "box", "capsule", "change", "circular", "contact", "contact_group",
    "convex_pieces", "corners", "coupling",
    "cylinder",
    "cylindrical", "distance", "distance_field", "ellipsoid_drag", "fixed", "fluid_drag", "force", "gear",
    "heightfield",
    "hinge", "hole", "hull", "joint_spring", "joint_tendon", "line_load", "mesh", "pairs_of", "pin",
    "plane",
    "point", "points", "profile", "rack_pinion", "reaction", "read_mjcf", "read_urdf", "rectangular",
    "revolute_spherical", "rolling", "screw", "section", "sensor", "servo", "slide", "sphere",
    "spheres", "spring", "tendon", "thruster", "torque", "tube", "universal", "walls",
]  # fmt: skip

lazily(__name__)
