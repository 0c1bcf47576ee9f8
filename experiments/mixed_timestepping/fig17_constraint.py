"""[R&S] Figure 17: model problem (b), third mass held by a constraint, dt = 0.05 s.

The first acceleration of [R&S (25)] leaves out the force of the constraint.
With the constraint on velocity level the third mass then has an acceleration whose error obeys a linear
recurrence with the eigenvalues -rho_inf and (1 - 3 rho_inf)/(3 - rho_inf) per step, and a constant error of
position. On acceleration level it keeps a constant residual velocity, g dt/2 for every rho_inf and g dt/3
for Bathe, and drifts linearly. ED-alpha (rho_inf = 0) is clean on both levels, Bathe on velocity level.
From the consistent acceleration, the default, all of them are clean on both.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from .. import common
from .chain import HELD_SPRING, LEVELS, NAMES, accelerations, exact, held_run, stiffness
from .rigid import LOOKS
from .rigid import NAMES as TITLES

DRAWN = 61
STARTS = {"inconsistent": False, "consistent": True}
LEFT_OUT = "acceleration level, consistent"
COLUMNS = (("mass 1", 0, "velocity"), ("mass 2", 1, "velocity"), ("mass 3, velocity level", 2, "velocity"),
           ("mass 3, acceleration level", 2, "acceleration"))  # fmt: skip


def _paint(figure: Any, arrays: dict[str, np.ndarray]) -> None:
    axes = figure.subplots(3, 4, sharex=True)
    t = arrays["t"][:DRAWN]
    labels = ("$q$ [m]", r"$\dot q$ [m/s]", r"$\ddot q$ [m/s$^2$]")
    for column, (title, mass, level) in enumerate(COLUMNS):
        for row, quantity in enumerate("qva"):
            axis = axes[row, column]
            x = arrays[f"{quantity}, exact"][:DRAWN, mass]
            axis.plot(t, x, color="0.75", linewidth=2.4, label="exact")
            for name in NAMES:
                x = arrays[f"{quantity}, {name}, {level}, inconsistent"][:DRAWN, mass]
                axis.plot(t, x, label=TITLES[name], **LOOKS[name])
        axes[0, column].set_title(title)
        axes[2, column].set(xlabel="time $t$ [s]", xlim=(0.0, t[-1]))
        if mass == 2:
            axes[2, column].set_ylim(-12.0, 12.0)
            axes[1, column].set_ylim(-0.05, 0.3)
    for axis, label in zip(axes[:, 0], labels, strict=True):
        axis.set_ylabel(label)
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4)


def _numbers(name: str, level: str, start: str, x: tuple[np.ndarray, ...]) -> common.Numbers:
    q, v, a = (part[:, 2] for part in x)
    key = f"{name}, {level} level, {start}"
    numbers = {
        f"{key}: q3 at the end": float(q[-1]),
        f"{key}: v3 at the end": float(v[-1]),
        f"{key}: largest |v3|": float(np.abs(v).max()),
        f"{key}: largest |a3|, first 10 steps": float(np.abs(a[1:11]).max()),
        f"{key}: largest |a3|, last 10 steps": float(np.abs(a[-10:]).max()),
    }
    if name.startswith("gen-alpha") and (level, start) == ("velocity", "inconsistent"):
        rho = float(name.split()[1])
        first, second = -rho, (1 - 3 * rho) / (3 - rho)
        rest = a[3:] - (first + second) * a[2:-1] + first * second * a[1:-2]
        numbers[f"{key}: defect of the recurrence of a3"] = float(np.abs(rest).max())
    return numbers


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares Figure 17; ``quick`` leaves out the consistent start on
    acceleration level, which is clean.
    """
    t = np.asarray(held_run(NAMES[0], True).t)
    matrix = stiffness(HELD_SPRING, held=True)
    highest = float(np.sqrt(np.linalg.eigvalsh(matrix)[-1]) / (2 * np.pi))
    numbers: common.Numbers = {"highest frequency [Hz]": highest}
    arrays: dict[str, np.ndarray] = {"t": t}
    for quantity, x in zip("qva", exact(t, matrix), strict=True):
        arrays[f"{quantity}, exact"] = np.pad(x, ((0, 0), (0, 1)))
    for name in NAMES:
        for level in LEVELS:
            for start, consistent in STARTS.items():
                if quick and f"{level} level, {start}" == LEFT_OUT:
                    continue
                traj = held_run(name, consistent, level)
                found = np.asarray(traj.q), np.asarray(traj.v), accelerations(traj)
                if consistent:
                    found[2][0, 2] = 0.0  # the first row has no force yet
                arrays |= {f"{k}, {name}, {level}, {start}": x for k, x in zip("qva", found, strict=True)}
                numbers |= _numbers(name, level, start, found)
    return common.finish(
        __file__, folder, numbers, arrays, (19.0, 13.0), lambda f: _paint(f, arrays), quick=quick
    )


if __name__ == "__main__":
    common.command(main)
