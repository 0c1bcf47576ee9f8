"""[R&S] Figure 28: angular velocities of the mechanism of Table 2 up to 0.5 s, dt = 1e-4 s.

ED-alpha (rho_inf = 0) and Bathe are stable over ten turns and, with the rigid rod, some forty steps with
an impulse, and agree. With the flexible rod they do so as well. The event-driven rigid motion, with 175
impacts and 40 closed phases, has theta1 = 11.58688, 24.74645 and 62.12906 at 0.2, 0.3 and 0.5 s: at the
end ED-alpha lags behind it by 0.4 ms, Bathe by 0.14 ms.
"""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np

from nsjax.analysis import impulse_steps

from .. import common
from .driven import (
    LONG,
    LONG_STEP,
    LONG_STEPS,
    at,
    bent_runs,
    finish,
    instants,
    long_run,
    paint_pair,
    shown,
)
from .flexible import contact_numbers

INSTANTS = (0.2, 0.3, 0.5)


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares Figure 28; ``quick``: the rigid mechanism, without Bathe;
    the paper has the flexible rod.
    """
    names = shown(LONG, quick)
    series = {name: np.asarray(long_run(name).v)[:, :2] for name in names}
    angles = {name: np.asarray(long_run(name).q)[:, :2] for name in names}
    rows = {time: at(long_run(names[0]), time) for time in INSTANTS}
    numbers = instants(angles, rows, ("theta1",))
    for name in names:
        traj = long_run(name)
        numbers[f"{name}: steps with an impulse"] = float(impulse_steps(traj).sum())
        numbers[f"{name}: largest |theta3|"] = float(np.abs(np.asarray(traj.q)[:, 2]).max())
        numbers[f"{name}: least gap [m]"] = float(np.min(np.asarray(traj.gap_min)))
    if not quick:
        late = angles["Bathe"][-1, 0] - angles["ED-alpha 0"][-1, 0]
        numbers["lag of ED-alpha behind Bathe at 0.5 s [s]"] = float(late / series["Bathe"][-1, 0])
    t = np.asarray(long_run(names[0]).t)
    bent = bent_runs(LONG, LONG_STEP, LONG_STEPS, quick)
    for name, traj in bent.items():
        q = np.asarray(traj.q)[:, :1]
        numbers |= instants({name: q}, rows, ("theta1",)) | contact_numbers(traj, name)
    drawn = {name: np.asarray(traj.v)[:, :2] for name, traj in bent.items()}
    paint = functools.partial(paint_pair, (r"$\omega_1$ [rad/s]", r"$\omega_2$ [rad/s]"))
    return finish(__file__, folder, numbers, t, series, drawn, (16.0, 10.0), paint, quick)


if __name__ == "__main__":
    common.command(main)
