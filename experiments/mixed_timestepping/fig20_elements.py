"""[R&S] Figure 20: motion of the slider's centre for 1, 2, 5, 10 and 20 elements, Table 1, Bathe.

dt = 1e-5 s up to 0.05 s. The numbers of elements are not printed in the paper. Angles converge at once,
since the rod is stiff; velocities after impacts stay sensitive to the mesh, because an impact excites all
modes.
"""

from __future__ import annotations

from pathlib import Path

from .. import common
from .flexible import STEP, Rod, angles, contact_numbers, finish_paths, free_run

COUNTS, STEPS = (1, 2, 5, 10, 20), 5000


def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares Figure 20; ``quick``: one and two elements."""
    runs = {f"n = {n}": free_run(Rod(elements=n), STEPS) for n in (COUNTS[:2] if quick else COUNTS)}
    numbers: common.Numbers = {}
    for name, traj in runs.items():
        numbers |= angles(traj, STEP, (0.05,), name) | contact_numbers(traj, STEP, name)
    return finish_paths("fig20_elements", folder, numbers, runs, (2.0, 10.0), computed=not quick)


if __name__ == "__main__":
    common.command(main)
