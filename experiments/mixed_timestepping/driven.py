"""Runs of the driven mechanism (Table 2) that Figures 24, 25, 27, 28 and 29 of [R&S] share.

The paper runs them with the flexible rod, as the full form of these figures does (numbers "flexible, ...").
Their quick form has the rigid rod. What the paper says about vibrations of the rod, namely that too little
damping corrupts velocities and leads to instability, does not occur without it: all schemes agree. The
rigid motion is smooth between impacts and known from an event-driven integration.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import nsjax

from .. import common
from . import flexible
from .rigid import LOOKS, LOWER, NAMES, RIGID, UPPER, run, table2

FINE_STEP, FINE_STEPS = 1e-5, 8000
LONG_STEP, LONG_STEPS = 1e-4, 5000
FINE = ("gen-alpha 0.8", "gen-alpha 0.5", "gen-alpha 0", "Bathe")
LONG = ("ED-alpha 0", "Bathe")
LEFT_OUT = "Bathe"
"""Scheme that the quick form of the figures leaves out: no other experiment needs its program."""
INSTANTS = (0.02, 0.04, 0.05, 0.06, 0.08)


def shown(names: tuple[str, ...], quick: bool) -> list[str]:
    """The schemes of a figure or of its quick form."""
    return [name for name in names if not (quick and name == LEFT_OUT)]


@functools.cache
def fine_run(name: str) -> nsjax.Trajectory:
    """dt = 1e-5 s up to 0.08 s, every step saved."""
    return run(table2(), RIGID[name], FINE_STEP, FINE_STEPS)


@functools.cache
def long_run(name: str) -> nsjax.Trajectory:
    """dt = 1e-4 s up to 0.5 s, every step saved."""
    return run(table2(), RIGID[name], LONG_STEP, LONG_STEPS)


def bent_runs(names: tuple[str, ...], dt: float, steps: int, quick: bool) -> dict[str, nsjax.Trajectory]:
    """Runs with the flexible rod by the names of their numbers; empty in the quick form."""
    chosen = () if quick else names
    return {f"flexible, {name}": flexible.driven_run(flexible.Rod(), name, dt, steps) for name in chosen}


def finish(
    beside: str, folder: str | Path | None, numbers: common.Numbers, t: np.ndarray,
    rigid: dict[str, np.ndarray], bent: dict[str, np.ndarray], size: tuple[float, float],
    paint: Callable[[Any, np.ndarray, dict[str, np.ndarray]], None], quick: bool,
) -> common.Numbers:  # fmt: skip
    """Saves, draws and compares a figure.

    Args:
        beside: path of the module.
        folder: for the results.
        numbers: computed numbers.
        t: times of the series [s].
        rigid, bent: series by scheme; the flexible ones are drawn, if there are any.
        size: width and height [cm].
        paint: draws series over time on an empty figure.
        quick: whether the flexible rod and `LEFT_OUT` are missing.
    """
    arrays = {"t": t, **rigid, **bent}
    return common.finish(
        beside, folder, numbers, arrays, size, lambda f: paint(f, t, bent or rigid), quick=quick
    )


def at(traj: nsjax.Trajectory, time: float) -> int:
    """Row of an instant."""
    return int(np.argmin(np.abs(np.asarray(traj.t) - time)))


def wall_forces(traj: nsjax.Trajectory) -> tuple[np.ndarray, np.ndarray]:
    """Normal forces [N] of the upper and of the lower wall, sums over its corners."""
    force = np.asarray(traj.force_normal)
    return force[:, UPPER].sum(axis=1), force[:, LOWER].sum(axis=1)


def paint_pair(labels: tuple[str, str], figure: Any, t: np.ndarray, series: dict[str, np.ndarray]) -> None:
    """Two columns of every series over time, one above the other."""
    axes = figure.subplots(2, 1, sharex=True)
    for k, axis in enumerate(axes):
        for name, x in series.items():
            plain = name.removeprefix("flexible, ")
            axis.plot(t, x[:, k], label=NAMES[plain], **LOOKS[plain])
        axis.set_ylabel(labels[k])
        axis.set_xlim(0.0, t[-1])
    axes[1].set_xlabel("time $t$ [s]")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    figure.align_ylabels()


def spread(series: dict[str, np.ndarray]) -> float:
    """Largest difference between any two series."""
    stack = np.stack(list(series.values()))
    return float(np.max(np.ptp(stack, axis=0)))


def instants(series: dict[str, np.ndarray], rows: dict[float, int], columns: Any) -> common.Numbers:
    """The columns of every series at the given rows, by scheme, column and time."""
    return {
        f"{name}: {column}({time:g})": float(x[row, k])
        for name, x in series.items()
        for time, row in rows.items()
        for k, column in enumerate(columns)
    }
