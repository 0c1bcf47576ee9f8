"""The half-explicit scheme: its properties by `hets.md` section 3, and its options."""

from __future__ import annotations

import contextlib
import math

import numpy as np
import pytest

import nsjax
from nsjax import State, System, models, schemes, status
from nsjax.io.codec import describe_scheme, rebuild_scheme
from tests.points import unit_mass
from tests.references import slope
from tests.references.slider_crank import Data, bilateral
from tests.schemes.mixed_runs import run

G = 9.81


@pytest.mark.parametrize(("damping", "limit"), [(0.05, 1.91), (0.2, 1.76), (0.5, 2.0), (0.0, 2.0)])
def test_stability_limit_of_the_half_explicit_scheme(damping, limit):
    for factor in (0.99, 1.01):
        start = State(t=0.0, q=np.array([1.0]), v=np.array([0.3]))
        p = {"w": limit * factor, "z": damping}
        problem, steps = (OSCILLATOR, p, start), {"dt": 1.0, "steps": 1000, "every": 1000, "save": []}
        with contextlib.nullcontext() if factor < 1 else pytest.warns(UserWarning, match="largest stable"):
            traj = nsjax.simulate(*problem, schemes.half_explicit(), **steps)
        assert (abs(traj.q[-1, 0]) < 100) == (factor < 1)
        assert (int(traj.status) == status.DIVERGED) == (factor > 1)


def oscillator_force(t, q, v, p):
    return -(p["w"] ** 2) * q - 2 * p["z"] * p["w"] * v


OSCILLATOR = System(nq=1, nv=1, mass=unit_mass, force=oscillator_force)


# ---------------------------------------------------------------------------------------- options


def held_acceleration(x: np.ndarray) -> np.ndarray:
    """Of the slider-crank in its ideal guide, by the bordered system in plain numbers."""
    d, (a, b, w, u) = Data, x
    m11 = d.j1 + d.l1**2 * (d.m1 / 4 + d.m2 + d.m3)
    m22, c = d.j2 + d.l2**2 * (d.m2 / 4 + d.m3), d.l1 * d.l2 * (d.m2 / 2 + d.m3)
    m12, s = c * math.cos(a - b), c * math.sin(a - b)
    h = -s * u * u - G * d.l1 * math.cos(a) * (d.m1 / 2 + d.m2 + d.m3)
    k = s * w * w - G * d.l2 * math.cos(b) * (d.m2 / 2 + d.m3)
    w1, w2 = d.l1 * math.cos(a), d.l2 * math.cos(b)
    turning = -d.l1 * math.sin(a) * w * w - d.l2 * math.sin(b) * u * u
    matrix = [[m11, m12, -w1], [m12, m22, -w2], [w1, w2, 0.0]]
    return np.linalg.solve(matrix, [h, k, -turning])[:2]


def guide(q: np.ndarray) -> np.ndarray:
    return Data.l1 * np.sin(q[..., 0]) + Data.l2 * np.sin(q[..., 1])


def trapezoidal(dt: float, steps: int, corrected: bool) -> np.ndarray:
    """Positions of the forecasting rule, whose second stage is at the new position, or of Heun's."""
    q, v = np.zeros(2), np.array([150.0, -75.0])
    path = [q]
    for _ in range(steps):
        a = held_acceleration(np.concatenate([q, v]))
        forecast = v + dt * a
        new = q + 0.5 * dt * (v + forecast)
        stage = new if corrected else q + dt * v
        v = v + 0.5 * dt * (a + held_acceleration(np.concatenate([stage, forecast])))
        q = new
        path.append(q)
    return np.array(path)


def test_acceleration_level_is_the_forecasting_trapezoidal_rule():
    scheme = schemes.half_explicit(level="acceleration")
    traj = run(models.slider_crank_bilateral(), scheme, 1e-4, 10_000, save=[])
    np.testing.assert_allclose(traj.q[:501], trapezoidal(1e-4, 500, True), atol=1e-10)
    drift = np.polyfit(traj.t, guide(traj.q), 1)[0]
    # linear, as of Heun's rule (-3.6e-4), and 27 times that of the velocity level (-1.8e-5)
    assert drift == pytest.approx(-5.08e-4, rel=0.01)
    assert np.abs(guide(traj.q) - drift * traj.t).max() < 0.1 * np.abs(drift)
    heun = guide(trapezoidal(1e-4, 2000, False))
    assert np.polyfit(np.arange(2001) * 1e-4, heun, 1)[0] == pytest.approx(-3.6e-4, rel=0.05)


@pytest.mark.slow
def test_acceleration_level_holds_a_ball_and_refuses_friction():
    scheme = schemes.half_explicit(level="acceleration")
    ball = models.bouncing_ball(restitution=0.5, height=0.0)
    traj = run(ball, scheme, 1e-3, 500)
    np.testing.assert_allclose(traj.force_normal[1:], G, rtol=1e-12)
    np.testing.assert_array_equal(traj.q, np.full_like(traj.q, traj.q[0, 0]))
    # without restitution it stays where it lands; with it, the limit cycle of one bounce a step sinks
    for e, sinks in ((0.0, 0.0), (0.3, 0.7 / 1.3 * G * 1e-3**2 / 2)):
        landed = run(models.bouncing_ball(restitution=e, height=0.01), scheme, 1e-3, 1000)
        np.testing.assert_allclose(np.diff(landed.q[-300:, 0]), -sinks, rtol=1e-6, atol=1e-15)
    with pytest.raises(nsjax.InputError, match="works without friction only, slider_crank has nt = 1"):
        run(models.slider_crank(), scheme, 1e-5, 10)
    assert rebuild_scheme(describe_scheme(scheme)) == scheme
    with pytest.raises(nsjax.InputError, match="averaged_force = True belongs to level = 'velocity'"):
        schemes.half_explicit(level="acceleration", averaged_force=True)
    with pytest.raises(nsjax.InputError, match="level = 'accel'"):
        schemes.half_explicit(level="accel")


def force_error(steps: int, averaged: bool) -> float:
    """Largest error of the guide's force over 50 instants after 2 ms, relative to the largest force."""
    t = 1e-3 * np.arange(1, 51)
    _, force = bilateral(Data(), tuple(t))
    scheme = schemes.half_explicit(averaged_force=averaged)
    traj = run(
        models.slider_crank_bilateral(), scheme, 0.05 / steps, steps, every=steps // 50,
        save=["constraint_force"],
    )  # fmt: skip
    off = np.abs(traj.constraint_force[1:, 0] - force)[1:]
    return float(off.max() / np.abs(force).max())


@pytest.mark.slow
def test_averaged_force_is_of_second_order():
    assert force_error(500, True) == pytest.approx(1.3e-3, rel=0.1)
    assert force_error(5000, True) == pytest.approx(1.4e-5, rel=0.1)
    per_instant = np.array([40, 57, 79, 113, 159, 227, 317, 453])
    assert slope(1 / per_instant, [force_error(50 * n, True) for n in per_instant]) == pytest.approx(
        2, abs=0.05
    )
    assert force_error(5000, False) == pytest.approx(4.7e-3, rel=0.1)
