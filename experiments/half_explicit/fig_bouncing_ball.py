"""A bouncing ball with the half-explicit scheme: impacts, rest and errors over step sizes.

m = 1 kg, dropped from 1 m, restitution 0.5, g = 9.81 m/s^2, 2 s (our choice; the paper's data are not
known). The exact motion is a sequence of parabolas that accumulates at 1.3546 s; then the ball rests with
the contact force 9.81 N. An impact is registered at the first step end behind it, hence first order.

On acceleration level, the forecasting trapezoidal rule of [SA] that the paper improves, the impacts are the
same, but a contact that bounces within a step does not come to rest: it leaves every step with
``e g dt / (1 + e)`` and sinks. (With 1e-2 s the last bounce happens to end in rest.)
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

import nsjax
from nsjax import models, schemes
from nsjax.analysis import observed_order

from .. import common
from .impulses import impulse_steps

GRAVITY, HEIGHT, RESTITUTION, DURATION = 9.81, 1.0, 0.5, 2.0
STEPS = (1e-2, 1e-3, 1e-4, 1e-5)
PER_SECOND = (101, 163, 257, 401, 631, 1009, 1601, 2503, 3989, 6301, 10007, 15889, 25117, 39829)
"""Steps per second, prime, for the order of convergence."""


def exact(t: np.ndarray) -> np.ndarray:
    """Height of the ball at the times ``t`` [m]."""
    at, speed = math.sqrt(2 * HEIGHT / GRAVITY), math.sqrt(2 * GRAVITY * HEIGHT)
    height = np.where(t < at, HEIGHT - GRAVITY / 2 * t**2, 0.0)
    while speed > 1e-15:
        speed *= RESTITUTION
        flight = 2 * speed / GRAVITY
        inside = (t >= at) & (t < at + flight)
        height = np.where(inside, speed * (t - at) - GRAVITY / 2 * (t - at) ** 2, height)
        at += flight
    return height


def ball(dt: float, **options: Any) -> nsjax.Trajectory:
    """The run at one step size, every step saved; ``options`` of `nsjax.schemes.half_explicit`."""
    problem = models.bouncing_ball(height=HEIGHT, radius=0.0, restitution=RESTITUTION, gravity=GRAVITY)
    return common.run(problem, schemes.half_explicit(**options), dt, round(DURATION / dt))


def _numbers(traj: nsjax.Trajectory, dt: float) -> common.Numbers:
    t, q = np.asarray(traj.t), np.asarray(traj.q)[:, 0]
    jumps = t[impulse_steps(traj)]
    second = round(1.0 / dt)
    return {
        f"{dt:.0e}: first impact [s]": float(jumps[0]),
        f"{dt:.0e}: impacts": float(len(jumps)),
        f"{dt:.0e}: last impact [s]": float(jumps[-1]),
        f"{dt:.0e}: penetration at the end [m]": float(-q[-1]),
        f"{dt:.0e}: error of q(1.0) [m]": float(abs(q[second] - exact(t[second : second + 1])[0])),
        f"{dt:.0e}: force at rest [N]": float(np.asarray(traj.force_normal)[-1, 0]),
        f"{dt:.0e}: velocity at rest [m/s]": float(abs(np.asarray(traj.v)[-1, 0])),
    }


def convergence() -> tuple[np.ndarray, np.ndarray]:
    """Step sizes and mean errors over 15 instants up to 1.5 s. (At a single instant the error jumps about
    with the place of the impacts in their steps.)
    """
    errors = []
    for n in PER_SECOND:
        traj = ball(1.0 / n)
        row = np.round(0.1 * n * np.arange(1, 16)).astype(int)
        error = np.asarray(traj.q)[row, 0] - exact(np.asarray(traj.t)[row])
        errors.append(np.abs(error).mean())
    return 1.0 / np.array(PER_SECOND), np.array(errors)


def _paint(figure: Any, runs: dict[float, nsjax.Trajectory], steps: np.ndarray, errors: np.ndarray) -> None:
    path, order = figure.subplots(1, 2, width_ratios=(1.6, 1.0))
    t = np.linspace(0.0, DURATION, 2001)
    path.plot(t, exact(t), color="black", linewidth=0.6, label="exact")
    for dt, color in ((1e-2, "#c4581b"), (1e-3, "#1f4e9c")):
        traj = runs[dt]
        path.plot(traj.t, traj.q[:, 0], color=color, linestyle="--", label=rf"$\Delta t = {dt:g}$ s")
    path.set_xlim(0.0, DURATION)
    path.set_xlabel("time $t$ [s]")
    path.set_ylabel("height $q$ [m]")
    path.legend()
    order.loglog(steps, errors, color="#1f4e9c", marker="o", markersize=3, label="mean error")
    order.loglog(steps, 3 * steps, color="black", linewidth=0.6, label="order 1")
    order.set_xlabel(r"step size $\Delta t$ [s]")
    order.set_ylabel("error of $q$ [m]")
    order.legend()


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares; ``quick`` changes nothing, the runs are short."""
    numbers: common.Numbers = {}
    runs = {dt: ball(dt) for dt in STEPS}
    for dt, traj in runs.items():
        numbers.update(_numbers(traj, dt))
        dropped = ball(dt, impact_step="drop")
        numbers[f"{dt:.0e}: keep - drop [m]"] = float(np.abs(traj.q - dropped.q).max())
        forecast = _numbers(ball(dt, level="acceleration"), dt)
        numbers |= {f"acceleration level, {name}": value for name, value in forecast.items()}
    steps, errors = convergence()
    numbers["order"] = observed_order(steps, errors)
    arrays = {f"q, {dt:.0e}": np.asarray(traj.q)[:, 0] for dt, traj in runs.items()}
    return common.finish(
        __file__, folder, numbers, {"dt": steps, "error": errors, **arrays}, (16.0, 6.5),
        lambda f: _paint(f, runs, steps, errors),
    )  # fmt: skip


if __name__ == "__main__":
    common.command(main)
