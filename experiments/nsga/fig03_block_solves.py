"""[C Fig. 3]: the spinning block; average and largest number of linear solves per step."""

from __future__ import annotations

from pathlib import Path

from .. import common
from . import block, published

QUICK = (1e-2, 2.5e-3, 1e-3)


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares; ``quick`` runs form (a), decoupled, with three step sizes."""
    kinds = (
        ["a DS"]
        if quick
        else ["a DS", "a CS", "a CS monolithic", "b DS", "c DS", "c CS", "c CS monolithic"]
    )
    numbers: common.Numbers = {}
    found: dict[str, dict[float, published.Run]] = {}
    for kind in kinds:
        form, name = kind.split(" ", 1)
        runs = {h: block.run(form, name, h) for h in (QUICK if quick else block.STEPS)}
        for h, r in runs.items():
            numbers |= published.counts(f"{kind}, {h:g}", r)
            if name == "DS":
                numbers |= published.largest(f"{kind}, {h:g}", r)
        if form in ("a", "c"):
            found[f"{name}, ({form})"] = runs
    return published.finish_solves(__file__, folder, numbers, found, quick)


if __name__ == "__main__":
    common.command(main)
