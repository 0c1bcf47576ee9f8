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
from .flexible import ELEMENTS, finish, paint_shapes

SHOWN = 3


def basis_numbers(conditions: str, count: int, about: float) -> common.Numbers:
    """First frequencies [Hz], and the coupling to the frame whose origin is at ``about``, masses 1."""
    rod, shapes = fem.unit_rod(ELEMENTS), fem.unit_modes(ELEMENTS, conditions).shapes
    data = rod_data(models.slider_crank_flexible().params)
    found = fem.RodBasis(ELEMENTS, modes=fem.Modes(conditions, count)).frequencies(data)
    numbers = {f"frequency {k + 1} [Hz]": float(f) for k, f in enumerate(np.asarray(found))}
    numbers["largest coupling to the translation"] = float(np.abs(rod.mean @ shapes).max())
    numbers["largest coupling to the rotation"] = float(
        np.abs((rod.first - about * rod.mean)[1] @ shapes).max()
    )
    return numbers


def bending(conditions: str) -> np.ndarray:
    """Shapes of the first bending modes (N, 3)."""
    modes = fem.unit_modes(ELEMENTS, conditions)
    return np.asarray(modes.shapes[:, len(modes.axial) :][:, :SHOWN])


def _paint(figure: Any) -> None:
    length = models.slider_crank_flexible().params.rod_length
    axis = figure.subplots()
    paint_shapes(axis, bending("free_free"), [f"mode {k + 1}" for k in range(SHOWN)], 0.5, length)
    axis.plot(0.0, 0.0, "ko", markersize=4)
    axis.set(xlabel="position from the centre of mass [m]")


def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares Figure 44; ``quick`` changes nothing."""
    numbers = basis_numbers("free_free", 2, 0.5)
    return finish("fig44_free_free", folder, numbers, {"shapes": bending("free_free")}, (12.0, 7.0), _paint)


if __name__ == "__main__":
    common.command(main)
