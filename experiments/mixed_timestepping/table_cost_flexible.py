"""Cost of Bathe's scheme with a flexible rod: CPU time per step [us], beside the rigid mechanism.

Table 2 up to 0.02 s, dt = 1e-5 s; interleaved, medians. Twenty elements mean two dense systems of 63
unknowns per step, ten modes two of 13, which stay in one kernel. "Elimination of high-frequency mode shapes
decreases the number of numerical operations per time step" ([R&S] Appendix D): ten modes take a third of
the time of the elements (18 and 59 us, measured on two loaded cores), not the hundredth that elimination
alone would take, since the mechanism, contacts and events are the same.
"""

from __future__ import annotations

import functools
from pathlib import Path

from nsjax import models

from .. import common
from ..performance.side_by_side import interleaved
from .flexible import STEP, Rod, modal
from .rigid import RIGID, run, table2

STEPS = 2000


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Measures and prints; ``quick``: ten modes and the rigid mechanism, three rounds."""
    problems = {"rigid": table2(), "10 modes": modal("clamped_free", 10).model(**models.TABLE_2)}
    if not quick:
        problems["20 elements"] = Rod().model(**models.TABLE_2)
    calls = {
        name: (functools.partial(run, problem, RIGID["Bathe"], STEP, STEPS, every=20), STEPS)
        for name, problem in problems.items()
    }
    found = interleaved(calls, 3 if quick else 7)
    lines = [f"{'rod':14}{'us/step':>10}{'ratio':>8}"]
    lines += [f"{name:14}{value:>10.2f}{value / found['rigid']:>8.1f}" for name, value in found.items()]
    numbers = {f"{name}: us per step": value for name, value in found.items()}
    if not quick:
        numbers["20 elements over 10 modes"] = found["20 elements"] / found["10 modes"]
    return common.finish(__file__, folder, numbers, table="\n".join(lines))


if __name__ == "__main__":
    common.command(main)
