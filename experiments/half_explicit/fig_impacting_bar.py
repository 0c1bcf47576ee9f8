"""An elastic bar meets a wall, half-explicit scheme: stability limit, contact force, energy.

Data of a public example by authors of [SRKA]: 1 m of steel in 100 elements meets a wall with 0.1 m/s
after 0.5 ms, restitution 0. In the continuum the force is ``rho c A v`` while the wave runs to the free
end and back, ``2 L / c``; then the whole bar leaves with the velocity reversed. The half-explicit scheme
has no numerical damping: the force oscillates with the frequencies of the mesh unless the bar is damped,
and the step is bounded by them. Bathe and ED-alpha are neither bounded nor free of damping.

The bar touches the wall at a step end to rounding (0.5 ms), which decides about the step of the impact.
All other registered schemes run on the same bar: impulse, rebound and end of contact beside the continuum.
"""

from __future__ import annotations

import dataclasses
import warnings
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

import nsjax
from nsjax import models, schemes
from nsjax.core.operators import jacobian
from nsjax.core.step import mass_matrix

from .. import common
from .impulses import impulse_steps

DURATION, SPEED, TOUCH = 1.5e-3, 0.1, 5e-4
STEEL = dict(models.STEEL_BAR)
WAVE = float(np.sqrt(STEEL["young"] / STEEL["density"]))  # [m/s]
FORCE = float(STEEL["density"] * WAVE * STEEL["area"] * SPEED)  # [N]
CONTACT = 2.0 * float(STEEL["length"]) / WAVE  # [s]
RUNS: dict[str, tuple[Any, float, float]] = {
    "HETS": (schemes.half_explicit, 5e-7, 0.0),
    "HETS, damped": (schemes.half_explicit, 5e-7, 5e-8),
    "Bathe": (schemes.bathe, 2e-6, 0.0),
    "ED-alpha 0": (lambda: schemes.ed_alpha(0.0), 2e-6, 0.0),
}
"""Scheme, step size [s], stiffness-proportional damping [s]."""
IMPLICIT = ("Bathe", "ED-alpha")
OTHERS = tuple(name for name in schemes.REGISTRY if name not in ("half_explicit", "bathe", "ed_alpha"))
"""Schemes of which the sums alone are recorded."""


def bar(damping: float = 0.0) -> nsjax.Problem:
    """The bar of the public example, by the schemes alone: the step of implicit Euler that mixed schemes
    take at contacts of stiff models costs 0.3 per cent of the force and 0.8 of the energy.
    """
    problem = models.elastic_bar(**STEEL, damping=damping)
    return dataclasses.replace(problem, system=dataclasses.replace(problem.system, stiff=False))


def largest_frequency(problem: nsjax.Problem) -> float:
    """Largest angular frequency of the free bar, from its matrices [rad/s]."""
    system, p, state = problem
    rest = np.zeros(system.nq)
    stiffness = -np.asarray(jacobian(lambda q: system.force(0.0, q, rest, p), jnp.asarray(rest), system.nq))
    mass = np.asarray(mass_matrix(system, jnp.asarray(state.q), p))
    return float(np.sqrt(np.linalg.eigvals(np.linalg.solve(mass, stiffness)).real.max()))


def _loudest(dt: float, steps: int) -> float:
    """Largest velocity of a node in a run of the half-explicit scheme, stable or not."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*above the largest stable step")
        system, params, state = bar()
        traj = nsjax.simulate(system, params, state, schemes.half_explicit(), dt=dt, steps=steps)
    return float(np.abs(traj.v).max())


def _measure(traj: nsjax.Trajectory) -> common.Numbers:
    """Impact, contact force and what is left of momentum and energy."""
    t, force = np.asarray(traj.t), np.asarray(traj.force_normal)[:, 0]
    impulse = np.asarray(traj.impulse_normal)[:, 0]
    under_load = np.flatnonzero(impulse > 0)
    momentum = np.asarray(traj["momentum"])
    middle = (t > TOUCH + 0.05 * CONTACT) & (t < TOUCH + 0.95 * CONTACT)
    energy = np.asarray(traj["energy"])
    return {
        "impacts": float(len(impulse_steps(traj))),
        "end of contact [s]": float(t[under_load[-1]]),
        # at step ends in contact: the step of the impact starts without a force, the last one ends so
        "mean force [N]": float(force[force > 0].mean()),
        "largest force [N]": float(force.max()),
        "oscillation of the force": float(np.sqrt(np.mean((force[middle] / FORCE - 1.0) ** 2))),
        "impulse [N s]": float(impulse.sum()),
        "rebound [m/s]": float(-SPEED * momentum[-1] / momentum[0]),
        "energy lost": float(1.0 - energy[-1] / energy[0]),
    }


SUMS = ("end of contact [s]", "impulse [N s]", "rebound [m/s]")


def _paint(figure: Any, runs: dict[str, nsjax.Trajectory]) -> None:
    axes = figure.subplots(2, 2, sharex=True, sharey=True).flat
    for axis, (name, traj) in zip(axes, runs.items()):  # noqa: B905
        t = 1e3 * np.asarray(traj.t)
        on = 1e3 * np.array([TOUCH, TOUCH, TOUCH + CONTACT, TOUCH + CONTACT])
        wave, force = 1e-3 * FORCE * np.array([0, 1, 1, 0]), 1e-3 * np.asarray(traj.force_normal)[:, 0]
        axis.plot(on, wave, color="black", linewidth=0.6, label="wave of the continuum")
        axis.plot(t, force, color="#1f4e9c", linewidth=0.6, label="scheme")
        axis.set_title(rf"{name}, $\Delta t = {1e6 * RUNS[name][1]:g}\,\mu$s")
        axis.set_xlim(0.45, 1.0)
        axis.set_ylim(-0.1, 2.1)
    axes[0].legend(loc="center")
    figure.supxlabel("time $t$ [ms]", fontsize=8)
    figure.supylabel("contact force [kN]", fontsize=8)


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares; ``quick`` leaves out the implicit schemes."""
    numbers: common.Numbers = {
        "limit of the step size [s]": 2.0 / largest_frequency(bar()),
        "largest velocity, 1.0e-06 [m/s]": _loudest(1e-6, 1500),
        "largest velocity, 1.2e-06 [m/s]": _loudest(1.2e-6, 1000),
    }
    runs = {}
    for name, (make, dt, damping) in RUNS.items():
        if quick and name.startswith(IMPLICIT):
            continue
        runs[name] = common.run(bar(damping), make(), dt, round(DURATION / dt))
        numbers.update({f"{name}: {what}": value for what, value in _measure(runs[name]).items()})
    for name in () if quick else OTHERS:
        dt = 5e-7 if schemes.REGISTRY[name].stability_limit else 2e-6
        found = _measure(common.run(bar(), schemes.REGISTRY[name].factory(), dt, round(DURATION / dt)))
        numbers.update({f"{name}: {what}": found[what] for what in SUMS})
    arrays = {name: np.asarray(traj.force_normal)[:, 0] for name, traj in runs.items()}
    return common.finish(
        __file__, folder, numbers, arrays, (16.0, 10.0), lambda f: _paint(f, runs), quick=quick
    )


if __name__ == "__main__":
    common.command(main)
