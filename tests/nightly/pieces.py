"""Tests dealt to pieces of about equal length, and a sample of them."""

from __future__ import annotations

import random
from collections.abc import Sequence

from tests.nightly.report import Report

UNKNOWN = 10.0
"""Seconds that a test is taken to need before it has run once: the mean over all tests is some five."""


def expected(test: str, report: Report) -> float:
    """Seconds of a test by its last run."""
    return report[test].seconds if test in report else UNKNOWN


def pieces(tests: Sequence[str], report: Report, seconds: float) -> list[list[str]]:
    """Tests in pieces of at most so many seconds of one process, the files in their order.

    A file stays in one piece where it fits, since its tests share programs; a longer one is divided, and a
    test that is longer than a piece is a piece.
    """
    files: dict[str, list[str]] = {}
    for test in tests:
        files.setdefault(test.partition("::")[0], []).append(test)
    found: list[list[str]] = []
    left = 0.0
    for whole in files.values():
        together = sum(expected(test, report) for test in whole)
        for part in [whole] if together <= seconds else [[test] for test in whole]:
            need = sum(expected(test, report) for test in part)
            if not found or need > left:
                found.append([])
                left = seconds
            found[-1] += part
            left -= need
    return found


def sample(tests: Sequence[str], seed: str) -> list[str]:
    """One case of every test function, in the order of the tests; another seed draws other cases."""
    cases: dict[str, list[str]] = {}
    for test in tests:
        cases.setdefault(test.partition("[")[0], []).append(test)
    return [random.Random(f"{seed} {function}").choice(whole) for function, whole in cases.items()]
