"""A shaft that turns in a journal bearing with clearance: it lies beside the lowest point by the angle of
friction and slows down at a constant rate.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from nsjax import schemes
from nsjax.multibody import assemble, body, contact, hole, sphere

from .. import common

RADIUS, CLEARANCE, MASS, INERTIA, FRICTION, GRAVITY = 0.01, 1e-4, 1.0, 2e-3, 0.2, 9.81
SPIN, DT, TIME = 100.0, 1e-4, 1.0
LEAN = float(np.arctan(FRICTION))
SLOWING = MASS * GRAVITY * np.sin(LEAN) * RADIUS / INERTIA
"""Deceleration of the spin [rad/s^2]: the bearing bears the weight; ``sin(LEAN)`` of it is friction."""


def bearing(lean: float) -> Any:
    """The rotating shaft at the angle ``lean`` from the lowest point."""
    at = CLEARANCE * np.array([np.sin(lean), -np.cos(lean)])
    return assemble(
        body("shaft", mass=MASS, inertia=INERTIA),
        contact(
            "journal", sphere("shaft", RADIUS), hole("ground", RADIUS + CLEARANCE), friction=FRICTION
        ),
        gravity=GRAVITY, start={"shaft": ((*at, 0.0), (0.0, 0.0, -SPIN))},
    )  # fmt: skip


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares; ``quick`` runs a tenth of the time."""
    time = TIME / 10 if quick else TIME
    # turning clockwise it climbs towards +x, as a wheel would roll
    rows = {}
    for name, lean in (("balanced", LEAN), ("from the bottom", 0.0)):
        rows[name] = common.run(bearing(lean), schemes.moreau(), DT, round(time / DT))
    traj = rows["balanced"]
    t, shaft = np.asarray(traj.t), traj.body("shaft")
    place, spin = np.asarray(shaft.position), np.asarray(shaft.spin)
    lean = np.arctan2(place[:, 0], -place[:, 1])
    force = np.asarray(traj.contact("journal").force)[1:].reshape(len(t) - 1, 2)
    # a step along the tangent leaves the circle by (v dt)^2 / (2 clearance), v^2 of a swing by the angle of
    # friction on average g clearance lean^2 / 2; nothing takes it back on velocity level
    drift = time * DT * GRAVITY * LEAN**2 / 4.0
    deepest = {name: -float(np.min(x.gap)) for name, x in rows.items()}
    numbers = {
        "largest error of the lean [rad]": float(np.max(np.abs(lean - LEAN))),
        "largest relative error of the spin": float(np.max(np.abs(spin + SPIN - SLOWING * t))) / SPIN,
        "largest relative error of the force": float(
            np.max(np.abs(np.linalg.norm(force, axis=1) / (MASS * GRAVITY) - 1.0))
        ),
        "balanced: largest penetration over the clearance": deepest["balanced"] / CLEARANCE,
        "from the bottom: penetration over its drift": deepest["from the bottom"] / drift,
    }
    places = {name: np.asarray(x.body("shaft").position) / CLEARANCE for name, x in rows.items()}

    def paint(figure: Any) -> None:
        path, rate = figure.subplots(1, 2)
        round_angle = np.linspace(0.0, 2.0 * np.pi, 200)
        path.plot(np.sin(round_angle), np.cos(round_angle), color="0.7")
        for name, x in places.items():
            path.plot(*x.T, label=name)
        path.set(aspect="equal", xlabel="x / clearance", ylabel="y / clearance")
        path.legend()
        rate.plot(t, spin, "k", label="found")
        rate.plot(t, -SPIN + SLOWING * t, "--", color="#1f4e9c", label="closed form")
        rate.set(xlabel="t [s]", ylabel="spin [rad/s]")
        rate.legend()

    arrays = {"t": t, "spin": spin, **{name.replace(" ", "_"): x for name, x in places.items()}}
    return common.finish(__file__, folder, numbers, arrays, (14.0, 6.0), paint, quick=quick)


if __name__ == "__main__":
    common.command(main)
