"""Mixed framework on a chain of masses and springs against closed forms."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import nsjax
from nsjax import models
from tests.schemes.mixed_runs import MAKE, G, run


def modes(matrix) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Squared frequencies, shapes and modal loads of unit masses under gravity."""
    squares, shapes = np.linalg.eigh(np.array(matrix, float))
    return squares, shapes, G * shapes.sum(axis=0)


def from_rest(t, squares, shapes, load, keep=slice(None)) -> np.ndarray:
    swing = load / squares * (1 - np.cos(np.sqrt(squares) * np.asarray(t)[:, None]))
    return swing[:, keep] @ shapes[:, keep].T


STIFF = modes([[2, -1, 0], [-1, 2, -1], [0, -1, 1 + 1e7]])


@functools.cache
def chain(name: str) -> nsjax.Trajectory:
    return run(models.mass_spring_chain(), MAKE[name](), 1e-3, 10_000, save=[])


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("generalized_alpha 0", 3.6e-5),
        pytest.param("ed_alpha 0", 1.3e-9, marks=pytest.mark.slow),
        pytest.param("bathe", 3.3e-6, marks=pytest.mark.slow),
        pytest.param("generalized_alpha 0.8", 6.8e-6, marks=pytest.mark.slow),
    ],
)
def test_figure_15_soft_masses(name, error):
    traj = chain(name)
    exact = from_rest(traj.t, *STIFF)
    assert np.abs(traj.q - exact)[:, :2].max() == pytest.approx(error, rel=0.1)


def test_figure_16_stiff_mass():
    squares, shapes, load = STIFF
    amplitude = abs(shapes[2, 2] * load[2] / squares[2])
    assert amplitude == pytest.approx(9.8e-7, rel=2e-3)
    rest = shapes[2, 2] * load[2] / squares[2]

    def fast(name, first, last):
        traj = chain(name)
        slow = from_rest(traj.t, *STIFF, keep=slice(0, 2))[:, 2] + rest
        return np.abs(traj.q[:, 2] - slow)[first:last].max() / amplitude

    # undamped: kept for good; 0.8: kept for a while, with a shift of phase; the others: removed
    assert fast("generalized_alpha 1", 9000, 10_001) == pytest.approx(1, abs=0.01)
    assert fast("generalized_alpha 0.8", 1, 15) > 0.6
    exact = from_rest(chain("generalized_alpha 0.8").t, *STIFF)[:15, 2]
    assert np.abs(chain("generalized_alpha 0.8").q[:15, 2] - exact).max() > 0.5 * amplitude
    assert fast("bathe", 20, 10_001) < 0.15
    for name in ("generalized_alpha 0", "ed_alpha 0"):
        assert fast(name, 20, 10_001) < 0.01
    assert fast("generalized_alpha 0.8", 1000, 10_001) < 0.01


HELD = modes([[20, -10], [-10, 20]])


def held(name, *, consistent=True, stiffness=10.0) -> nsjax.Trajectory:
    scheme = MAKE[name](consistent_initial_acceleration=consistent)
    problem = models.mass_spring_chain(support="constraint", stiffness=stiffness)
    return run(problem, scheme, 0.05, 200, save=["constraint_force"])


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("generalized_alpha 0.8", 0.64),
        ("generalized_alpha 0.5", 0.91),
        ("generalized_alpha 0", 3.1),
        pytest.param("generalized_alpha 1", 0.61, marks=pytest.mark.slow),
        pytest.param("bathe", 0.30, marks=pytest.mark.slow),
        pytest.param("ed_alpha 0", 0.017, marks=pytest.mark.slow),
    ],
)
def test_force_of_the_constraint(name, error):
    # Consistent start: no transient; errors over 10 s as slider_crank.md section 7, by accuracy alone.
    traj = held(name)
    off = traj.constraint_force[1:, 0] + G + 10.0 * from_rest(traj.t[1:], *HELD)[:, 1]
    assert np.abs(off).max() == pytest.approx(error, rel=0.03)
    assert np.abs(off[:5]).max() < 0.06
    assert np.abs(traj.q[:, 2]).max() < 1e-10
    assert np.abs(traj.v[:, 2]).max() < 1e-11


@pytest.mark.parametrize("rho", [0.8, 0.5, 0.0])
def test_inconsistent_start_leaves_a_sawtooth(rho):
    # schemes.md section 6.1: eigenvalues -rho and (1 - 3 rho)/(3 - rho) of the error of the force. The
    # springs are switched off, so that the error shows alone.
    traj = held(f"generalized_alpha {rho:g}", consistent=False, stiffness=1e-12)
    e = traj.constraint_force[1:, 0] + G
    first, second = -rho, (1 - 3 * rho) / (3 - rho)
    recurrence = e[2:] - (first + second) * e[1:-1] + first * second * e[:-2]
    np.testing.assert_allclose(recurrence, 0.0, atol=1e-7)
    assert np.abs(e[0]) > 3
    if rho == 1.0:
        np.testing.assert_allclose(e, G * (-1.0) ** np.arange(1, 201), atol=1e-7)
    else:
        assert np.abs(e[60:]).max() < 1e-3
    assert np.abs(traj.v[:, 2]).max() < 1e-11
