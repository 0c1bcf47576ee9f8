"""What the test command leaves out beside tests with the marker `slow`."""

from __future__ import annotations

import pathlib

from tests.conftest import QUICK_NOTEBOOK, left_out


def test_one_notebook_is_quick() -> None:
    folder = pathlib.Path(__file__).resolve().parents[1] / "notebooks"
    notebooks = sorted(folder.glob("*.ipynb"))
    assert [x.name for x in notebooks if not left_out(x)] == [QUICK_NOTEBOOK]
    assert not left_out(pathlib.Path(__file__))
