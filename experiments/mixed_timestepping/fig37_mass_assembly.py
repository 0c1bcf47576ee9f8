"""[R&S] Figure 37: mass matrix assembled from two elements, in a moving frame.

Entries of the reference coordinates (R, theta) belong to both elements, those of the middle node as well.
The frame is turned and the rod is bent, so that no entry vanishes by symmetry.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from nsjax import fem, models

from .. import common
from .flexible import coordinate_names, element_masses, origins, paint_pattern

ANGLE = 0.4
BENT = 1e-2 * np.array([0.1, 0.2, 3.0, 0.4, -0.5, -2.0, -0.3, 0.6, 1.0])


def _paint(figure: Any, kinds: np.ndarray) -> None:
    names = ["$R_x$", "$R_y$", r"$\theta$", *coordinate_names(2)]
    paint_pattern(figure.subplots(), kinds, names, "red: first element, blue: second, purple: both")


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares Figure 37; ``quick`` changes nothing."""
    p = models.slider_crank_flexible().params
    parts = element_masses(BENT, ANGLE, 2, p)
    kinds, total = origins(parts), parts.sum(axis=0)
    unit = fem.unit_rod(2)
    scale = np.tile([1.0, 1.0, p.rod_length], 3)
    exact = p.rod_mass * scale[:, None] * unit.mass * scale
    numbers: common.Numbers = {
        "entries of both elements among the nodal ones": float(np.sum(kinds[3:, 3:] == 3)),
        "entries of one element among the nodal ones": float(np.sum((kinds[3:, 3:] % 3) > 0)),
        "mass of the translation [kg]": float(total[0, 0]),
        "asymmetry": float(np.abs(total - total.T).max() / np.abs(total).max()),
        "nodal part: assembled - model": float(np.abs(total[3:, 3:] - exact).max() / exact.max()),
        "smallest eigenvalue, nodal part [kg]": float(np.linalg.eigvalsh(total[3:, 3:])[0]),
    }
    arrays = {"first": parts[0], "second": parts[1], "total": total}
    return common.finish(__file__, folder, numbers, arrays, (11.0, 11.5), lambda f: _paint(f, kinds))


if __name__ == "__main__":
    common.command(main)
