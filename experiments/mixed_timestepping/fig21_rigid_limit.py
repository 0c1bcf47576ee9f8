"""[R&S] Figure 21, rigid part: motion of the slider's centre, Table 1, Bathe, dt = 1e-5 s, 0.05 s.

The paper compares a rod of E = 1e15 N/m^2 with the rigid mechanism of three coordinates. The flexible rod
is not part of the program yet: drawn is the rigid curve that it has to meet, theta1 within 5e-4 and theta2
within 2e-4 rad (`slider_crank.md` section 8).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from nsjax import schemes

from .. import common
from .rigid import PAPER, UPPER, load_expected, loaded, run, table1

STEP = 1e-5
STEPS = 5000
INSTANTS = (0.005, 0.01, 0.02, 0.03, 0.04, 0.05)
CLEARANCE = 1e-3


def _paint(figure: Any, arrays: dict[str, np.ndarray]) -> None:
    axes = figure.subplots(1, 2, sharey=True)
    for axis, (name, label) in zip(axes, (("t", "time $t$ [s]"), ("x", "$x$ [m]")), strict=True):
        for wall in (-CLEARANCE, CLEARANCE):
            axis.axhline(1e3 * wall, color="0.55", linewidth=0.6, linestyle=(0, (5, 3)))
        axis.plot(arrays[name], 1e3 * arrays["y"], color="#1f4e9c", label="rigid")
        axis.set(xlabel=label, ylim=(-1.15, 1.15))
    axes[0].set(ylabel="height of slider $y$ [mm]", xlim=(0.0, STEP * STEPS))
    axes[0].legend(loc="lower left", bbox_to_anchor=(0.02, 0.05))


def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares Figure 21; ``quick`` changes nothing, the run is short."""
    place = common.results_folder(PAPER, folder)
    traj = run(table1(), schemes.bathe(), STEP, STEPS)
    q = np.asarray(traj.q)
    numbers: common.Numbers = {}
    for time in INSTANTS:
        for k in (0, 1):
            numbers[f"theta{k + 1}({time:g})"] = float(q[round(time / STEP), k])
    numbers["first impact [s]"] = float(traj.t[np.flatnonzero(loaded(traj, STEP, UPPER))[0]])
    numbers["largest |theta3|"] = float(np.abs(q[:, 2]).max())
    arrays = {"t": np.asarray(traj.t), "x": np.asarray(traj["x"]), "y": np.asarray(traj["y"])}
    common.save_data(place / "fig21_rigid_limit", arrays)
    common.draw(place / "fig21_rigid_limit", 16.0, 7.0, lambda f: _paint(f, arrays))
    common.report(common.compare(numbers, load_expected("fig21_rigid_limit")))
    return numbers


if __name__ == "__main__":
    common.command(main)
