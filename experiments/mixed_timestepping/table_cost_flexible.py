"""Cost of Bathe's scheme with a flexible rod: CPU time per step [us], beside the rigid mechanism.

Table 2 up to 0.02 s, dt = 1e-5 s; interleaved, medians. Twenty elements mean two dense systems of 63
unknowns per step, ten modes two of 13, which stay in one kernel.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nsjax
from nsjax import models

from .. import common
from ..performance.side_by_side import interleaved
from .flexible import STEP, Rod, modal
from .rigid import PAPER, RIGID, ROWS, table2

STEPS = 2000


def _timed(problem: Any) -> Any:
    def call() -> None:
        system, params, state = problem
        traj = nsjax.simulate(
            system, params, state, RIGID["Bathe"], dt=STEP, steps=STEPS, every=20, save=ROWS
        )
        traj.raise_for_status()

    return call


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Measures and prints; ``quick``: ten modes and the rigid mechanism, three rounds."""
    problems = {"rigid": table2(), "10 modes": modal("clamped_free", 10).model(**models.TABLE_2)}
    if not quick:
        problems["20 elements"] = Rod().model(**models.TABLE_2)
    found = interleaved({k: (_timed(p), STEPS) for k, p in problems.items()}, 3 if quick else 7)
    lines = [f"{'rod':14}{'us/step':>10}{'ratio':>8}"]
    lines += [f"{name:14}{value:>10.2f}{value / found['rigid']:>8.1f}" for name, value in found.items()]
    table = "\n".join(lines)
    print(table)
    place = common.results_folder(PAPER, folder)
    (place / "table_cost_flexible.txt").write_text(table + "\n", encoding="utf-8")
    return {f"{name}: us per step": value for name, value in found.items()}


if __name__ == "__main__":
    common.command(main)
