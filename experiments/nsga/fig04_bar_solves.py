"""[C Fig. 4]: the elastic bar; average and largest number of linear solves per step.

The coupled scheme iterated block by block contracts with the factor `contraction`, which tends to one for
large steps: it fails where Newton on all rows at once, of the same scheme, needs at most two solves.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from .. import common
from . import bar, published

QUICK = (3e-2, 1e-2, 1e-3)


def contraction(h: float) -> float:
    """Contraction factor of the block iteration with a closed contact, from the matrices of the bar."""
    n, length = bar.TIP, 10.0 / bar.TIP
    neighbours = np.eye(n + 1, k=1) + np.eye(n + 1, k=-1)
    ends = np.diag([1.0, *[2.0] * (n - 1), 1.0])
    mass, stiffness = length / 6.0 * (2.0 * ends + neighbours), 900.0 / length * (ends - neighbours)
    alpha_m, alpha_f, beta = 1 / 3, 4 / 9, 25 / 81
    c = (1 - alpha_m) / ((1 - alpha_f) * beta * h * h)
    unit = np.eye(n + 1)[-1]
    through = np.linalg.solve(c * mass + stiffness, stiffness @ np.linalg.solve(mass, unit))
    return float(unit @ through / (unit @ np.linalg.solve(mass, unit)))


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares; ``quick`` runs three step sizes."""
    numbers: common.Numbers = {f"contraction, {h:g}": contraction(h) for h in (1e-2, 5e-3, 1e-3)}
    found: dict[str, dict[float, published.Run]] = {}
    for name in ("DS", "CS") if quick else published.VARIANTS:
        found[name] = {h: bar.run(name, h) for h in (QUICK if quick else bar.STEPS)}
        for h, r in found[name].items():
            numbers |= published.counts(f"{name}, {h:g}", r)
            if name in ("DS", "DSn"):
                numbers[f"{name}, {h:g}: most solves of one subproblem"] = float(max(r.each))
    return published.finish_solves(__file__, folder, numbers, found, quick)


if __name__ == "__main__":
    common.command(main)
