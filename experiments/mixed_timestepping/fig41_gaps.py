"""[R&S] Figure 41: normal and tangential gaps of the slider's corners, [R&S (171)-(178)].

The configuration is that of `slider_crank` with the slider raised and turned; the lengths of the drawn
arrows are the model's gaps. The tangential gaps are drawn from the Y axis to the corners; the model knows
their rates alone, so the comparison takes these: slip of the model against the rate of the drawn corner.
The Y axis is drawn nearer to the slider than it is.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax import Problem

from .. import common
from .fig13_time_grids import BLUE, RED
from .fig40_corner_scenarios import (
    Pose,
    draw_notch,
    draw_slider,
    drawn_distances,
    mechanism,
    pose,
    wall_height,
)

HEIGHT, ANGLE = 0.0005, 0.1
REACH = 0.105
AXIS = -0.1
"""Where the Y axis is drawn, relative to the slider's centre [m]."""

VELOCITY = np.array([3.0, -2.0, 5.0])
"""Angular velocities [rad/s] for the comparison of rates."""


def corner_rates(problem: Problem, found: Pose) -> np.ndarray:
    """Velocities (4,) of the corners along the guide [m/s]: rigid motion of the slider about its centre,
    and of crank and rod, as complex numbers.
    """
    p = problem.params
    crank = 1j * VELOCITY[0] * p.crank_length * np.exp(1j * found.q[0])
    rod = 1j * VELOCITY[1] * p.rod_length * np.exp(1j * found.q[1])
    arms = (found.corners - found.centre) @ np.array([1.0, 1j])
    return np.asarray((crank + rod + 1j * VELOCITY[2] * arms).real)


def normal_arrows(problem: Problem, found: Pose) -> np.ndarray:
    """Ends (4, 2, 2) of the arrows of the normal gaps: from the wall to the corner."""
    walls = found.corners.copy()
    walls[:, 1] = wall_height(problem) * np.array([1.0, 1.0, -1.0, -1.0])
    return np.stack([walls, found.corners], axis=1)


def _arrow(axis: Any, start: Any, end: Any, colour: str) -> None:
    axis.annotate(
        "", end, start,
        arrowprops={"arrowstyle": "<->", "color": colour, "linewidth": 0.8, "shrinkA": 0, "shrinkB": 0,
                    "mutation_scale": 7},
    )  # fmt: skip


def _paint(figure: Any, problem: Problem, found: Pose) -> None:
    axis = figure.subplots()
    draw_notch(axis, problem, REACH)
    draw_slider(axis, found)
    shift = np.array([found.centre[0], 0.0])
    for k, ends in enumerate(normal_arrows(problem, found) - shift, 1):
        _arrow(axis, ends[0], ends[1], RED)
        side = 0.004 if k % 2 == 0 else -0.004
        axis.text(ends[0, 0] + side, ends[:, 1].mean(), f"$g_{{N_{k}}}$", color=RED, va="center",
                  ha="left" if k % 2 == 0 else "right")  # fmt: skip
    for k, corner in enumerate(found.corners - shift, 1):
        _arrow(axis, (AXIS, corner[1]), corner, BLUE)
        axis.text(0.5 * (AXIS + min(corner[0], -0.05)), corner[1] - 0.001, f"$g_{{T_{k}}}$", color=BLUE,
                  va="top", ha="center")  # fmt: skip
    centre = found.centre - shift
    axis.plot(*centre, "k+", markersize=7)
    axis.text(centre[0] - 0.003, centre[1] - 0.002, "cg", ha="right", va="top")
    turned = np.array([np.cos(ANGLE), np.sin(ANGLE)])
    axis.plot([centre[0], centre[0] + 0.045], [centre[1]] * 2, "k:", linewidth=0.8)
    axis.plot(*np.stack([centre, centre + 0.045 * turned]).T, "k:", linewidth=0.8)
    arc = ANGLE * np.linspace(0.0, 1.0, 20)
    axis.plot(centre[0] + 0.036 * np.cos(arc), centre[1] + 0.036 * np.sin(arc), "k-", linewidth=0.8)
    axis.text(centre[0] + 0.037, centre[1] + 0.0045, r"$\theta_3$", va="bottom")
    for end, label in (((AXIS + 0.02, 0.0), "$X^I$"), ((AXIS, 0.015), "$Y^I$")):
        axis.annotate("", end, (AXIS, 0.0), arrowprops={"arrowstyle": "-|>", "color": "black"})
        axis.text(end[0] + 0.001, end[1] + 0.001, label)


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares Figure 41; ``quick`` changes nothing."""
    problem = mechanism()
    found = pose(problem, HEIGHT, ANGLE)
    arrows = normal_arrows(problem, found)
    lengths = np.linalg.norm(arrows[:, 1] - arrows[:, 0], axis=1)
    v = jnp.asarray(VELOCITY)
    slip = problem.system.slip(0.0, jnp.asarray(found.q), v, problem.params)
    numbers: common.Numbers = {f"gap {k} - length drawn": float(g - x) for k, (g, x) in
                               enumerate(zip(found.gaps, lengths, strict=True), 1)}  # fmt: skip
    for k, (model, drawn) in enumerate(zip(slip[:, 0], corner_rates(problem, found), strict=True), 1):
        numbers[f"slip {k} - rate of the corner drawn"] = float(model - drawn)

    def gaps(q: jax.Array) -> jax.Array:
        return problem.system.gap(0.0, q, problem.params)

    turning = np.asarray(jax.jacfwd(gaps)(jnp.asarray(found.q)))[:, 2]
    s, c = np.sin(ANGLE), np.cos(ANGLE)
    a, b = float(problem.params.half_length), float(problem.params.half_height)
    printed = np.array([a * c + b * s, -a * c + b * s, -a * c + b * s, a * c + b * s])
    numbers["third column of W_N - (179)"] = float(np.abs(turning - printed).max())
    numbers["least gap"] = float(np.min(drawn_distances(problem, found)))
    arrays = {"corners": found.corners, "gaps": found.gaps, "q": found.q, "arrows": arrows}
    return common.finish(
        __file__, folder, numbers, arrays, (16.0, 7.0), lambda f: _paint(f, problem, found)
    )


if __name__ == "__main__":
    common.command(main)
