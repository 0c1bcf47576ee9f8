"""Hexahedra of displacements and of assumed stresses: patches, energies, bending, derivatives."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_bvp

from nsjax import analysis, models
from nsjax.fem import SolidMesh
from nsjax.fem.hexahedron import MATERIALS, box_inertia, energy_density, lame, piola, von_mises
from tests.fem.bricks import KINDS, box, corners, drawn, looked, stiffness, tables, tip

# The eight-node solid against closed forms: affine fields, rigid motions, materials, inertia.
RNG = np.random.default_rng(11)
MODULI = tuple(jnp.asarray(x) for x in lame(90.0, 0.3))
SIZE = np.array([0.1, 0.2, 0.15])
STRETCH = np.eye(3) + np.array([[0.1, 0.05, -0.1], [0.02, -0.15, 0.07], [0.0, 0.1, 0.2]])
TURN = np.linalg.qr(RNG.normal(size=(3, 3)))[0]
TURN = TURN * np.sign(np.linalg.det(TURN))


def brick(material: str = "st_venant_kirchhoff", element: str = "displacement"):
    problem = models.flexible_cube(
        elements=(1, 2, 1), element=element, size=SIZE, gravity=0.0, height=0.0, material=material,
        young=90.0,
    )  # fmt: skip
    return problem.system, problem.params, np.asarray(problem.state.q).reshape(-1, 3)


def force(system, p):
    return jax.jit(lambda q: system.force(0.0, q.reshape(-1), 0.0 * q.reshape(-1), p))


def first_stress(material: str, f: np.ndarray) -> np.ndarray:
    """``P`` by formulas written down by hand: ``F (lambda tr(E) 1 + 2 mu E)``, and ``mu (F - F^-T) + lambda
    ln(J) F^-T``.
    """
    first, shear = (float(x) for x in MODULI)
    if material == "st_venant_kirchhoff":
        e = 0.5 * (f.T @ f - np.eye(3))
        return f @ (first * np.trace(e) * np.eye(3) + 2 * shear * e)
    back = np.linalg.inv(f).T
    return shear * (f - back) + first * np.log(np.linalg.det(f)) * back


@pytest.mark.slow
@pytest.mark.parametrize("material", sorted(MATERIALS))
def test_patch(material: str) -> None:
    """Of an affine displacement: the energy of the stretch, and forces that vanish inside and are those of
    the uniform stress on the faces.
    """
    system, p, x = brick(material)
    q = x @ STRETCH.T
    stress = first_stress(material, STRETCH)
    found = np.asarray(force(system, p)(jnp.asarray(q))).reshape(-1, 3)
    # work of the nodal forces in any affine motion is that of the stress: sum f (x) X = -P V
    np.testing.assert_allclose(found.T @ x, -stress * np.prod(SIZE), atol=1e-15)
    np.testing.assert_allclose(found.sum(axis=0), 0.0, atol=1e-15)
    grid = found.reshape(2, 3, 2, 3)
    # nodes in the middle of the long edges carry the tractions of both other directions alone
    middle = grid[:, 1]
    areas = [[np.array([i, 0.0, j]) for j in (-1, 1)] for i in (-1, 1)]
    wanted = [
        [-stress @ (n * [SIZE[1] * SIZE[2], 0.0, SIZE[0] * SIZE[1]]) / 4 for n in row] for row in areas
    ]
    np.testing.assert_allclose(middle, wanted, atol=1e-15)
    f = jnp.asarray(STRETCH).reshape(3, 3, 1, 1)
    energy = float(energy_density(MATERIALS[material], f, *MODULI)[0, 0]) * np.prod(SIZE)
    assert float(system.potential(0.0, jnp.asarray(q.reshape(-1)), p)) == pytest.approx(energy, rel=1e-13)


@pytest.mark.slow
@pytest.mark.parametrize("material", sorted(MATERIALS))
def test_derivatives_of_the_stress(material: str) -> None:
    """Of the rules by hand: with respect to deformation and moduli, forward and reverse."""
    law = MATERIALS[material]
    f = jnp.asarray(STRETCH)[:, :, None, None] + 0.05 * RNG.normal(size=(3, 3, 2, 5))
    np.testing.assert_allclose(
        piola(law, f, *MODULI)[:, :, 1, 2], first_stress(material, np.asarray(f[:, :, 1, 2])), atol=1e-12
    )
    df, weights = jnp.asarray(RNG.normal(size=f.shape)), jnp.asarray(RNG.normal(size=f.shape))

    @jax.jit
    def moved(x):
        return piola(law, f + x * df, MODULI[0] * (1 + x), MODULI[1] * (1 - x))

    forward = jax.jvp(moved, (0.0,), (1.0,))[1]
    step = 1e-5
    np.testing.assert_allclose(forward, (moved(step) - moved(-step)) / (2 * step), rtol=1e-6, atol=1e-4)
    reverse = jax.grad(lambda x: jnp.sum(weights * moved(x)))(0.0)
    assert float(reverse) == pytest.approx(float(jnp.sum(weights * forward)), rel=1e-12)


@pytest.mark.parametrize("element", ["displacement", "assumed_stress"])
def test_inverted_elements_have_no_force(element: str) -> None:
    system, p, x = brick(element=element)
    flipped = x * [1.0, 1.0, -1.0]
    assert np.all(np.isnan(np.asarray(force(system, p)(jnp.asarray(flipped)))))


def test_inertia_is_that_of_gauss_points() -> None:
    """Consistent mass by quadrature: ``rho sum N_a N_b V / 8`` over 2 x 2 x 2 points, for one element."""
    points = np.stack(np.meshgrid(*[[-1.0, 1.0]] * 3, indexing="ij"), -1).reshape(8, 3)
    shapes = np.prod(1.0 + points[None] * points[:, None] / np.sqrt(3.0), axis=2) / 8.0
    wanted = 3.0 / 8.0 * shapes.T @ shapes
    unit = np.zeros((8, 2, 2, 2, 3))
    unit[:, :, :, :, 1] = np.eye(8).reshape(8, 2, 2, 2)
    found = jax.vmap(lambda w: box_inertia(w, 3.0))(jnp.asarray(unit))
    np.testing.assert_allclose(np.asarray(found)[..., 1].reshape(8, 8), wanted, atol=1e-15)
    assert np.all(np.asarray(found)[..., [0, 2]] == 0.0)


def test_equivalent_stress_of_tension_and_of_pressure() -> None:
    """Small tension along one axis: ``E`` times the strain; equal stretches: none."""
    strain = 1e-7
    f = np.eye(3) + strain * np.diag([1.0, -0.3, -0.3])
    law = MATERIALS["st_venant_kirchhoff"]
    found = von_mises(law, jnp.asarray(f).reshape(3, 3, 1), *MODULI)
    assert float(found[0]) == pytest.approx(90.0 * strain, rel=1e-6)
    assert float(von_mises(law, 1.1 * jnp.eye(3).reshape(3, 3, 1), *MODULI)[0]) < 1e-13 * 90.0


# Hexahedra of assumed stress: patch test, rank, rigid motions, bending, of elements drawn at random.
COUNT = 60


def wedges() -> SolidMesh:
    """A brick, a sheet, a rod, and prisms whose corners meet in pairs along an edge."""
    mesh = drawn(0, COUNT, 0.0)
    scale = np.ones((COUNT, 8, 3))
    scale[1::4] *= [1.0, 1.0, 1e-3]
    scale[2::4] *= [1e3, 1.0, 1.0]
    places = mesh.places.reshape(COUNT, 8, 3) * scale
    places[3::4, :, 0] *= np.where(places[3::4, :, 2] > 0.0, 0.0, 1.0)
    return SolidMesh(places.reshape(-1, 3), mesh.elements)


MESHES = {"drawn": drawn(1, COUNT, 0.3), "degenerate": wedges()}


def moduli(poisson: float) -> list[jax.Array]:
    return [jnp.asarray(x, float) for x in lame(1.0, poisson)]


@pytest.mark.parametrize("material", sorted(MATERIALS))
@pytest.mark.parametrize("mesh", list(MESHES.values()), ids=list(MESHES))
def test_patch_of_elements_drawn(mesh: SolidMesh, material: str) -> None:
    """Under a uniform stretch nodal forces and energies are those of the uniform stress, which elements of
    displacement have exactly.
    """
    x, data = corners(mesh), tables(mesh)
    moved = jnp.asarray(np.einsum("iJ,aJe->aie", STRETCH, x) + 0.3)
    own, other = (looked(kind, material, moved, data, *moduli(0.3)) for kind in KINDS)
    np.testing.assert_allclose(own[0], other[0], rtol=1e-10)
    size = np.abs(other[2]).max(axis=(0, 1))
    np.testing.assert_allclose(own[2] / size, other[2] / size, atol=1e-10)


@pytest.mark.parametrize("material", sorted(MATERIALS))
@pytest.mark.parametrize("kind", KINDS)
def test_energy_force_and_rigid_motion(kind: str, material: str) -> None:
    """Of bent elements: forces are the gradient of the energy and turn with the body; their sum and their
    moment vanish; a rigid motion has none.
    """
    mesh = MESHES["drawn"]
    x, data = corners(mesh), tables(mesh)
    bent = x + 0.15 * RNG.uniform(-1.0, 1.0, x.shape)
    energy, gradient, force, tangent = looked(kind, material, bent, data, *moduli(0.45))
    size = np.abs(force).max()
    np.testing.assert_allclose(force, gradient, atol=1e-13 * size)
    np.testing.assert_allclose(tangent, np.swapaxes(tangent, 0, 1), atol=1e-13 * np.abs(tangent).max())
    np.testing.assert_allclose(np.sum(force, axis=0), 0.0, atol=1e-13 * size)
    moment = np.cross(np.moveaxis(bent, 1, 2), np.moveaxis(np.asarray(force), 1, 2)).sum(axis=0)
    np.testing.assert_allclose(moment, 0.0, atol=1e-13 * size)
    turned = np.einsum("iJ,aJe->aie", TURN, bent) + 2.0
    again = looked(kind, material, turned, data, *moduli(0.45))
    np.testing.assert_allclose(again[0], energy, rtol=1e-12)
    np.testing.assert_allclose(again[2], np.einsum("iJ,aJe->aie", TURN, force), atol=1e-12 * size)
    still = looked(kind, material, np.einsum("iJ,aJe->aie", TURN, x) + 2.0, data, *moduli(0.45))
    np.testing.assert_allclose(still[2], 0.0, atol=1e-13)


@pytest.mark.parametrize("poisson", [-0.5, 0.0, 0.3, 0.49, 0.4999])
def test_six_motions_without_stiffness(poisson: float) -> None:
    """Of single elements, in the shapes drawn: neither more, by hourglass modes, nor less."""
    mesh = MESHES["drawn"]
    for kind in KINDS:
        tangents = looked(kind, "neo_hooke", corners(mesh), tables(mesh), *moduli(poisson))[3]
        values = np.linalg.eigvalsh(np.moveaxis(np.asarray(tangents), 2, 0))
        assert np.all(np.abs(values[:, :6]) < 1e-13 * values[:, -1:])
        assert values[:, 6].min() > 0.01  # of Young's modulus times edges of 2


def test_no_hourglass_modes_under_compression() -> None:
    """Displacements that leave the mean deformation alone raise the energy of an element that is squeezed
    to a fifth and sheared; a law of neo-Hooke is stable there.
    """
    mesh = MESHES["drawn"]
    data = tables(mesh)
    squeezed = np.array([[1.3, 0.3, 0.0], [0.0, 1.2, 0.2], [0.0, 0.0, 0.2]])
    moved = np.einsum("iJ,aJe->aie", squeezed, corners(mesh))
    tangents = np.moveaxis(np.asarray(looked(KINDS[0], "neo_hooke", moved, data, *moduli(0.45))[3]), 2, 0)
    for k, matrix in enumerate(tangents):
        seen = np.concatenate([data[0].views[:3, :, k], np.ones((1, 8))])
        still = np.kron(np.linalg.svd(seen)[2][4:], np.eye(3))
        assert np.linalg.eigvalsh(still @ matrix @ still.T).min() > 1e-3


@pytest.mark.parametrize(("poisson", "length"), [(0.45, 10.0), (0.4999, 10.0), (0.0, 1e3), (0.45, 1e3)])
def test_one_element_through_the_thickness_bends(poisson: float, length: float) -> None:
    """A cantilever of ten elements; those of displacement reach 0.67 to 0.08, and 2e-4 of thin ones."""
    mesh = box((10, 1, 1), (length, 1.0, 1.0))
    assert 0.97 < tip(mesh, KINDS[0], poisson) < 1.0
    assert tip(mesh, KINDS[1], poisson) < 0.7


def test_a_bent_bar_is_exact() -> None:
    """Pure bending of a bar whose sections may narrow, by nodal forces of the linear stress, with one
    element through the thickness, upright or leaning: ``w = M x^2 / (2 E I)``.
    """
    for lean in (0.0, 0.3):
        mesh = box((4, 1, 1), (8.0, 1.0, 1.0))
        x = mesh.places.copy()
        x[:, 0] += lean * (x[:, 2] - 0.5) * ((x[:, 0] > 0.0) & (x[:, 0] < 8.0))
        mesh = SolidMesh(x, mesh.elements)
        matrix = stiffness(mesh, KINDS[0], 0.45)
        load = np.zeros(x.shape)
        end = np.isclose(x[:, 0], 8.0)
        # moment 1, of pairs of forces 1/2 at both edges
        load[end, 0] = np.where(x[end, 2] > 0.5, 0.5, -0.5)
        held = np.zeros(x.shape, bool)
        held[np.isclose(x[:, 0], 0.0), 0] = True
        held[0] = True
        held[1, 1] = True
        free = ~held.reshape(-1)
        moved = np.zeros(x.size)
        moved[free] = np.linalg.solve(matrix[np.ix_(free, free)], load.reshape(-1)[free])
        lower = end & np.isclose(x[:, 2], 0.0)
        found = moved.reshape(-1, 3)[lower, 2]
        # the section is held at y = 0, across which it bends the other way
        exact = -0.5 * 12.0 * (64.0 - 0.45 * x[lower, 1] ** 2)
        np.testing.assert_allclose(found, exact, rtol=1e-9 if lean == 0.0 else 0.05)


@pytest.mark.parametrize("seed", range(3))
def test_bars_of_elements_drawn_at_random(seed: int) -> None:
    """Corners moved by a tenth of the elements: a twentieth is lost at most."""
    mesh = box((10, 1, 1), (10.0, 1.0, 1.0))
    x = mesh.places
    inside = ~(np.isclose(x, 0.0) | np.isclose(x, [10.0, 1.0, 1.0]))
    x = x + np.where(inside, 0.1 * np.random.default_rng(seed).uniform(-1.0, 1.0, x.shape), 0.0)
    mesh = SolidMesh(x, mesh.elements)
    assert 0.95 < tip(mesh, KINDS[0], 0.3) < 1.0
    assert 0.95 < tip(mesh, KINDS[0], 0.3, axis=1) < 1.0


@pytest.mark.slow
def test_derivatives_by_moduli_and_by_the_edges_of_a_brick() -> None:
    """Forward, reverse, and secants, of the force on bent elements."""
    weights = RNG.normal(size=36)
    begin = models.flexible_cube(elements=(2, 1, 1), size=0.1, height=0.0).state.q
    bent = jnp.asarray(begin + 0.01 * RNG.normal(size=36))

    def pushed(x: jax.Array) -> jax.Array:
        system, p, _ = models.flexible_cube(
            elements=(2, 1, 1), material="neo_hooke", young=90.0 * (1.0 + x[0]), poisson=0.4 + x[1],
            size=0.1 * (1.0 + x[2:5]), height=0.0,
        )  # fmt: skip
        return jnp.sum(weights * system.force(0.0, bent, 0.0 * bent, p))

    start = jnp.zeros(5)
    forward, reverse = jax.jit(lambda x: (jax.jacfwd(pushed)(x), jax.grad(pushed)(x)))(start)
    np.testing.assert_allclose(forward, reverse, rtol=1e-11)
    run = jax.jit(pushed)
    secants = [float(run(1e-5 * one) - run(-1e-5 * one)) / 2e-5 for one in jnp.eye(5)]
    # the square of the width, and rounding over it
    np.testing.assert_allclose(forward, secants, rtol=1e-6)


def sunk(k: float) -> float:
    """Tip of a clamped elastica of length and bending stiffness 1 under a dead load ``k`` along it."""

    def rate(s: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.stack([y[1], -k * (1.0 - s) * np.cos(y[0]), np.sin(y[0])])

    s = np.linspace(0.0, 1.0, 41)
    ends = lambda a, b: np.array([a[0], b[1], a[2]])  # noqa: E731
    return float(solve_bvp(rate, ends, s, np.zeros((3, 41)), tol=1e-8).sol(1.0)[2])


@pytest.mark.slow
def test_modes_and_equilibrium_of_a_slender_bar() -> None:
    """One element through the thickness: the first frequencies of a clamped bar across both sides,
    ``3.5160 sqrt(E I / (m L^3))``, and its tip under its weight, which bends it by 0.43 of its length.
    """
    mesh = box((12, 1, 1), (1.6, 0.04, 0.04))
    problem = models.flexible_solid(mesh, fixed="x_min", young=1e7, poisson=0.3, density=1e3, gravity=0.0)
    bending, mass = 1e7 * 0.04**4 / 12.0, 1e3 * 0.04**2 * 1.6
    found = analysis.modes(problem, count=2).frequencies
    np.testing.assert_allclose(
        found, 3.5160 * np.sqrt(bending / (mass * 1.6**3)) / (2.0 * np.pi), rtol=0.02
    )
    k = 4.0
    rows = analysis.equilibrium(problem, to={"gravity": k * bending / (mass * 1.6**2)}, steps=2).positions
    tip_z = np.asarray(rows)[-1].reshape(-1, 3)[-4:, 2].mean() - 0.02
    assert tip_z / 1.6 == pytest.approx(-sunk(k), rel=0.02)
