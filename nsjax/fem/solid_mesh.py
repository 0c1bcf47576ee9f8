"""Meshes of eight-node hexahedra of any form, and assumed-stress elements, which do not lock."""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.core.arguments import file_path
from nsjax.core.errors import InputError, check_known, optional
from nsjax.fem.hexahedron import (
    CORNERS,
    POINTS,
    cofactors,
    determinant,
    energy_density,
    green_strain,
    piola,
    product,
    shape_gradients,
    trace,
)
from nsjax.linalg import matmul
from nsjax.types import Array, Fn, record

# Eight-node assumed-stress hexahedra, which do not lock: material law at the mean deformation, plus a
# bending energy condensed in closed form.
#
# A trilinear displacement field bends with a spurious shear and change of volume, so that displacement
# elements (`nsjax.fem.hexahedron`) are too stiff. Here the stress within an element is assumed as well:
# its mean plus a sum of the twelve modes ``S_a`` of Pian and Tong for bending and twist. Stationary with
# respect to the stress (Hellinger and Reissner's principle), the energy of an element of volume ``V``
# is::
#
#     W = V (w(F_m) + 1/2 sum_a c_a g_a^2),   g_a = <S_a : F_m^-1 (F - F_m)>,   c_a = 2 mu / (1 - k t_a)
#
# with the energy density ``w`` of the material, means ``<.>`` over the volume, ``F_m = <F>``, and ``k =
# lambda / (3 lambda + 2 mu)``. The modes are combined so that ``<S_a : S_b> = d_ab`` and ``<tr S_a tr
# S_b> = t_a d_ab``: the compliance of any isotropic material is then diagonal, and no linear system has
# to be solved. For small strains the element is that of Pian and Tong, which equals the element of
# enhanced strains (Stolarski and Chen); rigid motions change ``F_m`` alone.
#
# * Patch test: ``<S_a> = 0``, and a uniform ``F`` has no bending energy, whatever the form of the element.
# * Rank: the nine entries of ``F_m`` and the twelve ``g`` see all 21 motions that are not translations, so
#   that only the six rigid motions have no stiffness.
# * The bending energy has its minimum where ``F`` is uniform, under any compression: no hourglass modes.
#
# Source: T. H. H. Pian, P. Tong: Relations between incompatible displacement model and hybrid stress
# model, Int. J. Numer. Meth. Engng. 22 (1986) 173-181, for the modes; T. Belytschko, L. P. Bindeman:
# Assumed strain stabilization of the eight node hexahedral element, Comput. Methods Appl. Mech. Engrg.
# 105 (1993) 225-260, for the split.


HOURGLASS = np.stack([np.prod(np.delete(CORNERS, k, axis=1), axis=1) for k in range(3)]
                     + [np.prod(CORNERS, axis=1)])  # fmt: skip
"""Nodal values (4, 8) of ``eta zeta``, ``xi zeta``, ``xi eta``, ``xi eta zeta``."""


@record()
class ElementTables:
    """Constant data of the elements, computed once from a mesh or from the edges of a brick.

    The last axis counts elements. If all elements are equal, ``views`` and ``bending`` lack this axis, and
    it has length 1 in the other tables.

    Args:
        volume: (elements,) [m^3].
        views: (7, 8[, elements]) maps the positions of the corners to the columns of ``F_m`` [1/m] and to
            four hourglass vectors, which vanish for affine motions.
        bending: (12, 12[, elements]) maps ``F_m^-1`` times the hourglass vectors to ``g`` [1/m].
        ratios: ``t`` (12, elements), from 0 (mode without pressure) to 3.
        modes: ``S_a`` at the Gauss points (12, 3, 3, 8, elements).
    """

    volume: Any
    views: Any
    bending: Any
    ratios: Any
    modes: Any


def _natural_modes() -> np.ndarray:
    """Pian and Tong's modes (12, 3, 3, 8) in the axes of the cube: normal stresses that vary across their
    own direction, ``s11 = eta, zeta, eta zeta``, and shears that vary along the third, ``s12 = zeta``.
    """
    found = []
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        x, y = POINTS[:, j], POINTS[:, k]
        for value in (x, y, x * y):
            mode = np.zeros((3, 3, 8))
            mode[i, i] = value
            found.append(mode)
        mode = np.zeros((3, 3, 8))
        mode[i, j] = mode[j, i] = POINTS[:, k]
        found.append(mode)
    return np.stack(found)


def stress_modes(middle: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Stress modes ``S_a`` (12, 3, 3, 8, elements), orthonormal and of mean zero, and the ratios ``t``
    (12, elements) of their squared traces.

    Args:
        middle: ``dX / dxi`` in the middle of the elements (elements, 3, 3): the modes are those of the cube
            in convected axes.
        weights: shares of the Gauss points in the volume (8, elements).
    """
    natural = np.einsum("eIi,eJj,aijp->aIJpe", middle, middle, _natural_modes())
    natural = natural / np.sqrt(np.mean(np.sum(natural**2, axis=(1, 2)), axis=1))[:, None, None, None]
    natural = natural - np.einsum("aIJpe,pe->aIJe", natural, weights)[:, :, :, None]
    traces = np.einsum("aIIpe->ape", natural)
    squares = np.einsum("aIJpe,bIJpe,pe->eab", natural, natural, weights)
    pressures = np.einsum("ape,bpe,pe->eab", traces, traces, weights)
    lower = np.linalg.cholesky(squares)
    turned = np.linalg.solve(lower, np.swapaxes(np.linalg.solve(lower, pressures), 1, 2))
    ratios, vectors = np.linalg.eigh(0.5 * (turned + np.swapaxes(turned, 1, 2)))
    mix = np.linalg.solve(np.swapaxes(lower, 1, 2), vectors)
    return np.einsum("aIJpe,eab->bIJpe", natural, mix), ratios.T


def mesh_tables(corners: np.ndarray, gradients: np.ndarray, volumes: np.ndarray) -> ElementTables:
    """Tables of a mesh from positions of its corners (8, 3, elements) [m], gradients and volumes."""
    volume = volumes.sum(axis=0)
    weights = volumes / volume
    mean = np.einsum("paIe,pe->Iae", gradients, weights)
    affine = np.einsum("ka,aIe->kIe", HOURGLASS, corners)
    hourglass = (HOURGLASS[:, :, None] - np.einsum("kIe,Iae->kae", affine, mean)) / 8.0
    modes, ratios = stress_modes(np.einsum("aIe,aj->eIj", corners, CORNERS / 8.0), weights)
    nodal = np.einsum("aJIpe,pnIe,pe->eaJn", modes, gradients, weights)
    square = np.einsum("kne,lne->ekl", hourglass, hourglass)
    along = np.einsum("eaJn,kne->eaJk", nodal, hourglass).reshape(*nodal.shape[:1], 36, 4)
    bending = np.swapaxes(np.linalg.solve(square, np.swapaxes(along, 1, 2)), 1, 2)
    bending = np.moveaxis(bending.reshape(-1, 12, 3, 4), (0, 3), (3, 1)).reshape(12, 12, -1)
    return ElementTables(
        volume=volume, views=np.concatenate([mean, hourglass]), bending=bending, ratios=ratios, modes=modes
    )


@functools.cache
def _cube_tables() -> tuple[ElementTables, np.ndarray]:
    """Tables of the cube of edges 2, and its `ElementTables.bending` split by the axis of the gradient
    (12, 12, 3), since the edges of a brick scale each of the three parts by another factor.
    """
    weights = np.full((8, 1), 0.125)
    modes, ratios = stress_modes(np.eye(3)[None], weights)
    slopes = np.einsum("ka,paI->pkI", HOURGLASS, shape_gradients(POINTS))
    bending = np.einsum("aJIp,pkI->akJI", modes[..., 0], slopes).reshape(12, 12, 3) / 8.0
    views = np.concatenate([CORNERS.T, HOURGLASS]) / 8.0
    return ElementTables(volume=1.0, views=views, bending=0.0, ratios=ratios, modes=modes), bending


def brick_tables(edges: Array) -> ElementTables:
    """Tables of equal bricks with edges (3,) [m], which may be traced."""
    cube, bending = _cube_tables()
    scale = 2.0 / edges
    return ElementTables(
        volume=(edges[0] * edges[1] * edges[2]).reshape(1),
        views=cube.views * jnp.concatenate([scale, jnp.ones(4)])[:, None],
        bending=jnp.sum(bending * scale, axis=2), ratios=cube.ratios, modes=cube.modes,
    )  # fmt: skip


def _mapped(table: Any, x: Array) -> Array:
    """Table (m, n[, elements]) times vectors (n, ..., elements)."""
    if table.ndim == 2:
        return matmul(jnp.asarray(table), x.reshape(x.shape[0], -1)).reshape(-1, *x.shape[1:])
    each = table.reshape(*table.shape[:2], *[1] * (x.ndim - 2), -1)
    return jnp.sum(each * x[None], axis=1)


def _turned_back(table: Any) -> Any:
    """The transposed table."""
    return table.swapaxes(0, 1)


@jax.custom_jvp
def inverse(f: Array) -> Array:
    """Inverses of matrices (3, 3, ...)."""
    return jnp.swapaxes(cofactors(f), 0, 1) / determinant(f)


@inverse.defjvp
def _inverse_rule(primals: Any, tangents: Any) -> tuple[Array, Array]:
    found = inverse(*primals)
    return found, -product(product(found, tangents[0]), found)


def _moduli(tables: ElementTables, first: Array, shear: Array) -> Array:
    """``c`` (12, elements) [N/m^2]."""
    return 2.0 * shear / (1.0 - first / (3.0 * first + 2.0 * shear) * tables.ratios)


def _bent(places: Array, tables: ElementTables) -> tuple[Array, Array, Array, Array]:
    """``F_m``, its inverse and product with hourglass vectors (3, 4, elements), ``g`` (12, elements)."""
    # mean deformation gradients (3, 3, elements), and hourglass vectors as columns (3, 4, elements)
    found = jnp.swapaxes(_mapped(tables.views, places), 0, 1)
    f, hourglass = found[:, :3], found[:, 3:]
    back = inverse(f)
    pulled = product(back, hourglass)
    entries = jnp.swapaxes(pulled, 0, 1).reshape(12, -1)
    return f, back, pulled, _mapped(tables.bending, entries)


def element_energies(places: Array, tables: ElementTables, material: Fn, *constants: Array) -> Array:
    """Strain energies of the elements (elements,) [J].

    Args:
        places: positions of the corners (8, 3, elements) [m].
        tables: tables of the elements.
        material: energy density, one of `nsjax.fem.hexahedron.MATERIALS`.
        constants: Lame's ``lambda, mu`` [N/m^2].
    """
    f, _, _, g = _bent(places, tables)
    bending = 0.5 * jnp.sum(_moduli(tables, *constants) * g * g, axis=0)
    return tables.volume * (energy_density(material, f, *constants) + bending)


def element_forces(places: Array, tables: ElementTables, material: Fn, *constants: Array) -> Array:
    """Derivatives (8, 3, elements) [N] of `element_energies` with respect to the corners' positions."""
    f, back, pulled, g = _bent(places, tables)
    stress = _mapped(_turned_back(tables.bending), _moduli(tables, *constants) * g)
    # derivative by the hourglass vectors (3, 4, elements); that by F_m acts through F_m^-1
    pushed = product(jnp.swapaxes(back, 0, 1), jnp.swapaxes(stress.reshape(4, 3, -1), 0, 1))
    mean = piola(material, f, *constants) - product(pushed, jnp.swapaxes(pulled, 0, 1))
    both = jnp.swapaxes(jnp.concatenate([mean, pushed], axis=1), 0, 1)
    return _mapped(_turned_back(tables.views), tables.volume * both)


def assumed_fields(
    places: Array, tables: ElementTables, material: Fn, *constants: Array
) -> tuple[Array, Array]:
    """True stresses [N/m^2] and Green's strains (3, 3, 8, elements) at the Gauss points: those of ``F_m``,
    plus the assumed bending stresses and the strains that the material law assigns to them.
    """
    first, shear = constants
    f, back, _, g = _bent(places, tables)
    assumed = jnp.sum(tables.modes * (_moduli(tables, first, shear) * g)[:, None, None, None], axis=0)
    turn, unit = jnp.swapaxes(f, 0, 1), np.eye(3)[:, :, None, None]
    pushed = product(product(jnp.swapaxes(back, 0, 1)[:, :, None], assumed), turn[:, :, None])
    mean = product(piola(material, f, *constants), turn)[:, :, None]
    stress = (mean + 0.5 * (pushed + jnp.swapaxes(pushed, 0, 1))) / determinant(f)
    pressure = first / (3.0 * first + 2.0 * shear) * trace(assumed)
    strain = green_strain(f)[:, :, None] + (assumed - pressure * unit) / (2.0 * shear)
    return stress, strain


# Meshes of eight-node hexahedra of any form: reading, checks, and constants of the elements.


FACES = ((0, 3, 2, 1), (4, 5, 6, 7), (0, 1, 5, 4), (1, 2, 6, 5), (2, 3, 7, 6), (3, 0, 4, 7))
"""Corners around each face, seen from outside, by their indices in the order of files."""

ENDS = ("x_min", "x_max", "y_min", "y_max", "z_min", "z_max")
"""Sets that every mesh has: nodes at its ends along the axes, within 1e-9 of its size."""

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
        # for each corner of `nsjax.fem.hexahedron.CORNERS` its index in the order of files: around the
        # lower face, then around the upper one
        return np.asarray(self.elements[:, [0, 4, 3, 7, 1, 5, 2, 6]])

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
        check_known("mesh: unknown set", name, [*self.sets, *ENDS])
        if name in self.sets:
            found = self.sets[name]
        else:
            x = self.places[:, "xyz".index(name[0])]
            end = x.min() if name.endswith("min") else x.max()
            # distance of nodes from a plane end over the size of the mesh: files hold at least ten digits
            flat = 1e-9
            found = np.flatnonzero(np.abs(x - end) <= flat * np.ptp(self.places, axis=0).max())
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
