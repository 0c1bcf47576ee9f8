"""[R&S] Figure 30: path of the slider's centre for 1, 5, 10, 20 and 52 clamped-free modes, Table 2, Bathe.

Few modes suffice before the first impact, which excites all of them; afterwards small differences grow with
every impact, for 52 modes as well.
"""

from __future__ import annotations

from pathlib import Path

from .. import common
from .flexible import STEP, Rod, deviations, driven_run, finish_paths, modal

COUNTS, STEPS = (1, 5, 10, 20, 52), 2000


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares Figure 30; ``quick``: one and five modes."""
    counts = COUNTS[:2] if quick else COUNTS
    full = driven_run(Rod(), "Bathe", STEP, STEPS)
    runs = {f"{n} modes": driven_run(modal("clamped_free", n), "Bathe", STEP, STEPS) for n in counts}
    numbers: common.Numbers = {}
    for name, traj in runs.items():
        numbers |= deviations(traj, full, name)
    shown = {**runs, "20 elements": full}
    return finish_paths("fig30_modes_path", folder, numbers, shown, (7.6, 14.0), computed=not quick)


if __name__ == "__main__":
    common.command(main)
