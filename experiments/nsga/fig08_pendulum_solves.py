"""[C Fig. 8]: the flexible pendulum; average and largest number of linear solves per step.

The paper's coupled scheme does not converge for its three largest steps.
"""

from __future__ import annotations

from pathlib import Path

from .. import common
from . import pendulum, published

QUICK = (2.5e-3, 1e-3, 5e-4, 2.5e-4)


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares; ``quick`` runs four step sizes, decoupled."""
    numbers: common.Numbers = {}
    found: dict[str, dict[float, published.Run]] = {}
    for name in ("DS",) if quick else published.VARIANTS:
        found[name] = {h: pendulum.run(name, h) for h in (QUICK if quick else pendulum.STEPS)}
        for h, r in found[name].items():
            numbers |= published.counts(f"{name}, {h:g}", r)
            if name == "DS":
                numbers |= published.largest(f"{name}, {h:g}", r)
    return published.finish_solves(__file__, folder, numbers, found, quick)


if __name__ == "__main__":
    common.command(main)
