"""A sphere that starts sliding on a plane: it rolls with 5/7 of its speed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from nsjax import schemes
from nsjax.multibody import assemble, body, contact, plane, sphere

from .. import common

RADIUS, MASS, SPEED, FRICTION, GRAVITY = 0.1, 2.0, 5.0, 0.3, 9.81
DT, TIME = 2e-3, 1.0
ROLLS = 2.0 / 7.0 * SPEED / (FRICTION * GRAVITY)
"""Time at which rolling begins [s]."""


def ball(spatial: bool) -> Any:
    """The sphere in space, moving obliquely to the axes; or in the plane, with the sphere's inertia."""
    inertia = 0.4 * MASS * RADIUS**2
    given: Any
    start: Any
    if spatial:
        given, start = np.full(3, inertia), ((0.0, 0.0, RADIUS), (0.6 * SPEED, 0.8 * SPEED, 0.0))
    else:
        given, start = inertia, ((0.0, RADIUS, 0.0), (SPEED, 0.0, 0.0))
    return assemble(
        body("ball", mass=MASS, inertia=given),
        contact("floor", sphere("ball", RADIUS), plane(), friction=FRICTION),
        gravity=GRAVITY, start={"ball": start},
    )  # fmt: skip


def exact(t: np.ndarray) -> np.ndarray:
    """Speed of the centre at the times ``t``."""
    return np.where(t < ROLLS, SPEED - FRICTION * GRAVITY * t, 5.0 / 7.0 * SPEED)


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares; ``quick`` moves in a plane."""
    traj = common.run(ball(not quick), schemes.moreau(), DT, round(TIME / DT))
    t, found = np.asarray(traj.t), traj.body("ball")
    speed, spin = (np.asarray(x).reshape(len(t), -1) for x in (found.velocity, found.spin))
    speed, rate = np.linalg.norm(speed, axis=1), np.linalg.norm(spin, axis=1)
    whole = np.abs(t - ROLLS) > DT  # without the step of the transition, in a part of which friction acts
    numbers = {
        "largest error of the speed [m/s]": float(np.max(np.abs(speed - exact(t))[whole])),
        "speed in the end over that at the start": float(speed[-1] / SPEED),
        "rolling: largest slip [m/s]": float(np.max(np.abs(speed - RADIUS * rate)[t > ROLLS + DT])),
    }

    def paint(figure: Any) -> None:
        axes = figure.subplots()
        axes.plot(t, speed, "k", label="speed")
        axes.plot(t, RADIUS * rate, color="#1f4e9c", label="radius times spin")
        axes.set(xlabel="t [s]", ylabel="[m/s]")
        axes.legend()

    arrays = {"t": t, "speed": speed, "spin": rate}
    return common.finish(__file__, folder, numbers, arrays, (14.0, 6.0), paint, quick=quick)


if __name__ == "__main__":
    common.command(main)
