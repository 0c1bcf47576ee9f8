"""An arm throws a ball into a cup after one bounce: Newton's method beside Adam.

Two torques, the instant of the release and the time of the flight are sought that bring the ball to the cup
and stay near a first guess, which misses it. The bounce is located (`nsjax.schemes.localized`), so that end
and derivatives, second ones too, are of second order in the step size and smooth. They are compared with
those of the motion, by Runge and Kutta's method and closed forms.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.analysis import observed_order

from .. import common
from . import throw
from .search import Aim, adam, curved, newton

CUP = (2.3, 0.45)
"""Middle of the cup's rim [m]."""
GUESS, SCALE, MISS = (4.0, -0.5, 0.35, 1.1), (5.0, 2.0, 0.1, 0.3), 0.02
STEPS = (20, 40, 80, 160)
QUICK = 40
TRIES = 300
"""Number of gradients of Adam."""


def aim(steps: int, end: Callable[..., jax.Array] = throw.end) -> Aim:
    """Target of the throw."""
    return Aim(end=end, steps=steps, guess=GUESS, scale=SCALE, want=CUP, miss=(MISS, MISS))


def errors(x: np.ndarray, steps: int) -> list[float]:
    """Errors of the end [m] and of its first and second derivatives (relative) against the exact motion."""
    ours = curved(x, throw.end, steps)
    theirs = curved(x, throw.motion_end, 400)
    ends = [float(np.linalg.norm(ours[0] - theirs[0]))]
    scale = np.array(SCALE)
    for k, weight in ((1, scale), (2, np.outer(scale, scale))):
        apart = np.linalg.norm((ours[k] - theirs[k]) * weight)
        ends.append(float(apart / np.linalg.norm(theirs[k] * weight)))
    return ends


def paths(x: np.ndarray, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Links of the arm (rows, 3, 2), and path of the ball (rows, 2) until the cup."""
    swung = throw.swing(jnp.asarray(x), steps, steps // 10)
    shoulder = np.array([0.0, throw.SHOULDER])
    elbow = shoulder + throw.LENGTH[0] * np.stack([np.cos(swung.q[:, 0]), np.sin(swung.q[:, 0])], axis=1)
    tip = elbow + throw.LENGTH[1] * np.stack([np.cos(swung.q[:, 1]), np.sin(swung.q[:, 1])], axis=1)
    place, speed = throw.hand(swung.q[-1], swung.v[-1])
    flown = throw.flight(jnp.asarray(x), place, speed, steps, 1)
    ball = np.stack([place[0] + speed[0] * np.asarray(flown.t), np.asarray(flown.q[:, 0])], axis=1)
    return np.stack([np.broadcast_to(shoulder, tip.shape), elbow, tip], axis=1), ball


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares; ``quick`` takes large steps, and no order is measured."""
    steps = QUICK if quick else STEPS[-1]
    found, costs, sizes = newton(aim(steps))
    tried = adam(aim(steps), TRIES)
    apart = np.array([errors(found, n) for n in ((QUICK,) if quick else STEPS)])
    numbers = {
        "Newton: Hessians": float(len(costs) - 1),
        "Newton: size of the gradient at the end": sizes[-1],
        "Adam: cost after 300 gradients over Newton's": tried[-1] / costs[-1],
        "first derivatives, from the motion's": float(apart[-1, 1]),
        "second derivatives, from the motion's": float(apart[-1, 2]),
    }
    if not quick:
        for k, what in enumerate(("end", "first derivatives", "second derivatives")):
            numbers[f"order of the {what}"] = -observed_order(STEPS, apart[:, k])
        end = np.asarray(throw.motion_end(jnp.asarray(found)))
        numbers["the motion's distance from the cup [m]"] = float(np.linalg.norm(end - CUP))
    links, ball = paths(found, steps)
    _, missed = paths(np.array(GUESS), steps)

    def paint(figure: Any) -> None:
        scene, search = figure.subplots(1, 2, width_ratios=(3, 2))
        for k, link in enumerate(links):
            scene.plot(*link.T, color=str(0.8 - 0.07 * k))
        scene.plot(*missed.T, "--", color="0.6", label="first guess")
        scene.plot(*ball.T, "C0", label="found")
        scene.plot([CUP[0] - 0.05, CUP[0] - 0.04, CUP[0] + 0.04, CUP[0] + 0.05],
                   [CUP[1], CUP[1] - 0.12, CUP[1] - 0.12, CUP[1]], "k")  # fmt: skip
        scene.axhline(0.0, color="0.5")
        scene.set(aspect="equal", xlabel="x [m]", ylabel="y [m]")
        scene.legend(loc="upper right")
        search.semilogy(np.array(costs) - costs[-1] + 1e-16, "o-", markersize=3, label="Newton")
        search.semilogy(np.array(tried) - costs[-1] + 1e-16, label="Adam")
        search.set(xscale="symlog", xlabel="Hessians, gradients", ylabel="cost above the least")
        search.legend()

    arrays = {
        "numbers": found,
        "newton": costs,
        "gradients": sizes,
        "adam": tried,
        "errors": apart,
        "ball": ball,
    }
    return common.finish(__file__, folder, numbers, arrays, (16.0, 6.0), paint, quick=quick)


if __name__ == "__main__":
    common.command(main)
