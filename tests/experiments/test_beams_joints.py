"""Mechanisms of beams: every expected number, the files."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.beams_joints import (
    fig_crank_slider,
    fig_four_bar,
    fig_oscillation,
    fig_universal_joint,
    shared,
    table_incremental,
)


def test_rigid_rods_of_the_oscillation() -> None:
    """The rigid double pendulum as the specification prints it."""
    tip, rate, _ = fig_oscillation.rigid(200)
    printed = [(1.92682058, -0.28126212), (1.29668854, -1.40577992), (-1.66211514, -1.04146664)]
    np.testing.assert_allclose(tip[[50, 100, 200]], printed, atol=2e-8)
    second = (tip[49] - 2.0 * tip[50] + tip[51]) / fig_oscillation.STEP**2
    np.testing.assert_allclose(rate[50], second, atol=0.05)


def test_closed_forms() -> None:
    """Numbers of the specification for the rigid crank-slider and universal joint; the pin of the four-bar
    keeps its distances.
    """
    np.testing.assert_allclose(
        fig_crank_slider.exact((0.05, 0.1, 0.2)), (0.6264387595, 0.5648514518, 0.418614885), atol=1e-10
    )
    phi, ratio = fig_universal_joint.exact(np.radians([0.0, 30.0, 45.0, 60.0, 89.999999, 400.0]))
    np.testing.assert_allclose(np.degrees(phi[:5]), (0.0, 26.565051, 40.893395, 56.309932, 90.0), atol=2e-6)
    np.testing.assert_allclose(
        ratio[:5], (0.8660254, 0.9237604, 0.9897433, 1.0658774, 1.1547005), atol=1e-7
    )
    assert np.degrees(phi[5]) == pytest.approx(
        360.0 + np.degrees(np.arctan(np.sqrt(0.75) * np.tan(40 * np.pi / 180)))
    )
    psi = np.linspace(0.0, 7.0, 50)
    pin, eye = fig_four_bar.CRANK * np.stack([np.cos(psi), np.sin(psi)], axis=-1), fig_four_bar.eye(psi)
    np.testing.assert_allclose(np.linalg.norm(eye - pin, axis=1), fig_four_bar.COUPLER, rtol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(eye - [0.4, 0.0], axis=1), fig_four_bar.ROCKER, rtol=1e-12)


def test_order() -> None:
    values = [np.array([1.0, 2.0]) + 3.0 * h**2 for h in (0.4, 0.2, 0.1)]
    assert shared.order(values) == pytest.approx(2.0)


def test_newmark_as_printed_turns_a_body_backwards_and_with_minus_signs_is_of_second_order() -> None:
    """[GN (114)-(117)] in numpy alone, to Euler's equations."""
    end = table_incremental.exact()
    steps = np.array([50, 100])
    errors = [np.abs(table_incremental.printed(2.0 / n, n) - end).max() for n in steps]
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2.0, abs=0.1)
    spin = table_incremental.printed(1e-3, 1, sign=1.0)[3:]
    np.testing.assert_allclose(spin, -3.0 * table_incremental.SPIN, atol=2e-2)
