"""[C Fig. 7]: the flexible pendulum; height of its tip and convergence.

The reference is a run of CS with 1e-6 s, as in the paper. A run of DS with this step is 2e-5 of the height
and 1e-2 of its rate away from it: the impacts of a stiff beam follow each other within its fast periods. No
error below these can be told, so that slopes flatten towards small steps.
"""

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


def _of_references() -> common.Numbers:
    numbers: common.Numbers = {}
    for name in ("CS", "DS"):
        exact = pendulum.reference(name)
        numbers |= {
            f"reference {name}: first contact [s]": exact["first contact"],
            f"reference {name}: impulse [N s]": exact["impulse"],
            f"reference {name}: x of the tip at 0.35 s [m]": exact["tip"][0],
            f"reference {name}: y of the tip at 0.35 s [m]": exact["tip"][1],
            f"reference {name}: change of energy [J]": exact["energy"],
        }
    for what in ("y", "dy"):
        apart = published.error(pendulum.reference("DS")[what], pendulum.reference("CS")[what])
        numbers[f"reference DS: error of {what}"] = apart
    return numbers


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares; ``quick`` runs two step sizes, decoupled, without errors."""
    kinds = ("DS",) if quick else ("DS", "DSn", "CS")
    numbers: common.Numbers = {} if quick else _of_references()
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
        steps = list(errors[name])
        for k, what in enumerate(("y", "dy") if len(steps) > 2 else ()):
            numbers[f"{name}: order of {what}"] = observed_order(steps, [errors[name][h][k] for h in steps])
    arrays = {f"{name} {w}": c[k] for name, c in curves.items() for k, w in enumerate(("t", "y", "dy"))}
    # step size, errors of height and rate
    arrays |= {f"{name} errors": np.array([[h, *x] for h, x in e.items()]) for name, e in errors.items()}
    if not quick:
        pair = (published.named(errors[name], ("y", "dy")) for name in ("CS", "DS"))
        numbers |= published.coupled_over_decoupled(*pair)
    return common.finish(
        __file__, folder, numbers, arrays, (16.0, 7.0), lambda f: _paint(f, curves, errors, failed),
        quick=quick,
    )  # fmt: skip


if __name__ == "__main__":
    common.command(main)
