"""[C Fig. 6]: the elastic bar; gap and contact force of the tip, motion of the node at 0.45 m.

Without the forces ``f^p`` and ``f^*`` (DSn) the bar leaves late at ``h = 0.01`` s and not at all at 0.03 s,
and runs metres into the wall; with them (DS) the contact lasts as long as the wave runs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from .. import common
from . import bar, published

STEPS = (3e-2, 1e-2, 1e-3)
WAVE = 2.0 * 10.0 / 30.0
"""Time of the contact in the continuum [s]."""


def exact(t: np.ndarray, x: float) -> tuple[np.ndarray, np.ndarray]:
    """Displacement and velocity of the continuum, ``x`` behind the tip [m]."""
    v, c, start = 10.0, 30.0, bar.DISTANCE / 10.0
    tau = t - start
    velocity = np.where(x > c * tau, v, np.where(x < 20.0 - c * tau, 0.0, -v))
    stop, leave = start + x / c, start + (20.0 - x) / c
    return v * np.minimum(t, stop) - v * np.maximum(t - leave, 0.0), velocity


def _paint(figure: Any, found: dict[str, dict[float, published.Run]]) -> None:
    axes = list(figure.subplots(2, 2, sharex=True).flat)
    marks = {3e-2: ":", 1e-2: "--", 1e-3: "-"}
    fine = np.linspace(0.0, bar.TIME, 1501)
    u, v = exact(fine, 0.45)
    tip = exact(fine, 0.0)[0]
    closed = (fine > bar.DISTANCE / 10.0) & (fine < bar.DISTANCE / 10.0 + WAVE)
    release = axes[0].inset_axes((0.36, 0.4, 0.42, 0.55), xlim=(1.12, 1.4), ylim=(-0.08, 1.0))
    for axis, y in zip(axes, (bar.DISTANCE - tip, 300.0 * closed, u, v), strict=True):
        axis.plot(fine, y, color="black", linewidth=0.5, label="wave of the continuum")
    for name, runs in found.items():
        for h, r in runs.items():
            t, colour = np.asarray(r.traj.t), published.COLOURS[name]
            curves = (
                np.asarray(r.traj.gap)[:, 0],
                np.asarray(r.traj.force_normal)[:, 0],
                np.asarray(r.traj.q)[:, bar.NODE],
                np.asarray(r.traj.v)[:, bar.NODE],
            )
            release.plot(t, curves[0], marks[h], color=colour)
            for axis, y in zip(axes, curves, strict=True):
                axis.plot(t, y, marks[h], color=colour, label=f"{name}, $h = {h:g}$ s")
    titles = ("gap [m]", r"$\Lambda / h$ [N]", "displacement at 0.45 m [m]", "velocity at 0.45 m [m/s]")
    for axis, title in zip(axes, titles, strict=True):
        axis.set_title(title)
    axes[1].set_ylim(-50.0, 800.0)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=7)
    for axis in axes[2:]:
        axis.set_xlabel("time $t$ [s]")


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares; ``quick`` leaves out the coupled scheme."""
    numbers: common.Numbers = {}
    found: dict[str, dict[float, published.Run]] = {}
    for name in ("DS", "DSn") if quick else ("DS", "DSn", "CS monolithic"):
        found[name] = {h: bar.run(name, h) for h in STEPS}
        for h, r in found[name].items():
            numbers |= {f"{name}, {h:g}: {what}": x for what, x in bar.contact(r, h).items()}
    arrays = {
        f"{n} {h:g}": np.asarray(r.traj.force_normal)[:, 0] for n, x in found.items() for h, r in x.items()
    }
    shown = {name: found[name] for name in ("DS", "DSn")}
    return common.finish(
        __file__, folder, numbers, arrays, (16.0, 11.0), lambda f: _paint(f, shown), quick=quick
    )


if __name__ == "__main__":
    common.command(main)
