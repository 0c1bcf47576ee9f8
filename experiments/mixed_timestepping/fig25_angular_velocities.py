"""[R&S] Figure 25: angular velocities of the mechanism of Table 2, dt = 1e-5 s.

With the flexible rod omega2 oscillates from step to step, the more the larger rho_inf. The paper sees
instability soon after 0.05 s for rho_inf = 0.8 and 0.5; here, with converged contact and stage problems,
nothing grows: the energy of the vibrations stays below 5e-4 J. `table_literal_solver` looks for the
setting that makes it. The rigid mechanism has no mode to excite.
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
from .flexible import over_next_damping, roughness


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares Figure 25; ``quick``: the rigid mechanism, without Bathe;
    the paper has the flexible rod.
    """
    names = shown(FINE, quick)
    series = {name: np.asarray(fine_run(name).v)[:, :2] for name in names}
    rows = {time: at(fine_run(names[0]), time) for time in INSTANTS}
    numbers = instants(series, rows, ("omega1", "omega2"))
    # an impact one step later in one scheme than in another shows as the whole jump for that step
    calm = np.asarray(fine_run(names[0]).t) > 0.05
    settled = {name: x[calm] for name, x in series.items()}
    numbers["largest difference between schemes after 0.05 s"] = spread(settled)
    t = np.asarray(fine_run(names[0]).t)
    bent = bent_runs(FINE, FINE_STEP, FINE_STEPS, quick)
    rough = {name.removeprefix("flexible, "): roughness(x["omega2"][t > 0.05]) for name, x in bent.items()}
    numbers |= over_next_damping(rough, "flexible: roughness of omega2")
    for name, traj in bent.items():
        oscillation = rough[name.removeprefix("flexible, ")]
        numbers[f"{name}: roughness of omega2 after 0.05 s [rad/s]"] = oscillation
        numbers[f"{name}: omega1(0.08)"] = float(traj.v[-1, 0])
    drawn = {name: np.asarray(traj.v)[:, :2] for name, traj in bent.items()}
    paint = functools.partial(paint_pair, (r"$\omega_1$ [rad/s]", r"$\omega_2$ [rad/s]"))
    return finish(__file__, folder, numbers, t, series, drawn, (14.0, 10.0), paint, quick)


if __name__ == "__main__":
    common.command(main)
