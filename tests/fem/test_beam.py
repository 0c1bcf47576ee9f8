"""Beam elements: quadrature, shape functions, and the integrals of the assembled rod."""

from __future__ import annotations

import numpy as np
import pytest

from nsjax import fem


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
        "mass": (across @ rod.mass @ across, 1 / 5),
        "spin": (along @ rod.spin @ across, 1 / 4),
        "skew": (across @ rod.spin @ along, -1 / 4),
        "axial": (along @ rod.axial @ along, 1.0),
        "bending": (across @ rod.bending @ across, 4.0),
        "tip": (rod.tip @ (along + across), [1.0, 1.0]),
        "root": (rod.root @ across, 2.0),
        "sum": (np.sum(rod.weights), 1.0),
    }
    for name, (found, exact) in values.items():
        # bending entries grow with the cube of the number of elements and cancel
        np.testing.assert_allclose(found, exact, rtol=1e-10, err_msg=name)
    np.testing.assert_allclose(shift @ rod.axial, 0.0, atol=1e-12)
    at = np.array([0.0, 0.123, 0.5, 1.0])
    np.testing.assert_allclose(fem.rod_shapes(elements, at)[:, 1] @ across, at**2, atol=1e-14)
