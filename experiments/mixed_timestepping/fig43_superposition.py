"""[R&S] Figure 43: superposition of modes: a cantilever bent by a load at its end, as a sum of its modes.

The share of mode k in the deflection of the end is ``phi_k(L)^2 / omega_k^2`` over ``L^3 / (3 EI)``, for
the first mode ``12 / beta^4`` with ``cos beta cosh beta = -1``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from nsjax import fem

from .. import common
from .flexible import ELEMENTS, paint_shapes

SHOWN = 3


def _paint(figure: Any, shapes: np.ndarray, parts: np.ndarray) -> None:
    axes = figure.subplots(1, 2)
    paint_shapes(axes[0], shapes[:, :SHOWN], [f"mode {k + 1}" for k in range(SHOWN)], 0.0, 1.0)
    sums = np.cumsum(parts, axis=1)[:, :SHOWN]
    labels = ["mode 1", *(f"sum of {k + 1}" for k in range(1, SHOWN))]
    paint_shapes(
        axes[1], np.concatenate([sums, parts.sum(axis=1)[:, None]], axis=1), [*labels, "all"], 0.0, 1.0
    )
    axes[0].set(xlabel="$x/L$", title="modes")
    axes[1].set(xlabel="$x/L$", ylabel="deflection, $EI = L = 1$", title="load 1 at the end")


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares Figure 43; ``quick`` changes nothing."""
    rod, modes = fem.unit_rod(ELEMENTS), fem.unit_modes(ELEMENTS, "clamped_free")
    shapes = modes.shapes[:, len(modes.axial) :]
    amplitudes = (rod.tip[1] @ shapes) / modes.bending
    parts = shapes * amplitudes
    shares = 3.0 * (rod.tip[1] @ parts)
    numbers: common.Numbers = {
        f"share of {k} modes in the deflection of the end": float(shares[:k].sum()) for k in (1, 2, 3, 10)
    }
    numbers["1 - share of all modes"] = float(1.0 - shares.sum())
    arrays = {"shapes": shapes[:, :SHOWN], "shares": shares}
    return common.finish(__file__, folder, numbers, arrays, (16.0, 7.0), lambda f: _paint(f, shapes, parts))


if __name__ == "__main__":
    common.command(main)
