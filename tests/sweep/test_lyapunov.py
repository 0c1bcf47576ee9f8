"""Finite-time Lyapunov exponents against the closed form of a ball that bounces once."""

from __future__ import annotations

import numpy as np
import pytest

import nsjax
from nsjax import models, schemes

HEIGHT, GRAVITY, TIME = 0.3, 9.81, 0.4
RESTITUTION = np.array([0.4, 0.6, np.nan, 0.9])


def end(z: complex, v: complex, e: float) -> tuple[complex, complex]:
    """Height and velocity after one impact."""
    w = np.sqrt(v**2 + 2 * GRAVITY * z)
    left = TIME - (v + w) / GRAVITY
    return e * w * left - GRAVITY / 2 * left**2, e * w - GRAVITY * left


def exponent(e: float) -> float:
    """From the tangent of `end` by complex steps, exact to rounding; norm of (z, TIME v)."""
    tiny = 1e-30
    columns = [end(HEIGHT + 1j * tiny, 0.0, e), end(HEIGHT, 1j * tiny, e)]
    tangent = np.array([[x.imag / tiny for x in column] for column in columns]).T
    scale = np.array([1.0, TIME])
    return float(np.log(np.linalg.svd(scale[:, None] * tangent / scale, compute_uv=False)[0]) / TIME)


@pytest.fixture(scope="module")
def found() -> np.ndarray:
    ball = models.bouncing_ball(height=HEIGHT, radius=0.0, gravity=GRAVITY)
    return nsjax.sweep_lyapunov(
        ball, schemes.moreau(), {"params.restitution": RESTITUTION}, dt=2e-4, steps=2000
    )


def test_one_impact(found) -> None:
    good = np.isfinite(RESTITUTION)
    exact = np.array([exponent(e) for e in RESTITUTION[good]])
    # an impact is found up to one step of 2000 late: relative errors of a few steps, times 1 / TIME
    np.testing.assert_allclose(found[good], exact, atol=3 * 2e-4 / TIME / TIME)
    np.testing.assert_array_equal(np.isnan(found), ~good)
    assert np.ptp(exact) > 0.1  # 1/s
