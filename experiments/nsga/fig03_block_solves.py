"""[C Fig. 3]: the spinning block; average and largest number of linear solves per step."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from .. import common
from . import block, published

STEPS = (1e-2, 5e-3, 2.5e-3, 1e-3, 5e-4, 2.5e-4, 1e-4)
QUICK = (1e-2, 2.5e-3, 1e-3)


def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares; ``quick`` runs form (a), decoupled, with three step sizes."""
    place = common.results_folder("nsga", folder)
    kinds = (
        ["a DS"]
        if quick
        else ["a DS", "a CS", "a CS monolithic", "b DS", "c DS", "c CS", "c CS monolithic"]
    )
    numbers: common.Numbers = {}
    found: dict[str, dict[float, published.Run]] = {}
    for kind in kinds:
        form, name = kind.split(" ", 1)
        runs = {h: block.run(form, name, h) for h in (QUICK if quick else STEPS)}
        for h, r in runs.items():
            numbers |= published.counts(f"{kind}, {h:g}", r)
            if name == "DS":
                each = dict(zip(("smooth", "position", "velocity"), r.each, strict=True))
                numbers |= {f"{kind}, {h:g}: most solves, {what}": float(n) for what, n in each.items()}
        if form in ("a", "c"):
            found[f"{name}, ({form})"] = runs
    arrays = {
        kind: np.array([[h, r.average, r.largest] for h, r in runs.items()]) for kind, runs in found.items()
    }
    common.save_data(place / "fig03_block_solves", arrays)
    common.draw(place / "fig03_block_solves", 16.0, 7.0, lambda f: published.paint_solves(f, found))
    expected = common.load_expected(__file__, "fig03_block_solves")
    common.report(common.compare(numbers, {k: e for k, e in expected.items() if not quick or k in numbers}))
    return numbers


if __name__ == "__main__":
    common.command(main)
