"""[R&S] Figure 42: tangential and pinned reference system of one and the same bent rod.

A cantilever of length 1 and ``EI = 1`` under a load 1 at its end. The tangential frame lies along the rod
at the crank, the pinned one through both ends. Both bases solve for their own deflection, under the load
and the reactions that are no reactions of their supports: ``w = (3 x^2 - x^3)/6`` and, turned by ``1/3``,
``w - x/3`` with its extreme ``-1/(9 sqrt 3)`` at ``1 - 1/sqrt 3``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from nsjax import fem

from .. import common
from .flexible import COLOURS, ELEMENTS

DRAWN = 0.5
"""Load of the drawing: a sixth of the length at the end."""


def bent(frame: str) -> np.ndarray:
    """Nodal coordinates (N,) of the deflection in this frame, load 1 at the end."""
    rod, basis = fem.unit_rod(ELEMENTS), fem.RodBasis(ELEMENTS, frame=frame)
    load = rod.tip[1].copy()
    if frame == "pinned":  # the moment with which the crank holds the rod turns the pinned end
        load[2] -= 1.0
    free = basis.free
    found = np.zeros(rod.size)
    found[free] = np.linalg.solve((rod.axial + rod.bending)[np.ix_(free, free)], load[free])
    return found


def _paint(figure: Any, x: np.ndarray, shapes: dict[str, np.ndarray]) -> None:
    for axis, (frame, w) in zip(figure.subplots(1, 2, sharey=True), shapes.items(), strict=True):
        turn = DRAWN / 3.0 if frame == "pinned" else 0.0
        c, s = np.cos(turn), np.sin(turn)
        axis.plot(c * x - s * DRAWN * w, s * x + c * DRAWN * w, color=COLOURS[0], label="rod")
        for k, (dx, dy, name) in enumerate(((c, s, "$x$"), (-s, c, "$y$"))):
            size = 1.1 if k == 0 else 0.25
            axis.annotate(
                "", (size * dx, size * dy), (0.0, 0.0), arrowprops={"arrowstyle": "->", "lw": 0.8}
            )
            axis.text(1.03 * size * dx, 1.03 * size * dy, name)
        axis.plot([0.0, c * x[-1] - s * DRAWN * w[-1]], [0.0, s * x[-1] + c * DRAWN * w[-1]], "ko", ms=4)
        axis.set(title=f"{frame} frame", xlabel="$x/L$", xlim=(-0.1, 1.25), ylim=(-0.08, 0.32))
        axis.set_aspect("equal")
    figure.axes[0].set_ylabel("$y/L$")


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares Figure 42; ``quick`` changes nothing."""
    x = np.linspace(0.0, 1.0, 2001)
    values = fem.rod_shapes(ELEMENTS, x)[:, 1]
    nodes = {frame: bent(frame) for frame in ("tangential", "pinned")}
    shapes = {frame: values @ q for frame, q in nodes.items()}
    lowest = int(np.argmin(shapes["pinned"]))
    numbers: common.Numbers = {
        "tangential: deflection of the end": float(shapes["tangential"][-1]),
        "tangential: slope at the crank": float(nodes["tangential"][2]),
        "pinned: deflection of the end": float(shapes["pinned"][-1]),
        "pinned: slope at the crank": float(nodes["pinned"][2]),
        "pinned: extreme deflection": float(shapes["pinned"][lowest]),
        "pinned: place of the extreme": float(x[lowest]),
        "one rod: largest difference": float(
            np.abs(shapes["pinned"] - shapes["tangential"] + x / 3.0).max()
        ),
    }
    return common.finish(
        __file__, folder, numbers, {"x": x, **shapes}, (16.0, 4.8), lambda f: _paint(f, x, shapes)
    )


if __name__ == "__main__":
    common.command(main)
