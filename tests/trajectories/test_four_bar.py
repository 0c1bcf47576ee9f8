"""The driven four-bar linkage with clearance in three pins, by a scheme that projects positions."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from nsjax import schemes
from tests.trajectories import models_four_bar as model
from tests.trajectories.common import run

H = 1e-4


def four_bar(scheme, refine: int = 1):
    """The 21 rows of the file."""
    return run(model.four_bar(), scheme, H / refine, 10_000 * refine, every=500 * refine)


def test_model_in_the_rows_of_the_file(recorded):
    data = recorded("four_bar_clearance")
    p = model.FourBar()
    t, q, rates = data[:, 0], data[:, 1:8], data[:, 8:11]
    torque = jax.vmap(lambda t, q, v: model.torque(t, q[0], v[0], p))(t, q, rates)
    np.testing.assert_allclose(torque, data[:, 39], rtol=1e-12, atol=1e-10)
    assert float(torque[0]) == pytest.approx(-30.34444554, abs=5e-9)
    gaps = jax.vmap(lambda q: model.gap(0.0, q, p))(q)
    np.testing.assert_allclose(gaps, data[:, 32:35], rtol=0, atol=1e-14)
    offsets = jax.vmap(lambda q: model.offsets(q, p).reshape(6))(q)
    np.testing.assert_allclose(offsets, data[:, 13:19], rtol=0, atol=1e-14)


@pytest.mark.slow
@pytest.mark.parametrize("scheme", [schemes.generalized_alpha(0.8), schemes.moreau()], ids=lambda s: s.name)
def test_other_schemes(recorded, scheme):
    data = recorded("four_bar_clearance")
    errors = [np.abs(four_bar(scheme, n).q - data[:, 1:8]).max() for n in (1, 4)]
    # README: a1, a2 within 1e-2. Velocity-level contact lets gaps drift in proportion to the step.
    assert errors[0] < 3e-3
    assert errors[1] < 1e-3
