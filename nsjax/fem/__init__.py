"""Finite elements: beam elements, quadrature, assembly, modes, and a rod in a floating frame."""

from typing import TYPE_CHECKING

from nsjax.lazy import lazily

if TYPE_CHECKING:
    from nsjax.fem.beam import (
        UnitRod,
        assemble,
        gauss,
        integrate,
        rod_shapes,
        shape_functions,
        strains,
        unit_rod,
    )
    from nsjax.fem.rod import (
        CONDITIONS,
        FRAMES,
        FloatingRod,
        Modes,
        RodBasis,
        RodData,
        UnitModes,
        unit_modes,
        vibrations,
    )
    from nsjax.fem.solid_mesh import SolidMesh, read_mesh
    from nsjax.fem.spatial_beams import (
        History,
        carried,
        committed,
        incremental_energy,
        incremental_strains,
        node_axes,
        objective_energy,
        objective_forces,
        objective_strains,
        placed,
        point_forces,
        point_strains,
        relative_rotation,
        section_axes,
        started,
    )

__all__ = [
    "CONDITIONS", "FRAMES", "FloatingRod", "History", "Modes", "RodBasis", "RodData", "SolidMesh",
    "UnitModes", "UnitRod", "assemble", "carried", "committed", "gauss", "incremental_energy",
    "incremental_strains", "integrate", "node_axes", "objective_energy", "objective_forces",
    "objective_strains", "placed", "point_forces", "point_strains", "read_mesh", "relative_rotation",
    "rod_shapes", "section_axes", "shape_functions", "started", "strains", "unit_modes", "unit_rod",
    "vibrations",
]  # fmt: skip

lazily(__name__)
