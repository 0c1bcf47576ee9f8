"""[R&S] Figure 36: Gauss points of an element: four for the mass (degree 6), two for the stiffness."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from nsjax import fem

from .. import common


def _exactness(points: int) -> tuple[int, float]:
    """Highest degree that is integrated exactly, and the error of the next one."""
    x, w = fem.gauss(points)
    errors = [abs(float(np.sum(w * x**k)) - 1.0 / (k + 1)) for k in range(2 * points + 1)]
    return int(np.flatnonzero(np.array(errors) < 1e-14)[-1]), errors[-1]


def _paint(figure: Any) -> None:
    axes = figure.subplots(2, 1)
    points = fem.gauss(4)[0]
    reference = 2.0 * points - 1.0
    for axis, at, ends in ((axes[0], reference, (-1.0, 1.0)), (axes[1], points, (0.0, 1.0))):
        axis.plot(ends, (0.0, 0.0), "k-", linewidth=1.5)
        axis.plot(ends, (0.0, 0.0), "k|", markersize=12)
        axis.plot(at, np.zeros(4), "o", color="#c8501e")
        for x in at:
            axis.annotate(f"{x:.4f}", (x, 0.0), (0, 7), textcoords="offset points", ha="center")
        for x in ends:
            axis.annotate(f"{x:g}", (x, 0.0), (0, -14), textcoords="offset points", ha="center")
        axis.set_axis_off()
        axis.set_ylim(-1.0, 1.0)
    axes[0].set_title("reference interval")
    axes[1].set_title("element, $\\xi = x / l$")


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares Figure 36; ``quick`` changes nothing."""
    x, w = fem.gauss(4)
    numbers: common.Numbers = {f"point {k + 1}": float(value) for k, value in enumerate(x)}
    numbers |= {f"weight {k + 1}, reference interval": float(2.0 * value) for k, value in enumerate(w)}
    for points in (2, 3, 4):
        degree, error = _exactness(points)
        numbers[f"{points} points: exact degree"] = float(degree)
        numbers[f"{points} points: error of the next degree"] = error
    arrays = {"points": x, "weights": w}
    return common.finish(__file__, folder, numbers, arrays, (12.0, 5.0), _paint)


if __name__ == "__main__":
    common.command(main)
