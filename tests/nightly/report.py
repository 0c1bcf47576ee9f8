"""The report: outcome, seconds and commit of every test that was run."""

from __future__ import annotations

import json
import os
import pathlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Record:
    """The last run of a test.

    Attributes:
        outcome: ``"passed"``, ``"failed"`` or ``"skipped"``.
        seconds: of setup, call and teardown.
        commit: the state of the package, ``+`` behind it where files differ from the commit.
        text: end of the failure, or the reason of a skip.
    """

    outcome: str
    seconds: float
    commit: str
    text: str = ""


Report = dict[str, Record]


def read(file: pathlib.Path) -> Report:
    """The report kept in a file; empty where there is none."""
    if not file.is_file():
        return {}
    return {test: Record(**fields) for test, fields in json.loads(file.read_text()).items()}


def write(file: pathlib.Path, report: Report) -> None:
    """Keeps the report; a stop between leaves the former one."""
    file.parent.mkdir(parents=True, exist_ok=True)
    new = file.with_suffix(".new")
    new.write_text(json.dumps({test: asdict(x) for test, x in sorted(report.items())}, indent=0))
    os.replace(new, file)


def gathered(lines: Iterable[dict[str, Any]], commit: str) -> Report:
    """Records of tests from the lines of `tests.nightly.recorder`.

    A test that fails in setup or teardown has failed; one without a teardown was stopped and has no record.
    """
    parts: dict[str, list[dict[str, Any]]] = {}
    for line in lines:
        parts.setdefault(line["test"], []).append(line)
    report = {}
    for test, whole in parts.items():
        if whole[-1]["when"] != "teardown":
            continue
        worst = max(whole, key=lambda x: ("passed", "skipped", "failed").index(x["outcome"]))
        seconds = sum(x["seconds"] for x in whole)
        report[test] = Record(worst["outcome"], round(seconds, 2), commit, worst.get("text", ""))
    return report


def told(report: Report, tests: Iterable[str], commit: str) -> str:
    """The report of these tests at a commit, as text: counts, failures, tests that have not run yet."""
    all_tests = list(tests)
    done = {test: report[test] for test in all_tests if test in report and report[test].commit == commit}
    counts = Counter(x.outcome for x in done.values())
    seconds = sum(x.seconds for x in done.values())
    lines = [
        f"{commit}: {len(done)} of {len(all_tests)} tests run in {seconds / 3600:.2f} process hours: "
        + ", ".join(f"{counts[x]} {x}" for x in ("passed", "failed", "skipped"))
    ]
    for test, x in done.items():
        if x.outcome == "failed":
            lines.append(f"failed {test}\n    " + (x.text.strip().splitlines() or [""])[-1])
    reasons = Counter(x.text for x in done.values() if x.outcome == "skipped")
    lines += [f"skipped {count}: {reason}" for reason, count in reasons.most_common()]
    slowest = sorted(done, key=lambda test: -done[test].seconds)[:10]
    lines += [f"{done[test].seconds:8.1f} s  {test}" for test in slowest]
    return "\n".join(lines)
