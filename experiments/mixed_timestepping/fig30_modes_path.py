"""[R&S] Figure 30: path of the slider's centre for 1, 5, 10, 20 and 52 clamped-free modes, Table 2, Bathe.

Few modes suffice before the first impact, which excites all of them; afterwards small differences grow with
every impact, for 52 modes as well.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from nsjax import fem, models
from nsjax.models.slider_crank_flexible import rod_data

from .. import common
from .flexible import ELEMENTS, STEP, Rod, deviations, driven_run, finish_paths, modal

COUNTS, STEPS = (1, 5, 10, 20), 2000
CUTOFF = 1e7
"""Highest frequency that Bathe's scheme does not damp out, [R&S] section 4.5: 100 / dt [1/s]."""


def effective() -> int:
    """Clamped-free modes of twenty elements below the cutoff: 52 in the paper."""
    basis = fem.RodBasis(ELEMENTS, modes=fem.Modes("clamped_free", 3 * ELEMENTS))
    return int(
        np.sum(np.asarray(basis.frequencies(rod_data(models.slider_crank_flexible().params))) < CUTOFF)
    )


def numbers_of_modes(quick: bool) -> tuple[int, ...]:
    """Numbers of modes of the curves; the last is that of all modes with an effect."""
    return COUNTS[:2] if quick else (*COUNTS, effective())


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares Figure 30; ``quick``: one and five modes."""
    counts = numbers_of_modes(quick)
    full = driven_run(Rod(), "Bathe", STEP, STEPS)
    runs = {f"{n} modes": driven_run(modal("clamped_free", n), "Bathe", STEP, STEPS) for n in counts}
    numbers: common.Numbers = {}
    for name, traj in runs.items():
        numbers |= deviations(traj, full, name)
    shown = {**runs, "20 elements": full}
    return finish_paths(__file__, folder, numbers, shown, (7.6, 14.0), quick)


if __name__ == "__main__":
    common.command(main)
