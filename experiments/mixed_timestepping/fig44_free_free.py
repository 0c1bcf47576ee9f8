"""[R&S] Figure 44: free-free modes in the frame at the centre of mass, which they do not move.

``int phi_k dV = 0`` and ``int r x phi_k dV = 0``, [R&S (191)]: the coupling blocks ``m_Rf`` and ``m_theta
f`` of the undeformed rod vanish, and the reference frame is the mean axis.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from nsjax import fem, models
from nsjax.models.slider_crank_flexible import rod_data

from .. import common
from .flexible import ELEMENTS, paint_shapes

SHOWN = 3


def reproduce(
    beside: str, conditions: str, about: float, origin: str, folder: str | Path | None
) -> common.Numbers:
    """Frequencies of two modes [Hz], their coupling to the frame, masses 1, and the first bending shapes.

    Args:
        beside: path of the module.
        conditions: of the modes.
        about: origin of the frame, 0 at the crank to 1 at the slider.
        origin: its name.
        folder: for the results.
    """
    rod, modes = fem.unit_rod(ELEMENTS), fem.unit_modes(ELEMENTS, conditions)
    p = models.slider_crank_flexible().params
    found = fem.RodBasis(ELEMENTS, modes=fem.Modes(conditions, 2)).frequencies(rod_data(p))
    turn = (rod.first - about * rod.mean)[1]
    numbers = {f"frequency {k + 1} [Hz]": float(f) for k, f in enumerate(np.asarray(found))}
    numbers["largest coupling to the translation"] = float(np.abs(rod.mean @ modes.shapes).max())
    numbers["largest coupling to the rotation"] = float(np.abs(turn @ modes.shapes).max())
    bending = modes.shapes[:, len(modes.axial) :][:, :SHOWN]

    def paint(figure: Any) -> None:
        axis = figure.subplots()
        names = [f"mode {k + 1}" for k in range(SHOWN)]
        paint_shapes(axis, bending, names, about, p.rod_length)
        axis.plot(0.0, 0.0, "ko", markersize=4)
        axis.set(xlabel=f"position from the {origin} [m]")

    return common.finish(beside, folder, numbers, {"shapes": bending}, (12.0, 7.0), paint)


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares Figure 44; ``quick`` changes nothing."""
    return reproduce(__file__, "free_free", 0.5, "centre of mass", folder)


if __name__ == "__main__":
    common.command(main)
