"""Notebooks hold small outputs: a reader on the web sees text and figures, and they belong to the cells."""

from __future__ import annotations

import base64
import json
import pathlib

import pytest

from tests.conftest import QUICK_NOTEBOOK, left_out

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
LARGEST = 500_000
"""Bytes of a notebook with its outputs."""


def cells(path: pathlib.Path) -> list[dict]:
    found = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in found if cell["cell_type"] == "code"]


def pictures(cell: dict) -> list[bytes]:
    found = [x["data"]["image/png"] for x in cell["outputs"] if "image/png" in x.get("data", {})]
    return [base64.b64decode("".join(x)) for x in found]


def test_there_are_notebooks() -> None:
    assert len(NOTEBOOKS) >= 10


def test_one_notebook_is_quick() -> None:
    assert [x.name for x in NOTEBOOKS if not left_out(x)] == [QUICK_NOTEBOOK]
    assert not left_out(pathlib.Path(__file__))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_outputs_are_there_and_small(path: pathlib.Path) -> None:
    """Made by ``python notebooks/outputs.py`` after every change of a cell."""
    assert path.stat().st_size < LARGEST
    code = cells(path)
    assert any(pictures(cell) for cell in code)
    for cell in code:
        for picture in pictures(cell):
            assert picture.startswith(b"\x89PNG")
            assert len(picture) > 1_000  # an empty panel of this size has fewer bytes
        assert all(x["output_type"] != "error" for x in cell["outputs"])
        assert "execution" not in cell["metadata"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_outputs_belong_to_the_cells(path: pathlib.Path) -> None:
    """All cells have run, in their order and from a fresh kernel; those that end with a figure show one,
    and those that print have a text.
    """
    code = cells(path)
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    for cell in code:
        source = "".join(cell["source"]).rstrip().splitlines()
        if source[-1] in ("fig", "figure"):
            assert len(pictures(cell)) == 1, source
        if any(line.startswith("print(") for line in source):
            assert any(x["output_type"] == "stream" for x in cell["outputs"]), source
