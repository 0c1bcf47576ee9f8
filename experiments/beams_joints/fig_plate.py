"""A cantilever of 200 elements swings under gravity onto a plate: implicit schemes at steps of 1e-4 s.

Steel, 2 m long, circular with a radius of 5 mm, released without strain. Its tip sinks by 0.117 m at rest,
and by twice as much in the first swing, so that a plate 0.3 m below it is never touched: the plate lies
0.15 m below. The tip touches it at an instant that the modes of Euler and Bernoulli's cantilever foretell.

The highest modes turn by more than a hundred radians a step. Where a step keeps the contact force of its
start though the contact leaves, they gain the work of that force: the schemes that have it drop it here.
The unified scheme corrects positions in the metric of its step, lest the tip alone be moved against its
neighbour. Rules without damping of their own (trapezoidal Newmark, theta = 1/2) are left out, see the
limits.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import nsjax
from nsjax import schemes
from nsjax.core import Problem
from nsjax.multibody import assemble, beam, circular, contact, fixed, plane, sphere

from .. import common
from . import shared

LENGTH, RADIUS, DEPTH, STEP, TIME = 2.0, 0.005, 0.15, 1e-4, 0.3
RUNS = {
    "moreau_theta": schemes.moreau_theta(0.6),
    "generalized_alpha": schemes.generalized_alpha(0.8, force_at_release="drop"),
    "hht": schemes.hht(force_at_release="drop"),
    "newmark": schemes.newmark(0.25 * 1.05**2, 0.55, force_at_release="drop"),
    "bathe": schemes.bathe(),
    "ed_alpha": schemes.ed_alpha(),
    "ggl_unified": schemes.ggl_unified(metric="implicit"),
    "nsga_decoupled": schemes.nsga_decoupled(0.8),
}
QUICK = ("generalized_alpha",)
EVERY = 10
"""Number of steps between rows."""


def mechanism(elements: int = 200) -> Problem:
    """The cantilever and the plate; the contact of the tip is a sphere with the radius of the beam."""
    steel = circular(RADIUS, E=2.1e11, rho=7850.0)
    return assemble(
        beam("arm", (0, 0, 0), (LENGTH, 0, 0), elements=elements, section=steel, first_axis=(0, 1, 0)),
        fixed("clamp", "ground", "arm.start"),
        contact("touch", sphere("arm.end", RADIUS), plane(at=(0.0, 0.0, -DEPTH - RADIUS)), restitution=0.0),
        gravity=9.81,
    )  # fmt: skip


def touch_of_modes(modes: int = 8) -> float:
    """Time [s] at which the tip of the linear cantilever reaches the plate, by superposition of modes."""
    steel: Any = circular(RADIUS, E=2.1e11, rho=7850.0)
    roots = np.array([1.87510407, 4.69409113, 7.85475744, *((np.arange(4, modes + 1) - 0.5) * np.pi)])
    sigma = (np.sinh(roots) - np.sin(roots)) / (np.cosh(roots) + np.cos(roots))
    share = 4.0 * sigma / roots * (-1.0) ** np.arange(modes)
    omega = roots**2 / LENGTH**2 * np.sqrt(float(steel.EI) / float(steel.line_mass))
    t = np.linspace(0.0, TIME, 300_001)
    down = 9.81 * np.sum(share[:, None] / omega[:, None] ** 2 * (1.0 - np.cos(omega[:, None] * t)), axis=0)
    return float(t[np.argmax(down >= DEPTH)])


def _paint(figure: Any, curves: dict[str, tuple[np.ndarray, np.ndarray]], q: np.ndarray) -> None:
    shapes, tip = figure.subplots(1, 2)
    for row in q[:: max(1, len(q) // 12)]:
        shapes.plot(row[:, 0], row[:, 2], color="#1f4e9c", linewidth=0.6)
    shapes.axhline(-DEPTH, color="black")
    shapes.set_xlabel("$x$ [m]")
    shapes.set_ylabel("$z$ [m]")
    for name, (t, z) in curves.items():
        (curve,) = tip.plot(t, z, label=name)
        if t[-1] < TIME - 2 * EVERY * STEP:
            tip.plot(t[-1:], z[-1:], "x", color=curve.get_color(), label=f"{name} fails")
    tip.axhline(-DEPTH, color="black")
    tip.set_xlabel("time $t$ [s]")
    tip.set_ylabel("tip $z$ [m]")
    tip.legend(fontsize=6)


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares; ``quick`` runs one scheme with twenty elements."""
    problem, numbers, curves = mechanism(20 if quick else 200), {}, {}
    touch = touch_of_modes()
    numbers["first touch of linear modes [s]"] = touch
    for name in QUICK if quick else RUNS:
        steps = round(TIME / STEP)
        traj = nsjax.simulate(
            problem.system, problem.params, problem.state, RUNS[name], dt=STEP, steps=steps, every=EVERY
        )
        went = steps if int(traj.status) == 0 else int(traj.first_failure.step)
        fine = slice(1 + (went - 1) // EVERY if went < steps else None)
        q, energy = shared.poses(traj)[fine], np.asarray(traj["energy"])[fine]
        moving = float(np.max(np.asarray(traj["kinetic"])[fine]))
        curves[name] = np.asarray(traj.t)[fine], q[:, -1, 2]
        numbers[f"{name}: steps that went well"] = went
        numbers[f"{name}: largest gain of energy"] = float(np.max(energy - energy[0]) / moving)
        numbers[f"{name}: certificate"] = float(np.max(np.asarray(traj.residual)[fine]))
        numbers[f"{name}: deepest penetration [m]"] = float(-np.min(np.asarray(traj.gap_min)[fine]))
        closes = np.flatnonzero(np.asarray(traj.impacts).sum(axis=1))
        first = float(traj.t[closes[0]]) if len(closes) else float("nan")
        numbers[f"{name}: first touch, of that of linear modes"] = first / touch
    arrays = {f"{name} tip": curve[1] for name, curve in curves.items()} | {"q": q}
    return common.finish(
        __file__, folder, numbers, arrays, (17.0, 7.0), lambda f: _paint(f, curves, q), quick=quick
    )


if __name__ == "__main__":
    common.command(main)
