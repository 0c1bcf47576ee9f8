"""Friction that falls with the rate, estimated from noisy angles of one run that comes to rest."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import nsjax
from nsjax import Recording, schemes, transforms
from nsjax import multibody as mb

INERTIA, RATE, NOISE = 0.1, 10.0, 1e-3
TRUE = np.array([1.0, 2.0, 2.0])
"""Friction in fast sliding and at rest [N m], and the rate of the fall [rad/s]."""


def angles(times: np.ndarray) -> np.ndarray:
    """Angles of a wheel that is braked by this friction, from an integration up to its rest."""
    fast, rest, rate = TRUE

    def slides(_: float, y: np.ndarray) -> list[float]:
        return [y[1], -(fast + (rest - fast) * np.exp(-((y[1] / rate) ** 2))) / INERTIA]

    def stops(_: float, y: np.ndarray) -> float:
        return float(y[1])

    stops.terminal = True  # type: ignore[attr-defined]
    run = solve_ivp(
        slides, (0.0, 9.0), [0.0, RATE], events=stops, rtol=1e-11, atol=1e-12, dense_output=True
    )
    return run.sol(np.minimum(times, run.t[-1]))[0]


@pytest.mark.slow
def test_three_numbers_from_noisy_angles() -> None:
    """Of twenty draws of the noise at least eighteen intervals of 95 % contain each true number."""
    times = np.arange(1, 101) * 0.01
    shaft = mb.hinge(
        "shaft", "ground", "wheel", friction=1.2, own={"rest": 2.2, "speed": 1.5},
        friction_law=mb.Stribeck(),
    )  # fmt: skip
    problem = mb.assemble(mb.body("wheel", mass=1.0, inertia=INERTIA), shaft, start={"shaft": (0.0, RATE)})
    names = ("shaft.friction", "shaft.own.rest", "shaft.own.speed")
    rng, exact, inside = np.random.default_rng(0), angles(times), np.zeros(3, int)
    for _ in range(20):
        noisy = exact + NOISE * rng.standard_normal(times.size)
        fit = nsjax.identify(
            problem, schemes.moreau(), Recording(times=times, values={"wheel.angle": noisy}, noise=NOISE),
            dict.fromkeys(names, transforms.positive()), dt=1e-3,
        )  # fmt: skip
        assert fit.success
        inside += (fit.interval[:, 0] <= TRUE) & (fit.interval[:, 1] >= TRUE)
    assert inside.min() >= 18
