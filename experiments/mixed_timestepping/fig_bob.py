"""[R&S] Sections 1, 2.7, 5: energy of a stiff nonlinear oscillator without contact, over the step size.

The paper calls Bathe's method and ED-alpha more robust "in the nonlinear regime", where schemes that are
unconditionally stable for linear motion lose that property. The plainest such system: a bob of 1 kg on a
spring of 1 m and 1,000 rad/s, thrown at 7 m/s across the spring, 24.5 J. For every scheme and step, the
largest total energy in ten seconds. A stable scheme never exceeds the energy of the start. The formulas
of ED-alpha as printed do, from omega dt = 0.5 on; a program of their own (tests/references/bob.py)
agrees. Bathe's method never does.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

import nsjax
from nsjax import Scheme, State, System, schemes, status

from .. import common

OMEGA, GRAVITY, TIME = 1000.0, 9.81, 10.0
STEPS = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
"""omega dt [rad]."""
START: Any = State(t=0.0, q=np.array([1.0, 0.0]), v=np.array([0.0, 7.0]))  # type: ignore[arg-type]
RUNS = {
    "newmark": schemes.newmark(max_passes=200),
    "hht 0.1": schemes.hht(0.1, max_passes=200),
    "gen-alpha 0.8": schemes.generalized_alpha(0.8, max_passes=200),
    "gen-alpha 0.5": schemes.generalized_alpha(0.5, max_passes=200),
    "gen-alpha 0": schemes.generalized_alpha(0.0, max_passes=200),
    "ed-alpha 0": schemes.ed_alpha(0.0, max_passes=200),
    "bathe": schemes.bathe(max_passes=200),
}


def _mass(q: Any, p: Any) -> Any:
    return jnp.eye(2)


def _force(t: Any, q: Any, v: Any, p: Any) -> Any:
    r = jnp.sqrt(q @ q)
    return -(OMEGA**2) * (r - 1.0) * q / r - jnp.array([0.0, GRAVITY])


BOB = System(nq=2, nv=2, mass=_mass, force=_force)


def energies(scheme: Scheme, omega_dt: float) -> tuple[np.ndarray, int]:
    """Total energy at all steps [J], and the status of the run."""
    dt = omega_dt / OMEGA
    traj = nsjax.simulate(BOB, None, START, scheme, dt=dt, steps=round(TIME / dt))
    q, v = np.asarray(traj.q), np.asarray(traj.v)
    strain = np.hypot(q[:, 0], q[:, 1]) - 1.0
    kinetic = 0.5 * np.sum(v**2, axis=1)
    return kinetic + 0.5 * OMEGA**2 * strain**2 + GRAVITY * q[:, 1], int(traj.status)


def _paint(figure: Any, largest: dict[str, np.ndarray]) -> None:
    axes = figure.subplots()
    for k, (name, values) in enumerate(largest.items()):
        axes.loglog(STEPS, values, marker="osD^v<>"[k], markersize=3.5, fillstyle="none", label=name)
    axes.axhline(24.5, color="0.55", linewidth=0.6, linestyle=(0, (5, 3)), zorder=0)
    axes.set(xlabel=r"$\omega \, \Delta t$", ylabel="largest energy in 10 s [J]")
    axes.legend()


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares the energies; ``quick`` changes nothing, the runs are short."""
    numbers: common.Numbers = {}
    largest, told = {}, True
    for name, scheme in RUNS.items():
        found = [energies(scheme, x) for x in STEPS]
        largest[name] = np.array([np.max(energy) for energy, _ in found])
        for x, energy, (_, bits) in zip(STEPS, largest[name], found, strict=True):
            numbers[f"{name}: energy [J], omega dt = {x:g}"] = float(energy)
            told &= energy < 16.0 * 24.5 or bool(bits & status.DIVERGED)
    numbers["runs beyond 16 times the energy report it"] = float(told)
    arrays = {"omega_dt": np.array(STEPS), **{f"energy {name}": x for name, x in largest.items()}}
    return common.finish(__file__, folder, numbers, arrays, (12.0, 9.0), lambda f: _paint(f, largest))


if __name__ == "__main__":
    common.command(main)
