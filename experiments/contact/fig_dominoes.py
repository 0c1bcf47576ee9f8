"""Dominoes in a row, with friction: the speed of the wave along the row converges with the time step.

A step finds an impact up to a step late, so that the wave may be late or early by a step a tile: first
order with an error that jumps about from step size to step size.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from nsjax import schemes
from nsjax.multibody import assemble, body, box, contact, plane, points

from .. import common

HEIGHT, WIDTH, PITCH, MASS, GRAVITY = 0.048, 0.0075, 0.024, 0.01, 9.81
FLOOR, FACES = 0.5, 0.2
PUSH = 4.0
"""Initial angular velocity of the first domino [rad/s], enough to tip it over."""

COUNT, TIME = 5, 0.35
STEPS = (2e-3, 1.4e-3, 1e-3, 7e-4, 5e-4, 3.5e-4, 2.5e-4, 1.7e-4, 1.25e-4, 6e-5, 3e-5)
"""Step sizes [s]; the last one is the reference of the others."""
TILT = 0.1
"""Angle at which a domino is passed by the wave [rad]."""


def row(count: int) -> Any:
    """Plane dominoes, each on its two lower corners."""
    half, up = WIDTH / 2.0, HEIGHT / 2.0
    feet = np.array([[-half, -up], [half, -up]])
    parts = []
    for k in range(count):
        inertia = MASS * (WIDTH**2 + HEIGHT**2) / 12.0
        parts.append(body(f"tile{k}", mass=MASS, inertia=inertia))
        parts.append(contact(f"floor{k}", points(f"tile{k}", feet), plane(), friction=FLOOR))
        if k:
            both = box(f"tile{k - 1}", half, up), box(f"tile{k}", half, up)
            parts.append(contact(f"faces{k}", *both, friction=FACES))
    start: dict[str, Any] = {f"tile{k}": (PITCH * k, up, 0.0) for k in range(count)}
    # about the lower right corner
    start["tile0"] = ((0.0, up, 0.0), (PUSH * up, PUSH * half, -PUSH))
    return assemble(*parts, gravity=GRAVITY, start=start)


def passed(traj: Any, count: int) -> np.ndarray:
    """Times at which the wave passes the dominoes, interpolated between rows."""
    t, times = np.asarray(traj.t), []
    for k in range(count):
        angle = -np.asarray(traj[f"tile{k}.angle"])
        i = int(np.argmax(angle > TILT))
        if not i:
            return np.full(count, np.nan)
        share = (TILT - angle[i - 1]) / (angle[i] - angle[i - 1])
        times.append(t[i - 1] + share * (t[i] - t[i - 1]))
    return np.array(times)


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares; ``quick`` lets three of them fall in large steps."""
    count, steps, time = (3, STEPS[2:3], 0.25) if quick else (COUNT, STEPS, TIME)
    runs = [common.run(row(count), schemes.moreau(), dt, round(time / dt)) for dt in steps]
    times = np.array([passed(traj, count) for traj in runs])
    speeds = (count - 2) * PITCH / (times[:, -1] - times[:, 1])
    numbers = {
        "wave speed over sqrt(g pitch)": float(speeds[-1] / np.sqrt(GRAVITY * PITCH)),
        "deepest penetration over the width": -min(float(np.min(x.gap)) for x in runs) / WIDTH,
    }
    if not quick:
        late = np.abs((times[:, -1] - times[:, 1]) - (times[-1, -1] - times[-1, 1]))[:-1]
        numbers["time of the wave, in steps a tile away from the last one's"] = float(
            np.max(late / np.array(steps[:-1])) / (count - 2)
        )
        numbers["change of the speed, steps up to 0.17 ms"] = float(
            np.max(np.abs(speeds[-4:-1] / speeds[-1] - 1))
        )

    def paint(figure: Any) -> None:
        path, speed = figure.subplots(1, 2)
        for dt, x in zip(steps, times, strict=True):
            path.plot(x, np.arange(count), ".-", label=f"{dt:g} s")
        path.set(xlabel="t [s]", ylabel="tile that is passed")
        if len(steps) < 4:
            path.legend()
        speed.semilogx(steps, speeds, "ko")
        speed.set(xlabel="time step [s]", ylabel="speed of the wave [m/s]")

    arrays = {"dt": steps, "times": times, "speeds": speeds}
    return common.finish(__file__, folder, numbers, arrays, (14.0, 6.0), paint, quick=quick)


if __name__ == "__main__":
    common.command(main)
