"""The worked example of a new base scheme, tested like the registered ones."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import nsjax
from experiments.examples import rho_infinity_bathe as example
from nsjax import State, System
from nsjax.models.slider_crank import slider_crank_bilateral
from tests.points import spring, unit_mass

OSCILLATOR = System(nq=1, nv=1, mass=unit_mass, force=spring)


def test_it_is_one_short_file() -> None:
    assert len(inspect.getsource(example).splitlines()) <= 40


@pytest.mark.parametrize("rho", [0.5, 0.9])
def test_spectral_radius_at_infinity(rho: float) -> None:
    """A very stiff oscillator loses the factor rho in every step, once the start is forgotten."""
    state = State(t=0.0, q=np.array([1e-6]), v=np.zeros(1))
    scheme = example.rho_infinity_bathe(rho)
    traj = nsjax.simulate(OSCILLATOR, {"k": 1e8}, state, scheme, dt=1.0, steps=12)
    size = np.abs(traj.q[:, 0])
    assert traj.status == 0
    if rho == 0.0:
        assert size[2] < 1e-6 * size[0]
    else:
        # omega dt = 1e4: the limit is met to its reciprocal
        np.testing.assert_allclose(size[2:10] / size[1:9], rho, rtol=1e-3)


@pytest.mark.slow
def test_order_two_with_a_constraint() -> None:
    """Bilateral slider-crank at 0.05 s against the minimal-coordinate solution of the specification."""
    exact = np.array([4.809238135, 0.520895295])
    errors, steps = [], np.array([307, 503, 809, 1301])
    for n in steps:
        traj = nsjax.simulate(
            *slider_crank_bilateral(), example.rho_infinity_bathe(), dt=0.05 / n, steps=int(n), every=int(n)
        )
        traj.raise_for_status()
        errors.append(np.abs(traj.q[-1] - exact))
    slopes = np.polyfit(np.log(1 / steps), np.log(errors), 1)[0]
    np.testing.assert_allclose(slopes, 2.0, atol=0.05)
