"""[R&S] Figure 39: stiffness matrix assembled from two elements; stretching and bending do not couple."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from nsjax import fem, models
from nsjax.models.slider_crank_flexible import rod_data

from .. import common
from .flexible import coordinate_names, origins, paint_pattern


def element_stiffnesses(length: float, axial: float, bending: float) -> np.ndarray:
    """Stiffness matrices of two equal elements in the coordinates of both (2, 9, 9), [R&S (160)-(163)]."""
    xi, weights = fem.gauss(2)
    strain = fem.strains(xi, length)
    law = np.diag([axial, bending])
    one = length * np.einsum("p,pia,ij,pjb->ab", weights, strain, law, strain)
    parts = np.zeros((2, 9, 9))
    parts[0, :6, :6] = one
    parts[1, 3:, 3:] = one
    return parts


def _paint(figure: Any, kinds: np.ndarray) -> None:
    title = "red: first element, blue: second, purple: both"
    paint_pattern(figure.subplots(), kinds, coordinate_names(2), title)


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares Figure 39; ``quick`` changes nothing."""
    p = models.slider_crank_flexible().params
    data = rod_data(p)
    parts = element_stiffnesses(p.rod_length / 2, float(data.axial), float(data.bending))
    kinds, total = origins(parts), parts.sum(axis=0)
    unit, length = fem.unit_rod(2), p.rod_length
    scale = np.tile([1.0, 1.0, length], 3)
    model = float(data.axial) / length * unit.axial + float(data.bending) / length**3 * unit.bending
    model = scale[:, None] * model * scale
    values = np.linalg.eigvalsh(total)
    numbers: common.Numbers = {
        "entries of both elements": float(np.sum(kinds == 3)),
        "entries of one element": float(np.sum((kinds % 3) > 0)),
        "assembled - model": float(np.abs(total - model).max() / np.abs(model).max()),
        "motions without strain": float(np.sum(np.abs(values) < 1e-12 * values.max())),
        "EA [N]": float(data.axial),
        "EI [N m^2]": float(data.bending),
    }
    arrays = {"first": parts[0], "second": parts[1], "total": total}
    return common.finish(__file__, folder, numbers, arrays, (10.0, 10.5), lambda f: _paint(f, kinds))


if __name__ == "__main__":
    common.command(main)
