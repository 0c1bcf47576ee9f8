"""The list of tests that the test command leaves out."""

from __future__ import annotations

import pathlib
import re

from tests.conftest import LONG, long_tests


def test_it_names_tests_that_exist() -> None:
    root = pathlib.Path(__file__).resolve().parents[1]
    names = long_tests(LONG.read_text())
    assert len(names) > 50
    for name in names:
        file, _, test = name.partition("::")
        if file.endswith(".ipynb"):
            assert (root / file).is_file(), name
            continue
        assert re.search(rf"^def {test.partition('[')[0]}\(", (root / file).read_text(), re.M), name


def test_cases_and_files_are_read() -> None:
    text = (
        "# why\na/test_x.py\n  test_one\n  test_two[3-b c]\n\ntest_y.py\n  test_three\nnotebooks/1.ipynb\n"
    )
    assert long_tests(text) == {
        "tests/a/test_x.py::test_one",
        "tests/a/test_x.py::test_two[3-b c]",
        "tests/test_y.py::test_three",
        "notebooks/1.ipynb::1.ipynb",
    }
