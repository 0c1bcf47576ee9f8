"""[S&U&S] Figure 9: gaps and gap rates of the four corners for restitution 0.1, unified scheme.

Same run as Figure 8 (a): (36)-(42), gaps (14)-(17), dt = 1e-5 s. Beside Figure 4: gap rates are still
slightly negative in closed contacts, for the same reason as there, but the position multipliers
take back what they would add to the penetration. The closed form of the rate in Figure 4 holds here too.

A penetration is left only by steps that do not see the contact yet: up to ``dt/2 |dg|`` before an impact
("activating"), and second-order small where a contact opens and closes without one ("settled").
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import nsjax
from nsjax import schemes

from .. import common
from .fig03_moreau_path import CLEARANCE, run
from .fig04_moreau_gaps import RESTITUTION, drift_rate, gap_rates, paint_gaps

LOADED = 5600
"""Steps up to the end of the first long load, of which Figure 4 shows the drift."""
ROUNDING = 1e-12
"""Penetration up to which the walls count as kept [m]."""


def penetrations(traj: nsjax.Trajectory) -> tuple[np.ndarray, np.ndarray]:
    """Penetrations [m] at the ends of steps of a run with every step saved: those whose contact next
    acts with an impact, and those where it next acts without one.
    """
    gap, impacts = np.asarray(traj.gap), np.asarray(traj.impacts) > 0
    acts = np.asarray(traj.closed_time) > 0.0
    steps = np.arange(len(gap))
    following = np.where(acts, steps[:, None], len(gap) - 1)
    following = np.minimum.accumulate(following[::-1], axis=0)[::-1]
    struck = np.take_along_axis(impacts, following, axis=0)
    deep = gap < -ROUNDING
    return -gap[deep & struck], -gap[deep & ~struck]


def loaded_phase(force: np.ndarray) -> slice:
    """Rows of the longest unbroken stretch of load, without its first tenth."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], np.asarray(force > 0.0, int), [0]])))
    start, end = max(edges.reshape(-1, 2), key=lambda pair: pair[1] - pair[0])
    return slice(int(start + (end - start) // 10), int(end))


def _numbers(
    traj: nsjax.Trajectory, rates: np.ndarray, load: slice, curvature: np.ndarray
) -> common.Numbers:
    gap = np.asarray(traj.gap)
    activating, settled = penetrations(traj)
    predicted = drift_rate(curvature[load, 0])
    return {
        "theta3_max": float(np.max(np.abs(traj.q[:, 2]))),
        "sum of opposite gaps - 2 c": float(np.max(np.abs(gap[:, 0] + gap[:, 2] - 2 * CLEARANCE))),
        "gap_min": float(gap.min()),
        "penetration, activating": float(activating.max()),
        "penetration, settled": float(settled.max(initial=0.0)),
        "penetration under load": float(-gap[load, 0].min()),
        "gap rate under load, least": float(rates[load, 0].min()),
        "gap rate under load, largest": float(rates[load, 0].max()),
        "largest |gap rate / prediction - 1|": float(np.max(np.abs(rates[load, 0] / predicted - 1.0))),
    }


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares Figure 9; ``quick`` changes nothing, the run is short."""
    traj = run(RESTITUTION, schemes.ggl_unified())
    rates, curvature = gap_rates(traj)
    load = loaded_phase(np.asarray(traj.force_normal)[:LOADED, 0])
    numbers = _numbers(traj, rates, load, curvature)
    arrays = {"t": traj.t, "gap": traj.gap, "gap_rate": rates}
    return common.finish(
        __file__, folder, numbers, arrays, (16.0, 10.0), lambda f: paint_gaps(f, traj, rates)
    )


if __name__ == "__main__":
    common.command(main)
