"""The swinging beam: its impact, its pin in two forms, and its moving base."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import nsjax
from nsjax import models, schemes


def rigid_arrival(length: float, gravity: float, spread: float) -> tuple[float, float]:
    """Time and angular velocity at which a rigid pinned rod, released along +x, is at -45 degrees."""
    rate = lambda t, y: [y[1], -1.5 * gravity / (length * spread) * np.cos(y[0])]  # noqa: E731
    down = lambda t, y: y[0] + np.pi / 4  # noqa: E731
    down.terminal = True  # type: ignore[attr-defined]
    found = solve_ivp(rate, (0.0, 1.0), [0.0, 0.0], events=down, rtol=1e-11, atol=1e-12)
    return float(found.t[-1]), float(found.y[1, -1])


@pytest.mark.slow
@pytest.mark.parametrize("pin", ["eliminated", "constraint"])
def test_the_paper_s_impact(pin: str) -> None:
    """First contact one step at most after 0.330221 s, at the speed of a rigid rod."""
    problem = models.flexible_pendulum(pin=pin)
    scheme = schemes.nsga_decoupled(relative_tolerance=1e-5, mass_scale=0.78)
    dt = 1e-3
    traj = nsjax.simulate(*problem, scheme, dt=dt, time=0.35)
    traj.raise_for_status()
    first = traj.t[np.flatnonzero(traj.impulse_normal[:, 0])[0]]
    # the impulse acts at the end of the step with the impact
    assert 0.0 <= first - 0.330221 <= dt
    arrival, omega = rigid_arrival(1.0, 9.81, 1.0 + 12 * 8.33e-10 / 1e-4 / 4)
    assert arrival == pytest.approx(0.3301715, abs=2e-5)
    before = np.asarray(traj.v)[np.flatnonzero(traj.t < first)[-1]]
    # h g of speed lie between that row and the impact
    assert before[-3] == pytest.approx(omega * np.sqrt(0.5), abs=2 * 9.81 * dt * 1.5)
    assert np.asarray(traj.gap).min() >= -1e-9
    assert int(traj.iterations.max()) <= 10


@pytest.mark.slow
def test_base_motion_is_gravity_of_an_accelerated_frame() -> None:
    """Far from its wall, with a base that moves by ``A sin(w t)``: a rigid rod has the same equation."""
    amplitude, omega, time = 0.05, 20.0, 0.2
    problem = models.flexible_pendulum(
        elements=2, wall=-10.0, base_amplitude=amplitude, base_frequency=omega, angle=-0.5
    )
    traj = nsjax.simulate(*problem, schemes.generalized_alpha(0.5), dt=1e-4, time=time, every=500)
    traj.raise_for_status()

    def rate(t, y):
        push = -amplitude * omega**2 * np.sin(omega * t)
        return [y[1], 1.5 * (-9.81 * np.cos(y[0]) + push * np.sin(y[0]))]

    exact = solve_ivp(rate, (0.0, time), [-0.5, 0.0], rtol=1e-10, atol=1e-12).y[0, -1]
    tip = np.arctan2(traj["tip_y"][-1], traj["tip_x"][-1])
    # the first bending mode (230 rad/s) follows with a deflection of g L (L^3 rho A / 3 E I) / 10 = 1e-3
    assert tip == pytest.approx(exact, abs=2e-3)
    assert exact > -0.7517 + 0.1  # where it falls without the motion of the base


def test_observed_resultants_of_a_stretched_beam() -> None:
    system, p, _ = models.flexible_pendulum(elements=4)
    nodes = np.stack([1.001 * np.linspace(0, 1, 5), np.zeros(5), np.zeros(5)], axis=1)
    found = system.observe(0.0, jnp.asarray(nodes.reshape(-1)[2:]), jnp.zeros(13), None, p)
    assert float(found["axial_force"]) == pytest.approx(2.1e11 * 1e-4 * 1e-3)
    assert float(found["strain_energy"]) == pytest.approx(0.5 * 2.1e7 * 1e-6)
    # rounding of coordinates over the element's length
    assert float(found["shear_force"]) + float(found["bending_moment"]) < 1e-7
