"""Meshes that the package `mujoco` refuses, and that other programs read: STL files in ASCII, and meshes
without volume, which may give shapes but no inertia.
"""

from __future__ import annotations

import pathlib
import re
from typing import Any

import numpy as np

FORMATS = (".stl", ".obj", ".msh")
"""Endings of the names of files that are read as meshes."""

THIN = r"mesh volume is too small|mesh volume is negative|coplanar vertices"
"""Pattern of the package's messages about meshes without volume."""

NAMED = r"Element name '([^']+)'"

NUMBER = rb"[-+]?[\d.]+(?:[eE][-+]?\d+)?"
VERTEX = re.compile(rb"\bvertex\s+(" + rb")\s+(".join([NUMBER] * 3) + rb")")
"""A vertex of an STL file in ASCII."""


def read_as_text(asset: Any, path: pathlib.Path) -> None:
    """Replaces the file of a mesh by its vertices and faces, if it is an STL file in ASCII."""
    if path.suffix.lower() != ".stl":
        return
    with path.open("rb") as file:
        if file.read(5).lower() != b"solid":
            return
        content = file.read()
    if b"facet" not in content[:1000]:  # a binary file may begin with the word, too
        return
    corners = np.array(VERTEX.findall(content), float).reshape(-1, 3)
    if not len(corners) or len(corners) % 3:
        return
    points, faces = np.unique(corners, axis=0, return_inverse=True)
    asset.uservert, asset.userface, asset.file = points.reshape(-1), faces.reshape(-1).astype(int), ""


def without_volume(mujoco: Any, spec: Any, said: str, weighs: Any) -> list[str] | None:
    """Sentences about a mesh without volume, which then is read as a shell, or left out if it is flat; None
    for another error.

    Args:
        mujoco: the package.
        spec: `mujoco.MjSpec`, which is changed.
        said: message of the error.
        weighs: function that tells whether a body takes inertia from a geometry.
    """
    named = re.search(NAMED, said)
    mesh = spec.mesh(named.group(1)) if named and re.search(THIN, said) else None
    users = [] if mesh is None else [g for g in spec.geoms if g.meshname == mesh.name]
    if mesh is None or any(weighs(g) for g in users):
        return None
    shell = mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL
    if "coplanar" not in said and mesh.inertia != shell:
        mesh.inertia = shell
        return []
    for thing in [*users, mesh]:
        spec.delete(thing)
    return [f"mesh {mesh.name!r} is flat and is left out, with the shapes that use it"]
