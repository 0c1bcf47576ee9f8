"""Output of the command line during a run and after it."""

from __future__ import annotations

import argparse
import sys
import time
from typing import TextIO

import numpy as np

from nsjax import io, plot
from nsjax.cli.inputs import RunPlan
from nsjax.report import contact_lines, energy_line
from nsjax.trajectory import RunError, Trajectory


class Progress:
    """A line on the terminal with the progress of a run; pass it to ``simulate(progress=...)``.

    Args:
        shown: whether to show the line.
        stream: stream of the line, which is shown on terminals only. None: stderr.
        unit: name of the counted items.
    """

    def __init__(self, shown: bool = True, stream: TextIO | None = None, unit: str = "steps") -> None:
        self.unit = unit
        self.stream = sys.stderr if stream is None else stream
        self.shown = shown and self.stream.isatty()
        self.begin: float | None = None
        self.first = 0
        self.last = -np.inf
        self.written = False

    def __call__(self, done: int, total: int) -> None:
        """Shows that ``done`` of ``total`` steps are done."""
        now = time.perf_counter()
        if self.begin is None:
            self.begin, self.first = now, done  # a resumed run does not begin at zero
        patience = 1.0  # time before a run shows its progress [s]
        refresh = 0.1  # time between two updates of the progress [s]
        if now - self.begin < patience or now - self.last < refresh or done <= self.first:
            return
        self.last = now
        left = (now - self.begin) * (total - done) / (done - self.first)
        self.say(f"{100 * done // total:3d} %, {done:,} of {total:,} {self.unit}, {left:.0f} s left")

    def say(self, words: str) -> None:
        """Replaces the line."""
        if self.shown:
            self.stream.write(f"\r\x1b[K{words}")
            self.stream.flush()
            self.written = True

    def clear(self) -> None:
        """Removes the line."""
        if self.written:
            self.stream.write("\r\x1b[K")
            self.stream.flush()
            self.written = False


def summary(plan: RunPlan, traj: Trajectory, start_seconds: float, run_seconds: float) -> str:
    """Summary of a run for a reader. Returns lines of text, each with a line end.

    Args:
        plan: plan of the run.
        traj: trajectory of the run, with all row quantities saved.
        start_seconds: time of a first call of one step, which compiles [s].
        run_seconds: time of the run [s].
    """
    system = traj.system
    times = f"from t = {traj.t[0]:g} s to {traj.t[-1]:g} s"
    lines = [
        f"model            {system.name or 'without a name'}",
        f"scheme           {plan.scheme.name}",
        f"steps            {plan.steps} of dt = {plan.dt:g} s, {times}, every {plan.every} saved",
    ]
    if plan.shown:
        chosen = ", ".join(f"{name}={value}" for name, value in plan.shown)
        lines.append(f"set              {chosen}: a start that shows something; --set changes it")
    lines += [
        *contact_lines(traj),
        energy_line(traj),
        f"time             run {run_seconds:.3g} s, {plan.steps / run_seconds:.3g} steps/s; before it "
        f"{start_seconds:.2f} s for tracing, and compiling or reading the cache",
    ]
    return "\n".join(lines) + "\n"


def tell(
    args: argparse.Namespace, plan: RunPlan, traj: Trajectory, start_seconds: float, run_seconds: float
) -> None:
    """Writes the requested files and prints the summary of a run.

    Raises:
        RunError: afterwards, if a step failed.
    """
    failure = failure_of(traj)
    written = _write(args, plan, traj, bool(failure))
    if not args.quiet:
        print("" if failure else summary(plan, traj, start_seconds, run_seconds), end="")
        print("".join(f"wrote            {path}\n" for path in written), end="")
    if failure:
        raise RunError(failure)


def failure_of(traj: Trajectory) -> str:
    """Sentence about the first failure, "" without failure."""
    try:
        traj.raise_for_status()
    except RunError as error:
        return str(error)
    return ""


def _write(args: argparse.Namespace, plan: RunPlan, traj: Trajectory, failed: bool) -> list[str]:
    """Writes the requested files and returns their names; no figure of a failed run."""
    written = []
    note = " (a run that failed; see its status)" if failed else ""
    if args.checkpoint is not None:
        written.append(f"{args.checkpoint}{note}")
    if args.output is not None:
        io.save(
            args.output, plan.problem, traj, scheme=plan.scheme, steps=plan.steps, every=plan.every
        )  # fmt: skip
        written.append(f"{args.output}{note}")
    if args.plot is not None and not failed:
        plot.overview(plan.problem, traj, args.plot)
        written.append(args.plot)
    if args.animate is not None and not failed:
        plot.animate(plan.problem, traj).save(args.animate)
        written.append(args.animate)
    return written
