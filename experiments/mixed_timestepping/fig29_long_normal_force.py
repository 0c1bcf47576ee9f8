"""[R&S] Figure 29: normal forces of the walls, Table 2, up to 0.5 s, dt = 1e-4 s.

Forces lambda of ED-alpha (rho_inf = 0) and Bathe, without the impulses. The lag of Figure 28 shows in the
later closed phases. What agrees of "the general behavior and amplitude" is a number: the ratio of the mean
forces, and of the largest ones, which are single steps after a closure.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from .. import common
from .driven import LONG, LONG_STEP, LONG_STEPS, at, bent_runs, finish, long_run, shown, wall_forces
from .rigid import NAMES

WALLS = ((0, "upper"), (1, "lower"))


def _paint(figure: Any, t: np.ndarray, series: dict[str, np.ndarray]) -> None:
    whole = figure.subplots(2 * len(series), 1, sharey=True)
    for k, (name, force) in enumerate(series.items()):
        plain = name.removeprefix("flexible, ")
        for axis, begin in ((whole[k], 0.0), (whole[len(series) + k], 0.4)):
            axis.plot(t, force[:, 0], color="#1f4e9c", label="upper wall")
            axis.plot(t, -force[:, 1], color="0.45", label="lower wall, negative")
            axis.set(xlim=(begin, t[-1]), title=NAMES[plain])
    whole[-1].set_xlabel("time $t$ [s]")
    figure.supylabel("normal force [N]", fontsize=8)
    figure.legend(*whole[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)


def _ratios(series: dict[str, np.ndarray], prefix: str) -> common.Numbers:
    """Ratios of ED-alpha and Bathe: largest force of a wall, and mean of the forces of both walls."""
    ours, other = (series.get(f"{prefix}{name}") for name in ("ED-alpha 0", "Bathe"))
    if ours is None or other is None:
        return {}
    ratios = {f"largest force of the {w} wall": ours[:, k].max() / other[:, k].max() for k, w in WALLS}
    ratios["mean force"] = ours.sum(axis=1).mean() / other.sum(axis=1).mean()
    return {f"{prefix}ED-alpha / Bathe: {what}": float(x) for what, x in ratios.items()}


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares Figure 29; ``quick``: the rigid mechanism, without Bathe;
    the paper has the flexible rod.
    """
    names = shown(LONG, quick)
    series = {name: np.stack(wall_forces(long_run(name)), axis=1) for name in names}
    numbers: common.Numbers = {}
    for name, force in series.items():
        numbers[f"{name}: force of the upper wall at 0.05 s [N]"] = float(
            force[at(long_run(name), 0.05), 0]
        )
        for k, wall in WALLS:
            numbers[f"{name}: largest force of the {wall} wall [N]"] = float(force[:, k].max())
    numbers |= _ratios(series, "")
    t = np.asarray(long_run(names[0]).t)
    drawn = {}
    for name, traj in bent_runs(LONG, LONG_STEP, LONG_STEPS, quick).items():
        drawn[name] = np.stack(wall_forces(traj), axis=1)
        for k, wall in WALLS:
            numbers[f"{name}: largest force of the {wall} wall [N]"] = float(drawn[name][:, k].max())
    numbers |= _ratios(drawn, "flexible, ")
    return finish(__file__, folder, numbers, t, series, drawn, (16.0, 15.0), _paint, quick)


if __name__ == "__main__":
    common.command(main)
