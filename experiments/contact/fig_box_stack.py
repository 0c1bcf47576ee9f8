"""Ten boxes on one another at rest, with friction: nothing moves, every box carries what is above it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from nsjax import schemes
from nsjax.multibody import assemble, body, box, contact, plane

from .. import common

COUNT, HALF, MASS, GRAVITY, FRICTION = 10, 0.05, 1.0, 9.81, 0.5
DT, STEPS = 1e-3, 100_000


def stack(count: int) -> Any:
    """Plane stack of ``count`` boxes."""
    parts = []
    for k in range(count):
        parts.append(body(f"box{k}", mass=MASS, inertia=2.0 / 3.0 * MASS * HALF**2))
        below = box(f"box{k - 1}", HALF, HALF) if k else plane()
        parts.append(contact(f"on{k}", box(f"box{k}", HALF, HALF), below, friction=FRICTION))
    start = {f"box{k}": (0.0, HALF * (2 * k + 1), 0.0) for k in range(count)}
    return assemble(*parts, gravity=GRAVITY, start=start)


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares; ``quick`` runs three boxes for a hundredth of the steps."""
    steps, count = (STEPS // 100, 3) if quick else (STEPS, COUNT)
    problem = stack(count)
    traj = common.run(problem, schemes.moreau(), DT, steps, every=steps // 100)
    moved = np.max(np.abs(np.asarray(traj.q) - np.asarray(problem.state.q)), axis=1)
    weights = MASS * GRAVITY * np.arange(count, 0, -1)
    forces = [np.asarray(traj.contacts(f"on{k}").force)[1:] for k in range(count)]
    loads = np.array([np.sum(x.reshape(len(x), -1, 2)[:, :, 0], axis=1) for x in forces])
    error = np.max(np.abs(loads - weights[:, None]), axis=0)
    numbers = {
        "largest displacement over the half edge": float(np.max(moved)) / HALF,
        "largest speed [m/s]": float(np.max(np.abs(traj.v))),
        "largest error of a load over the weight of a box": float(np.max(error)) / (MASS * GRAVITY),
        "largest certificate": float(np.max(traj.residual)),
    }

    if not quick:
        numbers["steps"] = float(steps)

    def paint(figure: Any) -> None:
        one, other = figure.subplots(1, 2)
        floor = 1e-18  # zeros have no place on the axis
        one.semilogy(traj.t[1:], moved[1:] + floor, "k")
        one.set(xlabel="t [s]", ylabel="largest displacement [m]")
        other.semilogy(traj.t[1:], error + floor, "k")
        other.set(xlabel="t [s]", ylabel="largest error of a load [N]")

    arrays = {"t": np.asarray(traj.t), "moved": moved, "loads": loads}
    return common.finish(__file__, folder, numbers, arrays, (14.0, 6.0), paint, quick=quick)


if __name__ == "__main__":
    common.command(main)
