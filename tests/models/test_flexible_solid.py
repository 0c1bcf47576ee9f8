"""Solids of a user's mesh: against the brick on its own mesh, patch test, files, fixed nodes, refusals."""

from __future__ import annotations

import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nsjax import InputError, models
from nsjax.fem import SolidMesh, read_mesh
from nsjax.fem.hexahedron import CORNERS
from nsjax.linalg import ConjugateGradients, Dense, Sparse
from tests.design import slow_but

RNG = np.random.default_rng(3)
AROUND = ((0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0), (0, 0, 1), (1, 0, 1), (1, 1, 1), (0, 1, 1))


def box(counts=(2, 1, 2), size=(0.2, 0.1, 0.1)) -> SolidMesh:
    """Nodes and elements of a brick over its lower face, centred around the z axis, in shuffled numbers."""
    axes = [np.linspace(0.0, length, n + 1) for length, n in zip(size, counts, strict=True)]
    places = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 3) - [
        0.5 * size[0], 0.5 * size[1], 0,
    ]  # fmt: skip
    number = np.arange(len(places)).reshape(*[n + 1 for n in counts])
    cells = np.indices(counts).reshape(3, -1).T
    elements = np.array([[number[tuple(cell + d)] for d in AROUND] for cell in cells])
    return SolidMesh(places, elements, {"corner": np.array([0])})


def skewed() -> SolidMesh:
    """Eight elements around an inner node, none of them a brick."""
    mesh = box((2, 2, 2), (0.1, 0.1, 0.1))
    return SolidMesh(mesh.places + 0.006 * RNG.uniform(-1.0, 1.0, mesh.places.shape), mesh.elements)


@pytest.mark.parametrize("element", slow_but(["assumed_stress", "displacement"], "displacement"))
def test_the_same_as_the_brick(element: str) -> None:
    """Force, inertia, energy, gaps and fields of a brick, formed by slices and in closed form there."""
    numbers = {
        "element": element, "young": 90.0, "density": 2.0, "slope": 0.2, "belt": 0.3,
        "table_amplitude": 0.01,
    }  # fmt: skip
    numbers |= {"table_frequency": 3.0}
    brick, p, state = models.flexible_cube(
        elements=(2, 1, 2), size=np.array([0.2, 0.1, 0.1]), height=0.3, rough=True, **numbers
    )
    own, r, begin = models.flexible_solid(
        box(), contact="z_min", place=(0.0, 0.0, 0.3), rough=True, **numbers
    )
    np.testing.assert_allclose(begin.q, state.q, atol=1e-16)
    assert own.labels.contacts == brick.labels.contacts
    q = jnp.asarray(state.q + 4e-3 * RNG.normal(size=state.q.shape))
    w = jnp.asarray(RNG.normal(size=state.q.shape))

    def looked(s, p):
        return jax.jit(
            lambda q, w: (
                s.force(0.1, q, w, p), -jax.grad(s.potential, argnums=1)(0.1, q, p),
                s.inertia(q, w, p), s.potential(0.1, q, p), s.gap(0.1, q, p), s.slip(0.1, q, w, p),
                models.solid_of(s).fields(q, p), s.observe(0.1, q, w, None, p),
            )
        )(q, w)  # fmt: skip

    for one, other in zip(jax.tree.leaves(looked(own, r)), jax.tree.leaves(looked(brick, p)), strict=True):
        # rounding of sums of some dozen terms
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-13 * np.abs(other).max())


@pytest.mark.parametrize("element", slow_but(["assumed_stress", "displacement"], "displacement"))
def test_patch_of_elements_that_are_no_bricks(element: str) -> None:
    """In a uniform stretch the inner node carries no force, all together the stress; mass and volume."""
    system, p, state = models.flexible_solid(
        skewed(), element=element, young=90.0, density=3.0, gravity=0.0
    )
    x = np.asarray(state.q).reshape(-1, 3)
    stretch = np.eye(3) + np.array([[0.1, 0.05, -0.1], [0.02, -0.15, 0.07], [0.0, 0.1, 0.2]])
    e = 0.5 * (stretch.T @ stretch - np.eye(3))
    first, shear = 90.0 * 0.3 / (1.3 * 0.4), 90.0 / 2.6
    stress = stretch @ (first * np.trace(e) * np.eye(3) + 2 * shear * e)
    q = (x @ stretch.T).reshape(-1)
    solid, w = models.solid_of(system), np.tile([1.0, 0.0, 0.0], len(x))
    found, fields, moved = jax.jit(
        lambda q: (system.force(0.0, q, 0.0 * q, p), solid.fields(q, p), system.inertia(q, w, p))
    )(q)
    found, moved, volume = np.reshape(found, (-1, 3)), np.reshape(moved, (-1, 3)), skewed_volume(x)
    np.testing.assert_allclose(found[13], 0.0, atol=1e-15)
    np.testing.assert_allclose(found.T @ x, -stress * volume, rtol=1e-12, atol=1e-15)
    true = stress @ stretch.T / np.linalg.det(stretch)
    deviator = true - np.trace(true) / 3.0 * np.eye(3)
    np.testing.assert_allclose(fields.nodal_stress, np.sqrt(1.5 * np.sum(deviator**2)), rtol=1e-12)
    np.testing.assert_allclose(fields.strain, np.sqrt(np.sum(e**2)), rtol=1e-12)
    np.testing.assert_allclose(moved.sum(axis=0), [3.0 * volume, 0.0, 0.0], atol=1e-16)


def skewed_volume(x: np.ndarray) -> float:
    """By the divergence theorem: faces of six elements' sides cancel inside, bilinear faces exactly by four
    triangles around their centres.
    """
    number = np.arange(27).reshape(3, 3, 3)
    total = 0.0
    for axis in range(3):
        for end, sign in ((0, -1.0), (-1, 1.0)):
            layer = np.take(number, end, axis=axis)
            for i in range(2):
                for j in range(2):
                    ring = [layer[i, j], layer[i + 1, j], layer[i + 1, j + 1], layer[i, j + 1]]
                    c = x[ring].mean(axis=0)
                    for a, b in zip(ring, ring[1:] + ring[:1], strict=True):
                        total += (-1.0) ** (axis == 1) * sign * np.linalg.det([x[a], x[b], c]) / 6.0
    return float(total)


def test_fixed_nodes_hang() -> None:
    """A column fixed at its upper end hangs ``rho g L^2 / (2 E)`` lower; a band of a matrix gives it."""
    mesh = box((1, 1, 4), (0.1, 0.1, 1.2))
    system, p, state = models.flexible_solid(mesh, fixed="z_max", young=1e5, poisson=0.0, density=10.0)
    assert isinstance(system.structure, Dense)
    direct = models.flexible_solid(box((1, 1, 20)), fixed="z_max").system.structure
    assert isinstance(direct, Sparse)
    q = jnp.asarray(state.q)
    force = jax.jit(lambda x: system.force(0.0, x, 0.0 * x, p))
    stiffness = -np.asarray(jax.jit(jax.jacfwd(force))(q))
    sag = np.linalg.solve(stiffness, np.asarray(force(q))).reshape(-1, 3)
    lower = np.flatnonzero(np.asarray(state.q).reshape(-1, 3)[:, 2] == 0.0)
    # nodal displacements of a bar are exact
    np.testing.assert_allclose(sag[lower, 2], -10.0 * 9.81 * 1.2**2 / 2e5, rtol=1e-9)


@pytest.mark.slow
def test_structures_agree() -> None:
    """Band and conjugate gradients solve what the dense matrix does."""
    mesh = box((1, 1, 2), (0.1, 0.1, 0.2))
    found = []
    for solver in ("direct", "iterative"):
        system, p, state = models.flexible_solid(mesh, contact="z_min", fixed="z_max", solver=solver)
        q = jnp.asarray(state.q)
        b = jnp.asarray(np.random.default_rng(1).normal(size=system.nv))

        @jax.jit
        def solved(s=system, p=p, q=q, b=b):
            matrix = s.structure.tangent(
                lambda w: s.inertia(q, w, p) - 1e-4 * s.force(0.0, q + w, 0.0 * q, p), 0.0 * q
            )
            return s.structure.eliminate(matrix, b[:, None])[1][:, 0]

        found.append(np.asarray(solved()))
    assert isinstance(system.structure, ConjugateGradients)
    assert len(system.structure.touched) == 4
    np.testing.assert_allclose(found[1], found[0], rtol=1e-7, atol=1e-9 * np.abs(found[0]).max())


def written(path: pathlib.Path, kind: str | None = None, **more) -> pathlib.Path:
    meshio = pytest.importorskip("meshio")
    mesh = box()
    cells = {"cells": [("hexahedron", mesh.elements)], "points": 1e3 * mesh.places} | more
    meshio.write(path, meshio.Mesh(**cells), file_format=kind)
    return path


def test_files_and_their_sets(tmp_path: pathlib.Path) -> None:
    """A VTK file with data that mark nodes; a Gmsh file with physical groups of faces."""
    mesh = box()
    low = np.flatnonzero(mesh.places[:, 2] == 0.0)
    marks = (mesh.places[:, 2] == 0.0).astype(int)
    found = read_mesh(
        written(tmp_path / "a.vtk", point_data={"feet": marks, "size": 2.0 * marks}), scale=1e-3
    )
    np.testing.assert_allclose(found.places, mesh.places, atol=1e-16)
    assert found.nodes("feet").tolist() == found.nodes("z_min").tolist() == low.tolist()
    assert "size" not in found.sets
    quads = np.array([[low[0], low[2], low[3], low[1]]])
    tags = {
        "gmsh:physical": [np.full(4, 7), np.array([3])],
        "gmsh:geometrical": [np.ones(4, int), np.ones(1, int)],
    }
    cells = [("hexahedron", mesh.elements), ("quad", quads)]
    groups = {"sole": np.array([3, 2]), "body": np.array([7, 3])}
    path = written(tmp_path / "b.msh", "gmsh22", cells=cells, cell_data=tags, field_data=groups)
    found = read_mesh(path)
    assert found.nodes("sole").tolist() == sorted(quads[0].tolist())
    assert len(found.nodes("body")) == len(mesh.places)
    problem = models.flexible_solid(found, contact="sole", place=1.0)
    assert problem.system.nc == 4


def turned_inside_out() -> np.ndarray:
    elements = box().elements.copy()
    elements[2] = elements[2][[4, 5, 6, 7, 0, 1, 2, 3]]
    return elements


def test_bad_files_end_in_sentences(tmp_path: pathlib.Path) -> None:
    path = written(tmp_path / "t.vtk", cells=[("tetra", box().elements[:, :4])])
    with pytest.raises(InputError, match="has 4 tetra; solids are of eight-node"):
        read_mesh(path)
    (tmp_path / "c.vtk").write_text("no mesh")
    with pytest.raises(InputError, match="cannot be read by meshio"):
        read_mesh(tmp_path / "c.vtk")


def test_corners_of_files_are_those_of_elements() -> None:
    """Both orders name the same places of a cube."""
    mesh = box((1, 1, 1), (2.0, 2.0, 2.0))
    np.testing.assert_allclose(mesh.places[mesh.corners[0]] - [0.0, 0.0, 1.0], CORNERS)


@pytest.mark.slow
def test_what_is_drawn() -> None:
    """The surface encloses the volume, outside out; contacts act where their gaps are."""
    mesh = box()
    turned = np.array([[1.0, 0.2, 0.0], [0.0, 1.0, 0.3], [0.1, 0.0, 1.0]])
    mesh = SolidMesh(mesh.places @ turned.T, mesh.elements)
    system, p, state = models.flexible_solid(
        mesh, contact="z_min", ground=-0.3, rough=True, friction=0.3, fixed="z_max", base_amplitude=0.01,
        base_frequency=3.0,
    )  # fmt: skip
    seen = system.shapes(0.2, jnp.asarray(state.q), p)
    solid = next(x for x in seen.shapes if x.kind == "mesh")
    corners = np.asarray(solid.points)[np.array(solid.faces)]
    assert np.linalg.det(corners).sum() / 6.0 == pytest.approx(2e-3 * np.linalg.det(turned), rel=1e-12)
    heights = np.sum(np.asarray(seen.contacts.points) * np.asarray(seen.contacts.normals), axis=1)
    np.testing.assert_allclose(heights + 0.3, system.gap(0.2, jnp.asarray(state.q), p), atol=1e-12)
    assert seen.contacts.tangents.shape == (system.nc, 2, 3)
    # the fixed nodes are drawn where their base is
    far = np.asarray(solid.points)[np.isclose(solid.points[:, 2], mesh.places[:, 2].max())]
    assert far[:, 0].max() == pytest.approx(mesh.places[mesh.nodes("z_max"), 0].max() + 0.01 * np.sin(0.6))
