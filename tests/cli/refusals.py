"""What a refused command prints."""

from __future__ import annotations

import pathlib

import pytest

from nsjax import cli


def refused(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    """The sentence of a refused command, which prints and writes nothing else."""
    before = set(pathlib.Path().iterdir())
    assert cli.main(argv) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("nsjax: ")
    assert err.count("\n") == 1
    assert set(pathlib.Path().iterdir()) == before
    return err
