"""Mechanisms with closed forms, or numbers computed without this package.

Universal joint, springs, four-bar, joint friction, limits. Numbers without a formula were integrated to
eight digits from the equations of the rigid bodies.
"""

from __future__ import annotations

import jax
import numpy as np
import pytest

from nsjax import multibody as mb
from nsjax import schemes
from nsjax.core.checks import check_values
from tests.multibody.benchmark_runs import halved, run

ALPHA = schemes.generalized_alpha(rho_inf=1.0)


# M4: universal joint between two shafts in bearings, 30 degrees apart
BETA = np.pi / 6
OUT = np.array([0.0, np.sin(BETA), np.cos(BETA)])
ANGLES = np.radians([0.0, 30.0, 45.0, 60.0, 90.0])


def shafts(motion=None, start=None):
    return mb.assemble(
        mb.body("driver", mass=1.0, inertia=(0.1, 0.1, 0.02), com=(0.0, 0.0, -0.5)),
        mb.body("driven", mass=1.0, inertia=(0.1, 0.1, 0.02), com=0.5 * OUT),
        mb.hinge(
            "input", "ground", "driver", axis=(0.0, 0.0, 1.0), at=(0, 0, -1.0), on=(0, 0, -1.0),
            motion=motion,
        ),
        mb.hinge("output", "ground", "driven", axis=OUT, at=OUT, on=OUT),
        mb.universal(
            "cross", "driver", "driven", axis=(1.0, 0.0, 0.0), second_axis=np.cross(OUT, (1.0, 0, 0))
        ),
        start=start,
    )  # fmt: skip


@pytest.mark.filterwarnings("ignore::nsjax.multibody.start.RedundantConstraintsWarning")
def test_universal_joint_ratio() -> None:
    """Phase and ratio of a closed start: to the tolerance of the loop."""
    phases, ratios = [], []
    for angle in ANGLES:
        start = shafts(start={"driver": (float(angle), 2.0)}).state
        phases.append(start.q[1])
        ratios.append(start.v[1] / 2.0)
    assert np.allclose(ratios, [0.8660254, 0.9237604, 0.9897433, 1.0658774, 1.1547005], rtol=0, atol=1e-7)
    exact = np.cos(BETA) / (1 - np.sin(BETA) ** 2 * np.sin(ANGLES) ** 2)
    np.testing.assert_allclose(ratios, exact, rtol=1e-9)
    np.testing.assert_allclose(np.degrees(phases), [0, 26.565051, 40.893395, 56.309932, 90.0], atol=1e-6)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::nsjax.multibody.start.RedundantConstraintsWarning")
def test_rows_of_rounding_are_no_open_start() -> None:
    check_values(*shafts(motion=lambda t: 2.0 * t), ALPHA)


def test_cubic_spring_on_a_slide() -> None:
    problem = mb.assemble(
        mb.body("mass", mass=1.0), mb.slide("rail", "ground", "mass"),
        mb.joint_spring("k", "rail", stiffness=100.0, cubic=5e4, damping=0.4), start={"rail": 0.1},
    )  # fmt: skip
    exact = {0.25: 0.048213437, 0.5: -0.043574557, 1.0: 0.005629683, 2.0: 0.041338938}

    def error(dt):
        traj = run(problem, ALPHA, dt, 2.0, 8)
        return max(abs(float(traj["rail.position"][round(4 * t)]) - x) for t, x in exact.items())

    coarse, fine = halved(error, 1e-3)
    assert coarse <= 2e-3
    assert 3.6 <= coarse / fine <= 4.4


# four-bar: ground 0.4, crank 0.1, coupler 0.4, rocker 0.3
def four_bar(**given):
    return mb.assemble(
        mb.body("crank", mass=0.1, inertia=1e-3, com=0.05),
        mb.body("coupler", mass=0.4, inertia=5e-3, com=0.2),
        mb.body("rocker", mass=0.3, inertia=2e-3, com=0.15),
        mb.hinge("o", "ground", "crank", motion=given.pop("motion", None)),
        mb.hinge("a", "crank", "coupler", at=0.1), mb.hinge("c", "ground", "rocker", at=0.4),
        mb.hinge("b", "coupler", "rocker", at=0.4, on=0.3), gravity=9.81,
        guess={"rocker": 1.5, "coupler": 0.5}, **given,
    )  # fmt: skip


def rocker(angle):
    """Angle of the rocker with the coupler above: two circles."""
    x, y = 0.4 - 0.1 * np.cos(angle), -0.1 * np.sin(angle)  # from the pin to the rocker's bearing
    d = np.hypot(x, y)
    at_bearing = np.arccos((d**2 + 0.3**2 - 0.4**2) / (2 * 0.3 * d))
    return np.arctan2(-y, -x) % (2 * np.pi) - at_bearing


def test_four_bar_start() -> None:
    """Angle and rate of the rocker against the closed form of the loop."""
    for angle in (0.0, 0.3, 1.9, 4.0):
        state = four_bar(start={"crank": (angle, 5.0)}).state
        slope = (rocker(angle + 1e-5) - rocker(angle - 1e-5)) / 2e-5
        assert abs(state.q[2] - rocker(angle)) <= 1e-10
        assert abs(state.v[2] - 5.0 * slope) <= 1e-7


# friction and limits in joints
def turning_points(friction, start, weight):
    """Angles from the vertical where a pendulum turns back, the last where it stays.

    From ``a > 0`` it moves to the next ``b < a`` with ``weight (cos b - cos a) = friction (a - b)``, on
    either side, as long as its weight exceeds the friction.
    """
    found, side = [start], 1.0
    while weight * np.sin(abs(found[-1])) > friction:
        side = np.sign(found[-1])
        a = abs(found[-1])
        low, high = -a, np.arcsin(friction / weight)
        for _ in range(100):
            b = (low + high) / 2
            enough = weight * (np.cos(b) - np.cos(a)) > friction * (a - b)
            low, high = (low, b) if enough else (b, high)
        found.append(side * low)
    return np.array(found)


@pytest.mark.slow
def test_dry_friction_stops_a_pendulum() -> None:
    """It turns back where the energy says, and once its weight is too small it stays."""
    weight, friction = 9.81 * 0.5, 0.5
    problem = mb.assemble(
        mb.body("rod", mass=1.0, inertia=0.1, com=0.5), mb.hinge("pin", "ground", "rod", friction=friction),
        gravity=9.81, start={"rod": (0.0, 0.0)},
    )  # fmt: skip
    turns = turning_points(friction, np.pi / 2, weight)
    assert len(turns) > 4
    assert turns[-2] * turns[-1] > 0.0  # the last way does not come through the vertical
    traj = run(problem, schemes.moreau(), 5e-4, 12.0, 2400)
    angle, rate = np.asarray(traj["rod.angle"]) + np.pi / 2, np.asarray(traj["rod.omega"])
    # the rounding of the velocity change of a step by the weight; inertia 0.35 about the pin
    rest = np.finfo(float).eps * 5e-4 * weight / 0.35
    way = np.where(np.abs(rate) <= rest, 0.0, rate)  # at rest the sign is that of rounding
    back = [angle[0], *(angle[k] for k in range(1, len(way) - 1) if way[k - 1] * way[k] < 0), angle[-1]]
    # the scheme is of order 1: a step of friction and weight, 5e-4 s of 5 rad/s, for a way
    np.testing.assert_allclose(back, turns, rtol=0, atol=2.5e-3)
    assert np.all(np.abs(rate[-240:]) <= rest)
    assert np.ptp(angle[-240:]) == 0.0


def test_limits_throw_back() -> None:
    """A slide and a hinge between two limits: each hit keeps its fraction of the speed."""
    problem = mb.assemble(
        mb.body("block", mass=2.0),
        mb.body("flap", mass=1.0, inertia=0.3),
        mb.slide("rail", "ground", "block", limits=(0.0, 1.0), restitution=0.5),
        mb.hinge("axle", "block", "flap", limits=(-0.4, 0.3), restitution=0.8),
        start={"rail": (0.5, -3.0), "flap": (0.0, 2.0)},
    )
    traj = run(problem, schemes.moreau(), 1e-3, 1.0, 1000)
    # rail: at 1/6 s and, with 1.5 m/s, 2/3 s later; flap: 0.15 s, then 0.7 rad with 1.6 and 1.28 rad/s
    for name, times, speeds in (
        ("rail.speed", (1 / 6, 5 / 6), (-3.0, 1.5, -0.75)),
        ("flap.omega", (0.15, 0.15 + 0.7 / 1.6), (2.0, -1.6, 1.28)),
    ):
        # a hit comes up to a step late, as far behind the limit as the body moves in it, twice
        rate, t = np.asarray(traj[name]), np.asarray(traj.t)
        wanted = np.array(speeds)[np.searchsorted(times, t)]
        away = np.min(np.abs(t[:, None] - np.array(times)), axis=1) > 5e-3
        np.testing.assert_allclose(rate[away], wanted[away], rtol=0, atol=1e-9)


def test_gravity_and_numbers_may_be_traced() -> None:
    """A mechanism is assembled under a transformation: the end of a swing by mass and weight."""

    def force(mass, gravity):
        problem = mb.assemble(
            mb.body("rod", mass=mass, inertia=0.1, com=0.5),
            mb.hinge("pin", "ground", "rod"),
            gravity=gravity,
        )
        return problem.system.force(0.0, problem.state.q, problem.state.v, problem.params)[0]

    assert np.allclose(jax.grad(force, (0, 1))(2.0, 9.81), (-9.81 / 2, -1.0))
