"""[R&S] Figure 33: Bathe's scheme in time: trapezoidal rule (red), then Euler backward (green).

The stages are those of one real step, recorded as in ``fig13_time_grids``. The curves are the polynomials
behind the two rules: over the first half the parabola with the end slopes a_i and a_h, which ends in v_h
because the trapezoidal rule integrates it exactly; over the whole step the parabola through v_i, v_h and
v_{i+1}, whose slope at the end is a_{i+1}. Both properties are numbers of the comparison.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from nsjax import schemes

from .. import common
from .fig13_time_grids import (
    GREEN,
    GREY,
    RED,
    STEP,
    Grid,
    exact_velocity,
    grid,
    time_line,
)


def trapezoidal(found: Grid, abscissa: np.ndarray) -> np.ndarray:
    """Velocity with a linear acceleration between ``a_i`` and ``a_h``."""
    i, half = found.start, found.stages[0]
    s = STEP * abscissa
    return i.v + i.a * s + (half.a - i.a) / STEP * s**2  # over half a step: (a_h - a_i) / (dt / 2) / 2


def backward(found: Grid) -> np.ndarray:
    """Coefficients, highest power first, of the parabola in time through three velocities."""
    points = (found.start, found.stages[0], found.end)
    return np.polyfit([STEP * p.abscissa for p in points], [p.v for p in points], 2)


def residuals(found: Grid) -> dict[str, float]:
    """What is left of the formulas of [R&S section 2.6] at the measured stages."""
    i, end = found.start, found.end
    half, last = found.stages
    quarter = 0.25 * STEP
    left = {
        "trapezoidal rule, v": i.v + quarter * (i.a + half.a) - half.v,
        "trapezoidal rule, q": i.q + quarter * (i.v + half.v) - half.q,
        "Euler backward, q": (i.q - 4 * half.q + 3 * end.q) / STEP - end.v,
        "Euler backward, v": (i.v - 4 * half.v + 3 * end.v) / STEP - last.a,
        "red curve at the middle": float(trapezoidal(found, np.array(0.5))) - half.v,
        "green slope at the end": float(np.polyval(np.polyder(backward(found)), STEP)) - end.a,
    }
    return {name: abs(value) for name, value in left.items()}


def _paint(figure: Any, found: Grid) -> None:
    axis = figure.subplots()
    x = np.linspace(-0.05, 1.05, 120)
    axis.plot(x, exact_velocity(x), color=GREY, linewidth=0.7, linestyle=(0, (5, 3)), label="exact")
    whole = np.linspace(0.0, 1.0, 100)
    axis.plot(whole, np.polyval(backward(found), STEP * whole), color=GREEN, label="Euler backward")
    first = whole[whole <= 0.5]
    axis.plot(first, trapezoidal(found, first), color=RED, linewidth=1.6, label="trapezoidal rule")
    points = (found.start, *found.stages)
    for point, name in zip(points, ("$v_i$", r"$v_{i+\frac{1}{2}}$", "$v_{i+1}$"), strict=True):
        axis.plot(point.abscissa, point.v, "ko", markersize=4)
        axis.text(point.abscissa + 0.03, point.v + 0.03, name, va="bottom")
    names = ("$i$", r"$i+\frac{1}{2}$", "$i+1$")
    time_line(axis, {p.abscissa: name for p, name in zip(points, names, strict=True)}, -0.3)
    low = -0.3
    for a, b, colour, lift in ((0.0, 0.5, RED, 0.12), (0.0, 1.0, GREEN, 0.2)):
        axis.annotate(
            "", (b, low + lift), (a, low + lift),
            arrowprops={"arrowstyle": "|-|,widthA=0.25,widthB=0.25", "color": colour, "linewidth": 1.0,
                        "shrinkA": 0, "shrinkB": 0},
        )  # fmt: skip
    axis.set(xlim=(-0.2, 1.2), ylim=(-0.6, 1.2), ylabel="velocity")
    axis.set_xticks([])
    axis.set_yticks([0.0, 0.5, 1.0])
    axis.legend(loc="upper right")
    axis.spines[["top", "right", "bottom"]].set_visible(False)
    axis.tick_params(right=False)


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Measures, saves, draws and compares Figure 33; ``quick`` changes nothing, it is one step."""
    found = grid(schemes.bathe())
    numbers = {f"abscissa {k}": stage.abscissa for k, stage in enumerate(found.stages, 1)}
    numbers |= residuals(found)
    points = (found.start, *found.stages)
    arrays = {
        "abscissa": [p.abscissa for p in points],
        "v": [p.v for p in points],
        "q": [p.q for p in points],
    }
    return common.finish(__file__, folder, numbers, arrays, (11.0, 7.5), lambda f: _paint(f, found))


if __name__ == "__main__":
    common.command(main)
