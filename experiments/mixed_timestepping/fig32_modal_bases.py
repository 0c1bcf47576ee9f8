"""[R&S] Figure 32: path of the slider's centre for three modal bases of ten modes, and twenty elements.

Pinned-pinned, free-free and articulated-free modes; Table 2, Bathe. The angle theta2 belongs to another
frame in each of them, the slider does not.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from .. import common
from .fig30_modes_path import STEPS
from .flexible import (
    BEFORE,
    STEP,
    Rod,
    contact_numbers,
    deviation,
    driven_run,
    finish,
    modal,
    paint_paths,
)

BASES, COUNT = ("pinned_pinned", "free_free", "articulated_free"), 10


def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares Figure 32; ``quick``: pinned-pinned modes alone."""
    full = driven_run(Rod(), "Bathe", STEP, STEPS)
    bases = BASES[:1] if quick else BASES
    runs = {name.replace("_", "-"): driven_run(modal(name, COUNT), "Bathe", STEP, STEPS) for name in bases}
    numbers: common.Numbers = {}
    for name, traj in runs.items():
        numbers[f"{name}: deviation before the impact [m]"] = deviation(traj, full, BEFORE)
        numbers[f"{name}: deviation up to 0.02 s [m]"] = deviation(traj, full, STEPS)
        numbers[f"{name}: theta1(0.02)"] = float(traj.q[STEPS, 0])
        numbers |= {k: v for k, v in contact_numbers(traj, STEP, name).items() if "first" in k}
    shown = {**runs, "20 elements": full}
    arrays = {f"{name}: y": np.asarray(traj["y"]) for name, traj in shown.items()}
    arrays["t"] = np.asarray(full.t)
    return finish(
        "fig32_modal_bases", folder, numbers, arrays, (16.0, 12.0),
        lambda f: paint_paths(f, shown, (7.6, 14.0)), computed=not quick,
    )  # fmt: skip


if __name__ == "__main__":
    common.command(main)
