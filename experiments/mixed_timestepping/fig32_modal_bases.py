"""[R&S] Figure 32: path of the slider's centre for three modal bases of ten modes, and twenty elements.

Pinned-pinned, free-free and articulated-free modes; Table 2, Bathe. The angle theta2 belongs to another
frame in each of them, the slider does not.
"""

from __future__ import annotations

from pathlib import Path

from .. import common
from .fig30_modes_path import STEPS
from .flexible import STEP, Rod, contact_numbers, deviations, driven_run, finish_paths, modal

BASES, COUNT = ("pinned_pinned", "free_free", "articulated_free"), 10


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares Figure 32; ``quick``: pinned-pinned modes alone."""
    full = driven_run(Rod(), "Bathe", STEP, STEPS)
    bases = BASES[:1] if quick else BASES
    runs = {name.replace("_", "-"): driven_run(modal(name, COUNT), "Bathe", STEP, STEPS) for name in bases}
    numbers: common.Numbers = {}
    for name, traj in runs.items():
        numbers |= deviations(traj, full, name)
        numbers[f"{name}: theta1(0.02)"] = float(traj.q[STEPS, 0])
        numbers |= {k: v for k, v in contact_numbers(traj, name).items() if "first" in k}
    shown = {**runs, "20 elements": full}
    return finish_paths(__file__, folder, numbers, shown, (7.6, 14.0), quick)


if __name__ == "__main__":
    common.command(main)
