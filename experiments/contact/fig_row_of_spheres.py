"""Equal spheres in a row with room between them: velocities after all impacts, and momentum."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np

from nsjax import schemes
from nsjax.multibody import assemble, body, contact, slide, sphere

from .. import common

NAMES, PLACES, SPEED = "abcd", np.array([0.0, 0.35, 0.68, 1.03]), 2.0
RADIUS, DT, TIME = 0.1, 1e-4, 1.0
RESTITUTIONS = (1.0, 0.7, 0.0)


def row(restitution: float) -> Any:
    """Spheres on a rail; the first one moves."""
    pairs = [f"{x}{y}" for x, y in itertools.pairwise(NAMES)]
    problem = assemble(
        *(body(x, mass=1.5) for x in NAMES),
        *(slide(f"rail_{x}", "ground", x) for x in NAMES),
        *(contact(xy, sphere(xy[0], RADIUS), sphere(xy[1], RADIUS), restitution=0.0) for xy in pairs),
        start={f"rail_{x}": (float(s), SPEED * (x == "a")) for x, s in zip(NAMES, PLACES, strict=True)},
    )
    return problem.replace({f"{xy}.restitution": restitution for xy in pairs})


def collided(x: np.ndarray, v: np.ndarray, size: float, restitution: float, until: float) -> np.ndarray:
    """Velocities of equal spheres in a row after all impacts, one by one. With partly plastic impacts the
    approach velocities become smaller and smaller; the sequence ends where they vanish to rounding.
    """
    t, x, v = 0.0, x.copy(), v.copy()
    while True:
        closing = v[:-1] - v[1:]
        room = np.where(closing > 1e-12, np.diff(x) - size, np.inf)
        room = room / np.where(closing > 1e-12, closing, 1.0)
        k = int(np.argmin(room))
        if not t + room[k] <= until:
            return v
        t, x = t + room[k], x + room[k] * v
        change = (1.0 + restitution) * closing[k] / 2.0
        v[k], v[k + 1] = v[k] - change, v[k + 1] + change


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares; ``quick`` takes larger steps."""
    dt = DT * (10 if quick else 1)
    numbers: common.Numbers = {}
    arrays: dict[str, Any] = {}
    losses: list[float] = []
    for e in RESTITUTIONS:
        traj = common.run(row(e), schemes.moreau(), dt, round(TIME / dt), every=10)
        v = np.asarray(traj.v)
        wanted = np.full(4, SPEED / 4.0)  # plastic: all together
        if e > 0.0:
            wanted = collided(PLACES, np.array([SPEED, 0.0, 0.0, 0.0]), 2.0 * RADIUS, e, TIME)
        numbers[f"e = {e:g}: largest error of a velocity [m/s]"] = float(np.max(np.abs(v[-1] - wanted)))
        loss = np.max(np.abs(np.sum(v, axis=1) / SPEED - 1.0))
        losses.append(float(loss))
        arrays |= {"t": np.asarray(traj.t), f"v_{e:g}": v}
    numbers["largest change of momentum"] = max(losses)

    def paint(figure: Any) -> None:
        for axes, e in zip(figure.subplots(1, 3, sharey=True), RESTITUTIONS, strict=True):
            axes.plot(arrays["t"], arrays[f"v_{e:g}"])
            axes.set(title=f"e = {e:g}", xlabel="t [s]")

    return common.finish(__file__, folder, numbers, arrays, (14.0, 6.0), paint, quick=quick)


if __name__ == "__main__":
    common.command(main)
