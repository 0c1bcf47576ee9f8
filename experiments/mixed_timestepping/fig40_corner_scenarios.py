"""[R&S] Figure 40: scenarios of slider and notch: no corner, one, two opposite, two of one side at a wall.

Everything drawn comes from the model `slider_crank`: a scenario is a set of corners whose gaps are to be
zero; height and angle of the slider follow from them by Newton's method on the model's gap function, the
other angles from the closed chain of crank and rod. The red corners are those whose gap the model then
finds closed. The clearance is drawn a dozen times as large as that of Table 1. The corners themselves are
those of a turned rectangle, so that a gap can be compared with the distance drawn.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax import Problem, models

from .. import common
from .fig13_time_grids import GREY, RED

CRANK_ANGLE = 0.9
CLEARANCE = 0.012
CLOSED = 1e-12
"""Metres: a corner this near to its wall touches it, the rest is rounding."""

TILT = 0.12
"""Angle of the slider [rad] where a scenario leaves it free."""

SCENARIOS: dict[str, tuple[int, ...]] = {
    "(a) none": (),
    "(b) one corner": (2,),
    "(c) opposite corners": (2, 3),
    "(d) corners of a side": (3, 4),
}
"""Corners, numbered as in the paper, whose gaps are zero."""

_SIDE = np.array([-1.0, 1.0, -1.0, 1.0])
_TOP = np.array([1.0, 1.0, -1.0, -1.0])


@dataclass(frozen=True)
class Pose:
    """A configuration ``q`` with the slider's centre and corners (4, 2) [m] and the model's gaps (4,)."""

    q: np.ndarray
    centre: np.ndarray
    corners: np.ndarray
    gaps: np.ndarray

    @property
    def closed(self) -> np.ndarray:
        """Mask (4,) of the corners at their walls."""
        return np.abs(self.gaps) <= CLOSED


def mechanism(clearance: float = CLEARANCE) -> Problem:
    """The mechanism of Table 1 with another clearance."""
    return models.slider_crank(clearance=clearance)


def configuration(problem: Problem, height: Any, angle: Any) -> jax.Array:
    """``q`` with the slider's centre at ``height`` and its angle, for the drawn crank angle."""
    p = problem.params
    rise = (height - p.crank_length * jnp.sin(CRANK_ANGLE)) / p.rod_length
    return jnp.stack([jnp.asarray(CRANK_ANGLE), jnp.arcsin(rise), jnp.asarray(angle)])


def pose(problem: Problem, height: float, angle: float) -> Pose:
    """Geometry and gaps of a configuration."""
    system, p = problem.system, problem.params
    q = configuration(problem, height, angle)
    seen = system.observe(0.0, q, 0.0 * q, None, p)  # type: ignore[misc]
    centre = np.array([float(seen["x"]), float(seen["y"])])
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    local = np.stack([p.half_length * _SIDE, p.half_height * _TOP], axis=1)
    gaps = np.asarray(system.gap(0.0, q, p))
    return Pose(q=np.asarray(q), centre=centre, corners=centre + local @ turn.T, gaps=gaps)


def find(problem: Problem, corners: tuple[int, ...]) -> Pose:
    """The slider with these corners at their walls, by Newton's method on the model's gaps.

    One corner leaves the angle free, no corner height and angle: then they keep their start.
    """
    wanted = np.array(corners, int) - 1
    start = 0.0 if corners == (3, 4) else TILT
    x = np.array([0.0 if corners else 0.2 * CLEARANCE, start])

    def gaps(x: jax.Array) -> jax.Array:
        q = configuration(problem, x[0], x[1])
        return problem.system.gap(0.0, q, problem.params)[wanted]

    both = jax.jit(lambda x: (gaps(x), jax.jacfwd(gaps)(x)))
    for _ in range(20 if corners else 0):
        left, tangent = (np.array(part) for part in both(jnp.asarray(x)))
        if len(corners) == 1:
            tangent[:, 1] = 0.0
        x = x - np.linalg.lstsq(tangent, left, rcond=None)[0]
    return pose(problem, float(x[0]), float(x[1]))


def wall_height(problem: Problem) -> float:
    """Half the height of the notch [m]."""
    return float(problem.params.half_height + problem.params.clearance)


def drawn_distances(problem: Problem, found: Pose) -> np.ndarray:
    """Distances (4,) of the drawn corners from the drawn walls [m]."""
    return wall_height(problem) - _TOP * found.corners[:, 1]


def jam_angle(problem: Problem) -> float:
    """Angle at which opposite corners touch: a sin + b cos = d / 2, in closed form [rad]."""
    a, b = float(problem.params.half_length), float(problem.params.half_height)
    return float(np.arcsin(wall_height(problem) / np.hypot(a, b)) - np.arctan2(b, a))


def draw_notch(axis: Any, problem: Problem, reach: float) -> None:
    """The walls, hatched, from ``-reach`` to ``reach``."""
    wall = wall_height(problem)
    for sign in (1.0, -1.0):
        axis.plot([-reach, reach], [sign * wall] * 2, color="black", linewidth=1.0)
        axis.fill_between(
            [-reach, reach], sign * wall, sign * (wall + 0.008), facecolor="none", edgecolor=GREY,
            hatch="////", linewidth=0.0,
        )  # fmt: skip
    axis.set(xlim=(-reach - 0.012, reach + 0.012), ylim=(-wall - 0.014, wall + 0.014), aspect="equal")
    axis.set_axis_off()


def draw_slider(axis: Any, found: Pose) -> None:
    """The slider about its own place along the guide; corners with their numbers, closed ones red."""
    shift = np.array([found.centre[0], 0.0])
    outline = (found.corners - shift)[[0, 1, 3, 2, 0]]
    axis.fill(*outline.T, facecolor="#dfe7f2", edgecolor="#1f4e9c", linewidth=1.0)
    for k, (corner, closed) in enumerate(zip(found.corners - shift, found.closed, strict=True), 1):
        axis.plot(*corner, "o", color=RED if closed else "0.25", markersize=5 if closed else 2.5, zorder=3)
        inward = corner + 0.16 * ((found.centre - shift) - corner)
        axis.text(*inward, str(k), ha="center", va="center")


def _measure(axis: Any, start: tuple[float, float], end: tuple[float, float], label: str) -> None:
    axis.annotate(
        "", end, start, arrowprops={"arrowstyle": "<->", "color": "black", "linewidth": 0.6, "shrinkA": 0,
                                    "shrinkB": 0},
    )  # fmt: skip
    middle = 0.5 * (np.array(start) + np.array(end))
    axis.text(
        *middle, label, ha="center", va="center", bbox={"facecolor": "white", "linewidth": 0, "pad": 0.8}
    )


def _paint(figure: Any, problem: Problem, poses: dict[str, Pose]) -> None:
    axes = figure.subplots(2, 2).ravel()
    for axis, (name, found) in zip(axes, poses.items(), strict=True):
        draw_notch(axis, problem, 0.08)
        draw_slider(axis, found)
        axis.set_title(name)
    first, wall = axes[0], wall_height(problem)
    corners = next(iter(poses.values())).corners
    x = corners - [corners[:, 0].mean(), 0.0]
    _measure(first, (0.075, -wall), (0.075, wall), "$d$")
    _measure(first, tuple(0.5 * (x[0] + x[2])), tuple(0.5 * (x[1] + x[3])), "$2a$")
    _measure(first, tuple(0.75 * x[0] + 0.25 * x[1]), tuple(0.75 * x[2] + 0.25 * x[3]), "$2b$")
    first.text(-0.079, wall - 0.004, "notch", ha="left", va="top", fontsize=7)


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Finds, saves, draws and compares Figure 40; ``quick`` changes nothing."""
    problem = mechanism()
    poses = {name: find(problem, corners) for name, corners in SCENARIOS.items()}
    numbers: common.Numbers = {}
    for name, found in poses.items():
        numbers[f"{name}: closed corners"] = float(
            "0" + "".join(str(k + 1) for k in np.flatnonzero(found.closed))
        )
        numbers[f"{name}: |gap - distance drawn|"] = float(
            np.abs(found.gaps - drawn_distances(problem, found)).max()
        )
        numbers[f"{name}: smallest gap"] = float(found.gaps.min())
    numbers["(c) opposite corners: angle"] = float(poses["(c) opposite corners"].q[2])
    numbers["(d) corners of a side: height"] = float(poses["(d) corners of a side"].centre[1])
    table1 = mechanism(1e-3)
    numbers["jam angle with the clearance of Table 1"] = float(find(table1, (2, 3)).q[2])
    arrays: dict[str, Any] = {f"{name}: corners": found.corners for name, found in poses.items()}
    arrays |= {f"{name}: gaps": found.gaps for name, found in poses.items()}
    return common.finish(
        __file__, folder, numbers, arrays, (16.0, 9.5), lambda f: _paint(f, problem, poses)
    )


if __name__ == "__main__":
    common.command(main)
