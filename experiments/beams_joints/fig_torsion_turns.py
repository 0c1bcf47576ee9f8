"""A torsion spring with a linear and quadratic damper at the end of an elastic shaft, through many turns,
[GN (102)-(109)]: a beam of one element between the hinge and a flywheel, against its two equations.

Twist is linear along an element, half of whose rotary inertia stands at each end, so that the shaft is
exactly two inertias with ``GJ / L`` between them: no rigid limit is asked of it. Benchmark M1 of the
specification, on a beam.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy import integrate

from nsjax import schemes
from nsjax.core import Problem
from nsjax.multibody import assemble, beam, body, fixed, hinge, joint_spring, section

from .. import common
from . import shared

LENGTH, FLYWHEEL, SPEED, TIME = 0.8, 0.5, 60.0, 4.0
SPRING, LINEAR, QUADRATIC = 2.0, 0.05, 0.02
TWIST, ROTARY = 40.0, 0.05
"""GJ [N m^2], and rotary inertia per length about the axis [kg m]."""

AXIS = np.array([1.0, 2.0, 2.0]) / 3.0
STEPS = (0.004, 0.002, 0.001)


def mechanism() -> Problem:
    """The shaft along an axis that is oblique to those of the ground, with a flywheel on its end."""
    shaft = section(EA=1e5, GA=1e5, EI=1e3, GJ=TWIST, line_mass=1.0, line_inertia=0.5 * ROTARY)
    end = tuple(LENGTH * AXIS)
    spin = tuple(SPEED * AXIS)
    return assemble(
        beam("shaft", (0, 0, 0), end, elements=1, section=shaft),
        body("flywheel", mass=1.0, inertia=(FLYWHEEL,) * 3),
        hinge("bearing", "ground", "shaft.start", axis=tuple(AXIS)),
        fixed("clamp", "shaft.end", "flywheel"),
        joint_spring("torsion", "bearing", stiffness=SPRING, damping=LINEAR, quadratic_damping=QUADRATIC),
        start={"shaft": (None, (0.0, 0.0, 0.0, *spin)), "flywheel": (end, (0.0, 0.0, 0.0, *spin))},
    )  # fmt: skip


def exact(times: np.ndarray) -> np.ndarray:
    """Angles of the hinge and of the flywheel, and their rates (4, rows)."""
    half = 0.5 * ROTARY * LENGTH

    def rates(t: float, y: np.ndarray) -> list[float]:
        a, b, u, v = y
        pull = TWIST / LENGTH * (b - a)
        back = SPRING * a + LINEAR * u + QUADRATIC * abs(u) * u
        return [u, v, (pull - back) / half, -pull / (half + FLYWHEEL)]

    start = [0.0, 0.0, SPEED, SPEED]
    return integrate.solve_ivp(rates, (0.0, TIME), start, "DOP853", times, rtol=1e-11, atol=1e-11).y


def _paint(figure: Any, times: np.ndarray, angle: np.ndarray, wanted: np.ndarray) -> None:
    turns, error = figure.subplots(1, 2)
    turns.plot(times, wanted[0] / (2.0 * np.pi), color="black", label="two equations")
    turns.plot(times[::20], angle[::20] / (2.0 * np.pi), "o", markersize=2.5, label="beam")
    turns.set(xlabel="time [s]", ylabel="turns of the hinge")
    turns.legend()
    error.plot(times, angle - wanted[0], color="black")
    error.ticklabel_format(axis="y", scilimits=(0, 0))
    error.set(xlabel="time [s]", ylabel="error of its angle [rad]")


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares; ``quick`` takes the finest step alone."""
    problem, ends = mechanism(), []
    scheme = schemes.generalized_alpha(1.0)
    for dt in STEPS[2:] if quick else STEPS:
        traj = shared.run(problem, scheme, dt, TIME, round(0.008 / dt))
        ends.append(np.asarray(traj.joint("bearing").position))
    times = np.asarray(traj.t)
    wanted = exact(times)
    error = [float(np.abs(x - wanted[0]).max()) for x in ends]
    numbers = {
        "turns before it comes back": float(ends[-1].max() / (2.0 * np.pi)),
        "its value of the two equations": float(wanted[0].max() / (2.0 * np.pi)),
        "largest error of the angle [rad]": error[-1],
        "angle at the end [rad]": float(ends[-1][-1]),
        "its error [rad]": float(abs(ends[-1][-1] - wanted[0, -1])),
    }
    if not quick:
        numbers["order in time"] = float(np.log2(error[1] / error[2]))
    return common.finish(
        __file__, folder, numbers, {"t": times, "angle": ends[-1], "wanted": wanted}, (17.0, 6.0),
        lambda f: _paint(f, times, ends[-1], wanted), quick=quick,
    )  # fmt: skip


if __name__ == "__main__":
    common.command(main)
