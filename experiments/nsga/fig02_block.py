"""[C Fig. 2]: the spinning block; gap and gap rate of the corner that hits, and convergence.

The reference is resolved at the impact (`block_motion`), not another run of the schemes: the paper takes a
run of CS with 1e-5 s. (a) natural
coordinates, (c) nodes without mass.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from nsjax.analysis import observed_order

from .. import common
from . import block, published

QUICK = (2.5e-3, 1e-3)
ORDER_FROM = 2.5e-3
"""Largest step [s] for the order: larger steps turn the block by more than 0.2 rad each."""


def _paint(
    figure: Any, curves: dict[str, Any], errors: published.Errors, failed: dict[str, list[float]]
) -> None:
    left, right = figure.subplots(1, 2)
    published.paint_motion(left, curves, "gap of the corner")
    names = {kind: f"{kind[2:]}, ({kind[0]})" for kind in errors}
    named = {names[kind]: x for kind, x in errors.items()}
    published.paint_errors(right, named, {names[kind]: x for kind, x in failed.items()}, "gap")


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares; ``quick`` runs two step sizes of form (a), DS and CS."""
    steps = QUICK if quick else block.STEPS
    kinds = ["a DS", "a CS"] if quick else ["a DS", "a DSn", "a CS", "c DS", "c CS"]
    z, dz, impacts = block.exact(1e-3)
    first = impacts[0]
    numbers: common.Numbers = {
        "impact [s]": first.time,
        "rate before [m/s]": first.before,
        "rate after [m/s]": first.after,
        "impulse [N s]": first.impulse,
        "impacts": float(len(impacts)),
        "corner at 0.69 s [m]": float(z[-1]),
    }
    errors: published.Errors = {kind: {} for kind in kinds}
    failed: dict[str, list[float]] = {kind: [] for kind in kinds}
    curves: dict[str, Any] = {"resolved": (1e-3 * np.arange(len(z)), z, dz)}
    for kind in kinds:
        form, name = kind.split(" ")
        for h in steps:
            r = block.run(form, name, h)
            if r.failed:
                failed[kind].append(h)
                continue
            errors[kind][h] = block.errors(r, h)
            numbers[f"{kind}, {h:g}: error of gap"], numbers[f"{kind}, {h:g}: error of rate"] = errors[
                kind
            ][h]
            numbers[f"{kind}, {h:g}: impulse [N s]"] = float(np.asarray(r.traj.impulse_normal).sum())
            struck = np.flatnonzero(np.asarray(r.traj.impulse_normal).sum(axis=1))
            late = float(r.traj.t[struck[0]]) - first.time
            numbers[f"{kind}, {h:g}: steps from impact to jump"] = late / h
            if h == 1e-3 and kind.startswith("a"):
                curves[name] = (r.traj.t, *block.watched(r.traj))
        fine = [h for h in errors[kind] if h <= ORDER_FROM]
        if len(fine) > 2:
            for k, what in enumerate(("gap", "rate")):
                numbers[f"{kind}: order of {what}"] = observed_order(
                    fine, [errors[kind][h][k] for h in fine]
                )
    for form in "a" if quick else "ac":
        pair = (errors[f"{form} CS"], errors[f"{form} DS"])
        ratios = published.coupled_over_decoupled(*(published.named(x, ("gap", "rate")) for x in pair))
        numbers |= {f"{form} {name}": ratio for name, ratio in ratios.items()}
    arrays = {f"{n} {w}": c[k] for n, c in curves.items() for k, w in enumerate("tzv")}
    return common.finish(
        __file__, folder, numbers, arrays, (16.0, 7.0), lambda f: _paint(f, curves, errors, failed),
        quick=quick,
    )  # fmt: skip


if __name__ == "__main__":
    common.command(main)
