"""[C Fig. 2]: the spinning block; gap and gap rate of the corner that hits, and convergence.

The reference is resolved at the impact (`block_motion`), not another run of the schemes. (a) natural
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
    figure: Any,
    curves: dict[str, Any],
    errors: dict[str, dict[float, tuple[float, float]]],
    failed: dict[str, list[float]],
) -> None:
    left, right = figure.subplots(1, 2)
    second = left.twinx()
    for name, (t, z, dz) in curves.items():
        left.plot(t, z, color=published.COLOURS.get(name, "black"), label=name)
        second.plot(t, dz, "--", color=published.COLOURS.get(name, "black"))
    left.set_xlabel("time $t$ [s]")
    left.set_ylabel("gap of the corner [m]")
    second.set_ylabel("its rate [m/s], dashed")
    left.legend()
    for name, by_step in errors.items():
        h = list(by_step)
        colour = published.COLOURS[name.split(" ")[1]]
        for k, mark in enumerate(("o-", "s--")):
            fill = colour if name.startswith("a") else "none"
            label = f"({name[0]}) {name[2:]}" if not k else None
            errors_k = [by_step[x][k] for x in h]
            right.loglog(h, errors_k, mark, color=colour, mfc=fill, ms=3, label=label)
    published.mark_failures(right, {f"{k[2:]}, ({k[0]})": steps for k, steps in failed.items()})
    right.set_xlabel(r"time step $h$ [s]")
    right.set_ylabel("relative error of gap (o) and rate")
    right.legend()


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares; ``quick`` runs two step sizes of form (a), decoupled."""
    steps = QUICK if quick else block.STEPS
    kinds = ["a DS"] if quick else ["a DS", "a DSn", "a CS", "c DS", "c CS"]
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
    errors: dict[str, dict[float, tuple[float, float]]] = {kind: {} for kind in kinds}
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
    arrays = {f"{n} {w}": c[k] for n, c in curves.items() for k, w in enumerate("tzv")}
    return common.finish(
        __file__, folder, numbers, arrays, (16.0, 7.0), lambda f: _paint(f, curves, errors, failed),
        quick=quick,
    )  # fmt: skip


if __name__ == "__main__":
    common.command(main)
