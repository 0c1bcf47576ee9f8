"""[C Fig. 5]: the elastic bar; errors of displacement and velocity at 0.45 m from the tip and at the tip.

As in the paper the reference is a run of the coupled solver (CS) with a small step of the same mesh: the
exact solution of the continuum has fronts that no mesh resolves. From a run of the decoupled solver (DS)
it differs by 2e-10 in displacements and 6e-8 in velocities.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from nsjax.analysis import observed_order

from .. import common
from . import bar, published


def _paint(
    figure: Any, found: dict[str, dict[float, dict[str, float]]], failed: dict[str, list[float]]
) -> None:
    for axis, where in zip(figure.subplots(1, 2, sharey=True), ("0.45", "tip"), strict=True):
        for name, by_step in found.items():
            h = list(by_step)
            for what, mark in (("u", "o-"), ("v", "s--")):
                values = [by_step[x][f"{what}_{where}"] for x in h]
                axis.loglog(h, values, mark, color=published.COLOURS[name], ms=3, label=f"{name}, {what}")
        published.mark_failures(axis, failed)
        axis.set_title("0.45 m from the tip" if where == "0.45" else "tip")
        axis.set_xlabel(r"time step $h$ [s]")
    figure.axes[0].set_ylabel("relative error")
    figure.axes[0].legend()


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares; ``quick`` runs three step sizes with DS and CS."""
    numbers: common.Numbers = {}
    found: dict[str, dict[float, dict[str, float]]] = {}
    failed: dict[str, list[float]] = {}
    for name in ("DS", "CS") if quick else ("DS", "DSn", "CS"):
        found[name], failed[name] = {}, []
        for h in bar.STEPS[2:5] if quick else bar.STEPS:
            r = bar.run(name, h)
            numbers[f"{name}, {h:g}: fails"] = float(r.failed)
            if r.failed:
                failed[name].append(h)
                continue
            found[name][h] = bar.errors(r, h)
            numbers |= {f"{name}, {h:g}: error of {what}": x for what, x in found[name][h].items()}
        for what in () if quick else ("u_tip", "u_0.45"):
            values = [errors[what] for errors in found[name].values()]
            numbers[f"{name}: order of {what}"] = observed_order(list(found[name]), values)
    numbers |= published.coupled_over_decoupled(found["CS"], found["DS"])
    arrays = {
        f"{n} {w}": np.array([[h, e[w]] for h, e in x.items()])
        for n, x in found.items()
        for w in bar.WATCHED
    }
    return common.finish(
        __file__, folder, numbers, arrays, (16.0, 7.5), lambda f: _paint(f, found, failed), quick=quick
    )


if __name__ == "__main__":
    common.command(main)
