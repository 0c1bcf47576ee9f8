"""The programs whose cost is compared on the elastic bar compute the same motion. Timings are no tests."""

from __future__ import annotations

import pytest

from experiments.performance import bar


def test_slope_is_that_of_the_cost() -> None:
    numbers = {f"x, {n} [us/step]": 0.01 * n for n in (100, 1000, 10_000)}
    assert bar._slope(numbers, "x", (100, 1000, 10_000)) == pytest.approx(1.0)
