"""Newton's method on a mechanism of parts that strikes a stop, against an event-driven motion."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import minimize

import nsjax
from nsjax import multibody as mb
from nsjax import schemes, transforms

MASS, INERTIA, LENGTH, GRAVITY, STOP, START = 1.2, 0.02, 0.4, 9.81, 0.25, -0.8
NOISE = 1e-3
TIMES = 0.1 * np.arange(1, 15)
"""Instants of the data; the pendulum strikes at 0.40 s and 1.29 s."""
TRAIN = {"pin.restitution": transforms.interval(0.0, 1.0), "state.v[0]": transforms.free()}
TRUE, FIRST = np.array([0.6, 0.3]), np.array([0.55, 0.1])
"""Restitution and angular velocity at the start [rad/s]: of the data, and where the search begins."""


def angles(x: np.ndarray) -> np.ndarray:
    """Angles at `TIMES`, from impact to impact."""
    stiff = MASS * GRAVITY * LENGTH / (INERTIA + MASS * LENGTH**2)

    def strikes(_: float, y: np.ndarray) -> float:
        return STOP - y[0]

    strikes.terminal, strikes.direction = True, -1.0
    found, t, y = np.zeros(len(TIMES)), 0.0, np.array([START, x[1]])
    while t < TIMES[-1]:
        run = solve_ivp(
            lambda _, y: [y[1], -stiff * np.sin(y[0])], (t, TIMES[-1]), y, method="DOP853", rtol=1e-12,
            atol=1e-12, events=strikes, dense_output=True,
        )  # fmt: skip
        inside = (t < TIMES) & (run.t[-1] >= TIMES)
        found[inside] = run.sol(TIMES[inside])[0]
        t, y = run.t[-1], np.array([STOP - 1e-12, -x[0] * run.y[1, -1]])
    return found


DATA = angles(TRUE) + 0.03 * np.sin(9.0 * TIMES)
"""With a model error of thirty noise levels: Gauss and Newton's matrix is another one."""


def cost(x: np.ndarray) -> float:
    return float(0.5 * np.sum(((angles(x) - DATA) / NOISE) ** 2))


def curvature(x: np.ndarray, step: float = 0.01) -> np.ndarray:
    """Second differences of the cost, of fourth order."""
    ways = np.eye(2)

    def along(way: np.ndarray) -> float:
        f = [cost(x + k * step * way) for k in (-2, -1, 0, 1, 2)]
        return float(np.array([-1, 16, -30, 16, -1]) @ f / (12.0 * step**2))

    own = [along(way) for way in ways]
    mixed = (along(ways[0] + ways[1]) - along(ways[0] - ways[1])) / 4.0
    return np.array([[own[0], mixed], [mixed, own[1]]])


def identified(dt: float) -> nsjax.Estimate:
    pin = mb.hinge(
        "pin", "ground", "bob", at=(0.0, 0.0), on=(0.0, LENGTH), limits=(None, STOP), restitution=FIRST[0]
    )
    bob = mb.body("bob", mass=MASS, inertia=INERTIA)
    problem = mb.assemble(bob, pin, gravity=(0.0, -GRAVITY), start={"pin": (START, FIRST[1])})
    data = nsjax.Recording(times=TIMES, values={"bob.angle": DATA}, noise=NOISE)
    return nsjax.identify(
        problem, schemes.localized(schemes.half_explicit()), data, TRAIN, dt=dt, method="newton",
        cost_tolerance=1e-12, curvature="exact",
    )  # fmt: skip


@pytest.mark.slow
def test_newton_on_a_pendulum_with_a_stop() -> None:
    """The end of the search and the matrix of second derivatives there, both of second order."""
    options = {"xatol": 1e-9, "fatol": 1e-9}
    best = minimize(cost, TRUE, method="Nelder-Mead", options=options).x
    exact = curvature(best)
    size, deviation = np.sqrt(np.diag(exact)), np.sqrt(np.diag(np.linalg.inv(exact)))
    errors = []
    for dt in (1e-2, 5e-3):
        found = identified(dt)
        assert found.success
        away = np.max(np.abs(found.runs[0].path - found.values) / deviation, axis=1)
        # 124, 22, 0.33 standard deviations: quadratic
        assert away[2] < 0.03 * away[1]
        bend = (found.hessian - exact) / np.outer(size, size)
        errors.append([np.max(np.abs(found.values - best) / deviation), np.max(np.abs(bend))])
    # 0.35 standard deviations and 1.3e-3 of a diagonal at the larger step; a fourth of it at the other
    assert np.all(np.array(errors[0]) < [0.5, 2e-3]), errors
    assert np.all(np.array(errors[0]) > 3.5 * np.array(errors[1])), errors
