"""Tables of measured data: what people write, and what is refused in a sentence."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest

from nsjax import InputError
from nsjax.cli.identify import read_columns


def table(folder: pathlib.Path, text: str | bytes) -> pathlib.Path:
    path = folder / "data.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_columns_with_missing_values(tmp_path: pathlib.Path) -> None:
    path = table(tmp_path, '\ufefft, x ,"y"\r\n0,1e-3,nan\n\n0.5,,NA\n1,-2,3\n')  # as spreadsheets write it
    found = read_columns(path)
    assert list(found) == ["t", "x", "y"]
    np.testing.assert_array_equal(found["t"], [0.0, 0.5, 1.0])
    np.testing.assert_array_equal(found["x"], [1e-3, np.nan, -2.0])
    np.testing.assert_array_equal(found["y"], [np.nan, np.nan, 3.0])
    np.savez(tmp_path / "data.npz", t=np.arange(3), x=np.ones(3))
    np.testing.assert_array_equal(read_columns(tmp_path / "data.npz")["t"], [0.0, 1.0, 2.0])


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "it is empty; give a heading and rows"),
        ("t,x\n", "there are no rows under the heading t, x"),
        ("t;x\n0;1\n", "separated by semicolons; write commas"),
        ("t\tx\n0\t1\n", "separated by tabulators; write commas"),
        ("t x\n0 1\n", "separated by spaces; write commas"),
        ("0,1\n1,2\n", "the first line is 0, 1; "),
        ("t,x,x\n0,1,2\n", "two columns are named 'x'"),
        ("t,x\n0,1\n1,slow\n", "row 3, column x: 'slow' is no number"),
        ("t,x\n0,1\n1\n", "row 3 has 1 entries, the heading 2 names"),
        ("t,x\n0,1,5\n", "row 2 has 3 entries, the heading 2 names"),
        (b"\xff\xfe\x00", "it is no text"),
    ],
)
def test_refusals(tmp_path: pathlib.Path, text: str | bytes, sentence: str) -> None:
    path = table(tmp_path, text)
    with pytest.raises(InputError) as caught:
        read_columns(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert sentence in str(caught.value)


def test_archives_that_hold_no_numbers(tmp_path: pathlib.Path) -> None:
    np.savez(tmp_path / "words.npz", t=np.array(["a", "b"]))
    (tmp_path / "text.npz").write_text("t,x")
    for name in ("words", "text"):
        with pytest.raises(InputError, match="it is no archive of numbers"):
            read_columns(tmp_path / f"{name}.npz")
    with pytest.raises(InputError, match="No such file"):
        read_columns(tmp_path / "none.csv")
