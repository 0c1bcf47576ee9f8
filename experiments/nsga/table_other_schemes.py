"""Flexible pendulum and cube with other families of schemes beside the nonsmooth generalized-alpha.

Explicit schemes (unified GGL) run the cube with a step below their limit of 6e-4 s; the pendulum, whose
shear vibrates with 1e6 rad/s, not at all.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import nsjax
from nsjax import models, schemes

from .. import common
from . import cube, pendulum, published

IMPLICIT = {
    "NSGA": lambda mass: schemes.nsga_decoupled(mass_scale=mass, tolerance=1e-8),
    "generalized-alpha": lambda mass: schemes.generalized_alpha(0.8),
    "Bathe": lambda mass: schemes.bathe(),
    "ED-alpha": lambda mass: schemes.ed_alpha(0.8),
}
EXPLICIT = {"unified GGL": lambda mass: schemes.ggl_unified()}
PENDULUM_STEP, CUBE_STEP, EXPLICIT_STEP = 1e-4, 1e-3, 3e-4


def _cube(name: str, scheme: Any, dt: float) -> common.Numbers:
    steps = round(cube.TIME / dt) - cube.steps_before(dt)
    traj = nsjax.simulate(*cube.problem(dt), scheme, dt=dt, steps=steps)
    traj.raise_for_status()
    impulse = np.asarray(traj.impulse_normal).sum(axis=1)
    energy = np.asarray(traj["energy"])
    speed = float(traj["centre_dz"][-1])
    missing = cube.MASS * (speed + cube.GRAVITY * cube.TIME) - float(impulse.sum())
    return {
        f"cube, {name}: impulse [N s]": float(impulse.sum()),
        f"cube, {name}: momentum minus impulses, relative": abs(missing) / float(impulse.sum()),
        f"cube, {name}: last contact [s]": float(traj.t[np.flatnonzero(impulse > 0)[-1]]),
        f"cube, {name}: change of energy [J]": float(energy[-1] - energy[0]),
        f"cube, {name}: least gap [m]": float(np.asarray(traj.gap).min()),
    }


def _pendulum(name: str, scheme: Any) -> common.Numbers:
    traj = nsjax.simulate(*models.flexible_pendulum(), scheme, dt=PENDULUM_STEP, time=pendulum.TIME)
    traj.raise_for_status()
    impulse, energy = np.asarray(traj.impulse_normal)[:, 0], np.asarray(traj["energy"])
    return {
        f"pendulum, {name}: first contact [s]": float(traj.t[np.flatnonzero(impulse > 0)[0]]),
        f"pendulum, {name}: impulse [N s]": float(impulse.sum()),
        f"pendulum, {name}: y of the tip at 0.35 s [m]": float(traj.q[-1, pendulum.TIP_Y]),
        f"pendulum, {name}: change of energy [J]": float(energy[-1] - energy[0]),
        f"pendulum, {name}: least gap [m]": float(np.asarray(traj.gap).min()),
    }


def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves and compares; ``quick`` runs the pendulum with generalized-alpha."""
    numbers: common.Numbers = {}
    for name, scheme in IMPLICIT.items():
        if quick and name != "generalized-alpha":
            continue
        numbers |= _pendulum(name, scheme(pendulum.MASS))
        if not quick:
            numbers |= _cube(name, scheme(cube.MASS), CUBE_STEP)
    for name, scheme in {} if quick else EXPLICIT.items():
        numbers |= _cube(name, scheme(cube.MASS), EXPLICIT_STEP)
    return published.finish(
        "table_other_schemes", folder, numbers, {}, 7.0, lambda f: _paint(f, numbers), quick
    )


def _paint(figure: Any, numbers: common.Numbers) -> None:
    """Impulses of all runs."""
    for axis, what in zip(figure.subplots(1, 2), ("pendulum", "cube"), strict=True):
        found = {
            key.split(", ")[1].split(":")[0]: x
            for key, x in numbers.items()
            if key.startswith(what) and "impulse [" in key
        }
        axis.barh(list(found), list(found.values()))
        axis.set_xlabel(f"impulse on the {what} [N s]")


if __name__ == "__main__":
    common.command(main)
