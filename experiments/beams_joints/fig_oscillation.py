"""M2: the double pendulum of stiff beams: multipliers and accelerations of undamped Newmark alternate from
step to step; numerical damping takes it away.

Steps of 5 ms do not resolve the rods' own vibrations, whose slowest has a period of about 12 ms (both ends
held); undamped Newmark keeps them all. Generalized-alpha with 0.8 damps the slowest by 0.8 % a step, with
0.5 by 9 %. The amplitude of what alternates is the largest ``|x_(k-1) - 2 x_k + x_(k+1)| / 4`` of the
second half of the run, of the largest ``|x|`` of rigid rods: of a smooth quantity its curvature is left, of
the size of ``dt^2``; for comparison that of rigid rods at the same instants. Accelerations are those of the
equations of motion with the forces of the end of every step.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax import schemes
from nsjax.core import Problem
from nsjax.core.operators import row_forces
from nsjax.core.step import inertia_at
from nsjax.multibody import assemble, beam, hinge, rectangular

from .. import common
from . import shared

STEP, TIME, GRAVITY = 0.005, 0.5, 9.81
DELTA = 0.05
FORM = "index_3"
"""Form of the constraints: on position level, as in the source."""
RUNS = {
    "Newmark": schemes.newmark(constraint_form=FORM),
    "Newmark, gamma = 0.55": schemes.newmark(0.25 * (1.0 + DELTA) ** 2, 0.5 + DELTA, constraint_form=FORM),
    "generalized-alpha, 0.8": schemes.generalized_alpha(0.8, constraint_form=FORM),
    "generalized-alpha, 0.5": schemes.generalized_alpha(0.5, constraint_form=FORM),
    "Bathe": schemes.bathe(constraint_form=FORM),
}
QUICK = ("Newmark",)
WEAK = "generalized-alpha, 0.8"
"""Scheme that still damps the slowest bending (0.8 % per step) after a hundred steps."""


def mechanism() -> Problem:
    """Two rods of 1 m and 1 kg, of four elements each, released along x."""
    rod, z = rectangular(0.02, 0.02, E=2e11, nu=0.3, rho=2500.0), shared.Z
    return assemble(
        beam("one", (0, 0, 0), (1, 0, 0), elements=4, section=rod),
        beam("two", (1, 0, 0), (2, 0, 0), elements=4, section=rod),
        hinge("top", "ground", "one.start", axis=z), hinge("middle", "one.end", "two.start", axis=z),
        gravity=(0.0, -GRAVITY, 0.0),
    )  # fmt: skip


def _rates(y: np.ndarray) -> np.ndarray:
    """Rates of the angles from x and of their rates, thin rigid rods of mass and length 1."""
    one, two, w1, w2 = y
    c, s = np.cos(one - two), np.sin(one - two)
    mass = np.array([[4.0 / 3.0, 0.5 * c], [0.5 * c, 1.0 / 3.0]])
    push = -np.array([0.5 * s * w2**2 + 1.5 * GRAVITY * np.cos(one),
                      -0.5 * s * w1**2 + 0.5 * GRAVITY * np.cos(two)])  # fmt: skip
    return np.concatenate([[w1, w2], np.linalg.solve(mass, push)])


def rigid(steps: int, finer: int = 10) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The motion of rigid rods at the end of every step: positions of the tip (steps + 1, 2), its
    accelerations, and the force of the middle hinge on the second rod, by the fourth-order Runge-Kutta
    method.
    """
    y, h, tip, rate, force = np.zeros(4), STEP / finer, [], [], []
    for _ in range(steps + 1):
        one, two, w1, w2 = y
        along = [np.array([np.cos(x), np.sin(x)]) for x in (one, two)]
        across = [np.array([-np.sin(x), np.cos(x)]) for x in (one, two)]
        e1, e2 = _rates(y)[2:]
        pin, own = e1 * across[0] - w1**2 * along[0], e2 * across[1] - w2**2 * along[1]
        tip.append(along[0] + along[1])
        rate.append(pin + own)
        force.append(pin + 0.5 * own + [0.0, GRAVITY])
        for _ in range(finer):
            a = _rates(y)
            b = _rates(y + 0.5 * h * a)
            c = _rates(y + 0.5 * h * b)
            y = y + h / 6.0 * (a + 2.0 * b + 2.0 * c + _rates(y + h * c))
    return np.array(tip), np.array(rate), np.array(force)


def tip_acceleration(problem: Problem, traj: Any) -> np.ndarray:
    """The acceleration of the tip in y by the equations of motion, with the multipliers of every row."""
    s: Any = problem.system
    p = s.prepare(problem.params)

    def one(t: Any, q: Any, v: Any, forces: Any) -> Any:
        push = s.force(t, q, v, p) + row_forces(s, t, q, forces, p, contacts=False)
        return inertia_at(s, t, q, p).solve(push[:, None])[-5, 0]

    rows = (jnp.asarray(x) for x in (traj.t, traj.q, traj.v, traj.constraint_force))
    return np.asarray(jax.jit(jax.vmap(one))(*rows))


def alternating(x: np.ndarray, size: float) -> float:
    """Amplitude of the alternating part in the second half of the run, relative to ``size``."""
    late = x[len(x) // 2 :]
    return float(np.abs(late[:-2] - 2.0 * late[1:-1] + late[2:]).max() / 4.0 / size)


def _paint(figure: Any, t: np.ndarray, curves: dict[str, tuple[np.ndarray, np.ndarray]]) -> None:
    axes = figure.subplots(2, 1, sharex=True)
    for name, found in curves.items():
        for k, axis in enumerate(axes):
            axis.plot(t[1:], found[k][1:], label=name, linewidth=0.7)
    axes[0].set_ylabel("multiplier of the\nmiddle hinge, x [N]")
    axes[1].set_ylabel("acceleration of\nthe tip, y [m/s$^2$]")
    axes[1].set_xlabel("time $t$ [s]")
    axes[0].legend(fontsize=6)


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares; ``quick`` runs undamped Newmark alone."""
    problem, numbers, curves = mechanism(), {}, {}
    column = problem.system.labels.constraints.index("middle.x")
    place, rate, force = rigid(round(TIME / STEP))
    half = len(force) // 2
    sizes = np.abs(force[half:, 0]).max(), np.abs(rate[half:, 1]).max()
    curves["rigid rods"] = force[:, 0], rate[:, 1]
    for name in QUICK if quick else RUNS:
        traj = shared.run(problem, RUNS[name], STEP, TIME)
        found = np.asarray(traj.constraint_force)[:, column]
        sign = np.sign(np.sum(found * force[:, 0]))  # sign convention of the row
        curves[name] = sign * found, tip_acceleration(problem, traj)
        tip = shared.poses(traj)[-1, -1, :2]
        numbers[f"{name}: distance of the tip from the rigid one at 0.5 s [m]"] = float(
            np.linalg.norm(tip - place[-1])
        )
    for name, both in curves.items():
        for k, what in enumerate(("multiplier", "acceleration")):
            numbers[f"{name}: {what}"] = alternating(both[k], sizes[k])
    for what in () if quick else ("multiplier", "acceleration"):
        numbers[f"{WEAK}: {what}, of Newmark's"] = numbers[f"{WEAK}: {what}"] / numbers[f"Newmark: {what}"]
    t = STEP * np.arange(len(force))
    arrays = {f"{name}, {what}": both[k] for name, both in curves.items() for k, what in enumerate("fa")}
    return common.finish(
        __file__, folder, numbers, {"t": t, **arrays}, (17.0, 9.0), lambda f: _paint(f, t, curves),
        quick=quick,
    )  # fmt: skip


if __name__ == "__main__":
    common.command(main)
