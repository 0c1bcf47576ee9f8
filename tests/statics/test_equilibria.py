"""Equilibria of beams against closed forms and published loads."""

from __future__ import annotations

import numpy as np
import pytest

from nsjax.analysis import equilibrium, modes
from nsjax.core import InputError
from nsjax.multibody import assemble, beam, hinge, section
from nsjax.statics import null_space
from tests.multibody.flexible.beam_cases import COLUMN, ELEMENTS, LENGTH, cantilever


@pytest.fixture(scope="module")
def problem():
    return cantilever()


def tip(found) -> np.ndarray:
    return found.positions[-1].reshape(-1, 7)[-1]


@pytest.mark.slow
def test_small_deflection_of_the_discrete_cantilever(problem) -> None:
    """``P L^3 / (3 EI) (1 - 1 / (4 n^2)) + P L / GA``, exactly for linear elements of one point."""
    P = 1e-4
    found = equilibrium(problem, {"tip.value": (0.0, P, 0.0)})
    wanted = P * LENGTH**3 / 3.0 * (1.0 - 0.25 / ELEMENTS**2) + P * LENGTH / COLUMN["GA"]
    # the next term is of the order of the square of the deflection, 1e-9
    assert tip(found)[1] == pytest.approx(wanted, rel=1e-8)


@pytest.mark.slow
def test_roll_up_by_load_steps(problem) -> None:
    """V1: a closed square, exactly; the reactions of the clamp are the moment."""
    moment = 2.0 * np.pi / LENGTH
    found = equilibrium(problem, {"bend.value": (0.0, 0.0, moment)}, steps=8)
    assert np.linalg.norm(tip(found)[:3]) < 1e-12
    forces = np.asarray(found.multipliers[-1])
    np.testing.assert_allclose(forces[:3], 0.0, atol=1e-8)  # of a stiffness 1e6, rounding
    assert np.max(np.abs(forces[3:])) == pytest.approx(moment, rel=1e-9)


def test_steps_that_end_are_refused() -> None:
    with pytest.raises(InputError, match="no equilibrium is found beyond 0 of the loads, with load steps"):
        equilibrium(cantilever(2), {"tip.value": (0.0, 0.0, 1e12)})


@pytest.mark.slow
def test_a_mechanism_is_refused() -> None:
    loose = assemble(
        beam("arm", (0, 0, 0), (1, 0, 0), elements=1, section=section(**COLUMN)),
        hinge("pin", "ground", "arm.start", axis=(0, 0, 1)),
    )
    with pytest.raises(InputError, match=r"nothing holds arm\.[01]\.\w+, which moves without any force"):
        equilibrium(loose)


@pytest.mark.slow
@pytest.mark.parametrize(("elements", "published"), [(8, 21.61), (16, 20.42)])
def test_flutter_of_the_beck_column(elements: int, published: float) -> None:
    """V3: the load of flutter under a following force, to the digits printed."""
    column = cantilever(elements)

    def flutters(P: float) -> bool:
        return modes(equilibrium(column, {"push.value": (-P, 0.0, 0.0)}).problem, 8).growth > 1e-3

    low, high = 15.0, 25.0
    for _ in range(12):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if flutters(middle) else (middle, high)
    assert 0.5 * (low + high) == pytest.approx(published, abs=0.006)


def test_free_directions_of_rows_that_depend_on_each_other() -> None:
    """Rows that say the same, as those of a planar loop in space do, come first here."""
    rng = np.random.default_rng(3)
    for size, count in ((7, 3), (5, 4), (4, 4)):
        some = rng.normal(size=(count, size))
        rows = np.vstack([some[0], some[0], 2.0 * some[0], some, some[:2] @ some.T @ some])
        free = null_space(rows)
        assert free.shape == (size, size - count)
        np.testing.assert_allclose(rows @ free, 0.0, atol=1e-12)
        np.testing.assert_allclose(free.T @ free, np.eye(size - count), atol=1e-14)
    assert null_space(np.zeros((2, 3))).shape == (3, 3)
    assert null_space(np.zeros((0, 3))).shape == (3, 3)
