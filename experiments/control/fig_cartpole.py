"""Policies that balance a pole on a cart and swing it up, trained by derivatives through the steps of a
batch.

The smallest tasks of MuJoCo Playground, with their numbers and their reward: a network of 32 units sees
what dm_control shows, Adam follows the gradient of the mean reward of runs of 1.5 s (balance) and 2.5 s
(swing up) through all of their steps, and 20 episodes of 10 s from drawn starts are rewarded. No value is
learned, no action sampled. The equations are compared with those of MuJoCo for the same mechanism.
"""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.core import operators

from .. import common
from .cartpole import (
    BALANCE,
    EPISODE,
    FILE,
    FORCE,
    SWING_UP,
    cart_pole,
    first_weights,
    hanging,
    returns,
    upright,
)

LANES = 20


def accelerations_apart(states: int, seed: int) -> float:
    """Largest difference of accelerations from MuJoCo's at drawn states and forces [m/s^2, rad/s^2]; nan
    without the package.
    """
    try:
        import mujoco
    except ImportError:
        return np.nan
    model = mujoco.MjModel.from_xml_string(FILE)
    data, draw = mujoco.MjData(model), np.random.default_rng(seed)
    system, params, _ = cart_pole()

    @jax.jit
    def accelerated(q: Any, v: Any, u: Any) -> Any:
        motor = dataclasses.replace(params["motor"], value=FORCE * u)
        p = operators.prepared(system, {**params, "motor": motor})
        zero = jnp.zeros(())
        return jnp.linalg.solve(system.mass(q, p), system.force(zero, q, v, p))

    worst, sign = 0.0, np.array([1.0, -1.0])
    for _ in range(states):
        q, v, u = draw.uniform(-1.5, 1.5, 2), draw.normal(size=2) * 3.0, draw.uniform(-1.0, 1.0)
        data.qpos[:], data.qvel[:], data.ctrl[:] = sign * q, sign * v, u
        mujoco.mj_forward(model, data)
        worst = max(worst, float(np.max(np.abs(sign * np.array(data.qacc_smooth) - accelerated(q, v, u)))))
    return worst


TASKS = {"balance": (BALANCE, upright), "swing up": (SWING_UP, hanging)}


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Trains, rewards, draws and compares; ``quick`` leaves out the swing up."""
    numbers = {"accelerations, from MuJoCo's [m/s^2, rad/s^2]": accelerations_apart(50, 0)}
    arrays: dict[str, Any] = {}
    for task, (training, starts) in list(TASKS.items())[: 1 if quick else 2]:
        begun = time.process_time()
        weights, told = training.run(0)
        spent = time.process_time() - begun
        given = starts(np.random.default_rng(100), LANES)
        trained, idle = returns(weights, *given), returns(first_weights(0), *given)
        numbers |= {
            f"{task}: mean reward of 20 episodes after training": float(np.mean(trained)),
            f"{task}: least reward of 20 episodes after training": float(np.min(trained)),
            f"{task}: mean reward before training": float(np.mean(idle)),
            f"{task}: CPU time of the training [s]": spent,
        }
        arrays |= {f"{task}: {k}": x for k, x in weights.items()}
        arrays |= {f"{task}: {k}": x for k, x in (("told", told), ("before", idle), ("after", trained))}

    def paint(figure: Any) -> None:
        one, other = figure.subplots(1, 2)
        for task in TASKS:
            if f"{task}: told" in arrays:
                one.plot(arrays[f"{task}: told"], label=task)
                for when in ("before", "after"):
                    other.plot(np.sort(arrays[f"{task}: {when}"]), "o", label=f"{task}, {when}")
        one.set(xlabel="update", ylabel="mean reward of a step")
        other.set(xlabel="episode, sorted", ylabel=f"reward of {EPISODE}")
        for axis in (one, other):
            axis.legend()

    return common.finish(__file__, folder, numbers, arrays, (16.0, 7.0), paint, quick=quick)


if __name__ == "__main__":
    common.command(main)
