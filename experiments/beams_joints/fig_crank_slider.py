"""M3: a crank-slider of beams, driven at 10 rad/s; the rod stiff, and soft.

The stiff mechanism is compared with the closed form of its rigid limit; for the soft one, whose rod buckles
where it brakes the slider, the energy balance is checked. When the step is halved from 1 to 0.125 ms, the
changes of the soft rod's positions fall by factors of 2.6 to 4.3 at 0.2 to 0.3 s, and by 2.9 and 2.6 at
0.5 s (0.74, 0.26, 0.10 mm): waves cross an element of this rod in 0.8 ms, which the first of these steps do
not resolve.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from nsjax import schemes
from nsjax.core import Problem
from nsjax.multibody import assemble, beam, body, hinge, rectangular, slide

from .. import common
from . import shared

CRANK, ROD, SPEED = 0.15, 0.5, 10.0
SCHEME = schemes.generalized_alpha(0.8, constraint_form="index_3")
TIMES = (0.05, 0.1, 0.2)
SHOWN = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)


def mechanism(E: float = 2e11, side: float = 0.02) -> Problem:
    """Crank of two stiff elements, rod of four elements with the given modulus and width."""
    z, stiff = shared.Z, rectangular(0.02, 0.02, E=2e11, rho=7800.0)
    given = rectangular(side, side, E=E, rho=7800.0)
    return assemble(
        beam("crank", (0, 0, 0), (CRANK, 0, 0), elements=2, section=stiff),
        beam("rod", (CRANK, 0, 0), (CRANK + ROD, 0, 0), elements=4, section=given),
        body("slider", mass=1.0, inertia=(1e-3, 1e-3, 1e-3)),
        hinge("drive", "ground", "crank.start", axis=z, motion=lambda t: SPEED * t),
        hinge("crankpin", "crank.end", "rod.start", axis=z), hinge("pin", "rod.end", "slider", axis=z),
        slide("guide", "ground", "slider", axis=(1, 0, 0)), gravity=(0.0, -9.81, 0.0),
    )  # fmt: skip


def exact(t: Any) -> Any:
    """Position of the slider of the rigid mechanism [m]."""
    angle = SPEED * np.asarray(t)
    return CRANK * np.cos(angle) + np.sqrt(ROD**2 - (CRANK * np.sin(angle)) ** 2)


def _paint(figure: Any, q: np.ndarray, rows: list[int], t: np.ndarray) -> None:
    shapes, place = figure.subplots(1, 2, width_ratios=(2, 1))
    for k in rows:
        shapes.plot(q[k, :3, 0], q[k, :3, 1], "o-", color="0.4", markersize=2)
        shapes.plot(q[k, 3:8, 0], q[k, 3:8, 1], "o-", markersize=2, label=f"{t[k]:.1f} s")
        shapes.plot(q[k, 8, 0], q[k, 8, 1], "s", color="black", markersize=4)
    shapes.set_aspect("equal")
    shapes.set_xlabel("$x$ [m]")
    shapes.set_ylabel("$y$ [m]")
    shapes.legend(fontsize=6)
    place.plot(t, 1e3 * (q[:, -1, 0] - exact(t)), color="#1f4e9c")
    place.set_xlabel("time $t$ [s]")
    place.set_ylabel("slider, soft minus rigid [mm]")


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares; ``quick`` changes nothing, the runs are short."""
    stiff = shared.run(mechanism(), SCHEME, 1e-3, 0.2)
    numbers: common.Numbers = {}
    q = shared.poses(stiff)
    for instant in TIMES:
        numbers[f"stiff: slider at {instant} s [m]"] = float(q[round(instant / 1e-3), -1, 0])
    soft = mechanism(E=2e8, side=0.01)
    traj = shared.run(soft, SCHEME, 5e-4, 0.5)
    work = shared.work_of_drive(traj, np.full(len(traj.t), SPEED))
    numbers["soft: energy that the drive does not account for"] = shared.imbalance(traj, work)
    q = shared.poses(traj)
    off = np.linalg.norm(q[:, 5, :2] - 0.5 * (q[:, 3, :2] + q[:, 7, :2]), axis=1)
    numbers["soft: largest deflection of the rod [m]"] = float(off.max())
    gaps = q[:, 2, :3] - q[:, 3, :3], q[:, 7, :3] - q[:, 8, :3]
    numbers["soft: largest gap of a joint [m]"] = float(max(np.abs(x).max() for x in gaps))
    t = np.asarray(traj.t)
    rows = [round(x / 5e-4) for x in SHOWN]
    return common.finish(
        __file__, folder, numbers, {"t": t, "q": q, "work": work}, (17.0, 6.0),
        lambda f: _paint(f, q, rows, t), quick=quick,
    )  # fmt: skip


if __name__ == "__main__":
    common.command(main)
