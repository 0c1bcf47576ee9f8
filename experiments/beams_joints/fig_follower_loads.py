"""Follower force and moment on beams: Beck's column, a cantilever that a follower moment closes to a
circle, and a stiff free beam that both turn, against closed forms.

The free beam: a force ``F`` across its end, which turns with it, and a moment ``M`` give the angle ``(F L /
2 + M) t^2 / (2 J)`` and the acceleration ``F / m`` across the beam, integrated twice. Beck's column
flutters above ``20.0509 E I / L^2``. [GN] has such loads in an appendix.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy import integrate

from nsjax import schemes
from nsjax.analysis import equilibrium, modes
from nsjax.core import Problem
from nsjax.multibody import assemble, beam, fixed, force, section, torque

from .. import common
from . import shared

BECK = 20.0509
SLENDER = section(EA=1e6, GA=1e6, EI=(1.0, 10.0), GJ=1.0, line_mass=1.0, line_inertia=1e-8)
SOFT = section(EA=1e4, GA=5e3, EI=100.0, GJ=100.0)
THICK = 1e-3
"""Rotary inertia per length of the free beam [kg m]."""

STIFF = section(EA=1e7, GA=1e6, EI=1e5, GJ=1e5, line_mass=1.0, line_inertia=THICK)
INERTIA = 1.0 / 12.0 + THICK
PUSH, TURN, TIME = 2.0, 0.5, 2.0
STEPS = (5e-3, 2.5e-3, 1.25e-3)
MESHES = (8, 16, 32)


def column(elements: int, load: float) -> Problem:
    """Column along x, clamped at the origin, compressed by a follower force at its end."""
    return assemble(
        beam("arm", (0, 0, 0), (1, 0, 0), elements=elements, section=SLENDER, first_axis=(0, 0, 1)),
        fixed("clamp", "ground", "arm.start"), force("P", "arm.end", (-load, 0.0, 0.0), follower=True),
    )  # fmt: skip


def flutter(elements: int, halvings: int = 12) -> float:
    """Flutter load in units of ``E I / L^2``, at which motions begin to grow."""
    low, high = 15.0, 25.0
    problem = column(elements, low)
    for _ in range(halvings):
        middle = 0.5 * (low + high)
        pressed = equilibrium(problem, {"P.value": (-middle, 0.0, 0.0)}).problem
        grows = modes(pressed, 1).growth > 1e-6
        low, high = (low, middle) if grows else (middle, high)
    return 0.5 * (low + high)


def closed(elements: int = 4) -> float:
    """Distance of the end from the clamp under the follower moment that closes the circle [m]."""
    problem = assemble(
        beam("arm", (0, 0, 0), (10, 0, 0), elements=elements, section=SOFT, first_axis=(0, 0, 1)),
        fixed("clamp", "ground", "arm.start"), torque("M", "arm.end", (0.0, 0.0, 0.0), follower=True),
    )  # fmt: skip
    found = equilibrium(problem, {"M.value": (0.0, 0.0, 2.0 * np.pi * 100.0 / 10.0)}, steps=8)
    return float(np.linalg.norm(found.positions[-1].reshape(-1, 7)[-1, :3]))


def free() -> Problem:
    """A beam of 1 m and 1 kg along x about its centre, with both loads at its end."""
    return assemble(
        beam("rod", (-0.5, 0, 0), (0.5, 0, 0), elements=2, section=STIFF, first_axis=(0, 0, 1)),
        force("F", "rod.end", (0.0, PUSH, 0.0), follower=True),
        torque("M", "rod.end", (0.0, 0.0, TURN), follower=True),
    )  # fmt: skip


def exact(times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Angle and centre (rows, 2) of the rigid rod."""
    faster = (0.5 * PUSH + TURN) / INERTIA
    angle = 0.5 * faster * times**2

    def rates(t: float, y: np.ndarray) -> np.ndarray:
        turned = 0.5 * faster * t * t
        return np.concatenate([y[2:], PUSH * np.array([-np.sin(turned), np.cos(turned)])])

    y = integrate.solve_ivp(rates, (0.0, TIME), np.zeros(4), "DOP853", times, rtol=1e-11, atol=1e-12).y
    return angle, y[:2].T


def _paint(figure: Any, centre: np.ndarray, wanted: np.ndarray, loads: dict[int, float]) -> None:
    path, column = figure.subplots(1, 2)
    path.plot(wanted[:, 0], wanted[:, 1], color="black", label="rigid rod")
    path.plot(centre[::4, 0], centre[::4, 1], "o", markersize=2.5, label="beam, every 0.08 s")
    path.set(xlabel="centre of the free beam: x [m]", ylabel="y [m]")
    path.legend()
    column.plot(list(loads), list(loads.values()), "o-", color="black", label="beams")
    column.axhline(BECK, linestyle="--", color="0.5", label="Beck")
    column.set(xlabel="elements of the column", ylabel="load of flutter $P L^2/(E I)$")
    column.legend()


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares; ``quick`` takes one mesh and one step."""
    loads = {n: flutter(n) for n in (MESHES[:1] if quick else MESHES)}
    numbers = {f"flutter, {n} elements, of EI/L^2": x for n, x in loads.items()}
    numbers["circle: distance of the end from the clamp [m]"] = closed()
    problem, centres = free(), []
    # the moment acts suddenly on a node whose motion the step does not resolve: Bathe does not overshoot
    for dt in STEPS[2:] if quick else STEPS:
        traj = shared.run(problem, schemes.bathe(), dt, TIME, round(0.02 / dt))
        poses = shared.poses(traj)
        centres.append(poses[:, 1, :2])
    times = np.asarray(traj.t)
    angle, wanted = exact(times)
    axes = poses[:, 1, 3:]
    turned = np.unwrap(2.0 * np.arctan2(axes[:, 3], axes[:, 0]))
    numbers |= {
        "free beam: turns": float(turned[-1] / (2.0 * np.pi)),
        "free beam: largest error of the angle [rad]": float(np.abs(turned - angle).max()),
        "free beam: largest distance of the centre [m]": float(
            np.linalg.norm(centres[-1] - wanted, axis=1).max()
        ),
    }
    if not quick:
        last, fine = list(loads.values())[-2:], [x[-1] for x in centres]
        numbers["flutter, extrapolated, of EI/L^2"] = last[1] + (last[1] - last[0]) / 3.0
        numbers["order in time"] = shared.order(fine)
    arrays = {"t": times, "centre": centres[-1], "wanted": wanted, "loads": np.array(list(loads.values()))}
    return common.finish(
        __file__, folder, numbers, arrays, (17.0, 6.0), lambda f: _paint(f, centres[-1], wanted, loads),
        quick=quick,
    )  # fmt: skip


if __name__ == "__main__":
    common.command(main)
