"""[R&S] Figure 24, rigid: angles of the mechanism of Table 2, generalized-alpha and Bathe, dt = 1e-5 s.

All schemes agree before and after the impacts (theta3 = 0). The listed values belong to the flexible
rod; the rigid one meets them to 2e-4. Before the first impact the energy equals the work of the torque.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from .. import common
from .driven import FINE, FINE_STEP, INSTANTS, LEFT_OUT, at, fine_run, instants, paint_pair, shown, spread
from .rigid import PAPER, events, load_expected


def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares Figure 24; ``quick`` leaves out Bathe."""
    place = common.results_folder(PAPER, folder)
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
    t = np.asarray(fine_run(names[0]).t)
    common.save_data(place / "fig24_angles", {"t": t, **series})
    labels = (r"$\theta_1$ [rad]", r"$\theta_2$ [rad]")
    common.draw(place / "fig24_angles", 14.0, 10.0, lambda f: paint_pair(f, t, series, labels))
    common.report(
        common.compare(numbers, load_expected("fig24_angles", without=LEFT_OUT if quick else None))
    )
    return numbers


if __name__ == "__main__":
    common.command(main)
