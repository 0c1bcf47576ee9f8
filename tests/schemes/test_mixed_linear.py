"""Mixed framework on a chain of masses and springs against closed forms."""

from __future__ import annotations

import numpy as np
import pytest

import nsjax
from nsjax import models
from tests.design import slow_but
from tests.schemes.mixed_runs import MAKE, G, run


def modes(matrix) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Squared frequencies, shapes and modal loads of unit masses under gravity."""
    squares, shapes = np.linalg.eigh(np.array(matrix, float))
    return squares, shapes, G * shapes.sum(axis=0)


def from_rest(t, squares, shapes, load, keep=slice(None)) -> np.ndarray:
    swing = load / squares * (1 - np.cos(np.sqrt(squares) * np.asarray(t)[:, None]))
    return swing[:, keep] @ shapes[:, keep].T


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


@pytest.mark.parametrize("rho", slow_but([0.8, 0.5, 0.0], 0.5))
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
