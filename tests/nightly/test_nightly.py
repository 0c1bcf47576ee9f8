"""Pieces and report of all tests."""

from __future__ import annotations

import json
import pathlib

import pytest

from tests.nightly.__main__ import collected, run_piece
from tests.nightly.pieces import UNKNOWN, pieces, sample
from tests.nightly.report import Record, gathered, read, told, write


def test_files_stay_together_and_no_test_is_lost() -> None:
    tests = [f"{file}.py::test_{k}" for file in "abc" for k in range(4)]
    known = {test: Record("passed", 100.0, "x") for test in tests if test.startswith("b")}
    found = pieces(tests, known, 5 * UNKNOWN)
    assert [test for piece in found for test in piece] == tests
    assert found[0] == tests[:4]
    assert [len(piece) for piece in found] == [4, 1, 1, 1, 1, 4]  # those of b are longer than a piece
    assert pieces([], known, 10.0) == []


def test_a_sample_has_one_case_of_every_function_and_changes_with_the_commit() -> None:
    tests = [f"a.py::test_{name}[{k}-x[0]]" for name in "ab" for k in range(50)] + ["b.py::test_a"]
    found = sample(tests, "abc")
    assert [x.partition("[")[0] for x in found] == ["a.py::test_a", "a.py::test_b", "b.py::test_a"]
    assert set(found) < set(tests)
    assert sample(tests, "abc") == found
    assert {sample(tests, str(k))[0] for k in range(1000)} == set(tests[:50])


def test_a_report_is_kept_and_told(tmp_path: pathlib.Path) -> None:
    def lines(test: str, *outcomes: str) -> list[dict]:
        parts = zip(("setup", "call", "teardown"), outcomes, strict=False)
        return [
            {"test": test, "when": when, "outcome": x, "seconds": 1.0, "text": "why"} for when, x in parts
        ]

    written = [
        *lines("a.py::good", "passed", "passed", "passed"),
        *lines("a.py::bad", "passed", "failed", "passed"),
        *lines("a.py::torn", "passed", "passed", "failed"),
        *lines("a.py::stopped", "passed", "passed"),
    ]
    report = gathered(written, "abc")
    assert {test: x.outcome for test, x in report.items()} == {
        "a.py::good": "passed", "a.py::bad": "failed", "a.py::torn": "failed",
    }  # fmt: skip
    write(tmp_path / "report.json", report)
    assert read(tmp_path / "report.json") == report
    assert read(tmp_path / "none.json") == {}
    text = told(report, [*report, "a.py::stopped"], "abc")
    assert "3 of 4 tests" in text
    assert "1 passed, 2 failed, 0 skipped" in text
    assert told(report, report, "other").startswith("other: 0 of 3 tests")


@pytest.mark.slow
def test_a_piece_records_what_happens(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "test_three.py"
    file.write_text(
        "import pytest\n"
        "def test_good(): pass\n"
        "@pytest.mark.slow\ndef test_bad(): assert 1 == 2\n"
        "def test_left(): pytest.skip('no data')\n"
    )
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = slow\naddopts = -m 'not slow'\n")
    names = collected(["-c", str(tmp_path / "pytest.ini"), "--rootdir", str(tmp_path), str(file)])
    assert [name.partition("::")[2] for name in names] == ["test_good", "test_bad", "test_left"]
    slow = collected(["-c", str(tmp_path / "pytest.ini"), "--rootdir", str(tmp_path), str(file)], "slow")
    assert [name.partition("::")[2] for name in slow] == ["test_bad"]
    tests = ["-c", str(tmp_path / "pytest.ini"), "--rootdir", str(tmp_path), str(file)]
    report = run_piece(tests, 100.0, 1, "abc")
    found = {test.partition("::")[2]: x for test, x in report.items()}
    assert {test: x.outcome for test, x in found.items()} == {
        "test_good": "passed", "test_bad": "failed", "test_left": "skipped",
    }  # fmt: skip
    assert "assert 1 == 2" in found["test_bad"].text
    assert json.dumps(found["test_left"].text).find("no data") >= 0
