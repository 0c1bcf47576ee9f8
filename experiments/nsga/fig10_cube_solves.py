"""[C Fig. 10]: the flexible cube; average and largest number of linear solves per step.

The coupled scheme iterated block by block runs until a step fails, or over the contact.
"""

from __future__ import annotations

from pathlib import Path

from .. import common
from . import cube, published

QUICK = (3e-3,)
COUPLED = {1e-3: 0.263, 3e-4: 0.263, 1e-4: cube.TIME}
"""Ends of the runs by step size [s]: the specification's prototype diverges at 0.259 s and 0.261 s."""


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares; ``quick`` runs one step size, decoupled."""
    numbers: common.Numbers = {}
    found: dict[str, dict[float, published.Run]] = {}
    for name in ("DS",) if quick else ("DS", "DSn", "CS"):
        steps = QUICK if quick else cube.STEPS if name == "DS" else cube.STEPS[:3]
        ends = COUPLED if name == "CS" else dict.fromkeys(steps, cube.TIME)
        found[name] = {h: cube.run(name, h, end) for h, end in ends.items()}
        for h, r in found[name].items():
            numbers |= published.counts(f"{name}, {h:g}", r)
            if name == "DS":
                numbers |= published.largest(f"{name}, {h:g}", r)
    return published.finish_solves(__file__, folder, numbers, found, quick)


if __name__ == "__main__":
    common.command(main)
