"""The medium of a model file, water or air, as loads on its bodies."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from nsjax.multibody.files.source import Source
from nsjax.multibody.loads import ellipsoid_drag, fluid_drag
from nsjax.multibody.parts import Part


def resistance(source: Source, b: int, name: str) -> Iterator[Part]:
    """Loads of the medium on a body: as on the box with the body's mass and moments of inertia, or as on
    ellipsoids in place of its geometries.
    """
    model, option = source.model, source.model.opt
    mass = float(model.body_mass[b])
    # smallest number of MuJoCo: the medium does not act on bodies below this mass [kg], and bounds from
    # below the differences of moments that give the edges of the box [kg m^2]
    least = 1e-15
    if not acts(source) or mass < least or not model.body_weldid[b]:
        return
    geoms = ellipsoids(source, b)
    for k, g in enumerate(geoms):
        yield _on_ellipsoid(source, g, f"{name}_medium{k if len(geoms) > 1 else ''}", name)
    if geoms:
        return
    moments = np.array(model.body_inertia[b], float)
    box = np.sqrt(np.maximum(least, np.sum(moments) - 2.0 * moments) / mass * 6.0)
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


def ellipsoids(source: Source, b: int) -> list[int]:
    """Numbers of the geometries of a body on whose ellipsoids the medium acts (``fluidshape``)."""
    model, first = source.model, int(source.model.body_geomadr[b])
    geoms = range(first, first + int(model.body_geomnum[b]))
    return [g for g in geoms if model.geom_fluid[g][0] > 0.0]


def _on_ellipsoid(source: Source, g: int, name: str, body: str) -> Part:
    model, option, kinds = source.model, source.model.opt, source.mujoco.mjtGeom
    size, kind = np.array(model.geom_size[g], float), int(model.geom_type[g])
    if kind == kinds.mjGEOM_SPHERE:
        size = np.full(3, size[0])
    elif kind in (kinds.mjGEOM_CAPSULE, kinds.mjGEOM_CYLINDER):
        half = size[1] + (size[0] if kind == kinds.mjGEOM_CAPSULE else 0.0)
        size = np.array([size[0], size[0], half])
    given, wind = np.array(model.geom_fluid[g], float), np.array(option.wind, float)
    return ellipsoid_drag(
        name, (body, np.array(model.geom_pos[g])), size, density=float(option.density) or None,
        viscosity=float(option.viscosity) or None, wind=wind if np.any(wind) else None,
        turned=source.rotation_vector(source.turn(model.geom_quat[g])), coefficients=given[1:6],
        added=given[6:12] if np.any(given[6:12]) else None,
    )  # fmt: skip
