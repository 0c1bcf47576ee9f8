"""[C Fig. 9]: the flexible cube; height of a corner, convergence, and the stress in the deformed cube.

(a) Corner and its rate by both solvers with 3e-5 s, as in the paper. (b) Errors of height (o) and rate
beside the coupled solver with 3e-5 s, at the instants that both have; the paper's reference is the coupled
solver with a step that it does not state. With 1e-4 s the errors of both solvers are equal to 2 %: 3.2e-5
of the height, 7.1e-3 of the rate. In the paper the coupled solver works from 3e-5 s down; here with 1e-4 s
as well, and not with larger steps. The other errors that are compared refer to the decoupled scheme
with 1e-4 s, as those of the specification do.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from nsjax.analysis import observed_order

from .. import common
from . import cube, published
from .fig10_cube_solves import COUPLED

RUNS = (("DS", 3e-3), ("DS", 1e-3), ("DSn", 1e-3), ("DS", 3e-4), ("DS", 1e-4), ("DS", 3e-5), ("CS", 1e-4),
        ("CS", 3e-5))  # fmt: skip
QUICK = (("DS", 3e-3),)
REFERENCE = 1e-4
FINE = ("CS", 3e-5)
"""Reference of the drawn errors."""
SHOWN = (0.2535, 0.2610, 0.2685)
"""Times of the pictures [s]: quarters of the contact."""


def _paint_solid(axis: Any, places: np.ndarray, stress: np.ndarray, top: float, title: str) -> None:
    """The visible faces, coloured by the mean stress of their elements."""
    from matplotlib import colormaps
    from mpl_toolkits.mplot3d.art3d import Poly3DCollection

    quads, colours = cube.faces(places, stress)
    shade = colormaps["viridis"](np.clip(colours / top, 0.0, 1.0))
    axis.add_collection3d(Poly3DCollection(quads, facecolors=shade, edgecolors="black", linewidths=0.3))
    axis.set(xlim=(-0.06, 0.06), ylim=(-0.06, 0.06), zlim=(0.0, 0.12), title=title)
    axis.set_box_aspect((1, 1, 1))
    axis.view_init(20, -50)
    axis.set_axis_off()


def _paint(
    figure: Any, found: dict[str, Any], errors: published.Errors, failed: dict[str, list[float]],
    solids: Any,
) -> None:  # fmt: skip
    upper, lower = figure.subfigures(2, 1)
    left, right = upper.subplots(1, 2)
    published.paint_motion(left, found, "height of the corner")
    published.paint_errors(right, errors, failed, "height")
    top = max(stress.max() for _, _, stress in solids)
    for k, (t, places, stress) in enumerate(solids):
        title = f"{1e3 * t:.0f} ms, up to {stress.max():.0f} N/m$^2$"
        _paint_solid(lower.add_subplot(1, 3, 1 + k, projection="3d"), places, stress, top, title)


def _beside_coupled(
    runs: dict[tuple[str, float], published.Run], numbers: common.Numbers
) -> published.Errors:
    """Errors of height and rate of the corner beside `FINE`, at common instants; also into ``numbers``."""
    unit = 1e-5
    fine = round(FINE[1] / unit)
    found: published.Errors = {}
    for name, h in [key for key in runs if key != FINE]:
        step = round(h / unit)
        every = math.lcm(fine, step)
        pair = []
        for part in "qv":
            ours = cube.whole(runs[name, h].traj, h, part, cube.CORNER)[:: every // step]
            exact = cube.whole(runs[FINE].traj, FINE[1], part, cube.CORNER)[:: every // fine]
            pair.append(published.error(ours, exact))
        found.setdefault(name, {})[h] = pair[0], pair[1]
        for what, x in zip(("height", "rate"), pair, strict=True):
            numbers[f"{name}, {h:g}: error of the {what} beside CS, 3e-05"] = x
    for what in ("height", "rate"):
        of = {n: numbers[f"{n}, 0.0001: error of the {what} beside CS, 3e-05"] for n in ("CS", "DS")}
        numbers[f"CS / DS, 0.0001: error of the {what}"] = of["CS"] / of["DS"]
    return found


def _errors(runs: dict[tuple[str, float], published.Run], numbers: common.Numbers) -> None:
    """Errors of the corner over the window, and of the centroid from contact on, into ``numbers``."""
    found: dict[str, Any] = {"DS": {}, "DSn": {}}
    exact = runs["DS", REFERENCE]
    corner = cube.whole(exact.traj, REFERENCE, "q", cube.CORNER)
    for (name, h), r in runs.items():
        every = round(h / REFERENCE)
        if name == "CS" or h <= REFERENCE:
            continue
        found[name][h] = published.error(cube.whole(r.traj, h, "q", cube.CORNER), corner[::every])
        numbers[f"{name}, {h:g}: error of the corner"] = found[name][h]
        after = r.traj.t >= exact.traj.t[0]
        at = np.rint((np.asarray(r.traj.t)[after] - exact.traj.t[0]) / REFERENCE).astype(int)
        centre = np.asarray(r.traj["centre_z"])[after], np.asarray(exact.traj["centre_z"])[at]
        numbers[f"{name}, {h:g}: error of the centroid from contact on"] = published.error(*centre)
    steps = list(found["DS"])
    numbers["DS: order of the corner"] = observed_order(steps, [found["DS"][h] for h in steps])


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares; ``quick`` runs the largest step, decoupled."""
    numbers: common.Numbers = {}
    runs = {key: cube.run(*key) for key in (QUICK if quick else RUNS)}
    for (name, h), r in runs.items():
        numbers |= {f"{name}, {h:g}: {what}": x for what, x in cube.bounce(r).items()}
    errors: published.Errors = {}
    failed: dict[str, list[float]] = {}
    if not quick:
        _errors(runs, numbers)
        errors = _beside_coupled(runs, numbers)
        failed = {"CS": [h for h, end in COUPLED.items() if h > 1e-4 and cube.run("CS", h, end).failed]}
        same = numbers["CS, 0.0001: impulse [N s]"] / numbers["DS, 0.0001: impulse [N s]"]
        numbers["CS and DS, 0.0001: difference of impulses, relative"] = abs(same - 1.0)
    shown = QUICK if quick else (("DS", 3e-5), ("CS", 3e-5))
    curves = {
        f"{name}, $h = {h:g}$ s": (
            h * np.arange(round(cube.TIME / h) + 1),
            cube.whole(runs[name, h].traj, h, "q", cube.CORNER),
            cube.whole(runs[name, h].traj, h, "v", cube.CORNER),
        )
        for name, h in shown
    }
    solids = [cube.solid(runs[shown[0]].traj, t) for t in SHOWN]
    arrays = {f"{name} {w}": c[k] for name, c in curves.items() for k, w in enumerate(("t", "z", "dz"))}
    return common.finish(
        __file__, folder, numbers, arrays, (16.0, 13.0),
        lambda f: _paint(f, curves, errors, failed, solids), quick=quick,
    )  # fmt: skip


if __name__ == "__main__":
    common.command(main)
