"""Motions of beams against exact momenta, published numbers and convergence in the step."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import schemes
from nsjax.math import rotations
from nsjax.multibody import assemble, beam, force, hinge, rectangular, section, torque

pytestmark = pytest.mark.slow


def _pulse(t):
    """Triangle from 0 to 200 at 2.5 s and back."""
    return jnp.where(t < 2.5, 80.0 * t, jnp.where(t < 5.0, 80.0 * (5.0 - t), 0.0))


def _push(t, scene, own):
    return jnp.stack([_pulse(t) / 10.0, 0.0 * t, 0.0 * t])


def _turn(t, scene, own):
    return jnp.stack([0.0 * t, -_pulse(t) / 2.0, -_pulse(t)])


def _spins(problem, traj, q):
    """Angular momentum about the origin (rows, 3)."""
    s, p = problem.system, problem.system.prepare(problem.params)
    momenta = jax.jit(jax.vmap(lambda q, v: s.inertia(q, v, p)))(traj.q, traj.v)
    momenta = np.asarray(momenta).reshape(len(q), -1, 6)
    turns = np.asarray(jax.vmap(jax.vmap(rotations.matrix))(jnp.asarray(q[:, :, 3:])))
    own = np.einsum("tnij,tnj->tni", turns, momenta[:, :, 3:])
    return (np.cross(q[:, :, :3], momenta[:, :, :3]) + own).sum(axis=1)


@pytest.mark.parametrize(
    ("given", "shares"),
    [
        ({}, (0.5, 0.5)),
        ({"element": "incremental"}, (0.5, 0.5)),
        ({"element": "incremental", "element_nodes": 3}, (1 / 6, 4 / 6, 1 / 6)),
    ],
)
def test_flying_beam(given: dict, shares: tuple[float, ...]) -> None:
    """V6 (Simo and Vu-Quoc 1988): exact momentum and path of the centre, books of energy and spin. Printed
    are numbers of ten quadratic elements.
    """
    soft = section(EA=1e4, GA=1e4, EI=500.0, GJ=500.0, line_mass=1.0, line_inertia=10.0)
    problem = assemble(
        beam("flying", (6, 0, 0), (0, 8, 0), elements=10, section=soft, **given),
        force("F", "flying.start", law=_push), torque("M", "flying.start", law=_turn),
    )  # fmt: skip
    dt = 0.025
    traj = nsjax.simulate(*problem, schemes.newmark(), dt=dt, time=10.0)
    five = round(5.0 / dt)
    per = len(shares) - 1
    mass = np.zeros(10 * per + 1)
    for k in range(10):
        mass[per * k : per * (k + 1) + 1] += shares
    q = np.asarray(traj.q).reshape(len(traj.t), -1, 7)[:, : len(mass)]
    momentum = np.einsum("n,tni->ti", mass, np.asarray(traj.v).reshape(len(q), -1, 6)[:, :, :3])
    np.testing.assert_allclose(momentum[five:] - [50.0, 0.0, 0.0], 0.0, atol=1e-10)
    centre = np.einsum("n,tni->ti", mass, q[:, :, :3]) / 10.0
    np.testing.assert_allclose(centre[[five, -1], 0], (15.5, 40.5), atol=1e-10)
    energy = np.asarray(traj["energy"])[five:]
    assert energy[0] == pytest.approx(724.2, rel=2e-2)
    assert np.ptp(energy) < 1e-3 * energy[0]
    np.testing.assert_allclose(q[five, 0, :3], (19.213, 1.632, -2.135), atol=0.02 * 19.4)
    if per == 2:
        np.testing.assert_allclose(q[-1, 0, :3], (42.80, 3.71, -4.40), atol=0.02 * 43.2)
    spin = _spins(problem, traj, q)[five:]
    assert np.max(np.abs(spin - spin[0])) < 2e-4 * np.linalg.norm(spin[0])  # printed: 4e-5, quadratic


def test_double_pendulum_of_stiff_rods() -> None:
    """M2: the tip at 0.5 s and at 1 s, and the energy then, as printed for three steps.

    With steps of 10 ms, in which the rods turn by 0.07 rad, the predicted axial forces are a thousand times
    those of the solution: Newton's method begins once more where the rods have not moved.
    """
    rod = rectangular(0.02, 0.02, E=2e11, nu=0.3, rho=2500.0)
    problem = assemble(
        beam("one", (0, 0, 0), (1, 0, 0), elements=4, section=rod),
        beam("two", (1, 0, 0), (2, 0, 0), elements=4, section=rod),
        hinge("top", "ground", "one.start", axis=(0, 0, 1)),
        hinge("middle", "one.end", "two.start", axis=(0, 0, 1)), gravity=(0.0, -9.81, 0.0),
    )  # fmt: skip
    printed = {
        0.01: ((1.29713, -1.40529), (-1.66330, -1.04162), -3.0e-3),
        0.005: ((1.29685, -1.40558), (-1.66251, -1.04147), -6.9e-4),
        0.0025: ((1.29678, -1.40566), (-1.66232, -1.04144), -1.7e-4),
    }
    for dt, (half, end, energy) in printed.items():
        traj = nsjax.simulate(*problem, schemes.newmark(), dt=dt, time=1.0)
        traj.raise_for_status()
        q = np.asarray(traj.q).reshape(len(traj.t), -1, 7)
        np.testing.assert_allclose(q[round(0.5 / dt), -1, :2], half, atol=1e-5)
        np.testing.assert_allclose(q[-1, -1, :2], end, atol=1e-5)
        assert traj["energy"][-1] == pytest.approx(energy, rel=0.05)  # of other elements
        assert np.max(np.abs(q[:, 4, :3] - q[:, 5, :3])) < 1e-14  # the joint, closed by every step


def _spun_up(t):
    """The prescribed angle of V5: 6 rad/s from 15 s on."""
    w = 15.0 / (2.0 * np.pi)
    rising = 6.0 / 15.0 * (t**2 / 2.0 + w**2 * (jnp.cos(t / w) - 1.0))
    return jnp.where(t < 15.0, rising, 6.0 * t - 45.0)


def test_spin_up_of_an_arm() -> None:
    """V5 (Simo and Vu-Quoc 1986): largest lag of the tip, extension ``omega^2 rho A L^3 / (3 EA)``."""
    stiff = section(EA=2.8e7, GA=1e7, EI=1.4e4, GJ=1.4e4, line_mass=1.2, line_inertia=6e-4)
    problem = assemble(
        beam("arm", (0, 0, 0), (10, 0, 0), elements=10, section=stiff),
        hinge("drive", "ground", "arm.start", axis=(0, 0, 1), motion=_spun_up),
    )
    traj = nsjax.simulate(*problem, schemes.generalized_alpha(0.9), dt=0.005, time=20.0)
    t, q = np.asarray(traj.t), np.asarray(traj.q)
    tip, angle = q.reshape(len(t), -1, 7)[:, -1], np.asarray(jax.vmap(_spun_up)(t))
    along = np.cos(angle) * tip[:, 0] + np.sin(angle) * tip[:, 1] - 10.0
    across = np.cos(angle) * tip[:, 1] - np.sin(angle) * tip[:, 0]
    assert across.min() == pytest.approx(-0.573, abs=1e-3)
    assert t[across.argmin()] == pytest.approx(6.76, abs=0.02)
    assert along[t > 15.5].mean() == pytest.approx(5.143e-4, rel=2e-3)  # ten elements: 5.140e-4
