"""Eight-node assumed-stress hexahedra, which do not lock: material law at the mean deformation, plus a
bending energy condensed in closed form.

A trilinear displacement field bends with a spurious shear and change of volume, so that displacement
elements (`nsjax.fem.hexahedron`) are too stiff. Here the stress within an element is assumed as well: its
mean plus a sum of the twelve modes ``S_a`` of Pian and Tong for bending and twist. Stationary with respect
to the stress (Hellinger and Reissner's principle), the energy of an element of volume ``V`` is::

    W = V (w(F_m) + 1/2 sum_a c_a g_a^2),   g_a = <S_a : F_m^-1 (F - F_m)>,   c_a = 2 mu / (1 - k t_a)

with the energy density ``w`` of the material, means ``<.>`` over the volume, ``F_m = <F>``, and
``k = lambda / (3 lambda + 2 mu)``. The modes are combined so that ``<S_a : S_b> = d_ab`` and
``<tr S_a tr S_b> = t_a d_ab``: the compliance of any isotropic material is then diagonal, and no linear
system has to be solved. For small strains the element is that of Pian and Tong, which equals the element
of enhanced strains (Stolarski and Chen); rigid motions change ``F_m`` alone.

* Patch test: ``<S_a> = 0``, and a uniform ``F`` has no bending energy, whatever the form of the element.
* Rank: the nine entries of ``F_m`` and the twelve ``g`` see all 21 motions that are not translations, so
  that only the six rigid motions have no stiffness.
* The bending energy has its minimum where ``F`` is uniform, under any compression: no hourglass modes.

Source: T. H. H. Pian, P. Tong: Relations between incompatible displacement model and hybrid stress model,
Int. J. Numer. Meth. Engng. 22 (1986) 173-181, for the modes; T. Belytschko, L. P. Bindeman: Assumed strain
stabilization of the eight node hexahedral element, Comput. Methods Appl. Mech. Engrg. 105 (1993) 225-260,
for the split.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

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
    """Tables of the elements of a mesh.

    Args:
        corners: positions of the corners (8, 3, elements) [m].
        gradients, volumes: of `nsjax.fem.SolidMesh`.
    """
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
    """``F_m``, its inverse, ``F_m^-1`` times the hourglass vectors (3, 4, elements), and ``g`` (12,
    elements).
    """
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
