"""Table 4 and Figure 22 of [R&S]: every expected number, and the files that the commands leave."""

from __future__ import annotations

import numpy as np
import pytest

from experiments import common
from experiments.mixed_timestepping import fig22_convergence, table4_bilateral
from tests.experiments.results import missed
from tests.references.slider_crank import Data, bilateral


def test_table4(tmp_path, capsys):
    numbers = table4_bilateral.main(quick=True, folder=tmp_path)
    expected = common.load_expected(table4_bilateral.__file__)
    coarse = {name: entry for name, entry in expected.items() if ", 1e-06:" not in name}
    assert len(coarse) == 6 * 2 * 5 + 5 * 2
    assert missed(numbers, coarse) == []
    table = (tmp_path / "table4_bilateral.txt").read_text()
    assert table.count("\n") == 1 + 6 * 2
    assert table in capsys.readouterr().out


@pytest.mark.slow
def test_table4_with_the_smallest_step(tmp_path):
    numbers = table4_bilateral.main(folder=tmp_path)
    assert missed(numbers, common.load_expected(table4_bilateral.__file__)) == []


@pytest.mark.slow
def test_fig22(tmp_path):
    numbers = fig22_convergence.main(quick=True, folder=tmp_path)
    expected = common.load_expected(fig22_convergence.__file__)
    assert set(numbers) == set(expected)
    assert missed(numbers, expected) == []
    for suffix in (".png", ".npz"):
        assert (tmp_path / "fig22_convergence").with_suffix(suffix).stat().st_size > 5_000


def test_reference_agrees_with_another_derivation():
    ours = table4_bilateral.reference(50)
    x, force = bilateral(Data(), tuple(ours.t))
    np.testing.assert_allclose(ours.x, x, rtol=0, atol=1e-10)
    np.testing.assert_allclose(ours.force, force, rtol=0, atol=1e-9)
