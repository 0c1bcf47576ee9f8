"""``python -m tests.nightly``."""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from tests.nightly import pieces, recorder, report

ROOT = pathlib.Path(__file__).resolve().parents[2]
LATE = 1.5
"""A piece is stopped after so many times its length; what it has not run is in the next call's pieces."""


def commit() -> str:
    """The state of the package."""
    head = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    changed = subprocess.run(["git", "status", "--porcelain"], cwd=ROOT, capture_output=True, text=True)
    return head.stdout.strip() + ("+" if changed.stdout.strip() else "")


def collected(paths: list[str], marked: str = "") -> list[str]:
    """Names of all tests in these files and folders, or of those with a mark."""
    command = [
        sys.executable, "-m", "pytest", "--collect-only", "-q", "-m", marked, "-p", "no:cacheprovider",
        *paths,
    ]  # fmt: skip
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if run.returncode not in (0, 5):
        raise SystemExit(f"pytest cannot collect the tests:\n{run.stdout[-3000:]}")
    return [line for line in run.stdout.splitlines() if "::" in line and not line.startswith(" ")]


def run_piece(tests: list[str], seconds: float, processes: int, state: str) -> report.Report:
    """Runs a piece and returns what is known of it at its end, or when it is stopped."""
    with tempfile.TemporaryDirectory() as folder:
        names = pathlib.Path(folder) / "tests"
        names.write_text("\n".join(tests))
        record = pathlib.Path(folder) / "record"
        record.touch()
        command = [sys.executable, "-m", "pytest", "-q", "-m", "", "-p", "tests.nightly.recorder"]
        command += ["-n", str(processes), "--dist", "loadfile"] if processes > 1 else []
        environment = {**os.environ, recorder.VARIABLE: str(record)}
        environment.pop("PYTEST_XDIST_WORKER", None)  # a run of its own, whoever starts it
        run = subprocess.Popen([*command, f"@{names}"], cwd=ROOT, env=environment, start_new_session=True)
        try:
            run.wait(timeout=LATE * seconds)
        except (subprocess.TimeoutExpired, KeyboardInterrupt) as stopped:
            os.killpg(run.pid, 9)
            if isinstance(stopped, KeyboardInterrupt):
                raise SystemExit("stopped; pieces before this one are in the report") from None
        return report.gathered(map(json.loads, record.read_text().splitlines()), state)


def main(arguments: list[str] | None = None) -> int:
    """Runs what has not run at this commit; returns 1 where a test has failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.nightly", description=__doc__)
    parser.add_argument(
        "paths", nargs="*", default=["tests", "notebooks"], help="files and folders of tests"
    )
    parser.add_argument("--hours", type=float, default=1.0, help="length of a piece [h]")
    parser.add_argument("--pieces", type=int, help="how many pieces to run; all of them where not given")
    parser.add_argument("-n", "--processes", type=int, default=2)
    parser.add_argument("--report", type=pathlib.Path, default=ROOT / "results" / "nightly.json")
    parser.add_argument("--slow", action="store_true", help="only tests that the test command leaves out")
    parser.add_argument("--show", action="store_true", help="print the report and run nothing")
    parser.add_argument("--sample", action="store_true", help="one case of every test function, by commit")
    given = parser.parse_args(arguments)
    state = commit()
    known = report.read(given.report)
    tests = collected(given.paths, "slow" if given.slow else "")
    tests = pieces.sample(tests, state.rstrip("+")) if given.sample else tests
    left = [test for test in tests if test not in known or known[test].commit != state]
    todo = pieces.pieces(left, known, 3600 * given.hours * given.processes)
    for k, piece in enumerate([] if given.show else todo[: given.pieces]):
        print(f"piece {k + 1} of {len(todo)}: {len(piece)} tests", flush=True)
        known |= run_piece(piece, 3600 * given.hours, given.processes, state)
        report.write(given.report, known)
    print(report.told(known, tests, state))
    return int(any(known[x].outcome == "failed" for x in tests if x in known and known[x].commit == state))


if __name__ == "__main__":
    sys.exit(main())
