"""Flexible pendulum and flexible cube with the other schemes beside the decoupled nonsmooth
generalized-alpha.

Accuracy and books of each: errors of the pendulum's tip against its reference (`pendulum.reference`),
impulse and centroid of the cube, energy, and balance of momentum: of the cube along the normal, of the
pendulum around its pin (between two rows gravity acts by the trapezoidal rule, impulses at the mean height
of the tip).

Restitution acts on velocities in `bathe`, `ed_alpha`, `generalized_alpha`: closed gaps stay as deep as the
step of the impact left them. `ggl_decoupled` takes forces explicitly: its steps lie below the period of the
fastest vibration. Runs that fail are rows of the table, too.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import nsjax
from nsjax import Problem, models, schemes

from .. import common
from . import cube, pendulum, published

SCHEMES: dict[str, Any] = {
    "nsga_decoupled": None,
    "bathe": schemes.bathe,
    "ed_alpha": schemes.ed_alpha,
    "generalized_alpha": functools.partial(schemes.generalized_alpha, 0.8),
    "ggl_unified": schemes.ggl_unified,
    "ggl_decoupled": schemes.ggl_decoupled,
}
SWUNG: dict[str, tuple[float, ...]] = {name: (1e-3, 1e-4, 2.5e-5) for name in SCHEMES} | {
    "ggl_decoupled": (1.25e-6,)
}
"""Steps of the pendulum [s]; its fastest vibration allows 2e-6 s with explicit forces."""

BOUNCED: dict[str, tuple[float, ...]] = {**dict.fromkeys(SCHEMES, (1e-3,)), "ggl_decoupled": (3e-4,)}
"""Steps of the cube [s]; explicit: 8e-4 s."""

QUICK: dict[str, tuple[float, ...]] = {"ggl_unified": (1e-4,)}
COARSEST = 2.5e-5
"""Least distance of rows [s]; finer runs save fewer rows."""


def scheme(name: str, mass: float) -> Any:
    """The scheme, with the paper's numbers where the paper has it."""
    return published.scheme("DS", mass) if SCHEMES[name] is None else SCHEMES[name]()


@dataclass(frozen=True)
class Ended:
    """A run that may have failed."""

    traj: nsjax.Trajectory
    every: int

    @property
    def failed(self) -> bool:
        return bool(self.traj.status != 0)


def run(problem: Problem, name: str, dt: float, time: float, mass: float) -> Ended:
    """Run of a scheme for ``time`` seconds."""
    every = max(1, round(COARSEST / dt))
    system, params, state = problem
    steps = round(time / dt)
    traj = nsjax.simulate(system, params, state, scheme(name, mass), dt=dt, steps=steps, every=every)
    return Ended(traj, every)


def energies(traj: nsjax.Trajectory) -> common.Numbers:
    """Energy lost over the run, and largest rise above the initial energy."""
    energy = np.asarray(traj["energy"])
    return {
        "change of energy [J]": float(energy[-1] - energy[0]),
        "energy above that of the start, at most [J]": float(energy.max() - energy[0]),
        "least gap [m]": float(np.asarray(traj.gap_min)[1:].min()),
        "most iterations": float(np.asarray(traj.iterations)[1:].max()),
    }


def around_the_pin(traj: nsjax.Trajectory) -> float:
    """Change of the angular momentum around the pin minus that by weight and impulses [kg m^2/s]."""
    system, p = traj.system, traj.params
    q, v = np.asarray(traj.q), np.asarray(traj.v)
    momentum: Any = system.inertia
    momenta = np.stack([np.asarray(momentum(q[k], v[k], p)) for k in (0, -1)])
    nodes, push = (np.pad(x, ((0, 0), (2, 0))).reshape(len(x), -1, 3) for x in (q, momenta))
    ends = nodes[[0, -1]]
    spin = (ends[..., 0] * push[..., 1] - ends[..., 1] * push[..., 0] + push[..., 2]).sum(axis=1)
    weights = np.full(nodes.shape[1], pendulum.MASS / (nodes.shape[1] - 1))
    weights[[0, -1]] *= 0.5
    torque = -p.gravity * nodes[..., 0] @ weights
    height, impulse = nodes[:, -1, 1], np.asarray(traj.impulse_normal)[1:, 0]
    fallen = np.trapezoid(torque, np.asarray(traj.t))
    struck = -(0.5 * (height[1:] + height[:-1]) * impulse).sum()
    return float(spin[1] - spin[0] - fallen - struck)


def swing(name: str, dt: float, reference: bool) -> common.Numbers:
    """Numbers of the pendulum with one scheme."""
    r = run(models.flexible_pendulum(), name, dt, pendulum.TIME, pendulum.MASS)
    traj, numbers = r.traj, {"fails": float(r.failed)}
    if r.failed:
        return numbers
    impulse = np.asarray(traj.impulse_normal)[:, 0]
    numbers |= {
        "first contact [s]": float(traj.t[np.flatnonzero(impulse > 0)[0]]),
        "impulse [N s]": float(impulse.sum()),
        "angular momentum minus that of weight and impulses [kg m^2/s]": around_the_pin(traj),
        **energies(traj),
    }
    if reference:
        y = pendulum.reference()["y"][:: round(dt * r.every / COARSEST)]
        numbers["error of y"] = published.error(np.asarray(traj.q)[:, pendulum.TIP_Y], y)
    return numbers


def bounce(name: str, dt: float) -> common.Numbers:
    """Numbers of the cube with one scheme, from the last step before contact."""
    time = (round(cube.TIME / dt) - cube.steps_before(dt)) * dt
    r = run(cube.problem(dt), name, dt, time, cube.MASS)
    numbers = {"fails": float(r.failed)}
    if r.failed:
        return numbers
    impulse = np.asarray(r.traj.impulse_normal).sum(axis=1)
    gained = cube.MASS * float(r.traj["centre_dz"][-1] - r.traj["centre_dz"][0])
    weight = cube.MASS * cube.GRAVITY * float(r.traj.t[-1] - r.traj.t[0])
    return numbers | {
        "last contact [s]": float(r.traj.t[np.flatnonzero(impulse > 0)[-1]]),
        "impulse [N s]": float(impulse.sum()),
        "height of the centroid [m]": float(r.traj["centre_z"][-1]),
        "momentum minus weight and impulses [N s]": gained + weight - float(impulse.sum()),
        **energies(r.traj),
    }


COLUMNS = (
    "fails",
    "error of y",
    "impulse [N s]",
    "change of energy [J]",
    "least gap [m]",
    "most iterations",
)


def table(numbers: common.Numbers) -> str:
    """Prints one line per run."""
    runs = list(dict.fromkeys(": ".join(key.split(": ")[:-1]) for key in numbers))
    lines = [f"{'':38}" + "".join(f"{x:>24}" for x in COLUMNS)]
    for r in runs:
        found = [numbers.get(f"{r}: {x}") for x in COLUMNS]
        lines.append(f"{r:38}" + "".join(f"{'' if x is None else f'{x:.4g}':>24}" for x in found))
    return "\n".join(lines)


def _paint(figure: Any, numbers: common.Numbers) -> None:
    """Lost energy of every run that ended, one mark a step size."""
    run = [name for name in SCHEMES if any(f", {name}, " in key for key in numbers)]
    for axis, body in zip(figure.subplots(1, 2), ("pendulum", "cube"), strict=True):
        for place, name in enumerate(run):
            key = f"{body}, {name}, "
            found = {
                float(k.split(": ")[0].removeprefix(key)): x
                for k, x in numbers.items()
                if k.startswith(key) and k.endswith("change of energy [J]")
            }
            axis.plot(
                [place] * len(found), list(found.values()), "o", ms=3, color=f"C{list(SCHEMES).index(name)}"
            )
            for h, x in found.items():
                axis.annotate(f" {h:g} s", (place, x), fontsize=5)
        axis.set_xticks(range(len(run)), run, rotation=60)
        axis.set_xlim(-0.5, len(run) - 0.5)
        axis.set_ylabel(f"change of energy of the {body} [J]")


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares; ``quick`` swings the pendulum with one scheme."""
    numbers: common.Numbers = {}
    for name, steps in (QUICK if quick else SWUNG).items():
        for h in steps:
            found = swing(name, h, reference=not quick)
            numbers |= {f"pendulum, {name}, {h:g}: {what}": x for what, x in found.items()}
    for name, steps in ({} if quick else BOUNCED).items():
        for h in steps:
            numbers |= {f"cube, {name}, {h:g}: {what}": x for what, x in bounce(name, h).items()}
    print(table(numbers))
    arrays = {name: np.array(x) for name, x in numbers.items()}
    return common.finish(
        __file__, folder, numbers, arrays, (16.0, 9.0), lambda f: _paint(f, numbers), quick=quick
    )


if __name__ == "__main__":
    common.command(main)
