"""The eight-node solid against closed forms: affine fields, rigid motions, materials, inertia."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nsjax import models
from nsjax.fem.hexahedron import MATERIALS, box_inertia, energy_density, lame, piola, von_mises
from tests.design import slow_but

RNG = np.random.default_rng(11)
MODULI = tuple(jnp.asarray(x) for x in lame(90.0, 0.3))
SIZE = np.array([0.1, 0.2, 0.15])
STRETCH = np.eye(3) + np.array([[0.1, 0.05, -0.1], [0.02, -0.15, 0.07], [0.0, 0.1, 0.2]])
TURN = np.linalg.qr(RNG.normal(size=(3, 3)))[0]
TURN = TURN * np.sign(np.linalg.det(TURN))


def brick(material: str = "st_venant_kirchhoff", element: str = "displacement"):
    problem = models.flexible_cube(
        elements=(1, 2, 1),
        element=element,
        size=SIZE,
        gravity=0.0,
        height=0.0,
        material=material,
        young=90.0,
    )
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


@pytest.mark.parametrize("material", slow_but(sorted(MATERIALS), "st_venant_kirchhoff"))
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


@pytest.mark.parametrize("material", slow_but(sorted(MATERIALS), "st_venant_kirchhoff"))
def test_forces_turn_with_the_body(material: str) -> None:
    system, p, x = brick(material)
    bent = x @ STRETCH.T + 0.005 * RNG.normal(size=x.shape)
    here = force(system, p)
    found = np.asarray(here(jnp.asarray(bent @ TURN.T + [1.0, 2.0, 3.0]))).reshape(-1, 3)
    wanted = np.asarray(here(jnp.asarray(bent))).reshape(-1, 3) @ TURN.T
    # rounding of places of size 4 over elements of 0.1, times stiffness
    np.testing.assert_allclose(found, wanted, atol=1e-13 * np.abs(wanted).max() * 40)


@pytest.mark.parametrize("material", slow_but(sorted(MATERIALS), "st_venant_kirchhoff"))
def test_six_motions_without_stiffness(material: str) -> None:
    system, p, x = brick(material)
    k = np.asarray(jax.jacfwd(force(system, p))(jnp.asarray(x))).reshape(x.size, x.size)
    np.testing.assert_allclose(k, k.T, atol=1e-14 * np.abs(k).max())
    values = np.sort(-np.linalg.eigvalsh(k))
    assert np.all(np.abs(values[:6]) < 1e-13 * values[-1])
    assert values[6] > 1e-3 * values[-1]  # no hourglass


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
