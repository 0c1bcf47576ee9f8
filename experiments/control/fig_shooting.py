"""Shooting through contacts: a hopper jumps, and a gripper lifts a box, with little force.

Forces over time are sought, straight between knots, that bring each mechanism where it is wanted: least
squares of the misses at the end and of all forces, with derivatives of the run by every knot. The hopper
stands, leaves the ground and draws its leg in; the pads of the gripper stick, and slip where they
are pressed too little. Both ends are compared with those by other means: an event-driven integration, and
the balance of momentum of hand and box.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from .. import common
from .shooting import CRATE, FINGER, FRICTION, HAND, HOP, LIFT, hopped, lifted

PUSH = np.array([60.0, 90.0, 110.0, 110.0, 60.0, -30.0, -40.0, -10.0, 0.0, 0.0, 0.0])
"""First guess of the hopper [N]: it pushes, and draws its leg in."""
HOLD = np.repeat([[10.0], [10.0]], LIFT.knots, axis=0).reshape(-1)
"""First guess of the gripper [N]: more than all weights, and three times the grip that holds the box."""
MOST = 60
"""Largest number of runs with derivatives."""


def slopes_apart(forces: np.ndarray, found: np.ndarray) -> float:
    """Relative distance of derivatives (4, n) from differences of the event-driven motion."""
    h = 1e-2 * np.eye(forces.size)
    wanted = np.stack([(hopped(forces + x) - hopped(forces - x)) / 2e-2 for x in h], axis=1)
    return float(np.linalg.norm(found - wanted) / np.linalg.norm(wanted))


def grip_over_need(forces: np.ndarray) -> float:
    """Least grip over that which the box needs, which rises with the hand: ``2 mu F >= m (a + g)``."""
    lift, grip = forces.reshape(2, -1)
    need = CRATE * lift / (HAND + 2.0 * FINGER + CRATE) / (2.0 * FRICTION)
    return float(np.min(grip / need))


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares; ``quick`` changes nothing."""
    jump, lift = HOP.solve(PUSH, MOST), LIFT.solve(HOLD, MOST)
    ends = HOP.curve(jump.x), LIFT.curve(lift.x)
    motion, box = hopped(jump.x), lifted(lift.x)
    miss = np.array(HOP.miss)
    numbers = {
        "hopper: the motion's end less the wanted one, over the miss": float(
            np.max(np.abs(motion - HOP.want) / miss)
        ),
        "hopper: end of the run, from the motion's [m, m/s]": float(np.max(np.abs(ends[0][0] - motion))),
        "hopper: derivatives, from the motion's": slopes_apart(jump.x, ends[0][1]),
        "hopper: force over that of the guess": float(np.linalg.norm(jump.x) / np.linalg.norm(PUSH)),
        "gripper: height of the box, from the balance [m]": float(abs(ends[1][0][0] - box[0])),
        "gripper: height of the box less the wanted one [m]": float(abs(ends[1][0][0] - LIFT.want[0])),
        "gripper: slip of the pads [m]": float(abs(ends[1][0][2])),
        "gripper: least grip over the needed one": grip_over_need(lift.x),
    }
    runs, guessed = (HOP.run(jump.x), LIFT.run(lift.x)), HOP.run(PUSH)

    def paint(figure: Any) -> None:
        (high, low), (above, below) = figure.subplots(2, 2, sharex=True).T
        high.plot(guessed.t, guessed.q[:, 0], color="0.7", label="trunk, first guess")
        high.plot(runs[0].t, runs[0].q[:, 0], label="trunk")
        high.plot(runs[0].t, runs[0].q[:, 0] - runs[0].q[:, 1], label="foot")
        high.plot(HOP.end, HOP.want[0], "k.")
        high.set(ylabel="height [m]", title="hopper")
        low.plot(HOP.times, PUSH, color="0.7")
        low.plot(HOP.times, jump.x, "o-", markersize=3, label="motor")
        above.plot(runs[1].t, runs[1].q[:, 1], label="box")
        above.plot(LIFT.end, LIFT.want[0], "k.")
        above.set(title="gripper")
        for row, name in zip(lift.x.reshape(2, -1), ("lifting", "grip"), strict=True):
            below.plot(LIFT.times, row, "o-", markersize=3, label=name)
        low.set(ylabel="force [N]")
        for axis in (high, low, above, below):
            axis.legend()
        for axis in (low, below):
            axis.set(xlabel="time [s]")

    arrays = {"hopper": jump.x, "gripper": lift.x, "evaluations": [jump.nfev, lift.nfev]}
    return common.finish(__file__, folder, numbers, arrays, (16.0, 9.0), paint, quick=quick)


if __name__ == "__main__":
    common.command(main)
