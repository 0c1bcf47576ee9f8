"""Sensitivities through impacts against closed forms and event-driven motions: order, and what the
derivative of the discrete map gives instead.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.gradients.cases import HALT
from tests.gradients.convergence import ALL, DENSE_GRID, GRID, SCHEMES, Motion, answer, errors, grid_of
from tests.gradients.program import slope

QUICK = {
    "moreau": [
        "ball e=0.8 impacts=3",
        "corner, friction",
        "slope, stick impacts",
        "plastic landing, sliding",
        "Zeno, sliding",
        "slip reversal uphill",
    ],
    "generalized_alpha(1)": [
        "ball e=1.0 impacts=4",
        "corner, 3 impacts",
        "slope, damped slip impacts",
        "Zeno, sliding",
        "slip reversal uphill",
        "slip to stick",
    ],
    "nsga_decoupled": ["balls, equal times"],
}
EVERY = "ball e=0.8 impacts=3"
"""A case that each scheme does among the quick tests."""
PAIRS = [(scheme, name) for scheme, names in QUICK.items() for name in names]
PAIRS += [(scheme, EVERY) for scheme in SCHEMES if (scheme, EVERY) not in PAIRS]
REST = [(scheme, name) for scheme in SCHEMES for name in ALL if (scheme, name) not in PAIRS]


def check_order(case: Motion, scheme: str, grid: np.ndarray = GRID) -> None:
    """The order of the case over all step sizes."""
    grid = grid_of(case, grid)
    found = errors(case, SCHEMES[scheme], grid)
    order = slope(found, grid)
    # root mean squares of five places of the impacts in their steps scatter by about a fifth, over
    # seven octaves 0.05 in the order, of twenty half of that: first order shows as 0.9 and more
    assert order >= case.order, f"order {order:.2f}, errors {np.sqrt(np.mean(found**2, axis=1))}"


@pytest.mark.parametrize(("scheme", "name"), PAIRS)
def test_order(scheme: str, name: str) -> None:
    check_order(ALL[name], scheme)


@pytest.mark.slow
@pytest.mark.parametrize(("scheme", "name"), REST)
def test_order_of_all(scheme: str, name: str) -> None:
    check_order(ALL[name], scheme, DENSE_GRID)


def check_discrete(case: Motion, scheme: str) -> None:
    """The derivative of the discrete map is as wrong at the finest step size as at a coarse one."""
    coarse, fine = errors(case, SCHEMES[scheme], [GRID[2], GRID[-1]], gradient="discrete")
    right = errors(case, SCHEMES[scheme], GRID[-1])
    # constant, up to the scatter of the places of the impacts in their steps, by which it may have one of
    # two values (ED-alpha at a reversal of sliding)
    assert np.max(fine) > 0.5 * np.min(coarse)
    assert np.min(fine) < 2.0 * np.max(coarse)
    assert np.median(fine) > 10.0 * np.median(right)


NOT_CONSTANT = {
    HALT.name,  # no event whose time matters: the discrete map is right
    # the order of the impacts, and with it the tooth, depends on the step
    "balls, nearly equal times",
}


@pytest.mark.parametrize("name", QUICK["moreau"])
def test_the_discrete_derivative_does_not_converge(name: str) -> None:
    check_discrete(ALL[name], "moreau")


@pytest.mark.slow
@pytest.mark.parametrize("scheme", [name for name in SCHEMES if name != "moreau"])
@pytest.mark.parametrize("name", [name for name in ALL if name not in NOT_CONSTANT])
def test_no_discrete_derivative_converges(scheme: str, name: str) -> None:
    check_discrete(ALL[name], scheme)


def test_values_do_not_depend_on_the_derivative() -> None:
    """A shift has the value zero."""
    for name in ("ball e=0.8 impacts=3", "corner, friction", "slip reversal uphill"):
        both = [answer(ALL[name], SCHEMES["moreau"], 211, kind).x for kind in ("saltation", "discrete")]
        # two programs, so that fused operations may round differently
        np.testing.assert_allclose(both[0], both[1], rtol=1e-14, atol=1e-15)
