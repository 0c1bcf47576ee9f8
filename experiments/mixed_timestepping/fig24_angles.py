"""[R&S] Figure 24: angles of the mechanism of Table 2, generalized-alpha and Bathe, dt = 1e-5 s.

All schemes agree before and after the impacts (theta3 = 0), with the flexible and with the rigid rod.
Before the first impact the energy equals the work of the torque.
"""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np

from .. import common
from .driven import (
    FINE,
    FINE_STEP,
    FINE_STEPS,
    INSTANTS,
    at,
    bent_runs,
    fine_run,
    finish,
    instants,
    paint_pair,
    shown,
    spread,
)
from .flexible import BEFORE, angles, contact_numbers
from .rigid import events


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares Figure 24; ``quick``: the rigid mechanism, without Bathe;
    the paper has the flexible rod.
    """
    names = shown(FINE, quick)
    series = {name: np.asarray(fine_run(name).q)[:, :2] for name in names}
    rows = {time: at(fine_run(names[0]), time) for time in INSTANTS}
    numbers = instants(series, rows, ("theta1", "theta2"))
    numbers["largest difference between schemes"] = spread(series)
    for name in names:
        traj = fine_run(name)
        numbers[f"{name}: largest |theta3|"] = float(np.abs(np.asarray(traj.q)[:, 2]).max())
        first = events(traj, FINE_STEP).impact
        numbers[f"{name}: first impact [s]"] = first
        before = np.asarray(traj.t) < first - 0.5 * FINE_STEP
        energy, work = np.asarray(traj["energy"]), traj.params.torque * np.asarray(traj.q)[:, 0]
        numbers[f"{name}: energy - work before it [J]"] = float(np.abs(energy - work)[before].max())
    bent = bent_runs(FINE, FINE_STEP, FINE_STEPS, quick)
    for name, traj in bent.items():
        numbers |= angles(traj, FINE_STEP, INSTANTS, name) | contact_numbers(traj, name)
        left = np.asarray(traj["energy"]) - traj.params.torque * np.asarray(traj["theta1"])
        numbers[f"{name}: energy - work before the impact [J]"] = float(np.abs(left[: BEFORE + 1]).max())
    t = np.asarray(fine_run(names[0]).t)
    drawn = {name: np.asarray(traj.q)[:, :2] for name, traj in bent.items()}
    paint = functools.partial(paint_pair, (r"$\theta_1$ [rad]", r"$\theta_2$ [rad]"))
    return finish(__file__, folder, numbers, t, series, drawn, (14.0, 10.0), paint, quick)


if __name__ == "__main__":
    common.command(main)
