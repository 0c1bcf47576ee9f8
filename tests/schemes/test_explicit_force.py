"""`ggl_unified` with explicit forces: Moreau's rule in flight, and as unstable beyond its limit."""

from __future__ import annotations

import numpy as np
import pytest

import nsjax
from nsjax import models, schemes
from nsjax.analysis import spectral_radius


def test_explicit_forces_have_the_limit_of_moreau() -> None:
    scheme = schemes.ggl_unified(force="explicit")
    np.testing.assert_allclose(spectral_radius(scheme, [0.5, 1.9]), 1.0, rtol=0, atol=1e-9)
    assert spectral_radius(scheme, 2.1) > 1.1
    with pytest.warns(UserWarning, match="above the largest stable step of ggl_unified"):
        nsjax.simulate(*models.mass_spring_chain(), scheme, dt=1e-3, steps=2)
