"""[R&S] Figure 31: normal force of the lower wall, 1 to 52 clamped-free modes, Table 2, Bathe.

The paper counts 52 modes below 1e7 1/s "out of total 63": twenty elements have so many, and 60 elastic
coordinates beside the three angles. It finds the forces "in good agreement" with those of the elements. The
first landing agrees the better the more modes there are, within 0.7 % with 52 (20 modes 19 %, 10 modes 39
%); later impacts find small differences and enlarge them: 66 % up to 0.02 s with 52 modes as well.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from .. import common
from .driven import wall_forces
from .fig30_modes_path import STEPS, effective, numbers_of_modes
from .flexible import ELEMENTS, STEP, Rod, contact_numbers, driven_run, modal

LANDING = (7.4e-3, 9e-3)
"""The landing of the slider on the lower wall, before it has come back [s]."""


def _paint(figure: Any, t: np.ndarray, series: dict[str, np.ndarray]) -> None:
    """A row a model: forces of single steps would hide each other."""
    axes = figure.subplots(len(series), 2, sharex="col", sharey=True)
    for row, (name, force) in zip(axes, series.items(), strict=True):
        for axis, span in zip(row, ((0.0, 20.0), (7.5, 7.7)), strict=True):
            axis.plot(1e3 * t, force[:, 0], color="#1f4e9c")
            axis.set_xlim(span)
        row[0].set_title(name, loc="left")
    for axis in axes[-1]:
        axis.set_xlabel("time $t$ [ms]")
    figure.supylabel("normal force [N]", fontsize=8)


def _agreement(t: np.ndarray, series: dict[str, np.ndarray]) -> common.Numbers:
    """Section 4.5: how many modes have an effect, of how many, and how far their forces are from those of
    the elements, of the sum of these; printed as well.
    """
    everything = modal("clamped_free", 3 * ELEMENTS).model()
    numbers: common.Numbers = {
        "modes below 1e7 1/s": float(effective()),
        "coordinates of the mechanism with all modes": float(everything.system.nq),
    }
    whole = series["20 elements"]
    parts = {"in the first landing": (t > LANDING[0]) & (t < LANDING[1]), "up to 0.02 s": t >= 0.0}
    print(f"{'difference of the force':25}" + "".join(f"{when:>22}" for when in parts))
    for name in [name for name in series if name.endswith("modes")]:
        found = {w: float(np.abs(series[name] - whole)[x].sum() / whole[x].sum()) for w, x in parts.items()}
        print(f"{name:25}" + "".join(f"{x:22.3g}" for x in found.values()))
        numbers |= {f"{name}: difference of the force {when}": x for when, x in found.items()}
    return numbers


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares Figure 31; ``quick``: one and five modes."""
    counts = numbers_of_modes(quick)
    runs = {f"{n} modes": driven_run(modal("clamped_free", n), "Bathe", STEP, STEPS) for n in counts}
    runs["20 elements"] = driven_run(Rod(), "Bathe", STEP, STEPS)
    numbers: common.Numbers = {}
    for name, traj in runs.items():
        numbers |= contact_numbers(traj, name)
        impulse = np.asarray(traj.impulse_normal)[:, 2:].sum()
        numbers[f"{name}: impulse of the lower wall up to 0.02 s [N s]"] = float(impulse)
    series = {name: wall_forces(traj)[1][:, None] for name, traj in runs.items()}
    t = np.asarray(runs["20 elements"].t)
    numbers |= _agreement(t, series)
    return common.finish(
        __file__, folder, numbers, {"t": t, **series}, (16.0, 2.0 + 2.4 * len(series)),
        lambda f: _paint(f, t, series), quick=quick,
    )  # fmt: skip


if __name__ == "__main__":
    common.command(main)
