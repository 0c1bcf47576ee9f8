"""[R&S] Figure 21: motion of the slider's centre, rigid and nearly so, Table 1, Bathe, dt = 1e-5 s, 0.05 s.

A rod of four elements with E = 1e15 N/m^2 meets the rigid mechanism of three coordinates: theta1 within
5e-4 and theta2 within 2e-4 rad at 10, 20, 40 and 50 ms ([P]), within 5.2e-4 and
3.7e-4 at 5 and 30 ms, soon after impacts. Smaller steps do not bring them closer (8.4e-4 in theta1 at 50 ms
with 2e-6 s): an impact on however stiff a rod meets the small mass at its end and sets it vibrating.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from nsjax import schemes

from .. import common
from . import flexible
from .rigid import PAPER, UPPER, load_expected, loaded, run, table1

STEP = 1e-5
STEPS = 5000
INSTANTS = (0.005, 0.01, 0.02, 0.03, 0.04, 0.05)
CLEARANCE = 1e-3
STIFF = flexible.Rod(elements=4, young=1e15)


def _paint(figure: Any, arrays: dict[str, np.ndarray]) -> None:
    axes = figure.subplots(1, 2, sharey=True)
    for axis, (name, label) in zip(axes, (("t", "time $t$ [s]"), ("x", "$x$ [m]")), strict=True):
        for wall in (-CLEARANCE, CLEARANCE):
            axis.axhline(1e3 * wall, color="0.55", linewidth=0.6, linestyle=(0, (5, 3)))
        axis.plot(arrays[name], 1e3 * arrays["y"], color="#1f4e9c", label="rigid")
        if "stiff y" in arrays:
            x = arrays["t"] if name == "t" else arrays["stiff x"]
            look: Any = {"color": "#c8501e", "linestyle": (0, (4, 2))}
            axis.plot(x, 1e3 * arrays["stiff y"], label="$E = 10^{15}$ N/m$^2$", **look)
        axis.set(xlabel=label, ylim=(-1.15, 1.15))
    axes[0].set(ylabel="height of slider $y$ [mm]", xlim=(0.0, STEP * STEPS))
    axes[0].legend(loc="lower left", bbox_to_anchor=(0.02, 0.05))


def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares Figure 21; ``quick``: the rigid mechanism alone."""
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
    expected = load_expected("fig21_rigid_limit")
    if not quick:
        stiff = flexible.free_run(STIFF, STEPS)
        arrays |= {"stiff x": np.asarray(stiff["x"]), "stiff y": np.asarray(stiff["y"])}
        numbers |= flexible.angles(stiff, STEP, INSTANTS, "E = 1e15")
        expected |= flexible.load_expected("fig21_rigid_limit")
    common.save_data(place / "fig21_rigid_limit", arrays)
    common.draw(place / "fig21_rigid_limit", 16.0, 7.0, lambda f: _paint(f, arrays))
    common.report(common.compare(numbers, expected))
    return numbers


if __name__ == "__main__":
    common.command(main)
