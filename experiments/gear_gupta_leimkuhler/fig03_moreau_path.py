"""[S&U&S] Figure 3: path of the slider's centre for four coefficients of restitution, Moreau's rule.

Slider-crank mechanism with clearance, frictionless, Table 1; Moreau's midpoint rule (8)-(13) with
gaps (14)-(17) and dynamics (19), (20), dt = 1e-5 s, 0.2 s. The paper does not state the four
coefficients; 0.1, 0.4, 0.7, 0.9 are our choice, also in [P].

``y_max``, ``y_min`` and ``gap_min`` belong to the states at the step ends. (The gap that the scheme
tests, at the midpoint, reaches deeper on an approach: -9.4e-6 m instead of -8.8e-6 m for 0.4.)
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import nsjax
from nsjax import models, schemes

from .. import common
from . import looks

RESTITUTIONS = (0.1, 0.4, 0.7, 0.9)
CLEARANCE = 1e-3
STEP = 1e-5

Path2 = dict[float, tuple[np.ndarray, np.ndarray]]
"""Position and height of the slider by coefficient of restitution."""


def run(restitution: float, scheme: Any = None) -> nsjax.Trajectory:
    """The frictionless mechanism of Table 1 for 0.2 s, every step saved; by Moreau's rule, if not by
    another ``scheme``.
    """
    problem = models.slider_crank(restitution=restitution, friction=0.0, clearance=CLEARANCE)
    return common.run(problem, schemes.moreau() if scheme is None else scheme, STEP, 20_000)


def paint(figure: Any, time: np.ndarray, path: Path2, scheme: str = "Moreau") -> None:
    """A row per coefficient of restitution: height of the slider over time, and its path."""
    axes = figure.subplots(4, 2, sharex="col", sharey=True)
    for row, letter, (restitution, (x, y)) in zip(axes, "abcd", path.items(), strict=True):
        for axis, along in zip(row, (time, x), strict=True):
            for wall in (-CLEARANCE, CLEARANCE):
                axis.axhline(1e3 * wall, color="0.55", linewidth=0.6, linestyle=(0, (5, 3)))
            axis.plot(along, 1e3 * y, color=looks.COLOURS[scheme], linewidth=0.6)
            axis.set_ylim(-1.15, 1.15)
        row[0].set_title(rf"({letter}) $\varepsilon = {restitution}$", loc="left")
        row[0].set_xlim(0.0, time[-1])
        row[0].set_xticks(np.linspace(0.0, 0.2, 5), ["0", "0.05", "0.1", "0.15", "0.2"])
    axes[-1, 0].set_xlabel("time $t$ [s]")
    axes[-1, 1].set_xlabel("position of slider $x$ [m]")
    figure.supylabel("height of slider $y$ [mm]", fontsize=8)


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares Figure 3; ``quick`` changes nothing, the run is short."""
    numbers: common.Numbers = {}
    path: Path2 = {}
    time = np.zeros(0)
    for restitution in RESTITUTIONS:
        traj = run(restitution)
        time, y = np.asarray(traj.t), np.asarray(traj["y"])
        path[restitution] = np.asarray(traj["x"]), y
        numbers[f"y_max, e = {restitution}"] = float(y.max())
        numbers[f"y_min, e = {restitution}"] = float(y.min())
        numbers[f"gap_min, e = {restitution}"] = float(np.min(np.asarray(traj.gap)))
    arrays = {
        f"{name}_{e}": values for e, xy in path.items() for name, values in zip("xy", xy, strict=True)
    }
    return common.finish(
        __file__, folder, numbers, {"t": time, **arrays}, (16.0, 17.0), lambda f: paint(f, time, path)
    )


if __name__ == "__main__":
    common.command(main)
