"""Public names of the records in files: a file has public names instead of class paths, so that classes may
move.

A name that a file has used never changes; where its class moves or is renamed, the class path here changes.
"""

from __future__ import annotations

import dataclasses
import importlib
from typing import Any

from nsjax.core import InputError

PLACES = {
    "state": "nsjax.core.system:State",
    "carry": "nsjax.core.scheme:Carry",
    "continuation": "nsjax.trajectory:Continuation",
    "first_failure": "nsjax.trajectory:FirstFailure",
    "impacts": "nsjax.trajectory:Impacts",
    "model.block": "nsjax.models.box:Block",
    "model.bouncing_ball": "nsjax.models.bouncing_ball:BouncingBall",
    "model.elastic_bar": "nsjax.models.elastic_bar:ElasticBar",
    "model.flexible_cube": "nsjax.models.flexible_cube:FlexibleCube",
    "model.flexible_pendulum": "nsjax.models.flexible_pendulum:FlexiblePendulum",
    "model.mass_spring_chain": "nsjax.models.mass_spring_chain:MassSpringChain",
    "model.rubbing_rotor": "nsjax.models.rubbing_rotor:RubbingRotor",
    "model.slider_crank": "nsjax.models.slider_crank:SliderCrank",
    "model.slider_crank_bilateral": "nsjax.models.slider_crank_bilateral:SliderCrankBilateral",
    "model.slider_crank_flexible": "nsjax.models.slider_crank_flexible:SliderCrankFlexible",
    "fem.modes": "nsjax.fem.modes:Modes",
    "multibody.body": "nsjax.multibody.numbers:Body",
    "multibody.joint": "nsjax.multibody.numbers:Joint",
    "multibody.spring": "nsjax.multibody.numbers:Spring",
    "multibody.load": "nsjax.multibody.numbers:Load",
    "multibody.tendon": "nsjax.multibody.loads.lines:Tendon",
    "multibody.coupling": "nsjax.multibody.numbers:Coupling",
    "multibody.pitch": "nsjax.multibody.joints.screw:Pitch",
    "multibody.wheel": "nsjax.multibody.joints.rolling:Wheel",
    "multibody.contact": "nsjax.multibody.numbers:Contact",
    "multibody.points": "nsjax.multibody.numbers:Points",
    "multibody.corners": "nsjax.multibody.numbers:Corners",
    "multibody.ball": "nsjax.multibody.numbers:Ball",
    "multibody.walls": "nsjax.multibody.numbers:Walls",
    "multibody.plane": "nsjax.multibody.numbers:Plane",
    "multibody.round": "nsjax.multibody.numbers:Round",
    "multibody.profile": "nsjax.multibody.numbers:Profile",
    "multibody.tube": "nsjax.multibody.numbers:Tube",
    "multibody.hull": "nsjax.multibody.numbers:Hull",
    "multibody.heightfield": "nsjax.multibody.contacts.heightfields:Heightfield",
    "multibody.curve": "nsjax.multibody.flexible.tubes:Curve",
    "multibody.section": "nsjax.multibody.numbers:Section",
    "multibody.beam": "nsjax.multibody.numbers:Beam",
    "multibody.group_reach": "nsjax.multibody.numbers:GroupReach",
    "multibody.contact_group": "nsjax.multibody.numbers:ContactGroup",
    "memory.impulsive": "nsjax.contact.events:Touch",
    "memory.mixed": "nsjax.schemes.mixed.base_step:Memory",
    "memory.nsga": "nsjax.schemes.nsga.step:NsgaMemory",
    "input.driven": "nsjax.core.inputs:DrivenParams",
    "input.table": "nsjax.core.tables:SampledSignal",
    "input.segment": "nsjax.core.tables:Segment",
    "input.filtered": "nsjax.core.filters:FilteredParams",
    "multibody.actuator": "nsjax.multibody.files.actuators:Servo",
    "multibody.servo": "nsjax.multibody.loads.servos:ServoNumbers",
    "multibody.thruster": "nsjax.multibody.numbers:Thruster",
    "multibody.ellipsoid_drag": "nsjax.multibody.loads.ellipsoid_drag:Ellipsoid",
    "multibody.spheres": "nsjax.multibody.contacts.spheres:Numbers",
    "memory.pairs": "nsjax.core.pairs:PairMemory",
    "memory.whole": "nsjax.core.chosen:WholeMemory",
    "memory.remembered": "nsjax.schemes.impulses.impulse_step:ImpulseMemory",
    "memory.carried": "nsjax.contact.equations:CarriedTangent",
    "memory.tangent": "nsjax.contact.bordered:StageTangent",
    "linalg.inverse": "nsjax.linalg.structure:Inverse",
    "linalg.triangles": "nsjax.linalg.structure:Triangles",
    "linalg.eliminated": "nsjax.linalg.structure:EliminatedTridiagonal",
    "linalg.tridiagonal": "nsjax.linalg.tridiagonal:Tridiagonal",
    "linalg.factors": "nsjax.linalg.tridiagonal:Factors",
    "linalg.block_tridiagonal": "nsjax.linalg.structure:BlockTridiagonal",
    "linalg.dense": "nsjax.linalg.structure:Dense",
    "linalg.sparse": "nsjax.linalg.structure:Sparse",
    "linalg.pattern": "nsjax.linalg.sparse:Pattern",
    "linalg.blocks": "nsjax.linalg.blocks:Blocks",
    "linalg.paired": "nsjax.linalg.paired:Paired",
    "linalg.block_diagonal": "nsjax.linalg.diagonal:BlockDiagonal",
    "linalg.block_inverse": "nsjax.linalg.diagonal:BlockInverse",
    "linalg.saddle": "nsjax.linalg.interleaved:Saddle",
    "linalg.interleaved": "nsjax.linalg.interleaved:Interleaved",
    "linalg.lattice": "nsjax.linalg.lattice:Lattice",
    "linalg.arrow": "nsjax.linalg.arrow:Arrow",
    "linalg.eliminated_arrow": "nsjax.linalg.arrow:EliminatedArrow",
}
"""Public name of every record, and the present path of its class."""

VERSION_0_1 = {
    "nsjax.core.system:State": "state",
    "nsjax.core.scheme:Carry": "carry",
    "nsjax.trajectory:Continuation": "continuation",
    "nsjax.trajectory:FirstFailure": "first_failure",
    "nsjax.trajectory:Impacts": "impacts",
    "nsjax.models.box:Block": "model.block",
    "nsjax.models.bouncing_ball:BouncingBall": "model.bouncing_ball",
    "nsjax.models.elastic_bar:ElasticBar": "model.elastic_bar",
    "nsjax.models.mass_spring_chain:MassSpringChain": "model.mass_spring_chain",
    "nsjax.models.rubbing_rotor:RubbingRotor": "model.rubbing_rotor",
    "nsjax.models.slider_crank:SliderCrank": "model.slider_crank",
    "nsjax.models.slider_crank:SliderCrankBilateral": "model.slider_crank_bilateral",
    "nsjax.models.slider_crank_flexible:SliderCrankFlexible": "model.slider_crank_flexible",
    "nsjax.fem.modes:Modes": "fem.modes",
    "nsjax.schemes.impulsive:Resting": "memory.impulsive",
    "nsjax.schemes.base_step:Memory": "memory.mixed",
    "nsjax.schemes.nsga_step:Memory": "memory.nsga",
}
"""Class paths in files of version 0.1, with their public names; the table does not change any more."""


def public_name(cls: type[Any]) -> str:
    """The name of a record in a file: from the table, or ``module:Class`` for a user's own.

    Example:
        >>> from nsjax.core import State
        >>> from nsjax.io.names import public_name
        >>> public_name(State)
        'state'
    """
    place = f"{cls.__module__}:{cls.__qualname__}"
    return next((name for name, known in PLACES.items() if known == place), place)


def find_record(name: str) -> type[Any]:
    """The record type of a name in a file. Only modules of the table are imported, since a file must not
    run code; the module of a user's record must be imported already.

    Args:
        name: from `public_name`, or a class path: of version 0.1, or of a class that got its name later.

    Raises:
        InputError: for a record type that does not exist (any more).

    Example:
        >>> from nsjax.io.names import find_record
        >>> find_record("state").__name__, find_record("nsjax.core.system:State").__name__
        ('State', 'State')
    """
    place = PLACES.get(VERSION_0_1.get(name, name), name)
    if place not in PLACES.values():
        raise InputError(
            f"the saved record {name} does not exist in this version; read it with the "
            "version that wrote it"
        )
    module_name, _, qualified = place.partition(":")
    found: Any = getattr(importlib.import_module(module_name), qualified)
    return found


def is_record(value: Any) -> bool:
    """Whether a class is a dataclass or a named tuple."""
    return isinstance(value, type) and (dataclasses.is_dataclass(value) or hasattr(value, "_fields"))
