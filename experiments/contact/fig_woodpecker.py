"""The woodpecker toy from parts: its limit cycle, its impacts per stroke and its period, beside the
linearised toy written down by hand, which it becomes at small angles.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import nsjax
from nsjax import schemes
from nsjax.analysis import observed_order

from .. import common
from . import woodpecker

DT, STEPS, EVERY = 2e-5, 60_000, 5
SCALES = (1 / 4, 1 / 16, 1 / 64, 1 / 256)
"""Scales of clearances, deflections and angles; times scale with the square root."""

STROKES = 5
"""Number of the last strokes over which the period is averaged."""

NAMES = ("beak", "lower edge", "upper edge")


def fallen(problem: Any, scale: float) -> nsjax.Trajectory:
    """Eight strokes of the beak, with the same number of steps at every scale."""
    return common.run(problem, schemes.moreau(), DT * np.sqrt(scale), STEPS, EVERY, events=200)


def strokes(traj: nsjax.Trajectory, scale: float) -> tuple[float, list[int]]:
    """Period [s], converted to full scale, and the contacts hit between two strokes of the beak."""
    contact = np.asarray(traj.events.contact)
    time = np.asarray(traj.events.time)[contact >= 0] / np.sqrt(scale)
    contact = contact[contact >= 0]
    beaks = np.flatnonzero(contact == 0)
    period = float(np.mean(np.diff(time[beaks])[-STROKES:]))
    return period, contact[beaks[-2] : beaks[-1]].tolist()


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares; ``quick`` with two scales."""
    scales = SCALES[1:3] if quick else SCALES
    linear, parts = fallen(woodpecker.toy(), 1.0), fallen(woodpecker.toy_of_parts(), 1.0)
    period, sequence = strokes(linear, 1.0)
    own, fewer = strokes(parts, 1.0)
    makers = (woodpecker.toy_of_parts, woodpecker.toy)
    small = [[strokes(fallen(make(x), x), x) for make in makers] for x in scales]
    errors = np.array([abs(made[0] / hand[0] - 1.0) for made, hand in small])
    as_by_hand = [made[1] == hand[1] for made, hand in small]
    spread = np.diff(np.asarray(linear.events.time)[np.asarray(linear.events.contact) == 0])[-STROKES:]
    numbers = {
        "by hand: period [s]": period,
        "by hand: spread of the strokes over the period": float(np.ptp(spread)) / period,
        "by hand: impacts per stroke": float(len(sequence)),
        "small angles: order of the error of the period": observed_order(scales, errors),
        "smallest angles: error of the period": float(errors[-1]),
        "smallest angles: impacts per stroke other than by hand": float(not as_by_hand[-1]),
        "finite angles: impacts per stroke": float(len(fewer)),
        "finite angles: period over that by hand": own / period,
    }
    print("by hand:", ", ".join(NAMES[k] for k in sequence), f"in {period:.5f} s")
    print("finite angles:", ", ".join(NAMES[k] for k in fewer), f"in {own:.5f} s")
    # the guide's coordinate is the height; the angles of sleeve and bird follow
    half = len(np.asarray(linear.t)) // 2
    arrays = {
        "by_hand_q": np.asarray(linear.q)[half:], "by_hand_v": np.asarray(linear.v)[half:],
        "parts_q": np.asarray(parts.q)[half:], "parts_v": np.asarray(parts.v)[half:],
        "scales": np.array(scales), "errors": errors,
    }  # fmt: skip

    def paint(figure: Any) -> None:
        for axes, k, name in zip(figure.subplots(1, 2), (1, 2), ("sleeve", "bird"), strict=True):
            for label, color in (("by_hand", "0.6"), ("parts", "k")):
                axes.plot(
                    arrays[f"{label}_q"][:, k], arrays[f"{label}_v"][:, k], ".", color=color,
                    markersize=0.8, label=label.replace("_", " "),
                )  # fmt: skip
            axes.set(xlabel=f"angle of the {name} [rad]", ylabel="angular velocity [rad/s]")
        axes.legend(markerscale=8)

    return common.finish(__file__, folder, numbers, arrays, (14.0, 6.0), paint, quick=quick)


if __name__ == "__main__":
    common.command(main)
