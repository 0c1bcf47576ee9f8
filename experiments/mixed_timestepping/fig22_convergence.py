"""[R&S] Figure 22: convergence on the slider-crank with an ideal guide, in theta2, velocity and force.

Largest errors over 50 instants in T = 0.05 s (the force from 2 ms on, relative to its largest value)
against the reference of ``table4_bilateral``, over step sizes that are not nested. Orders are slopes
of least squares over the finer half of the steps, where all schemes are in their asymptotic range.
The paper shows generalized-alpha and Bathe; the others are added.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from nsjax.analysis import observed_order

from .. import common
from . import rigid
from .table4_bilateral import DURATION, SCHEMES, errors, reference

INSTANTS = 50
PER_INSTANT = (10, 14, 19, 27, 37, 53, 73, 103, 139, 193, 271, 383, 541, 761)
FITTED = 8
QUANTITIES = {
    "theta2": r"$\max|\Delta\theta_2|$ [rad]",
    "v": r"$\max|\Delta v|$ [rad/s]",
    "force": r"$\max|\Delta\lambda|/\max|\lambda|$",
}
LOOKS: dict[str, dict[str, Any]] = {
    "Moreau": {"color": "0.25", "marker": "s"},
    "HETS": {"color": "#b8860b", "marker": "^"},
    **{
        name: {"color": rigid.LOOKS[name]["color"], "marker": mark}
        for name, mark in zip(("gen-alpha 0.8", "gen-alpha 0", "Bathe", "ED-alpha 0"), "ovDx", strict=True)
    },
}


def _paint(figure: Any, steps: np.ndarray, found: dict[str, dict[str, np.ndarray]]) -> None:
    axes = figure.subplots(1, 3)
    for axis, (quantity, label) in zip(axes, QUANTITIES.items(), strict=True):
        for name, values in found.items():
            axis.loglog(
                steps, values[quantity], label=name, markersize=3.0, markerfacecolor="none",
                markeredgewidth=0.7, **LOOKS[name],
            )  # fmt: skip
        finest = found["Bathe"][quantity][-1]
        guide = np.array([steps[-1], 10 * steps[-1]])
        axis.loglog(guide, 0.3 * finest * (guide / guide[0]) ** 2, color="black", linewidth=0.6)
        axis.text(guide[1] * 1.1, 18 * finest, "2", fontsize=7)
        finest = found["Moreau"][quantity][-1]
        axis.loglog(guide, 2.5 * finest * (guide / guide[0]), color="black", linewidth=0.6)
        axis.text(guide[0] * 2.2, 9 * finest, "1", fontsize=7)
        axis.set_xlabel(r"step size $\Delta t$ [s]")
        axis.set_ylabel(label)
    handles, names = axes[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=len(names))


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares Figure 22; ``quick`` changes nothing, the run is short."""
    exact = reference(INSTANTS)
    steps = DURATION / (INSTANTS * np.array(PER_INSTANT))
    found: dict[str, dict[str, np.ndarray]] = {}
    numbers: common.Numbers = {}
    for name, make in SCHEMES.items():
        rows = [errors(make(), INSTANTS * per, exact) for per in PER_INSTANT]
        found[name] = {quantity: np.array([row[quantity] for row in rows]) for quantity in QUANTITIES}
        for quantity, values in found[name].items():
            numbers[f"order of {quantity}, {name}"] = observed_order(steps[-FITTED:], values[-FITTED:])
    arrays = {f"{q}, {name}": values for name, all_ in found.items() for q, values in all_.items()}
    return common.finish(
        __file__, folder, numbers, {"dt": steps, **arrays}, (17.0, 8.0), lambda f: _paint(f, steps, found)
    )


if __name__ == "__main__":
    common.command(main)
