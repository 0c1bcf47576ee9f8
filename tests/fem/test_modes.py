"""Modes of the uniform rod: frequencies, decoupling, signs, and bases from traced data."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import eigh
from scipy.optimize import brentq

from nsjax import fem

LENGTH, MASS, INERTIA, YOUNG, DENSITY = 0.306, 0.038, 5.9e-4, 2e11, 7800.0


def rod_data(young=YOUNG, density=DENSITY):
    """The rod of Table 1: `slider_crank.md` section 3."""
    axial = young * MASS / (density * LENGTH)
    square = INERTIA / MASS - LENGTH**2 / 12
    return fem.RodData(
        length=jnp.asarray(LENGTH),
        mass=jnp.asarray(MASS),
        axial=jnp.asarray(axial),
        bending=jnp.asarray(axial * square),
    )


def frequencies(conditions, count=None):
    count = count or fem.unit_modes(20, conditions).shapes.shape[1]
    return np.asarray(fem.RodBasis(20, modes=fem.Modes(conditions, count)).frequencies(rod_data()))


# first frequencies of twenty elements as printed in slider_crank.md section 3
PRINTED = {
    "clamped_free": (2659.5, 4138.1, 12439.8, 16666.7),
    "pinned_pinned": (4138.1, 7465.3),
    "free_free": (8282.5, 16616.2),
    "articulated_free": (4138.1, 11662.2),
}


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
        "clamped_free": [0, 1, 2],
        "pinned_pinned": [0, 1, 16],
        "free_free": [],
        "articulated_free": [0, 1],
    }
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
