"""Shared functions of the mechanisms with contacts: runs, and saving of figures."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import nsjax

from .. import common


def run(problem: Any, scheme: Any, dt: float, steps: int, every: int = 1) -> nsjax.Trajectory:
    """A run; raises an error if a step failed."""
    system, params, state = problem
    traj = nsjax.simulate(system, params, state, scheme, dt=dt, steps=steps, every=every)
    traj.raise_for_status()
    return traj


def finish(
    name: str, beside: str, folder: str | Path | None, numbers: common.Numbers, arrays: dict[str, Any],
    paint: Callable[[Any], None], quick: bool,
) -> common.Numbers:  # fmt: skip
    """Saves, draws and compares the results of an experiment."""
    path = common.results_folder("contact", folder) / name
    expected = common.load_expected(beside, name)
    return common.finish(path, numbers, arrays, (14.0, 6.0), paint, expected, computed=not quick)
