"""[R&S] Figure 31: normal force of the lower wall, 1 to 52 clamped-free modes, Table 2, Bathe."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from .. import common
from .driven import wall_forces
from .fig30_modes_path import COUNTS, STEPS
from .flexible import STEP, Rod, contact_numbers, driven_run, finish, modal


def _paint(figure: Any, t: np.ndarray, series: dict[str, np.ndarray]) -> None:
    """A row a model: forces of single steps would hide each other."""
    axes = figure.subplots(len(series), 2, sharex="col", sharey=True)
    for row, (name, force) in zip(axes, series.items(), strict=True):
        for axis, span in zip(row, ((0.0, 20.0), (7.4, 9.0)), strict=True):
            axis.plot(1e3 * t, force[:, 0], color="#1f4e9c")
            axis.set_xlim(span)
        row[0].set_title(name, loc="left")
    for axis in axes[-1]:
        axis.set_xlabel("time $t$ [ms]")
    figure.supylabel("normal force [N]", fontsize=8)


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares Figure 31; ``quick``: one and five modes."""
    counts = COUNTS[:2] if quick else COUNTS
    runs = {f"{n} modes": driven_run(modal("clamped_free", n), "Bathe", STEP, STEPS) for n in counts}
    runs["20 elements"] = driven_run(Rod(), "Bathe", STEP, STEPS)
    numbers: common.Numbers = {}
    for name, traj in runs.items():
        numbers |= contact_numbers(traj, STEP, name)
        impulse = np.asarray(traj.impulse_normal)[:, 2:].sum()
        numbers[f"{name}: impulse of the lower wall up to 0.02 s [N s]"] = float(impulse)
    series = {name: wall_forces(traj)[1][:, None] for name, traj in runs.items()}
    t = np.asarray(runs["20 elements"].t)
    return finish(
        "fig31_modes_force", folder, numbers, {"t": t, **series}, (16.0, 2.0 + 2.4 * len(series)),
        lambda f: _paint(f, t, series), computed=not quick,
    )  # fmt: skip


if __name__ == "__main__":
    common.command(main)
