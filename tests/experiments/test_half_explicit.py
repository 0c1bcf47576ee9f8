"""Examples of the half-explicit scheme: every expected number, the files, and where they come from."""

from __future__ import annotations

import math

import numpy as np
import pytest

from experiments.half_explicit import fig_impacting_bar
from nsjax import models
from nsjax.core.step import mass_matrix


def test_bar_has_the_frequencies_and_the_inertia_of_a_free_bar() -> None:
    problem = models.elastic_bar(**{**models.STEEL_BAR, "elements": 40})
    system, p, state = problem
    mass = np.asarray(mass_matrix(system, state.q, p))
    assert mass.sum() == pytest.approx(7800 * 3.14e-4 * 1.0)
    place = np.linspace(0.0, 1.0, 41)
    assert place @ mass @ place == pytest.approx(7800 * 3.14e-4 / 3)  # linear fields are exact
    np.testing.assert_allclose(system.force(0.0, state.q, 0 * state.q, p), 0.0, atol=1e-6)
    stretched = np.asarray(system.force(0.0, 1e-3 * place, 0 * place, p))
    tension = 2.1e11 * 3.14e-4 * 1e-3
    np.testing.assert_allclose(stretched, tension * np.eye(41)[0] - tension * np.eye(41)[-1], atol=1e-6)
    assert float(system.potential(0.0, 1e-3 * place, p)) == pytest.approx(tension * 1e-3 / 2)
    # the highest mode of consistent linear elements: neighbours move against each other
    wave = math.sqrt(2.1e11 / 7800)
    found = fig_impacting_bar.largest_frequency(problem)
    assert found == pytest.approx(math.sqrt(12) * wave * 40, rel=1e-9)
    damped = problem.replace(damping=5e-8).params
    np.testing.assert_allclose(
        system.force(0.0, 0 * place, 1e-3 * place, damped), 5e-8 * stretched, rtol=1e-12, atol=1e-9
    )
