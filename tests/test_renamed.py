"""Names until version 0.2 work, and say those since."""

from __future__ import annotations

import importlib
import warnings

import pytest

import nsjax
from nsjax.renamed import OLD_NAMES, renamed_options


@pytest.mark.parametrize("package", OLD_NAMES)
def test_old_names_are_the_new_things(package: str) -> None:
    home = importlib.import_module(package)
    for old, new in OLD_NAMES[package].items():
        with pytest.warns(
            DeprecationWarning, match=f"{package}.{old} is called {package}.{new} since"
        ) as said:
            assert getattr(home, old) is getattr(home, new)
        assert said[0].filename == __file__
        assert new in {*home.__all__, "jaxtools"}
        assert old not in home.__all__


def test_an_unknown_name_is_none() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'tabel'"):
        nsjax.tabel  # noqa: B018


def test_options_by_their_old_names() -> None:
    @renamed_options(tolerance="cost_tolerance")
    def fit(x: int, *, cost_tolerance: float = 0.0) -> tuple[int, float]:
        return x, cost_tolerance

    with pytest.warns(DeprecationWarning, match="fit: tolerance is called cost_tolerance since") as said:
        assert fit(1, **{"tolerance": 0.5}) == (1, 0.5)
    assert said[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fit(1, cost_tolerance=0.25) == (1, 0.25)
    with pytest.raises(TypeError, match="unexpected keyword argument 'tolerance'"):
        fit(1, cost_tolerance=0.25, **{"tolerance": 0.5})


def test_functions_that_take_them() -> None:
    for function, new in ((nsjax.identify, "cost_tolerance"), (nsjax.check_gradient, "secant_tolerance")):
        with (
            pytest.warns(DeprecationWarning, match=f"tolerance is called {new} since"),
            pytest.raises(TypeError, match="required"),
        ):
            function(**{"tolerance": 0.1})
