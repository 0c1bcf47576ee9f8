"""Examples of the nonsmooth generalized-alpha: every expected number, the files, the references."""

from __future__ import annotations

import types

import numpy as np
import pytest

from experiments import common
from experiments.nsga import (
    bar,
    block_motion,
    cube,
    fig06_bar_contact,
    fig09_cube,
    published,
    table_smooth_schemes,
)
from nsjax import schemes


def test_a_force_oscillates_after_an_impact_unless_constraints_act_on_accelerations() -> None:
    """[C section 3.1]: by the whole jump of the force for ``rho_inf = 1``, step after step."""
    held = table_smooth_schemes.force_errors(schemes.nsga_decoupled(1.0), 2e-3)
    np.testing.assert_allclose(held, table_smooth_schemes.JUMP * (-1.0) ** np.arange(1, 13), rtol=0.03)
    free = schemes.nsga_coupled(1.0, iteration="monolithic", smooth="full")
    assert np.abs(table_smooth_schemes.force_errors(free, 2e-3)).max() < 1e-9


def test_resolved_block_keeps_energy_and_angular_momentum_in_flight() -> None:
    z, dz, impacts = block_motion.motion(np.array([0.1, 0.4, 0.41]), h=1e-4)
    assert impacts == []
    # the rate is that of the height: a difference over a hundredth of a turn
    near, _, _ = block_motion.motion(np.array([0.4 - 1e-4, 0.4 + 1e-4]), h=1e-4)
    assert (near[1] - near[0]) / 2e-4 == pytest.approx(dz[1], rel=1e-4)
    # the free symmetric centre falls with gravity: 0.19 m at most lie between centre and corner
    assert abs(z[0] - (1.0 - 0.5 * 9.81 * 0.01)) < 0.19


def test_exact_wave() -> None:
    t = np.linspace(0.0, 1.5, 301)
    for x in (0.0, 0.45, 5.0):
        u, v = fig06_bar_contact.exact(t, x)
        assert np.all(u <= bar.DISTANCE + x + 1e-12)  # nothing passes the wall
        steady = np.abs(np.diff(v)) == 0
        np.testing.assert_allclose(np.diff(u)[steady] / 0.005, v[1:][steady], atol=1e-9)
    assert fig06_bar_contact.exact(np.array([1.5]), 0.0)[1][0] == -10.0


def test_error_norm() -> None:
    assert published.error(np.array([1.0, -1.0]), np.array([2.0, -2.0])) == pytest.approx(0.5)


def made(h: float, off: float) -> types.SimpleNamespace:
    """A cube that goes on falling, all rows but the first ``off`` metres and metres a second away."""
    t = h * np.arange(cube.steps_before(h), round(cube.TIME / h) + 1)
    q = np.repeat((1.0 - 0.5 * cube.GRAVITY * t**2)[:, None], 3, axis=1)
    v = np.repeat(-cube.GRAVITY * t[:, None], 3, axis=1)
    q[1:] += off
    v[1:] += off
    return types.SimpleNamespace(traj=types.SimpleNamespace(t=t, q=q, v=v))


def test_errors_beside_the_coupled_cube() -> None:
    """Instants that two step sizes share, whatever their ratio; the free fall is exact."""
    runs = {fig09_cube.FINE: made(3e-5, 0.0)}
    offs = {("DS", 3e-3): 3e-3, ("DS", 1e-3): -2e-3, ("DS", 1e-4): 1e-3, ("CS", 1e-4): 5e-4}
    runs |= {(name, h): made(h, off) for (name, h), off in offs.items()}
    numbers: common.Numbers = {}
    found = fig09_cube._beside_coupled(runs, numbers)
    shared = {3e-3: 3e-3, 1e-3: 3e-3, 1e-4: 3e-4}
    for (name, h), off in offs.items():
        t = np.arange(round(cube.TIME / shared[h]) + 1) * shared[h]
        away = np.sum(t > (cube.steps_before(h) + 0.5) * h)
        height = abs(off) * away / np.abs(1.0 - 0.5 * cube.GRAVITY * t**2).sum()
        rate = abs(off) * away / (cube.GRAVITY * t).sum()
        assert found[name][h] == pytest.approx((height, rate), rel=1e-9)
    assert numbers["CS / DS, 0.0001: error of the height"] == pytest.approx(0.5)
