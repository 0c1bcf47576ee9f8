"""A plugin of pytest that writes the outcome of every test to a file as soon as it is known."""

from __future__ import annotations

import json
import os
from typing import Any

VARIABLE = "NSJAX_NIGHTLY_RECORD"
"""Environment variable that names the file."""

LONGEST = 2000
"""Characters of a failure that are kept, its last ones: the rest is seen when the test is run again."""


def pytest_runtest_logreport(report: Any) -> None:
    """Called in the process that deals the tests, for the workers' tests too."""
    if "PYTEST_XDIST_WORKER" in os.environ or VARIABLE not in os.environ:
        return
    line = {
        "test": report.nodeid, "when": report.when, "outcome": report.outcome, "seconds": report.duration,
    }  # fmt: skip
    if report.failed:
        line["text"] = str(report.longrepr)[-LONGEST:]
    elif report.skipped:
        line["text"] = str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr)
    with open(os.environ[VARIABLE], "a") as file:
        file.write(json.dumps(line) + "\n")
