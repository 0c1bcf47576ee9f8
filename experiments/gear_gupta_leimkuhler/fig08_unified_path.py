"""[S&U&S] Figure 8: path of the slider's centre as in Figure 3, by the unified scheme.

Unified Gear-Gupta-Leimkuhler scheme (36)-(42), data and coefficients of restitution of Figure 3. Patterns
for large coefficients resemble those of Moreau's rule; for 0.1 the drift into the walls is gone.

What is left outside the limits is the one step by which the prediction at the midpoint may be late:
a contact that is not yet active may be penetrated by ``dt/2 |dg|``, for every coefficient alike.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from nsjax import schemes

from .. import common
from .fig03_moreau_path import CLEARANCE, RESTITUTIONS, Path2, paint, run


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares Figure 8; ``quick`` changes nothing, the run is short."""
    numbers: common.Numbers = {}
    path: Path2 = {}
    time = np.zeros(0)
    for restitution in RESTITUTIONS:
        traj = run(restitution, schemes.ggl_unified())
        time, y = np.asarray(traj.t), np.asarray(traj["y"])
        path[restitution] = np.asarray(traj["x"]), y
        numbers[f"|y|_max, e = {restitution}"] = float(np.abs(y).max())
        numbers[f"|y|_max - c, e = {restitution}"] = float(np.abs(y).max()) - CLEARANCE
    arrays = {
        f"{name}_{e}": values for e, xy in path.items() for name, values in zip("xy", xy, strict=True)
    }
    return common.finish(
        __file__, folder, numbers, {"t": time, **arrays}, (16.0, 17.0),
        lambda f: paint(f, time, path, "unified"),
    )  # fmt: skip


if __name__ == "__main__":
    common.command(main)
