"""Rigid slider-crank of [R&S]: Tables 1 and 2, the schemes compared there, contact events of a run.

The schemes come with the paper's memory rule, ``acceleration_after_change="keep"``: the acceleration
that a step leaves is not touched by an impact. The program's own default, ``"recompute"``, is more
accurate after impacts; Table 6 shows both. ED-alpha with rho_inf = 0 and the half-explicit scheme
remember no acceleration.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import nsjax
from nsjax import analysis, models, schemes

from .. import common

ROWS = ["gap_min", "force_normal", "impulse_normal", "closed_time"]
"""What every run of the mechanism saves: one selection, so that a scheme compiles once."""

LOADED = 1e-6
"""Mean normal force of a wall over a step above which the wall is loaded [N]; contact forces are of
the order of 1 N, and a wall without contact has exactly none."""

UNRESOLVED = 3
"""A bounce of so few steps is none: schemes that decide on contact at a predicted midpoint load a closed
contact in every second step only while the wall falls away from the prediction."""

UPPER, LOWER = slice(0, 2), slice(2, 4)

RIGID = {
    "gen-alpha 0.8": schemes.generalized_alpha(0.8, acceleration_after_change="keep"),
    "gen-alpha 0.5": schemes.generalized_alpha(0.5, acceleration_after_change="keep"),
    "gen-alpha 0": schemes.generalized_alpha(0.0, acceleration_after_change="keep"),
    "Bathe": schemes.bathe(acceleration_after_change="keep"),
    "ED-alpha 0": schemes.ed_alpha(0.0),
}
LOOKS: dict[str, dict[str, Any]] = {
    "gen-alpha 1": {"color": "#7f7f7f", "linestyle": "-"},
    "gen-alpha 0.8": {"color": "#1f4e9c", "linestyle": "-"},
    "gen-alpha 0.5": {"color": "#6f9bd8", "linestyle": "--"},
    "gen-alpha 0": {"color": "#c8501e", "linestyle": "-."},
    "Bathe": {"color": "#1d7a4a", "linestyle": (0, (5, 2))},
    "ED-alpha 0": {"color": "#8a2f8f", "linestyle": ":"},
}
NAMES = {
    "gen-alpha 1": r"generalized-$\alpha$, $\rho_\infty = 1$",
    "gen-alpha 0.8": r"generalized-$\alpha$, $\rho_\infty = 0.8$",
    "gen-alpha 0.5": r"generalized-$\alpha$, $\rho_\infty = 0.5$",
    "gen-alpha 0": r"generalized-$\alpha$, $\rho_\infty = 0$",
    "Bathe": "Bathe",
    "ED-alpha 0": r"ED-$\alpha$, $\rho_\infty = 0$",
}


def table1() -> Any:
    """The mechanism of Table 1, running freely from 150 rad/s."""
    return models.slider_crank()


def table2() -> Any:
    """The mechanism of Table 2: half the clearance, driven from rest by 1 N m, more friction."""
    return models.slider_crank(**models.TABLE_2)


def run(problem: Any, scheme: Any, dt: float, steps: int, every: int = 1) -> nsjax.Trajectory:
    """`common.run` with `ROWS` saved."""
    return common.run(problem, scheme, dt, steps, every, save=ROWS)


def jumps(traj: nsjax.Trajectory, dt: float) -> np.ndarray:
    """Impulses of the corners (rows, 4) [N s] at the ends of steps, without the time integral of the
    forces in these steps, which is taken as that of the last force; a run of the mixed framework with
    every step saved.
    """
    jump = np.asarray(traj.impulse_normal) - dt * np.asarray(traj.force_normal)
    return np.where(analysis.impulse_steps(traj)[:, None], jump, 0.0)


def phases(on: np.ndarray, bridge: int = 0) -> np.ndarray:
    """First row and row behind the last of every stretch of ``on`` (stretches, 2); up to ``bridge`` rows in
    which it is off do not end a stretch.
    """
    edges = np.diff(np.concatenate([[0], np.asarray(on, int), [0]]))
    found = np.flatnonzero(edges).reshape(-1, 2)
    apart = np.flatnonzero(found[1:, 0] - found[:-1, 1] > bridge)
    first, last = np.append(-1, apart) + 1, np.append(apart, len(found) - 1)
    return np.stack([found[first, 0], found[last, 1]], axis=1) if len(found) else found


def loaded(traj: nsjax.Trajectory, dt: float, wall: slice) -> np.ndarray:
    """Rows (rows,) bool whose step loads the wall: corners of a wall act together, their sum counts."""
    return np.asarray(np.asarray(traj.impulse_normal)[:, wall].sum(axis=1) > LOADED * dt)


@dataclass(frozen=True)
class Events:
    """Times [s] of the first contact phases of the driven mechanism (Table 2), read from a run.

    ``impact``: end of the first step in which the lower wall is loaded. ``closure`` and ``release``: end of
    the first and of the last step of the longest stretch in which that wall is loaded, `UNRESOLVED` steps
    without load allowed. ``upper``: end of the first step in which the upper wall is loaded. ``visits``:
    loaded stretches of the lower wall, the last of which is the closed phase.

    Why the load and not the gap: a closed contact rests slightly inside the wall, at a depth that
    depends on the scheme (of order dt for Moreau's rule), and opens with the third power of time,
    because the force leaves through zero. The gap turns positive ``(6 depth / jerk)^(1/3)`` late.
    Why not the impacts: the last one is followed by rebounds that stay inside the wall.
    """

    impact: float
    closure: float
    release: float
    upper: float
    visits: int


def events(traj: nsjax.Trajectory, dt: float) -> Events:
    """Events of a run of `table2` with every step saved, at least 33.2 ms long."""
    t = np.asarray(traj.t)
    below = phases(loaded(traj, dt, LOWER) & (t < 0.03), bridge=UNRESOLVED)
    longest = below[np.argmax(below[:, 1] - below[:, 0])]
    above = np.flatnonzero(loaded(traj, dt, UPPER))
    return Events(
        impact=float(t[below[0, 0]]),
        closure=float(t[longest[0]]),
        release=float(t[longest[1] - 1]),
        upper=float(t[above[0]]),
        visits=len(below),
    )
