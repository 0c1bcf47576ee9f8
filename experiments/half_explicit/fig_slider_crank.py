"""The rigid slider-crank with the half-explicit scheme, in the data of two public examples, Table 1.

"MBSim": mu = 0.01, e = 0.4, dt = 1e-4 s, 0.1 s, also with smaller steps and against [R&S] Table 6.
"Siconos": frictionless, e = 0.4, dt = 1e-5 s, 0.2 s. Both use the guide height ``2 (b + c)`` and the
equations of [S&U&S (19), (20)]. Both kinds of impulsive step are compared: with the non-impulsive
forces (``"keep"``) and without (``"drop"``). (For the ideal guide see ``mixed_timestepping``, Table 4.)
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import nsjax
from nsjax import models, schemes

from .. import common
from .impulses import impulse_steps

CLEARANCE = 1e-3
TABLE_6 = np.array([-0.414624, -0.519905, -0.285720, 0.367654, 0.525471])
"""theta2 at 0.01, ..., 0.05 s of the fine reference [P] [rad]."""
STEPS = (1e-4, 1e-5, 1e-6)


def mbsim(dt: float, impact_step: str = "keep", duration: float = 0.1) -> nsjax.Trajectory:
    """Friction 0.01."""
    problem = models.slider_crank(friction=0.01, restitution=0.4, clearance=CLEARANCE)
    return common.run(problem, schemes.half_explicit(impact_step=impact_step), dt, round(duration / dt))


def siconos(impact_step: str = "keep") -> nsjax.Trajectory:
    """Frictionless, 0.2 s, dt = 1e-5 s."""
    problem = models.slider_crank(friction=0.0, restitution=0.4, clearance=CLEARANCE)
    return common.run(problem, schemes.half_explicit(impact_step=impact_step), 1e-5, 20_000)


def _differences(kept: nsjax.Trajectory, dropped: nsjax.Trajectory) -> float:
    return float(np.abs(kept.q - dropped.q).max())


def _common(traj: nsjax.Trajectory) -> common.Numbers:
    return {
        "impulse steps": float(len(impulse_steps(traj))),
        "gap_min [m]": float(np.asarray(traj.gap).min()),
        "theta3_max [rad]": float(np.abs(traj["theta3"]).max()),
    }


def mbsim_numbers(quick: bool) -> common.Numbers:
    """Angle and counts at 0.1 s, and the error of Table 6."""
    numbers: common.Numbers = {}
    for dt in STEPS[:2] if quick else STEPS:
        kept = mbsim(dt, duration=0.1 if dt > 1e-6 else 0.05)
        angle = np.asarray(kept["theta2"])
        rows = np.round(np.arange(1, 6) * 0.01 / dt).astype(int)
        name = f"MBSim, {dt:.0e}"
        numbers[f"{name}: Table 6"] = float(np.linalg.norm(angle[rows] / TABLE_6 - 1.0))
        if dt > 1e-6:
            numbers[f"{name}: theta2(0.1) [rad]"] = float(angle[-1])
            if not quick:
                numbers[f"{name}: keep - drop"] = _differences(kept, mbsim(dt, "drop"))
            numbers.update({f"{name}: {what}": value for what, value in _common(kept).items()})
    return numbers


def siconos_numbers(kept: nsjax.Trajectory, quick: bool) -> common.Numbers:
    """Angles, counts, and the largest rise of the energy in 1e-4 s."""
    rise = np.diff(np.asarray(kept["energy"])[::10]).max()
    numbers = {"largest rise of energy [J]": float(rise), **_common(kept)}
    if not quick:
        numbers["keep - drop"] = _differences(kept, siconos("drop"))
    for row in (5000, 10_000, 15_000, 20_000):
        numbers[f"theta2({row * 1e-5:g}) [rad]"] = float(kept["theta2"][row])
    return {f"Siconos: {what}": value for what, value in numbers.items()}


def _paint(figure: Any, runs: dict[str, nsjax.Trajectory]) -> None:
    for axis, (name, traj) in zip(figure.subplots(2, 1, sharex=True), runs.items(), strict=True):
        for wall in (-CLEARANCE, CLEARANCE):
            axis.axhline(1e3 * wall, color="0.55", linewidth=0.6, linestyle=(0, (5, 3)))
        axis.plot(1e3 * np.asarray(traj.t), 1e3 * np.asarray(traj["y"]), color="#1f4e9c")
        axis.set_title(name)
        axis.set_xlim(0.0, 200.0)
        axis.set_ylim(-1.15, 1.15)
        axis.set_ylabel("$y$ [mm]")
    axis.set_xlabel("time $t$ [ms]")


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares; ``quick`` leaves out dt = 1e-6 s and the second kind of step."""
    frictionless = siconos()
    numbers = {**mbsim_numbers(quick), **siconos_numbers(frictionless, quick)}
    rubbing = mbsim(1e-4)
    runs = {
        r"$\mu = 0.01$, $\Delta t = 10^{-4}$ s": rubbing,
        r"frictionless, $\Delta t = 10^{-5}$ s": frictionless,
    }
    arrays = {"t MBSim": rubbing.t, "y MBSim": rubbing["y"], "y Siconos": frictionless["y"]}
    return common.finish(
        __file__, folder, numbers, arrays, (16.0, 9.0), lambda f: _paint(f, runs), quick=quick
    )


if __name__ == "__main__":
    common.command(main)
