"""The medium of a model file, water or air, as loads on its bodies."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from nsjax.multibody.files.source import Source
from nsjax.multibody.loads import fluid_drag
from nsjax.multibody.parts import Part

LEAST = 1e-15
"""Smallest number of MuJoCo: the medium does not act on bodies below this mass [kg], and bounds from below
the differences of moments that give the edges of the box [kg m^2].
"""


def resistance(source: Source, b: int, name: str) -> Iterator[Part]:
    """Load of the medium on a body, as on the box with the body's mass and moments of inertia."""
    model, option = source.model, source.model.opt
    mass = float(model.body_mass[b])
    if not acts(source) or mass < LEAST or not model.body_weldid[b] or ellipsoid(source, b):
        return
    moments = np.array(model.body_inertia[b], float)
    box = np.sqrt(np.maximum(LEAST, np.sum(moments) - 2.0 * moments) / mass * 6.0)
    wind = np.array(option.wind, float)
    turned = source.rotation_vector(source.turn(model.body_iquat[b]))
    yield fluid_drag(
        f"{name}_medium", (name, np.array(model.body_ipos[b])), box,
        density=float(option.density) or None, viscosity=float(option.viscosity) or None,
        wind=wind if np.any(wind) else None, turned=turned,
    )  # fmt: skip


def acts(source: Source) -> bool:
    """Whether the file has a medium that acts; disabled springs and dampers together switch it off."""
    option = source.model.opt
    return bool(option.density or option.viscosity) and not (source.off("spring") and source.off("damper"))


def ellipsoid(source: Source, b: int) -> bool:
    """Whether the medium acts on ellipsoids of a body's geometries (``fluidshape``)."""
    model = source.model
    first = int(model.body_geomadr[b])
    return any(bool(model.geom_fluid[first + k][0] > 0.0) for k in range(int(model.body_geomnum[b])))
