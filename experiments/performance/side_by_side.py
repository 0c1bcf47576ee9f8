"""Rows of the benchmark's table, with required and found figures."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import nsjax

from ..common import Numbers
from . import last
from .last import Machine


@dataclass(frozen=True)
class Row:
    """One figure.

    Args:
        what: name of the figure, with the unit in brackets.
        found: measured value; nan if it was not measured, with the reason in ``note``.
        asked: the bound; None without a requirement.
        least: whether the bound is a lower one.
        note: conditions of the measurement, or why there is none.
    """

    what: str
    found: float = math.nan
    asked: float | None = None
    least: bool = False
    note: str = ""

    def missed(self) -> bool:
        """Whether there is a bound that is not met."""
        if self.asked is None or math.isnan(self.found):
            return False
        return self.found < self.asked if self.least else self.found > self.asked


def _short(x: float) -> str:
    return f"{x:,.0f}" if abs(x) >= 1000.0 else f"{x:.3g}"


def line(row: Row, change: str = "", peak: str = "") -> str:
    """A row as it is printed, with its change and the peak memory in columns of their own if given.

    Example:
        >>> from experiments.performance.side_by_side import Row, line
        >>> line(Row("moreau [us]", 0.284, asked=0.2)).split()
        ['moreau', '[us]', '<=', '0.2', '0.284', 'missed']
    """
    asked = "" if row.asked is None else f"{'>=' if row.least else '<='} {_short(row.asked)}"
    found = "-" if math.isnan(row.found) else _short(row.found)
    said = ", ".join(x for x in ("missed" if row.missed() else "", row.note) if x)
    columns = f" {change:>9} {peak:>9}" if change or peak else ""
    return f"  {row.what:52} {asked:>10} {found:>10}{columns}  {said}".rstrip()


def shown(
    section: str, rows: Iterable[Row], before: Mapping[str, Any] | None = None, on: Machine | None = None
) -> Numbers:
    """Prints rows as they are measured, and returns the found values under ``section: what``.

    Args:
        section: name of the section.
        rows: iterable that measures each row when it is requested.
        before: figures of `last.read`.
        on: this machine; with it, changes and the peak memory so far are printed.
    """
    numbers: Numbers = {}
    for row in rows:
        name = f"{section}: {row.what}"
        since = last.change(row.found, (before or {}).get(name), on) if on else ""
        print(line(row, since, f"{last.peak_mib():.0f} MiB" if on else ""), flush=True)
        numbers[name] = row.found
    return numbers


def interleaved(calls: Mapping[str, tuple[Callable[[], Any], int]], rounds: int) -> Numbers:
    """Median CPU time in microseconds per unit of work, A-B-A-B; each call comes with its units."""
    for call, _ in calls.values():
        call()
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, (call, _) in calls.items():
            before = time.process_time()
            call()
            seconds[name].append(time.process_time() - before)
    return {name: 1e6 * float(np.median(seconds[name])) / units for name, (_, units) in calls.items()}


def per_step(calls: Mapping[str, Callable[[int], Any]], long: int, rounds: int) -> Numbers:
    """Time of a step [us], from a long and a short run, without the fixed cost of a call.

    Args:
        calls: functions of a number of steps.
        long: number of steps of the long run; the short run has a tenth of them.
        rounds: number of rounds for the medians.
    """
    short = max(2, long // 10)
    both: dict[str, tuple[Callable[[], Any], int]] = {}
    for name, call in calls.items():
        both[f"{name}, long"] = (lambda call=call: call(long)), 1  # type: ignore[misc]
        both[f"{name}, short"] = (lambda call=call: call(short)), 1  # type: ignore[misc]
    found = interleaved(both, rounds)
    return {name: (found[f"{name}, long"] - found[f"{name}, short"]) / (long - short) for name in calls}


def plain_run(
    problem: nsjax.Problem, scheme: Any, dt: float, steps: int, every: int | None = None
) -> nsjax.Trajectory:
    """A run as a user calls it; ``every``: steps between rows, None for the last row alone."""
    system, params, state = problem
    return nsjax.simulate(system, params, state, scheme, dt=dt, steps=steps, every=every or steps)
