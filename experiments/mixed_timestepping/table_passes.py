"""[R&S] section 4.4: passes of the paper's own iterations, at Bathe's midpoint and at the end of a step.

The paper explains the cost of Bathe's method by "less iterations to find the unknowns at the middle of the
interval compared to the end of the interval", and of ED-alpha by one system of twice the size. Counted in
the program of `literal`, fixed-point iterations (55), (75), (76), (85) with the printed tolerance, on the
rigid mechanism of Table 1 in a guide with clearance, up to 10 ms.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from .. import common
from . import literal
from .literal_crank import rigid

STEP, DURATION = 1e-5, 0.01


class Counting(literal.Solver):
    """A solver that keeps the passes of every half step of Bathe."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.halves: list[int] = []

    def _half(self, *arguments: Any) -> Any:
        before = self.passes
        found = super()._half(*arguments)
        self.halves.append(self.passes - before)
        return found


def passes(scheme: str, steps: int) -> tuple[float, list[int]]:
    """Mean number of passes per step, and of every half step of Bathe."""
    rho = 0.8 if scheme == "gen-alpha" else 0.0
    solver, total = Counting(rigid(), literal.Setting(scheme=scheme, dt=STEP, rho=rho)), 0
    for _ in range(steps):
        solver.step()
        total += solver.passes
    return total / steps, solver.halves


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Counts and compares; ``quick``: a quarter of the time."""
    steps = round(DURATION / STEP) // (4 if quick else 1)
    numbers: common.Numbers = {}
    for scheme in ("gen-alpha", "Bathe", "ED-alpha"):
        numbers[f"{scheme}: passes per step"], halves = passes(scheme, steps)
        if halves:
            middle, end = np.mean(halves[::2]), np.mean(halves[1::2])
            numbers["Bathe: passes at the midpoint"] = float(middle)
            numbers["Bathe: passes at the end"] = float(end)
            numbers["Bathe: midpoint / end"] = float(middle / end)
    lines = [f"{name:36}{value:>8.3f}" for name, value in numbers.items()]
    return common.finish(__file__, folder, numbers, table="\n".join(lines))


if __name__ == "__main__":
    common.command(main)
