"""[C Fig. 7]: the flexible pendulum; height of its tip and convergence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from nsjax.analysis import observed_order

from .. import common
from . import pendulum, published

QUICK = (2.5e-3, 1e-3)
SHOWN = 1e-4
"""Step size of the paper's curves [s]."""


def _paint(
    figure: Any, curves: dict[str, Any], errors: published.Errors, failed: dict[str, list[float]]
) -> None:
    left, right = figure.subplots(1, 2)
    published.paint_motion(left, curves, "height of the tip")
    published.paint_errors(right, errors, failed, "height")


def _of_reference() -> common.Numbers:
    exact = pendulum.reference()
    return {
        "reference: first contact [s]": exact["first contact"],
        "reference: impulse [N s]": exact["impulse"],
        "reference: x of the tip at 0.35 s [m]": exact["tip"][0],
        "reference: y of the tip at 0.35 s [m]": exact["tip"][1],
        "reference: change of energy [J]": exact["energy"],
    }


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares; ``quick`` runs two step sizes, decoupled, without errors."""
    kinds = ("DS",) if quick else ("DS", "DSn", "CS")
    numbers: common.Numbers = {} if quick else _of_reference()
    errors: published.Errors = {kind: {} for kind in kinds}
    failed: dict[str, list[float]] = {kind: [] for kind in kinds}
    curves: dict[str, Any] = {}
    for name in kinds:
        for h in QUICK if quick else pendulum.STEPS:
            r = pendulum.run(name, h)
            if r.failed:
                failed[name].append(h)
                continue
            numbers |= {f"{name}, {h:g}: {what}": x for what, x in pendulum.contact(r).items()}
            if h == (QUICK[-1] if quick else SHOWN):
                q, v = np.asarray(r.traj.q), np.asarray(r.traj.v)
                curves[name] = (np.asarray(r.traj.t), q[:, pendulum.TIP_Y], v[:, pendulum.TIP_Y])
            if not quick:
                errors[name][h] = height, rate = pendulum.errors(r, h)
                numbers |= {f"{name}, {h:g}: error of y": height, f"{name}, {h:g}: error of dy": rate}
        if len(errors[name]) > 2:
            steps = list(errors[name])
            numbers[f"{name}: order of y"] = observed_order(steps, [errors[name][h][0] for h in steps])
    arrays = {f"{name} {w}": c[k] for name, c in curves.items() for k, w in enumerate(("t", "y", "dy"))}
    return common.finish(
        __file__, folder, numbers, arrays, (16.0, 7.0), lambda f: _paint(f, curves, errors, failed),
        quick=quick,
    )  # fmt: skip


if __name__ == "__main__":
    common.command(main)
