"""[R&S] Figure 45: articulated-free modes, pinned at the crank and free at the slider.

They fulfil the joint and the second condition of [R&S (191)]: the block ``m_theta f`` of the undeformed rod
vanishes, ``m_Rf`` does not.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nsjax import models

from .. import common
from .fig44_free_free import SHOWN, basis_numbers, bending
from .flexible import finish, paint_shapes


def _paint(figure: Any) -> None:
    length = models.slider_crank_flexible().params.rod_length
    axis = figure.subplots()
    paint_shapes(axis, bending("articulated_free"), [f"mode {k + 1}" for k in range(SHOWN)], 0.0, length)
    axis.plot(0.0, 0.0, "ko", markersize=4)
    axis.set(xlabel="position from the crank [m]")


def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares Figure 45; ``quick`` changes nothing."""
    numbers = basis_numbers("articulated_free", 2, 0.0)
    arrays = {"shapes": bending("articulated_free")}
    return finish("fig45_articulated_free", folder, numbers, arrays, (12.0, 7.0), _paint)


if __name__ == "__main__":
    common.command(main)
