"""Finite elements: beam elements, quadrature, assembly, modes, and a rod in a floating frame."""

from nsjax.fem.beam import UnitRod, assemble, rod_shapes, shape_functions, strains, unit_rod
from nsjax.fem.modes import CONDITIONS, Modes, UnitModes, unit_modes, vibrations
from nsjax.fem.quadrature import gauss, integrate
from nsjax.fem.rod import FRAMES, FloatingRod, RodBasis, RodData

__all__ = [
    "CONDITIONS",
    "FRAMES",
    "FloatingRod",
    "Modes",
    "RodBasis",
    "RodData",
    "UnitModes",
    "UnitRod",
    "assemble",
    "gauss",
    "integrate",
    "rod_shapes",
    "shape_functions",
    "strains",
    "unit_modes",
    "unit_rod",
    "vibrations",
]
