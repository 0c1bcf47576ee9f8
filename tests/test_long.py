"""The list of tests that the test command leaves out."""

from __future__ import annotations

import pathlib
import re

import pytest

from tests.conftest import COLLECTED, LONG, long_tests


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


def strangers(listed: frozenset[str], collected: frozenset[str]) -> list[str]:
    """Listed cases that are not among those of their test, where any of these was collected."""
    tests = {name.partition("[")[0] for name in collected}
    return sorted(x for x in listed - collected if "[" in x and x.partition("[")[0] in tests)


def test_it_names_cases_that_exist(pytestconfig: pytest.Config) -> None:
    """Of the files of this session: the command of all tests looks at all of them, at no cost."""
    if any("::" in name for name in pytestconfig.args):
        pytest.skip("some tests were chosen by name: other cases of theirs were not collected")
    assert strangers(long_tests(LONG.read_text()), pytestconfig.stash[COLLECTED]) == []


def test_a_case_of_another_name_is_found() -> None:
    collected = frozenset({"a.py::test_one[1]", "a.py::test_two"})
    listed = frozenset({"a.py::test_one[1]", "a.py::test_one[2]", "a.py::test_two", "b.py::test_one[1]"})
    assert strangers(listed, collected) == ["a.py::test_one[2]"]


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
