"""M8: two stiff cylinders with crossed axes that collide: momentum of both, and the gap."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from nsjax import schemes
from nsjax.multibody import assemble, beam, body, capsule, circular, contact, tube

from .. import common

RADIUS, HALF, SPEED, ASIDE = 0.02, 0.25, 1.0, 0.15
MASSES = (1.0, 2.0)
DT, TIME = 1e-3, 0.1
HEIGHT = 0.05 + 2.0 * RADIUS
"""Distance of the axes at the start."""


def moments(mass: float, axis: int) -> np.ndarray:
    """Moments of inertia of a thin rod along an axis, and of a solid cylinder about it."""
    found = np.full(3, mass * (HALF**2 / 3.0 + RADIUS**2 / 4.0))
    found[axis] = 0.5 * mass * RADIUS**2
    return found


def crossed(aside: float) -> Any:
    """The upper cylinder along x hits the lower one along y at ``aside`` from its own middle."""
    return assemble(
        body("upper", mass=MASSES[0], inertia=moments(MASSES[0], 0)),
        body("lower", mass=MASSES[1], inertia=moments(MASSES[1], 1)),
        contact(
            "crossing", capsule("upper", RADIUS, HALF, axis=(1.0, 0.0, 0.0)),
            capsule("lower", RADIUS, HALF, axis=(0.0, 1.0, 0.0)), restitution=0.0,
        ),
        start={"upper": ((-aside, 0.0, HEIGHT), (0.0, 0.0, -SPEED)), "lower": (0.0, 0.0, 0.0)},
    )  # fmt: skip


def impulse(aside: float) -> float:
    """Impulse that stops the approach of the contact points [N s]."""
    yielding = sum(1.0 / m for m in MASSES) + aside**2 / moments(MASSES[0], 0)[1]
    return float(SPEED / yielding)


ELEMENTS, STEEL, FINE = 4, 2e11, 2e-6
"""Elements of each beam; its modulus [Pa]; step that an explicit scheme takes of steel [s]."""


def beams(aside: float) -> Any:
    """The same collision of stiff beams."""
    sections = [circular(RADIUS, E=STEEL, rho=mass / (np.pi * RADIUS**2 * 2.0 * HALF)) for mass in MASSES]
    along = np.array([HALF, 0.0, 0.0]), np.array([0.0, HALF, 0.0])
    middle = np.array([-aside, 0.0, HEIGHT])
    return assemble(
        beam("upper", middle - along[0], middle + along[0], elements=ELEMENTS, section=sections[0]),
        beam("lower", -along[1], along[1], elements=ELEMENTS, section=sections[1]),
        contact("crossing", tube("upper", RADIUS), tube("lower", RADIUS)),
        start={"upper": ((0.0, 0.0, 0.0), (0.0, 0.0, -SPEED, 0.0, 0.0, 0.0))},
    )  # fmt: skip


def of_beams(aside: float) -> dict[str, float]:
    """Numbers of the beams: momentum of both centres, and the gap before the impact."""
    steps = round(TIME / FINE)
    traj = common.run(beams(aside), schemes.moreau(), FINE, steps, every=steps // 500)
    shares = np.full(ELEMENTS + 1, 1.0 / ELEMENTS)
    shares[[0, -1]] *= 0.5

    def centre(name: str, what: str) -> np.ndarray:
        rows = [np.asarray(getattr(traj.body(f"{name}.{k}"), what)) for k in range(ELEMENTS + 1)]
        return np.tensordot(shares, np.array(rows), 1)

    upper, lower = centre("upper", "velocity"), centre("lower", "velocity")
    momentum = MASSES[0] * upper + MASSES[1] * lower - [0.0, 0.0, -MASSES[0] * SPEED]
    touch = int(np.argmax(np.abs(lower[:, 2]) > 0.0))
    distance = (centre("upper", "position") - centre("lower", "position"))[:touch, 2]
    gap = np.min(np.asarray(traj.gap), axis=1)
    return {
        "largest error of the momentum [N s]": float(np.max(np.abs(momentum))),
        "momentum of the lower one in the end [N s]": float(-MASSES[1] * lower[-1, 2]),
        "largest error of the gap [m]": float(np.max(np.abs(gap[:touch] - distance + 2.0 * RADIUS))),
        "deepest penetration in steps of the approach": float(-np.min(gap) / (FINE * SPEED)),
    }


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares; ``quick`` without beams."""
    numbers: common.Numbers = {}
    arrays: dict[str, Any] = {}
    for name, aside in (("central", 0.0), ("aside", ASIDE)):
        traj = common.run(crossed(aside), schemes.moreau(), DT, round(TIME / DT))
        upper, lower = (np.asarray(traj.body(x).velocity) for x in ("upper", "lower"))
        push = impulse(aside)
        momentum = MASSES[0] * upper + MASSES[1] * lower - [0.0, 0.0, -MASSES[0] * SPEED]
        wanted = np.array([-SPEED + push / MASSES[0], -push / MASSES[1]])
        k = int(np.argmax(np.abs(lower[:, 2]) > 0.0))  # first row after the impact; later the rods turn
        found = np.array([upper[k, 2], lower[k, 2]])
        distance = np.asarray(traj.body("upper").position - traj.body("lower").position)[: k + 1, 2]
        off = (np.min(np.asarray(traj.gap)[: k + 1], axis=1) - distance + 2.0 * RADIUS)[:k]
        numbers |= {
            f"{name}: largest error of the momentum [N s]": float(np.max(np.abs(momentum))),
            f"{name}: largest error of a velocity [m/s]": float(np.max(np.abs(found - wanted))),
            f"{name}: largest error of the gap [m]": float(np.max(np.abs(off))),
        }
        arrays |= {"t": np.asarray(traj.t), f"upper_{name}": upper[:, 2], f"lower_{name}": lower[:, 2]}

    if not quick:
        for name, aside in (("central", 0.0), ("aside", ASIDE)):
            numbers |= {f"beams, {name}: {k}": x for k, x in of_beams(aside).items()}

    def paint(figure: Any) -> None:
        for axes, name in zip(figure.subplots(1, 2, sharey=True), ("central", "aside"), strict=True):
            axes.plot(arrays["t"], arrays[f"upper_{name}"], "k", label="upper")
            axes.plot(arrays["t"], arrays[f"lower_{name}"], color="#1f4e9c", label="lower")
            axes.set(title=name, xlabel="t [s]", ylabel="velocity of the centre [m/s]")
            axes.legend()

    return common.finish(__file__, folder, numbers, arrays, (14.0, 6.0), paint, quick=quick)


if __name__ == "__main__":
    common.command(main)
