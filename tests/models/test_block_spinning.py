"""The block that spins freely: order, energy and attitude against Euler's equations."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

from nsjax import schemes
from nsjax.core import Labels
from tests.models.block_runs import cuboid, run
from tests.references import slope
from tests.references.rigid_box import angle_between

EPS = np.finfo(float).eps

# A plate of this size and mass 12 has the moments of inertia 1, 2, 3; the plane is far below.
PLATE = {"size": np.array([np.sqrt(2.0), 1.0, 0.0]), "mass": 12.0, "gravity": 0.0, "ground": -1e3}
SPIN = np.array([0.3, 5.0, 0.2])


@functools.cache
def free_path(rows: int):
    def rate(t, y):
        p, w = y[:4], y[4:]
        turned = np.concatenate([[-p[1:] @ w], p[0] * w + np.cross(p[1:], w)]) / 2
        j = np.array([1.0, 2.0, 3.0])
        return np.concatenate([turned, np.cross(j * w, w) / j])

    times = np.linspace(0, 2, rows + 1)
    path = solve_ivp(
        rate, (0, 2), [1, 0, 0, 0, *SPIN], method="DOP853", rtol=3e-14, atol=3e-14, t_eval=times
    )
    return path.y[:4].T, path.y[4:].T


def spinning(force_velocity: str, steps: int, rows: int):
    problem = cuboid(**PLATE, initial_q=[0, 0, 0, 1, 0, 0, 0], initial_v=[0, 0, 0, *SPIN])
    if (
        force_velocity == "start"
    ):  # another program: without the contacts it compiles in a fifth of the time
        system = dataclasses.replace(
            problem.system, nc=0, nt=0, gap=None, slip=None, law=None, observe=None, labels=Labels()
        )
        problem = dataclasses.replace(problem, system=system)
    scheme = schemes.moreau(gap_tolerance=1e-12, force_velocity=force_velocity)
    return run(problem, 2 / steps, steps, every=steps // rows, scheme=scheme)


@pytest.mark.parametrize(
    ("force_velocity", "order", "attitude", "spin"),
    [("start", 1, 1.7e-2, 8.5e-2), pytest.param("auto", 2, 3.1e-5, 1.3e-4, marks=pytest.mark.slow)],
)
def test_order_of_a_free_body(force_velocity, order, attitude, spin):
    p, w = free_path(25)
    np.testing.assert_allclose(w[-1], [-4.81412577, 1.38354367, 2.78123515], rtol=0, atol=5e-9)
    np.testing.assert_allclose(p[-1], [0.22163858, 0.12989281, -0.74757703, -0.61248084], rtol=0, atol=5e-9)
    counts = 25 * np.array([24, 32, 44, 60, 84, 116, 160, 224])  # dt from 3.3e-3 to 3.6e-4
    errors = []
    for n in counts:
        traj = spinning(force_velocity, int(n), 25)
        errors.append([angle_between(traj.q[:, 3:], p).max(), np.abs(traj.v[:, 3:] - w).max()])
        if n == 800:  # dt = 0.0025, the figures of `rotations.md` section 7, two digits
            assert errors[-1] == [pytest.approx(attitude, rel=0.04), pytest.approx(spin, rel=0.04)]
    errors = np.array(errors)
    for column in errors.T:
        assert slope(2 / counts, column) == pytest.approx(order, abs=0.1)


def test_explicit_gyroscopic_torque_feeds_energy():
    # With the force at the start of the step each step adds exactly dt^2 / 2 tau J^-1 tau.
    traj = spinning("start", 800, 800)
    j, w = np.array([1.0, 2.0, 3.0]), traj.v[:, 3:]
    torque = np.cross(j * w, w)
    energy = np.sum(j * w**2, axis=1) / 2
    gain = np.cumsum(np.sum(torque**2 / j, axis=1))[:-1] * (2 / 800) ** 2 / 2
    np.testing.assert_allclose(energy[1:] - energy[0], gain, rtol=1e-10, atol=1e-12)
    assert 4e-3 < energy[-1] / energy[0] - 1 < 6e-3  # `rotations.md`: +0.5 %


FAST = {
    "gravity": 0.0,
    "ground": -1e3,
    "mass": 12.0,
    "size": np.sqrt([0.05, 0.15, 0.35]),
}  # J = 0.5, 0.4, 0.2


def test_fast_spin_keeps_its_energy():
    # 1e4 steps with |Omega| dt = 0.2 about the first axis (stable) and the second (tumbling).
    dt = 1e-2
    for axis in (0, 1):
        spin = np.full(3, 0.02)
        spin[axis] = 20.0
        problem = cuboid(**FAST, initial_q=[0, 0, 0, 1, 0, 0, 0], initial_v=[0, 0, 0, *spin])
        traj = run(problem, dt, 10_000, every=10)
        energy = traj["kinetic"]
        length = np.sqrt(np.sum(traj.q[:, 3:].astype(np.longdouble) ** 2, axis=1))
        # `rotations.md` section 7: +7e-7 and +2.3e-2; the small other components are not given there.
        assert 0 < energy[-1] / energy[0] - 1 < (2e-6, 3e-2)[axis]
        assert np.abs(length - 1).max() <= 2 * EPS


def test_quaternion_stays_a_unit_quaternion():
    problem = cuboid(**PLATE, initial_q=[0, 0, 0, 1, 0, 0, 0], initial_v=[0, 0, 0, *SPIN])
    traj = run(problem, 1e-3, 100_000, every=25)
    length = np.sqrt(np.sum(traj.q[:, 3:].astype(np.longdouble) ** 2, axis=1))
    assert np.abs(length - 1).max() <= 2 * EPS
    assert np.all(traj.q[:, :3] == 0)


def test_steady_spin_is_exact():
    # About a principal axis: the attitude is exp(Omega t), 20 turns.
    problem = cuboid(**PLATE, initial_q=[0, 0, 0, 1, 0, 0, 0], initial_v=[0, 0, 0, 0, 0, 7.0])
    traj = run(problem, 1e-2, 1800, every=18)
    exact = Rotation.from_rotvec(np.outer(traj.t, [0, 0, 7.0])).as_quat()[:, [3, 0, 1, 2]]
    # Rounding of t and of 1800 products; an angle of 126 rad is itself known to 1e-14.
    assert angle_between(traj.q[:, 3:], exact).max() <= 1e-12
    np.testing.assert_array_equal(traj.v[:, 3:], np.broadcast_to([0, 0, 7.0], (101, 3)))
