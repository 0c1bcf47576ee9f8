"""[R&S] Figure 25, rigid: angular velocities of the mechanism of Table 2, dt = 1e-5 s.

With the flexible rod the paper sees oscillations in omega2 for rho_inf = 0.8 and 0.5, and instability soon
after 0.05 s. The rigid mechanism has no mode to excite: all schemes follow the event-driven motion.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from .. import common
from .driven import FINE, INSTANTS, LEFT_OUT, at, fine_run, instants, paint_pair, shown, spread
from .rigid import PAPER, load_expected


def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares Figure 25; ``quick`` leaves out Bathe."""
    place = common.results_folder(PAPER, folder)
    names = shown(FINE, quick)
    series = {name: np.asarray(fine_run(name).v)[:, :2] for name in names}
    rows = {time: at(fine_run(names[0]), time) for time in INSTANTS}
    numbers = instants(series, rows, ("omega1", "omega2"))
    # an impact one step later in one scheme than in another shows as the whole jump for that step
    calm = np.asarray(fine_run(names[0]).t) > 0.05
    settled = {name: x[calm] for name, x in series.items()}
    numbers["largest difference between schemes after 0.05 s"] = spread(settled)
    t = np.asarray(fine_run(names[0]).t)
    common.save_data(place / "fig25_angular_velocities", {"t": t, **series})
    labels = (r"$\omega_1$ [rad/s]", r"$\omega_2$ [rad/s]")
    path = place / "fig25_angular_velocities"
    common.draw(path, 14.0, 10.0, lambda f: paint_pair(f, t, series, labels))
    common.report(
        common.compare(
            numbers, load_expected("fig25_angular_velocities", without=LEFT_OUT if quick else None)
        )
    )
    return numbers


if __name__ == "__main__":
    common.command(main)
