"""Sensitivities of the rigid slider-crank with clearance and friction against its event-driven motion:
two accumulations of impacts, a reversal of sliding and two releases within 0.05 s.
"""

from __future__ import annotations

import numpy as np
import pytest

from nsjax.schemes.mixed.framework import MixedOptions
from tests.design import each_family
from tests.gradients import mechanism
from tests.gradients.convergence import SCHEMES
from tests.gradients.program import Answer, primes_near, sensitivity, slope

ORDER = 0.7
"""Least order of sensitivities through accumulations of impacts."""

EARLY, LATE = 0.004, 0.05
"""After the first impact; after all that is said above, inside a third accumulation [s]."""


def run(scheme: str, time: float, steps: int, straight: bool = True) -> Answer:
    found = sensitivity(mechanism.SYSTEM, mechanism.build, SCHEMES[scheme], mechanism.BASE, time, steps)
    # both corners of a wall strike together and shift together, so that the slider does not begin to
    # turn: to the regularisation 1e-9 of the dependent contacts, amplified by the impacts that follow
    turning, angles = found.jacobian[2], found.jacobian[mechanism.ANGLES]
    if straight:
        assert np.all(np.abs(turning) <= 1e-4 * np.max(np.abs(angles), axis=0))
    return found


def errors(scheme: str, time: float, steps, straight: bool = True) -> np.ndarray:
    """Relative errors of (theta1, theta2), shaped as ``steps`` and then the parameters."""
    exact, _ = mechanism.reference(time)
    found = []
    for n in np.ravel(steps):
        j = run(scheme, time, n, straight).jacobian[mechanism.ANGLES]
        found.append(np.linalg.norm(j - exact, axis=0) / np.linalg.norm(exact, axis=0))
    return np.reshape(found, (*np.shape(steps), len(mechanism.NAMES)))


@pytest.mark.slow
def test_the_reference_has_converged() -> None:
    """Differences of two widths, 1e-4 and 4e-4 of the parameters: two per cent are asked below."""
    for time in (EARLY, LATE):
        assert np.all(mechanism.reference(time)[1] < 1e-4)


@pytest.mark.slow
def test_after_the_first_impact() -> None:
    grid = primes_near(100, 6, 4)
    found = errors("moreau", EARLY, grid)
    for k, name in enumerate(mechanism.NAMES):
        # an isolated impact; that of the friction coefficient among them
        order = slope(found[..., k], grid)
        assert order >= 0.9, f"{name}: order {order:.2f}"


@each_family("scheme")
def test_through_accumulations(scheme: str) -> None:
    """The orders, and the errors at 1e-6 s.

    The largest, in the restitution, are nearly the same for all schemes of one family, whatever their
    order on smooth motion. They come with those of the state, whose last impacts are early by 2e-5 s
    (mixed schemes) and 1.2e-4 s (impulsive ones) at 1e-6 s, both of first order, while the sensitivity
    itself changes by a hundredth in 1e-5 s: two per cent are reached at 7.5e-7 s and below 1e-7 s.
    """
    mixed = isinstance(SCHEMES[scheme].options, MixedOptions)
    # the next impact, at 0.05026 s in the motion, is before 0.05 s in impulsive schemes of more than
    # 9e-7 s: their sensitivities are those after another impact, and steps must be smaller, but not below
    # 1.2e-7 s (next test)
    grid = primes_near(4000, 4, 4) if mixed else primes_near(60_000, 3, 6)
    found = errors(scheme, LATE, grid)
    # the saw-tooth of impulsive schemes is at its worst at the first or the last of these step sizes, of
    # eleven between 45,000 and 70,000 steps
    at = np.max(errors(scheme, LATE, [50_000] if mixed else [46_993, 50_000, 53_003]), axis=0)
    orders = [slope(found[..., k], grid) for k in range(len(mechanism.NAMES))]
    print(scheme, "orders", np.round(orders, 2), "errors at 1e-6 s", np.array2string(at, precision=2))
    assert min(orders) >= ORDER
    limits = {
        "clearance": 0.02, "restitution": 0.03, "friction": 0.02, "l2": 0.05, "m3": 0.05, "omega": 0.02,
    }  # fmt: skip
    if not mixed:
        limits |= {"clearance": 0.055, "restitution": 0.34}  # measured: 0.051, 0.326
    assert np.all(at <= [limits[name] for name in mechanism.NAMES])


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["moreau", "moreau_theta"])
def test_rattle_is_bounded(scheme: str) -> None:
    """Below 1e-7 s a step of acceleration moves the corners by less than the gap tolerance. At one step
    size in five they then rattle along the wall, and the slider itself begins to turn: the sensitivities
    are those of this motion, which is wrong, but they do not grow without bound.
    """
    found = errors(scheme, LATE, [511_997, 707_111, 732_041, 784_583, 870_547, 901_249], straight=False)
    assert np.all(found < 0.5)
    assert np.median(found[:, mechanism.NAMES.index("restitution")]) < 0.2
