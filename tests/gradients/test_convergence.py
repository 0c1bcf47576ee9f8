"""Sensitivities through impacts against closed forms and event-driven motions: order, and what the
derivative of the discrete map gives instead.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.design import drawn
from tests.gradients.convergence import ALL, DENSE_GRID, GRID, SCHEMES, Motion, answer, errors, grid_of
from tests.gradients.program import slope

EVERY = "ball e=0.8 impacts=3"
"""A case that each scheme does."""
SOON = ("corner, friction", "slope, stick impacts", "plastic landing, sliding", "Zeno, sliding")
PAIRS = [("moreau", x) for x in (EVERY, *SOON)]
OTHERS = {
    "generalized_alpha(1)": [
        "ball e=1.0 impacts=4", "corner, 3 impacts", "slope, damped slip impacts", "Zeno, sliding",
        "slip reversal uphill", "slip to stick",
    ],
    "nsga_decoupled": ["balls, equal times"],
}  # fmt: skip
REST = [(scheme, name) for scheme, names in OTHERS.items() for name in names]
REST += [(scheme, EVERY) for scheme in SCHEMES if (scheme, EVERY) not in PAIRS]
REST += [(s, name) for k, name in enumerate(ALL) for s in drawn("", k) if (s, name) not in PAIRS + REST]


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


@pytest.mark.parametrize(
    "name", [pytest.param("corner, friction", marks=pytest.mark.slow), "plastic landing, sliding"]
)
def test_the_discrete_derivative_does_not_converge(name: str) -> None:
    """The derivative of the discrete map is as wrong at the finest step size as at a coarse one."""
    scheme = SCHEMES["moreau"]
    coarse, fine = errors(ALL[name], scheme, [GRID[2], GRID[-1]], gradient="discrete")
    right = errors(ALL[name], scheme, GRID[-1])
    # constant, up to the scatter of the places of the impacts in their steps
    assert np.max(fine) > 0.5 * np.min(coarse)
    assert np.min(fine) < 2.0 * np.max(coarse)
    assert np.median(fine) > 10.0 * np.median(right)


@pytest.mark.slow
def test_values_do_not_depend_on_the_derivative() -> None:
    """A shift has the value zero."""
    for name in ("ball e=0.8 impacts=3", "corner, friction", "slip reversal uphill"):
        both = [answer(ALL[name], SCHEMES["moreau"], 211, kind).x for kind in ("saltation", "discrete")]
        # two programs, so that fused operations may round differently
        np.testing.assert_allclose(both[0], both[1], rtol=1e-14, atol=1e-15)
