"""Elements and cantilevers of hexahedra on dense matrices, of either kind of element."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.fem import SolidMesh
from nsjax.fem.hexahedron import CORNERS, MATERIALS, deformation, energy_density, lame, piola
from nsjax.fem.solid_mesh import element_energies, element_forces, mesh_tables

AROUND = ((0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0), (0, 0, 1), (1, 0, 1), (1, 1, 1), (0, 1, 1))
KINDS = ("assumed_stress", "displacement")


def box(counts: Any, size: Any) -> SolidMesh:
    """A brick from the origin on."""
    axes = [np.linspace(0.0, length, n + 1) for length, n in zip(size, counts, strict=True)]
    places = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 3)
    number = np.arange(len(places)).reshape(*[n + 1 for n in counts])
    cells = np.indices(counts).reshape(3, -1).T
    return SolidMesh(places, np.array([[number[tuple(cell + d)] for d in AROUND] for cell in cells]))


def drawn(seed: int, count: int, spread: float, size: Any = (2.0, 2.0, 2.0)) -> SolidMesh:
    """Single elements, apart: corners of a brick moved by up to ``spread`` of half its edges."""
    rng = np.random.default_rng(seed)
    corners = CORNERS + spread * rng.uniform(-1.0, 1.0, (count, 8, 3))
    ring = 2 * np.array(AROUND) - 1
    order = [int(np.flatnonzero((r == CORNERS).all(axis=1))[0]) for r in ring]
    places = corners[:, order] * 0.5 * np.asarray(size)
    return SolidMesh(places.reshape(-1, 3), np.arange(8 * count).reshape(-1, 8))


def corners(mesh: SolidMesh) -> np.ndarray:
    """Places (8, 3, elements)."""
    return np.moveaxis(mesh.places[mesh.corners], 0, 2)


def tables(mesh: SolidMesh) -> Any:
    """Of both kinds of elements."""
    return mesh_tables(corners(mesh), mesh.gradients, mesh.volumes), mesh.gradients, mesh.volumes


def energies(kind: str, material: str, places: Any, data: Any, first: Any, shear: Any) -> Any:
    """(elements,)."""
    own, gradients, volumes = data
    law = MATERIALS[material]
    if kind == "assumed_stress":
        return element_energies(places, own, law, first, shear)
    f = deformation(places, jnp.asarray(gradients))
    return jnp.sum(energy_density(law, f, first, shear) * volumes, axis=0)


def forces(kind: str, material: str, places: Any, data: Any, first: Any, shear: Any) -> Any:
    """Derivatives of the energies (8, 3, elements)."""
    own, gradients, volumes = data
    law = MATERIALS[material]
    if kind == "assumed_stress":
        return element_forces(places, own, law, first, shear)
    stress = piola(law, deformation(places, jnp.asarray(gradients)), first, shear) * volumes
    return jnp.sum(stress * jnp.transpose(gradients, (1, 2, 0, 3))[:, None], axis=(2, 3))


@functools.partial(jax.jit, static_argnums=(0, 1))
def looked(kind: str, material: str, places: Any, data: Any, first: Any, shear: Any) -> Any:
    """Energies, their gradient, forces and tangents (24, 24, elements)."""
    of = functools.partial(forces, kind, material, data=data, first=first, shear=shear)
    ways = jnp.eye(24).reshape(24, 8, 3, 1) + 0.0 * places
    total = lambda x: jnp.sum(energies(kind, material, x, data, first, shear))  # noqa: E731
    tangents = jax.vmap(lambda way: jax.jvp(of, (places,), (way,))[1])(ways)
    return (
        energies(kind, material, places, data, first, shear), jax.grad(total)(places), of(places),
        tangents.reshape(24, 24, -1),
    )  # fmt: skip


def stiffness(mesh: SolidMesh, kind: str, poisson: float) -> np.ndarray:
    """At rest, of Young's modulus 1 (dense)."""
    moduli = [jnp.asarray(x, float) for x in lame(1.0, poisson)]
    each = np.asarray(looked(kind, "st_venant_kirchhoff", corners(mesh), tables(mesh), *moduli)[3])
    found = np.zeros((mesh.places.size, mesh.places.size))
    for k, nodes in enumerate(mesh.corners):
        at = (3 * nodes[:, None] + np.arange(3)).reshape(-1)
        found[np.ix_(at, at)] += each[:, :, k]
    return found


def tip(mesh: SolidMesh, kind: str, poisson: float, axis: int = 2) -> float:
    """Deflection along ``axis`` of the end ``x = L`` under a unit force spread over its nodes, clamped at
    ``x = 0``, over that of Timoshenko's beam.
    """
    x, size = mesh.places, np.ptp(mesh.places, axis=0)
    end = np.flatnonzero(np.isclose(x[:, 0], x[:, 0].max()))
    sides = [x[end, k] for k in (1, 2)]
    share = np.prod([np.where(np.isclose(s, s.min()) | np.isclose(s, s.max()), 0.5, 1.0) for s in sides], 0)
    load = np.zeros(x.shape)
    load[end, axis] = share / share.sum()
    free = np.repeat(~np.isclose(x[:, 0], x[:, 0].min()), 3)
    matrix = stiffness(mesh, kind, poisson)
    moved = np.zeros(x.size)
    moved[free] = np.linalg.solve(matrix[np.ix_(free, free)], load.reshape(-1)[free])
    height, width, length = size[axis], size[3 - axis], size[0]
    beam = 4.0 * length**3 / (width * height**3)
    beam += length * 2.4 * (1.0 + poisson) / (width * height)
    return float(moved.reshape(-1, 3)[end, axis] @ (share / share.sum())) / beam
