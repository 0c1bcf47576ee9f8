"""Meshes of eight-node hexahedra of any form: reading, checks, and constants of the elements."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from nsjax.core.arguments import file_path
from nsjax.core.errors import InputError, nearest, optional
from nsjax.fem.hexahedron import CORNERS, POINTS, shape_gradients

VTK_CORNERS = (0, 4, 3, 7, 1, 5, 2, 6)
"""For each corner of `nsjax.fem.hexahedron.CORNERS` its index in the order of files: around the lower face,
then around the upper one."""

FACES = ((0, 3, 2, 1), (4, 5, 6, 7), (0, 1, 5, 4), (1, 2, 6, 5), (2, 3, 7, 6), (3, 0, 4, 7))
"""Corners around each face, seen from outside, by their indices in the order of files."""

ENDS = ("x_min", "x_max", "y_min", "y_max", "z_min", "z_max")
"""Sets that every mesh has: nodes within `FLAT` times its size of its ends along the axes."""

OWN_OF_GMSH = "gmsh:"
"""Prefix of Gmsh's names of mesh data that are not sets of nodes."""

BOUNDARY = ("vertex", "line", "quad")
"""Kinds of cells beside hexahedra that may define sets."""


@dataclasses.dataclass(frozen=True, eq=False)
class SolidMesh:
    """Nodes, elements and named sets of nodes; made by `read_mesh` or by hand.

    Args:
        places: positions of the nodes without load (nodes, 3) [m].
        elements: nodes of the elements (elements, 8) in the order of VTK, Abaqus and Gmsh: around the lower
            face, then around the upper one.
        sets: node numbers of each set, by its name.

    Raises:
        InputError: for wrong shapes, node numbers out of range, nodes that belong to no element, and
            elements that are flat or inverted.

    Example:
        >>> import numpy as np
        >>> from nsjax.fem import SolidMesh
        >>> x = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]], float)
        >>> mesh = SolidMesh(np.concatenate([x, x + [0, 0, 1]]), np.arange(8)[None], {"feet": np.arange(4)})
        >>> round(float(mesh.volumes.sum()), 12), mesh.nodes("z_max").tolist()
        (1.0, [4, 5, 6, 7])
    """

    places: np.ndarray
    elements: np.ndarray
    sets: Mapping[str, np.ndarray] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        places, elements = np.asarray(self.places, float), np.asarray(self.elements)
        object.__setattr__(self, "places", places)
        object.__setattr__(self, "elements", elements)
        found = {name: np.unique(np.asarray(nodes, int)) for name, nodes in self.sets.items()}
        object.__setattr__(self, "sets", found)
        check_mesh(self)

    @property
    def corners(self) -> np.ndarray:
        """Nodes of the elements (elements, 8) in the order of `nsjax.fem.hexahedron.CORNERS`."""
        return np.asarray(self.elements[:, list(VTK_CORNERS)])

    @property
    def _jacobians(self) -> np.ndarray:
        """Jacobians ``dX / dxi`` at the Gauss points (elements, points, 3, 3)."""
        return np.asarray(np.einsum("eai,paj->epij", self.places[self.corners], shape_gradients(POINTS)))

    @property
    def volumes(self) -> np.ndarray:
        """Volumes of the Gauss points (8, elements) [m^3]."""
        return np.asarray(np.linalg.det(self._jacobians).T)

    @property
    def gradients(self) -> np.ndarray:
        """Gradients ``dN_a / dX`` at the Gauss points (points, corners, axes, elements) [1/m]."""
        inverse = np.linalg.inv(self._jacobians)
        return np.asarray(np.einsum("paj,epji->paie", shape_gradients(POINTS), inverse))

    @property
    def masses(self) -> np.ndarray:
        """Consistent masses ``sum N_a N_b dV`` (8, 8, elements) for density 1 [m^3]."""
        shapes = np.prod(1.0 + CORNERS[None] * POINTS[:, None], axis=2) / 8.0
        return np.asarray(np.einsum("pa,pb,pe->abe", shapes, shapes, self.volumes))

    @property
    def surface(self) -> np.ndarray:
        """Nodes (faces, 4) around the faces of the surface, which belong to one element only."""
        every = self.elements[:, list(FACES)].reshape(-1, 4)
        _, first, count = np.unique(np.sort(every, axis=1), axis=0, return_index=True, return_counts=True)
        return np.asarray(every[np.sort(first[count == 1])])

    def nodes(self, name: str) -> np.ndarray:
        """Numbers of the nodes of a set, which is in `sets` or one of `ENDS`.

        Raises:
            InputError: for a set that is unknown or empty.
        """
        if name in self.sets:
            found = self.sets[name]
        elif name in ENDS:
            x = self.places[:, "xyz".index(name[0])]
            end = x.min() if name.endswith("min") else x.max()
            # distance of nodes from a plane end over the size of the mesh: files hold at least ten digits
            flat = 1e-9
            found = np.flatnonzero(np.abs(x - end) <= flat * np.ptp(self.places, axis=0).max())
        else:
            known = [*self.sets, *ENDS]
            raise InputError(f"mesh: unknown set {name!r}; {nearest(str(name), known)}")
        if not len(found):
            raise InputError(f"mesh: set {name!r} has no nodes; mark its faces or nodes in the file")
        return found


def _some(which: np.ndarray) -> str:
    """Text with the first three entries of a list."""
    shown = ", ".join(str(int(k)) for k in which[:3])
    return shown + (", ..." if len(which) > 3 else "")


def check_mesh(mesh: SolidMesh) -> None:
    """Refuses invalid meshes, see `SolidMesh`."""
    places, elements, n = mesh.places, mesh.elements, len(mesh.places)
    if places.ndim != 2 or places.shape[1:] != (3,) or not np.isfinite(places).all():
        raise InputError(f"mesh: places of shape {places.shape}; give finite numbers (nodes, 3)")
    if elements.ndim != 2 or elements.shape[1:] != (8,) or not len(elements):
        raise InputError(f"mesh: elements of shape {elements.shape}; give eight nodes each, (elements, 8)")
    if not np.issubdtype(elements.dtype, np.integer) or elements.min() < 0 or elements.max() >= n:
        raise InputError(f"mesh: elements name nodes that are not among 0 to {n - 1}; number them from 0")
    for name, nodes in mesh.sets.items():
        if len(nodes) and (nodes.min() < 0 or nodes.max() >= n):
            raise InputError(
                f"mesh: set {name!r} names nodes that are not among 0 to {n - 1}; number them from 0"
            )
    alone = np.setdiff1d(np.arange(n), elements)
    if len(alone):
        raise InputError(
            f"mesh: {len(alone)} nodes belong to no hexahedron (number {_some(alone)}) and would have no "
            "mass; remove them, as meshio.Mesh.remove_orphaned_nodes does"
        )
    least = mesh.volumes.min(axis=0)
    bad = np.flatnonzero(least <= 0.0)
    if len(bad):
        raise InputError(
            f"mesh: {len(bad)} of {len(elements)} elements are flat or turned inside out (number "
            f"{_some(bad)}); give their corners in the order of VTK, around the lower face and then around "
            "the upper one, and straighten elements with corners of more than 180 degrees"
        )


def _flags(values: np.ndarray) -> bool:
    """Whether data of points or cells mark a set: one number per point or cell, 0 or 1."""
    return values.ndim == 1 and bool(np.isin(values, (0, 1)).all()) and bool((values == 1).any())


def _sets(found: Any) -> dict[str, np.ndarray]:
    """Sets of nodes by name, from sets of points and cells, physical groups, and data that are 0 or 1."""
    sets = {name: [np.asarray(x, int)] for name, x in found.point_sets.items()}

    def add(name: str, block: int, which: Any) -> None:
        cells = found.cells[block].data
        sets.setdefault(name, []).append(cells[np.asarray(which, int)].reshape(-1))

    for name, blocks in found.cell_sets.items():
        for block, which in enumerate(blocks):
            if which is not None and len(which) and not name.startswith(OWN_OF_GMSH):
                add(name, block, which)
    for name, values in found.point_data.items():
        if _flags(np.asarray(values)):
            sets.setdefault(name, []).append(np.flatnonzero(values))
    for name, blocks in found.cell_data.items():
        marked = [np.asarray(x) for x in blocks]
        plain = not name.startswith(OWN_OF_GMSH) and all(x.ndim == 1 for x in marked)
        if plain and _flags(np.concatenate(marked)):
            for block, values in enumerate(marked):
                add(name, block, np.flatnonzero(values))
    groups = found.cell_data.get("gmsh:physical", [])
    for name, (tag, dimension) in {k: np.asarray(x)[:2] for k, x in found.field_data.items()}.items():
        for block, values in enumerate(groups):
            if found.cells[block].dim == dimension:
                add(name, block, np.flatnonzero(np.asarray(values) == tag))
    return {name: np.unique(np.concatenate(x)) for name, x in sets.items() if x}


def read_mesh(path: str | os.PathLike[str], *, scale: float = 1.0) -> SolidMesh:
    """Hexahedra and named sets of a file in any format that `meshio` reads (VTK, Gmsh, Abaqus, ...).

    Sets are those of points and of cells (faces, `quad`, included), physical groups of Gmsh, and data of
    points or cells that are 0 or 1. Beside the eight-node hexahedra a file may hold `vertex`, `line` and
    `quad` cells, which serve to define sets only.

    Args:
        path: path of the file.
        scale: factor to metres, 1e-3 for a file in millimetres.

    Raises:
        ImportError: without meshio; names the extra to install.
        InputError: for a file that cannot be read, for other kinds of cells, and for meshes that
            `SolidMesh` refuses.

    Example:
        >>> from nsjax.fem import read_mesh
        >>> read_mesh("no_such_file.vtk")  # doctest: +IGNORE_EXCEPTION_DETAIL
        Traceback (most recent call last):
        nsjax.core.errors.InputError: mesh: no file no_such_file.vtk
    """
    if not file_path(path).is_file():
        raise InputError(f"mesh: no file {os.fspath(path)}; give the path of a mesh")
    meshio = optional("reading meshes needs", "mesh", "meshio")
    try:
        found = meshio.read(path)
    except (meshio.ReadError, SystemExit, ValueError, KeyError) as error:
        raise InputError(f"mesh: {os.fspath(path)} cannot be read by meshio: {error}") from error
    counts: dict[str, int] = {}
    for block in found.cells:
        counts[block.type] = counts.get(block.type, 0) + len(block.data)
    other = [f"{n} {kind}" for kind, n in counts.items() if kind != "hexahedron" and kind not in BOUNDARY]
    if other or "hexahedron" not in counts:
        has = ", ".join(other) or "no hexahedron"
        raise InputError(
            f"mesh: {os.fspath(path)} has {has}; solids are of eight-node hexahedra alone: mesh the body "
            "with those (in Gmsh: transfinite or recombined, first order)"
        )
    elements = np.concatenate([b.data for b in found.cells if b.type == "hexahedron"])
    return SolidMesh(scale * np.asarray(found.points, float), elements.astype(int), _sets(found))
