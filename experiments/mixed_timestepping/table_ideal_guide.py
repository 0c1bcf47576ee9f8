"""[R&S] Section 4.1: the slider in a guide without clearance, held by its contacts.

The paper makes an ideal guide by "setting the gap c = 0": the bilateral contact is a wall on either side.
Here the contacts of four corners hold the slider at c = 0, without friction, and the angle of the rod is
compared with the motion in its minimal coordinate (`table4_bilateral.reference`) and with the same schemes
under a constraint.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from nsjax import models

from .. import common
from .table4_bilateral import DURATION, SAMPLES, SCHEMES, STEPS, errors, reference


def by_contacts(name: str, steps: int, exact: np.ndarray) -> common.Numbers:
    """Largest error of theta2 at 500 instants, its last value, largest |theta3|, largest penetration."""
    problem = models.slider_crank(clearance=0.0, friction=0.0)
    traj = common.run(problem, SCHEMES[name](), DURATION / steps, steps, steps // SAMPLES, save=["gap_min"])
    q = np.asarray(traj.q)
    return {
        "theta2": float(np.abs(q[1:, 1] - exact).max()),
        "theta2(0.05)": float(q[-1, 1]),
        "theta3": float(np.abs(q[:, 2]).max()),
        "penetration [m]": float(-np.min(np.asarray(traj.gap_min))),
    }


def _table(numbers: common.Numbers) -> str:
    lines = [f"{'scheme':14}{'dt [s]':>8}{'contacts':>11}{'constraint':>12}{'theta2(0.05)':>14}"]
    for key in (key for key in numbers if key.endswith(": theta2")):
        where = key.removesuffix(": theta2")
        name, dt = where.rsplit(", ", 1)
        other, last = numbers[f"{where}: theta2, constraint"], numbers[f"{where}: theta2(0.05)"]
        lines.append(f"{name:14}{dt:>8}{numbers[key]:>11.2e}{other:>12.2e}{last:>14.7f}")
    return "\n".join(lines)


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, prints and compares the angles; ``quick`` leaves out the smallest step."""
    exact = reference()
    numbers: common.Numbers = {"minimal coordinate: theta2(0.05)": float(exact.x[-1, 1])}
    for name in SCHEMES:
        last = None
        for steps in STEPS[:2] if quick else STEPS:
            where = f"{name}, {DURATION / steps:.0e}"
            found = by_contacts(name, steps, exact.x[:, 1])
            numbers |= {f"{where}: {what}": value for what, value in found.items()}
            numbers[f"{where}: theta2, constraint"] = errors(SCHEMES[name](), steps, exact)["theta2"]
            if last is not None:
                numbers[f"{where}: order"] = float(np.log10(last / found["theta2"]))
            last = found["theta2"]
    return common.finish(__file__, folder, numbers, table=_table(numbers), quick=quick)


if __name__ == "__main__":
    common.command(main)
