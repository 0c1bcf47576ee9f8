"""Ball joints between beams: two stiff rods hang on each other in space, against rigid thin rods integrated
in minimal coordinates of their directions.

The order of the scheme and the gaps of the joints are compared as well. [GN] has such joints (section on
constraints); the mechanism is our own.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy import integrate

from nsjax import schemes
from nsjax.core import Problem
from nsjax.multibody import assemble, ball, beam, section

from .. import common
from . import shared

LENGTH, LINE, GRAVITY, TIME = 1.0, 1.0, 9.81, 1.0
STEPS = (0.004, 0.002, 0.001)
TURNING = 1e-5
"""Rotary inertia per length [kg m]: 3e-5 of that of the rods."""

STIFF = section(EA=1e6, GA=1e6, EI=1e5, GJ=1e5, line_mass=LINE, line_inertia=TURNING)
SPINS = ((0.0, 3.0, 0.0), (2.0, 0.0, -1.0))
"""Angular velocities of both rods at the start, the first along x, the second along y [rad/s]."""


def mechanism() -> Problem:
    """The first rod along x from the ground, the second along y from its end; two elements each."""
    joint, end = (LENGTH, 0.0, 0.0), (LENGTH, LENGTH, 0.0)
    one, two = (np.array(x) for x in SPINS)
    pin = np.cross(one, joint)
    rates = [np.cross(two, np.array([0.0, s, 0.0])) + pin for s in (0.0, 0.5, 1.0)]
    second = {f"two.{k}": (None, (*rate, *two)) for k, rate in enumerate(rates)}
    places = {f"two.{k}": (LENGTH, 0.5 * LENGTH * k, 0.0) for k in range(3)}
    return assemble(
        beam("one", (0, 0, 0), joint, elements=2, section=STIFF),
        beam("two", joint, end, elements=2, section=STIFF),
        ball("top", "ground", "one.start"), ball("middle", "one.end", "two.start"),
        gravity=(0.0, 0.0, -GRAVITY),
        start={"one": (None, (0.0, 0.0, 0.0, *one))} | {k: (places[k], second[k][1]) for k in places},
    )  # fmt: skip


def rigid(times: np.ndarray) -> np.ndarray:
    """Tips of thin rigid rods (rows, 3) of unit mass and length: ``(1/3 + 1) u1'' + u2'' / 2`` and ``u1''
    / 2 + u2'' / 3`` equal the weights plus the forces that keep the directions ``u`` of unit length.
    """
    blocks = np.array([[4.0 / 3.0, 0.5], [0.5, 1.0 / 3.0]])
    weights = -GRAVITY * np.array([[0.0, 0.0, 1.5], [0.0, 0.0, 0.5]])

    def rates(t: float, y: np.ndarray) -> np.ndarray:
        u, w = y.reshape(2, 2, 3)
        saddle, right = np.zeros((8, 8)), np.zeros(8)
        saddle[:6, :6] = np.kron(blocks, np.eye(3))
        for k in range(2):
            saddle[3 * k : 3 * k + 3, 6 + k] = saddle[6 + k, 3 * k : 3 * k + 3] = u[k]
            right[6 + k] = -w[k] @ w[k]
        right[:6] = weights.ravel()
        return np.concatenate([w.ravel(), np.linalg.solve(saddle, right)[:6]])

    u = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    start = np.concatenate([u.ravel(), np.cross(np.array(SPINS), u).ravel()])
    y = integrate.solve_ivp(rates, (0.0, TIME), start, "DOP853", times, rtol=1e-11, atol=1e-11).y.T
    return LENGTH * (y[:, :3] + y[:, 3:6])


def _paint(figure: Any, times: np.ndarray, tip: np.ndarray, wanted: np.ndarray) -> None:
    path, error = figure.subplots(1, 2)
    for k, name in enumerate("xyz"):
        (line,) = path.plot(times, wanted[:, k], label=name)
        path.plot(times[::5], tip[::5, k], "o", markersize=2.5, color=line.get_color())
    path.set(xlabel="time [s]", ylabel="tip [m]", title="lines: rigid rods, dots: beams")
    path.legend()
    error.semilogy(times[1:], np.linalg.norm(tip - wanted, axis=1)[1:], color="black")
    error.set(xlabel="time [s]", ylabel="distance of the two tips [m]")


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares; ``quick`` takes one step size of three."""
    problem, tips, energies = mechanism(), [], []
    scheme = schemes.generalized_alpha(0.8)
    for dt in STEPS[1:2] if quick else STEPS:
        traj = shared.run(problem, scheme, dt, TIME, round(0.02 / dt))
        tips.append(shared.poses(traj)[:, -1, :3])
        energies.append(np.asarray(traj["energy"]))
    times = np.asarray(traj.t)
    wanted = rigid(times)
    poses = shared.poses(traj)
    numbers = {
        "largest distance from rigid rods [m]": float(np.linalg.norm(tips[-1] - wanted, axis=1).max()),
        "largest gap of a ball joint [m]": float(np.abs(poses[:, 2, :3] - poses[:, 3, :3]).max()),
        "energy: spread over the kinetic energy": float(
            np.ptp(energies[-1]) / np.asarray(traj["kinetic"]).max()
        ),
    }
    if not quick:
        numbers["order in time"] = shared.order([x[-1] for x in tips])
    return common.finish(
        __file__, folder, numbers, {"t": times, "tip": tips[-1], "rigid": wanted}, (17.0, 6.0),
        lambda f: _paint(f, times, tips[-1], wanted), quick=quick,
    )  # fmt: skip


if __name__ == "__main__":
    common.command(main)
