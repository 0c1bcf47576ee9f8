"""Error that the step leaves in a fit: a pendulum with dry friction and damping, its data integrated
between the instants at which it turns.
"""

from __future__ import annotations

import functools

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import nsjax
from nsjax import schemes, transforms
from nsjax.multibody import assemble, body, hinge, joint_spring

MASS, INERTIA, ARM, GRAVITY = 0.5, 0.005, 0.2, 9.81
FRICTION, DAMPING = 0.05, 2e-3
TIMES = 0.05 * np.arange(1, 81)


def pendulum(friction: float, damping: float) -> nsjax.Problem:
    return assemble(
        body("rod", mass=MASS, inertia=INERTIA, com=ARM), hinge("pin", "ground", "rod", friction=friction),
        joint_spring("damper", "pin", damping=damping), gravity=GRAVITY, start={"rod": (1.2, 0.0)},
    )  # fmt: skip


@functools.cache
def angles() -> np.ndarray:
    """Angles of the rod, one swing after the other; gravity at its turns exceeds the friction."""
    found, t, y, way = np.zeros(len(TIMES)), 0.0, np.array([1.2, 0.0]), -1.0
    while t < TIMES[-1]:

        def motion(_t: float, y: np.ndarray, way: float = way) -> list[float]:
            load = -MASS * GRAVITY * ARM * np.cos(y[0]) - FRICTION * way - DAMPING * y[1]
            return [y[1], load / (INERTIA + MASS * ARM**2)]

        def turns(now: float, y: np.ndarray, begun: float = t, way: float = way) -> float:
            return y[1] if now > begun + 1e-3 else way

        turns.terminal = True  # type: ignore[attr-defined]
        part = solve_ivp(motion, (t, TIMES[-1]), y, events=turns, rtol=1e-11, atol=1e-12, dense_output=True)
        inside = (t < TIMES) & (part.t[-1] >= TIMES)
        found[inside] = part.sol(TIMES[inside])[0]
        t, y, way = part.t[-1], part.y[:, -1] * [1.0, 0.0], -way
        assert MASS * GRAVITY * ARM * abs(np.cos(y[0])) > FRICTION
    return found


def fit(dt: float, noise: float | None = 1e-3, seed: int = 0) -> nsjax.Estimate:
    rng = np.random.default_rng(seed)
    values = {"rod.angle": angles() + 1e-3 * rng.standard_normal(len(TIMES))}
    data = nsjax.Recording(times=TIMES, values=values, noise=noise)
    train = {"pin.friction": transforms.positive(), "damper.damping": transforms.positive()}
    return nsjax.identify(pendulum(0.08, 4e-3), schemes.moreau(), data, train, dt=dt)


@pytest.fixture(scope="module")
def fits() -> list[nsjax.Estimate]:
    return [fit(1e-3, seed=k) for k in range(6)]


def test_a_step_that_is_too_long_is_named(fits: list[nsjax.Estimate]) -> None:
    """By the shift that a fit with a tenth of the step has, within a third, with a step that will do."""
    fine = fit(1e-4)
    assert not any("is long for these data" in x for x in fine.messages)
    (said,) = (x for x in fits[0].messages if "is long for these data" in x)
    moved = fine.values[1] - fits[0].values[1]
    assert abs(moved) > 1.5 * fits[0].deviation[1]
    told = float(said.split("would move by about ")[1].split(",")[0])
    assert abs(told - moved) < abs(moved) / 3.0
    assert said.endswith(("dt = 0.0002 would do", "dt = 0.0001 would do"))


def test_widened_intervals_contain_the_truth(fits: list[nsjax.Estimate]) -> None:
    """Without the error of the step two of three intervals of the damping miss it."""
    missed = 0
    for found in fits:
        (a, b), (c, d) = found.interval
        assert a < FRICTION < b
        assert c < DAMPING < d
        missed += abs(found.values[1] - DAMPING) > 1.99 * found.deviation[1]
    assert missed >= 2


def test_nothing_is_compared_with_a_noise_that_is_not_known() -> None:
    found = fit(1e-3, noise=None)
    assert found.chi_squared is None
    assert found.noise == pytest.approx(1e-3, rel=0.3)
    assert fit(1e-3).chi_squared == pytest.approx(1.0, rel=0.5)


@pytest.mark.slow
def test_moments_that_no_body_has_are_told() -> None:
    """A wheel on a spring swings as if its moment were three times the others, by a hidden flywheel."""
    wheel = assemble(
        body("wheel", mass=1.0, inertia=(1e-3, 1e-3, 1.5e-3)),
        hinge("pin", "ground", "wheel", axis=(0.0, 0.0, 1.0)),
        joint_spring("spring", "pin", stiffness=0.1),
        start={"wheel": (0.3, 0.0)},
    )
    times = 0.05 * np.arange(1, 21)
    swing = 0.3 * np.cos(np.sqrt(0.1 / 3e-3) * times)
    data = nsjax.Recording(times=times, values={"pin.angle": swing}, noise=1e-3)
    train = {"wheel.inertia[2]": transforms.positive()}
    found = nsjax.identify(wheel, schemes.generalized_alpha(), data, train, dt=1e-3)
    assert found["wheel.inertia[2]"] == pytest.approx(3e-3, rel=1e-3)
    assert not found.success
    assert any("not possible: wheel.inertia" in x and "triangle inequality" in x for x in found.messages)
    with pytest.raises(nsjax.InputError, match=r"wheel\.inertia = .* its moments violate the triangle"):
        nsjax.simulate(*found.problem, schemes.moreau(), dt=1e-3, steps=1)


@pytest.mark.slow
def test_moments_of_lanes_that_no_body_has_are_told() -> None:
    wheel = assemble(
        body("wheel", mass=1.0, inertia=(1e-3, 1e-3, 1.5e-3)),
        hinge("pin", "ground", "wheel", axis=(0.0, 0.0, 1.0)),
    )
    lanes = {"params.wheel.inertia[2]": [1.5e-3, 2.5e-3]}
    swept = nsjax.sweep(wheel, schemes.moreau(), lanes, dt=1e-3, steps=1)
    assert [k for k, _ in swept.refused] == [1]
    assert "none exceeds the sum of the two others" in swept.refused[0][1]
