"""[R&S] Figure 18: force of the constraint of model problem (b) on both levels, dt = 0.05 s.

From the inconsistent acceleration of [R&S (25)], on velocity level, the force carries the transient of
Figure 17: undamped for rho_inf = 1, decaying otherwise, absent for Bathe and ED-alpha. Behind it, and from
the consistent start at once, only the accuracy of the scheme is left: the largest error in 10 s is that of
[P]. On acceleration level the force has no transient; its error from the
inconsistent start grows with the drift of the third mass, which loads its spring.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from .. import common
from .chain import NAMES, SETTLED, exact_force, force_error, held_run
from .rigid import LOOKS
from .rigid import NAMES as TITLES

DRAWN = 101
CASES = {
    "velocity level, inconsistent": ("velocity", False),
    "acceleration level, inconsistent": ("acceleration", False),
    "velocity level, consistent": ("velocity", True),
}


def _paint(figure: Any, arrays: dict[str, np.ndarray]) -> None:
    axes = figure.subplots(2, 3, sharex=True, sharey="row")
    t = arrays["t"][:DRAWN]
    for column, case in enumerate(CASES):
        axes[0, column].plot(t, arrays["exact"][:DRAWN], color="0.75", linewidth=2.4, label="exact")
        for name in NAMES:
            force = arrays[f"{name}, {case}"][:DRAWN]
            axes[0, column].plot(t[1:], force[1:], label=TITLES[name], **LOOKS[name])
            off = np.abs(force - arrays["exact"][:DRAWN])
            axes[1, column].semilogy(t[1:], off[1:], **LOOKS[name])
        axes[0, column].set_title(f"{case} start")
        axes[1, column].set(xlabel="time $t$ [s]", xlim=(0.0, t[-1]), ylim=(1e-5, 20.0))
    axes[0, 0].set_ylabel(r"$\lambda$ [N]")
    axes[1, 0].set_ylabel(r"$|\Delta\lambda|$ [N]")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4)


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares Figure 18; ``quick`` changes nothing, the run is short."""
    t = np.asarray(held_run(NAMES[0], True).t)
    numbers: common.Numbers = {}
    arrays = {"t": t, "exact": exact_force(t)}
    for name in NAMES:
        for case, (level, consistent) in CASES.items():
            traj = held_run(name, consistent, level)
            arrays[f"{name}, {case}"] = np.asarray(traj.constraint_force)[:, 0]
            early = np.abs(arrays[f"{name}, {case}"] - arrays["exact"])[1:6].max()
            numbers[f"{name}, {case}: force error, first 5 steps"] = float(early)
            first = SETTLED if case.startswith("velocity") and not consistent else 1
            numbers[f"{name}, {case}: force error after the transient"] = force_error(traj, first)
    return common.finish(__file__, folder, numbers, arrays, (19.0, 12.0), lambda f: _paint(f, arrays))


if __name__ == "__main__":
    common.command(main)
