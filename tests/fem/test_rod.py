"""The planar rod: elements, integrals, modes."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import eigh
from scipy.optimize import brentq

from nsjax import fem


# Beam elements: quadrature, shape functions, and the integrals of the assembled rod.
@pytest.mark.parametrize("points", [1, 2, 4, 7])
def test_quadrature_is_exact_to_its_degree_and_no_further(points):
    x, w = fem.gauss(points)
    for degree in range(2 * points):
        np.testing.assert_allclose(np.sum(w * x**degree), 1 / (degree + 1), rtol=1e-14)  # rounding
    # the error of the next power is ((n!)^2 / (2n)!)^2 / (2n + 1), 7e-10 at seven points
    assert abs(np.sum(w * x ** (2 * points)) - 1 / (2 * points + 1)) > 1e-10


def test_shape_functions_interpolate_the_nodes_and_a_cubic():
    length = 0.7
    at_ends = fem.shape_functions(np.array([0.0, 1.0]), length)
    np.testing.assert_array_equal(at_ends[0][:, :2], np.eye(2))
    np.testing.assert_array_equal(at_ends[1][:, 3:5], np.eye(2))
    w = np.polynomial.Polynomial([0.3, -1.0, 2.0, 0.5])
    u = np.polynomial.Polynomial([0.1, 0.4])
    nodes = np.array([u(0), w(0), w.deriv()(0), u(length), w(length), w.deriv()(length)])
    xi = np.linspace(0, 1, 9)
    s, b = fem.shape_functions(xi, length), fem.strains(xi, length)
    exact = np.stack([u(xi * length), w(xi * length)], axis=1)
    strain = np.stack([u.deriv()(xi * length), w.deriv(2)(xi * length)], axis=1)
    np.testing.assert_allclose(s @ nodes, exact, rtol=1e-13)  # rounding of four terms
    np.testing.assert_allclose(b @ nodes, strain, rtol=1e-12, atol=1e-13)


def test_element_matrices_are_those_of_the_textbook():
    """One element of length 1: the consistent mass and stiffness of Przemieniecki's book."""
    rod = fem.unit_rod(1)
    bend = np.ix_([1, 2, 4, 5], [1, 2, 4, 5])
    mass = np.array([[156, 22, 54, -13], [22, 4, 13, -3], [54, 13, 156, -22], [-13, -3, -22, 4]]) / 420
    stiffness = np.array([[12, 6, -12, 6], [6, 4, -6, 2], [-12, -6, 12, -6], [6, 2, -6, 4]])
    np.testing.assert_allclose(rod.mass[bend], mass, rtol=1e-13)  # rounding
    np.testing.assert_allclose(rod.bending[bend], stiffness, rtol=1e-12)
    np.testing.assert_allclose(rod.mass[np.ix_([0, 3], [0, 3])], np.array([[2, 1], [1, 2]]) / 6, rtol=1e-13)
    np.testing.assert_allclose(rod.axial[np.ix_([0, 3], [0, 3])], [[1, -1], [-1, 1]], rtol=1e-13)
    assert np.all(rod.mass[0, [1, 2, 4, 5]] == 0)


@pytest.mark.parametrize("elements", [1, 3, 20])
def test_integrals_of_known_fields(elements):
    """u = x and w = x^2 lie in the space: every integral of the rod has a closed form."""
    rod = fem.unit_rod(elements)
    x = np.arange(elements + 1) / elements
    zero, one = np.zeros_like(x), np.ones_like(x)
    along = np.stack([x, zero, zero], axis=1).reshape(-1)
    across = np.stack([zero, x**2, 2 * x], axis=1).reshape(-1)
    shift = np.stack([one, zero, zero], axis=1).reshape(-1)
    values = {
        "mean": (rod.mean @ (along + across), [1 / 2, 1 / 3]),
        "first": (rod.first @ (along + across), [1 / 3, 1 / 4]),
        "mass": (across @ rod.mass @ across, 1 / 5), "spin": (along @ rod.spin @ across, 1 / 4),
        "skew": (across @ rod.spin @ along, -1 / 4), "axial": (along @ rod.axial @ along, 1.0),
        "bending": (across @ rod.bending @ across, 4.0), "tip": (rod.tip @ (along + across), [1.0, 1.0]),
        "root": (rod.root @ across, 2.0), "sum": (np.sum(rod.weights), 1.0),
    }  # fmt: skip
    for name, (found, exact) in values.items():
        # bending entries grow with the cube of the number of elements and cancel
        np.testing.assert_allclose(found, exact, rtol=1e-10, err_msg=name)
    np.testing.assert_allclose(shift @ rod.axial, 0.0, atol=1e-12)
    at = np.array([0.0, 0.123, 0.5, 1.0])
    np.testing.assert_allclose(fem.rod_shapes(elements, at)[:, 1] @ across, at**2, atol=1e-14)


# Modes of the uniform rod: frequencies, decoupling, signs, and bases from traced data.
LENGTH, MASS, INERTIA, YOUNG, DENSITY = 0.306, 0.038, 5.9e-4, 2e11, 7800.0


def rod_data(young=YOUNG, density=DENSITY):
    """The rod of Table 1: `slider_crank.md` section 3."""
    axial = young * MASS / (density * LENGTH)
    square = INERTIA / MASS - LENGTH**2 / 12
    return fem.RodData(
        length=jnp.asarray(LENGTH), mass=jnp.asarray(MASS), axial=jnp.asarray(axial),
        bending=jnp.asarray(axial * square),
    )  # fmt: skip


def frequencies(conditions, count=None):
    count = count or fem.unit_modes(20, conditions).shapes.shape[1]
    return np.asarray(fem.RodBasis(20, modes=fem.Modes(conditions, count)).frequencies(rod_data()))


# first frequencies of twenty elements as printed in slider_crank.md section 3
PRINTED = {
    "clamped_free": (2659.5, 4138.1, 12439.8, 16666.7), "pinned_pinned": (4138.1, 7465.3),
    "free_free": (8282.5, 16616.2), "articulated_free": (4138.1, 11662.2),
}  # fmt: skip


@pytest.mark.parametrize("conditions", PRINTED)
def test_printed_frequencies(conditions):
    printed = np.array(PRINTED[conditions])
    np.testing.assert_allclose(frequencies(conditions, len(printed)), printed, atol=0.05)  # one digit


def test_count_of_modes_that_bathes_scheme_lets_act():
    found = frequencies("clamped_free")
    assert len(found) == 60
    assert np.sum(found < 1e7) == 52  # [R&S section 4.5]


# characteristic equations of bending, f(beta L) = 0, and a bracket of the first root
EQUATIONS = {
    "clamped_free": (lambda b: np.cos(b) * np.cosh(b) + 1, 1.5, 2.5),
    "pinned_pinned": (np.sin, 3.0, 3.3),
    "free_free": (lambda b: np.cos(b) * np.cosh(b) - 1, 4.5, 5.0),
    "articulated_free": (lambda b: np.tan(b) - np.tanh(b), 3.7, 4.1),
}


@pytest.mark.parametrize("conditions", EQUATIONS)
def test_bending_frequencies_converge_to_the_continuous_beam(conditions):
    f, low, high = EQUATIONS[conditions]
    exact = brentq(f, low, high, xtol=1e-15) ** 4
    errors = [fem.unit_modes(n, conditions).bending[0] / exact - 1 for n in (8, 12, 16, 24)]
    slope = np.polyfit(np.log([8, 12, 16, 24]), np.log(errors), 1)[0]
    assert slope == pytest.approx(-4.0, abs=0.15)  # Hermite cubics: fourth order, from above


@pytest.mark.parametrize("conditions", EQUATIONS)
def test_modes_solve_the_eigenproblem_of_the_assembled_rod(conditions):
    """All of them, against scipy on the matrices with bending and stretching together."""
    rod, modes = fem.unit_rod(5), fem.unit_modes(5, conditions)
    held = {
        "clamped_free": [0, 1, 2], "pinned_pinned": [0, 1, 16], "free_free": [], "articulated_free": [0, 1],
    }  # fmt: skip
    free = np.setdiff1d(np.arange(rod.size), held[conditions])
    pick = np.ix_(free, free)
    values = eigh((rod.axial + rod.bending)[pick], rod.mass[pick], eigvals_only=True)
    found = np.sort(np.concatenate([modes.axial, modes.bending]))
    # the zeros are those of the rigid motions; 1e-12 of the largest eigenvalue, 1e7
    np.testing.assert_allclose(found, values[len(values) - len(found) :], rtol=1e-8, atol=1e-5)
    assert np.all(np.abs(values[: len(values) - len(found)]) < 1e-5)
    identity = modes.shapes.T @ rod.mass @ modes.shapes
    np.testing.assert_allclose(identity, np.eye(len(found)), atol=1e-13)  # rounding
    assert np.all(modes.shapes[held[conditions]] == 0.0)


def test_coupling_to_the_frame_vanishes():
    """[R&S App. D]: free-free modes decouple from translation and rotation of the mean axis, and
    articulated-free modes from the rotation about the joint; the others do not."""
    rod = fem.unit_rod(20)
    free, hinged = (fem.unit_modes(20, name).shapes for name in ("free_free", "articulated_free"))
    about_centre = rod.first[1] - 0.5 * rod.mean[1]
    assert np.abs(rod.mean @ free).max() < 1e-12
    assert np.abs(about_centre @ free).max() < 1e-12
    assert np.abs(rod.first[1] @ hinged).max() < 1e-12
    assert np.abs(rod.mean @ hinged).max() > 0.1
    clamped = fem.unit_modes(20, "clamped_free").shapes
    assert np.abs(rod.first[1] @ clamped).max() > 0.1


def test_signs_are_fixed_by_the_free_end():
    for conditions in EQUATIONS:
        shapes = fem.unit_modes(6, conditions).shapes
        along = len(fem.unit_modes(6, conditions).axial)
        last = 2 if conditions == "pinned_pinned" else 1
        assert np.all(shapes[-3, :along] > 0.0)
        assert np.all(shapes[-3 + last, along:] > 0.0)


@pytest.mark.parametrize("conditions", [x for x in EQUATIONS if x != "clamped_free"])
def test_modal_matrices(conditions):
    """Mass-normalised: stiffness is the squares of the frequencies, and the joint does not move."""
    basis = fem.RodBasis(8, modes=fem.Modes(conditions, 6))
    found = jax.jit(basis.prepare)(rod_data(), jnp.asarray(0.0), jnp.asarray(0.0))
    squares = (2 * np.pi * np.asarray(basis.frequencies(rod_data()))) ** 2
    np.testing.assert_allclose(np.diagonal(found.stiffness), squares, rtol=1e-9)  # cancelling sums
    np.testing.assert_allclose(
        found.stiffness, np.diag(np.diagonal(found.stiffness)), atol=1e-9 * squares.max()
    )
    np.testing.assert_array_equal(np.asarray(found.basis)[:2], 0.0)
    if conditions != "free_free":  # its shapes are shifted to the joint
        np.testing.assert_allclose(found.mass, np.eye(6), atol=1e-12)


def test_a_basis_follows_its_data():
    """Derivatives with respect to young and density are those of the scaling of frequencies."""

    def first(young, density):
        basis = fem.RodBasis(8, modes=fem.Modes("clamped_free", 3))
        return basis.frequencies(rod_data(young, density))[0]

    value = first(YOUNG, DENSITY)
    by_young, by_density = jax.jit(jax.grad(first, argnums=(0, 1)))(YOUNG, DENSITY)
    # omega goes with the root of E / rho
    np.testing.assert_allclose(by_young * YOUNG, 0.5 * value, rtol=1e-12)
    np.testing.assert_allclose(by_density * DENSITY, -0.5 * value, rtol=1e-12)
