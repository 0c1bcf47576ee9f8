"""A spring and dashpot between the end of a beam and the ground: a stiff rod on a ball joint, against a
rigid thin rod integrated in minimal coordinates; and the books of what the dashpot takes.

Spring ``k e + k3 e^3``, dashpot ``c e' + c2 |e'| e'`` along the line between its ends ([GN], translational
spring-dashpot); the mechanism is our own.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy import integrate

from nsjax import schemes
from nsjax.core import Problem
from nsjax.multibody import assemble, ball, beam, section, spring

from .. import common
from . import shared

LENGTH, MASS, GRAVITY, TIME = 1.0, 1.0, 9.81, 2.0
STEPS = (0.004, 0.002, 0.001)
STIFF = section(EA=1e6, GA=1e6, EI=1e5, GJ=1e5, line_mass=MASS, line_inertia=1e-5)
"""Section of the stiff rod; its rotary inertia is 3e-5 of that of the rod."""

ANCHOR, FREE = np.array([0.6, 0.5, 0.4]), 0.5
LAW: dict[str, Any] = {"stiffness": 40.0, "cubic": 60.0, "damping": 0.5, "quadratic_damping": 0.3}
SPIN = np.array([0.5, -1.0, 4.0])


def mechanism() -> Problem:
    """The rod from the origin along x, two elements; the anchor beside its end."""
    return assemble(
        beam("rod", (0, 0, 0), (LENGTH, 0, 0), elements=2, section=STIFF),
        ball("top", "ground", "rod.start"),
        spring("leg", ("ground", tuple(ANCHOR)), "rod.end", length=FREE, **LAW),
        gravity=(0.0, 0.0, -GRAVITY), start={"rod": (None, (0.0, 0.0, 0.0, *SPIN))},
    )  # fmt: skip


def rigid(times: np.ndarray) -> np.ndarray:
    """Ends of a thin rigid rod (rows, 3), by its direction."""

    def rates(t: float, y: np.ndarray) -> np.ndarray:
        u, w = y[:3], y[3:]
        gone, speed = LENGTH * u - ANCHOR, LENGTH * w
        far = np.linalg.norm(gone)
        n, e = gone / far, far - FREE
        rate = n @ speed
        pull = LAW["stiffness"] * e + LAW["cubic"] * e**3
        pull += LAW["damping"] * rate + LAW["quadratic_damping"] * abs(rate) * rate
        push = -pull * n * LENGTH + 0.5 * MASS * LENGTH * np.array([0.0, 0.0, -GRAVITY])
        across = (push - u * (u @ push)) / (MASS * LENGTH**2 / 3.0)
        return np.concatenate([w, across - u * (w @ w)])

    start = np.concatenate([[1.0, 0.0, 0.0], np.cross(SPIN, [1.0, 0.0, 0.0])])
    y = integrate.solve_ivp(rates, (0.0, TIME), start, "DOP853", times, rtol=1e-10, atol=1e-10).y.T
    return LENGTH * y[:, :3]


def _paint(figure: Any, times: np.ndarray, tip: np.ndarray, wanted: np.ndarray, both: np.ndarray) -> None:
    """Figure; ``both`` (2, rows): energy, and initial energy minus the energy dissipated by the dashpot."""
    path, books = figure.subplots(1, 2)
    for k, name in enumerate("xyz"):
        (line,) = path.plot(times, wanted[:, k], label=name)
        path.plot(times[::10], tip[::10, k], "o", markersize=2.5, color=line.get_color())
    path.set(xlabel="time [s]", ylabel="end [m]", title="lines: rigid rod, dots: beam")
    path.legend()
    books.plot(times, both[0], color="black", label="of the mechanism")
    books.plot(times[::10], both[1, ::10], "o", markersize=2.5, label="of the start, less the dashpot's")
    books.set(xlabel="time [s]", ylabel="energy [J]")
    books.legend()


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares; ``quick`` takes one step size of three."""
    problem, tips = mechanism(), []
    scheme = schemes.generalized_alpha(0.8)
    for dt in STEPS[1:2] if quick else STEPS:
        traj = shared.run(problem, scheme, dt, TIME, round(0.004 / dt))
        tips.append(shared.poses(traj)[:, -1, :3])
    times, energy = np.asarray(traj.t), np.asarray(traj["energy"])
    wanted, leg = rigid(times), traj.load("leg")
    stored = np.asarray(leg.energy)
    # work of spring and dashpot on the mechanism
    given = integrate.cumulative_trapezoid(np.asarray(leg.power), times, initial=0.0)
    taken = -given - (stored - stored[0])
    numbers = {
        "largest distance from a rigid rod [m]": float(np.linalg.norm(tips[-1] - wanted, axis=1).max()),
        "energy that the dashpot takes [J]": float(taken[-1]),
        "energy that the dashpot does not account for": float(
            np.abs(energy - energy[0] + taken).max() / taken[-1]
        ),
        "least that it takes between two rows, of all": float(np.diff(taken).min() / taken[-1]),
    }
    if not quick:
        numbers["order in time"] = shared.order([x[-1] for x in tips])
    both = np.stack([energy, energy[0] - taken])
    return common.finish(
        __file__, folder, numbers,
        {"t": times, "end": tips[-1], "rigid": wanted, "energy": energy, "taken": taken}, (17.0, 6.0),
        lambda f: _paint(f, times, tips[-1], wanted, both), quick=quick,
    )  # fmt: skip


if __name__ == "__main__":
    common.command(main)
