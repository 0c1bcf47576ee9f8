"""[R&S] Figure 26: bending moment of the rod at the crank, Table 2, generalized-alpha and Bathe.

The joint is a hinge: the moment is there because the section at the crank turns with the frame, ``rho I
l_2 theta2'' = -0.227 N m`` at 6 ms. Impacts add vibrations that generalized-alpha keeps longer the larger
rho_inf.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from .. import common
from .driven import FINE, FINE_STEP, FINE_STEPS
from .flexible import Rod, driven_run, over_next_damping, paint_series, roughness


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares Figure 26; ``quick``: Bathe alone, a quarter of the time."""
    names, steps = (("Bathe",), FINE_STEPS // 4) if quick else (FINE, FINE_STEPS)
    runs = {name: driven_run(Rod(), name, FINE_STEP, steps) for name in names}
    series = {name: np.asarray(traj["root_moment"])[:, None] for name, traj in runs.items()}
    t = np.asarray(next(iter(runs.values())).t)
    numbers: common.Numbers = {}
    for name, moment in series.items():
        numbers[f"{name}: largest moment [N m]"] = float(np.abs(moment).max())
        if not quick:
            numbers[f"{name}: roughness after 0.05 s [N m]"] = roughness(moment[t > 0.05, 0])
    if not quick:
        rough = {name: roughness(x[t > 0.05, 0]) for name, x in series.items()}
        numbers |= over_next_damping(rough, "roughness")
    if "Bathe" in runs:
        traj = runs["Bathe"]
        p = traj.params
        row = round(0.006 / FINE_STEP)
        section = p.rod_inertia - p.rod_mass * p.rod_length**2 / 12
        moment, omega = series["Bathe"][:, 0], np.asarray(traj["omega2"])

        def turning(half: int) -> float:
            """``rho I l_2 theta2''`` by a difference over ``2 half`` steps around 6 ms."""
            return float(section * (omega[row + half] - omega[row - half]) / (2 * half * FINE_STEP))

        numbers["Bathe: moment at 6 ms [N m]"] = float(moment[row])
        numbers["Bathe: inertia of the section at 6 ms [N m]"] = turning(10)
        around = float(moment[row - 50 : row + 51].mean())
        numbers["Bathe: moment over inertia, mean of 1 ms"] = around / turning(50)
    return common.finish(
        __file__, folder, numbers, {"t": t, **series}, (16.0, 8.0),
        lambda f: paint_series(f, t, series, ("moment at the root [N m]",), (5.0, 12.0)),
        quick=quick,
    )  # fmt: skip


if __name__ == "__main__":
    common.command(main)
