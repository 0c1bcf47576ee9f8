"""Cost of a step of beams and solids: time, linear solves and memory over the number of unknowns.

Beams: `models.flexible_pendulum` in free swing. Cubes: `models.flexible_cube` of neo-Hooke's material, its
lower face on the plane, from the step of the impact on until it has left, a mean over the contact; by
elimination up to 5 elements along an edge, by conjugate gradients (relative residual 1e-8) beyond.
`nsga_decoupled`, dt = 1e-4 s. CPU time of one compiled run, of beams the least of several; memory is what
the compiler sets aside for it, beside arguments and rows.
Targets: the time of a beam is proportional to its unknowns; 20 elements along each edge of a cube, 28,000
unknowns, take less than a second.

    python -m experiments.performance.solids [--quick] [--folder FOLDER]
"""

from __future__ import annotations

import dataclasses
import os
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np

import nsjax
from nsjax import Problem, models, schemes
from nsjax.analysis import observed_order

from .. import common

STEP = 1e-4
BEAMS = (33, 100, 333, 1_000, 3_333)
CUBES = (5, 10, 20)
DIRECT = 5
"""Largest number of elements along an edge of a cube that is solved by elimination."""

WORK = 60_000
"""Unknowns times steps of a run of a beam."""

CONTACT, GLIMPSE = 300, 20
"""Numbers of steps of a run of a cube (its contact lasts 0.03 s), and of the quick run."""

REPEATED = 3
"""Number of runs of a beam."""

RESIDUAL = 1e-8


def beam(elements: int) -> Problem:
    """The horizontal beam at rest."""
    return models.flexible_pendulum(elements=elements)


def cube(elements: int) -> Problem:
    """The cube that touches in the middle of its first step, at 2.4 m/s."""
    solver = "direct" if elements <= DIRECT else "iterative"
    problem = models.flexible_cube(
        elements=elements, element="displacement", material="neo_hooke", solver=solver, height=1.2 * STEP,
        velocity=np.array([0.0, 0.0, -2.4]),
    )  # fmt: skip
    if solver == "direct":
        return problem
    structure = dataclasses.replace(problem.system.structure, tolerance=RESIDUAL)  # type: ignore[type-var]
    return dataclasses.replace(problem, system=dataclasses.replace(problem.system, structure=structure))


def cost(problem: Problem, steps: int, repeated: int) -> common.Numbers:
    """The cost of a step of a run."""
    system, params, state = problem
    scheme = schemes.nsga_decoupled()

    def run(state: Any) -> nsjax.Trajectory:
        return nsjax.simulate(
            system, params, state, scheme, dt=STEP, steps=steps, every=steps, gradient="discrete"
        )

    program = jax.jit(run).lower(state).compile()
    memory: Any = program.memory_analysis()
    taken = []
    for _ in range(repeated):
        before = time.process_time()
        traj = jax.block_until_ready(program(state))
        taken.append(time.process_time() - before)
    return {
        "unknowns": float(system.nv),
        "CPU time [ms/step]": 1e3 * min(taken) / steps,
        "solves per step": float(np.asarray(traj.iterations)[-1]) / steps,
        "memory [MB]": float(memory.temp_size_in_bytes) / 1e6,
        "fails": float(traj.status != 0),
    }


def slope(numbers: common.Numbers, sizes: tuple[int, ...]) -> float:
    """Exponent of the time over the number of unknowns, by least squares, of the beams."""
    unknowns, taken = (
        [numbers[f"beam, {n}: {what}"] for n in sizes] for what in ("unknowns", "CPU time [ms/step]")
    )
    return observed_order(unknowns, taken)


def _paint(figure: Any, numbers: common.Numbers, beams: tuple[int, ...], cubes: tuple[int, ...]) -> None:
    for axis, what in zip(figure.subplots(1, 2), ("CPU time [ms/step]", "memory [MB]"), strict=True):
        for name, sizes in (("beam", beams), ("cube", cubes)):
            x = [numbers[f"{name}, {n}: unknowns"] for n in sizes]
            axis.loglog(x, [numbers[f"{name}, {n}: {what}"] for n in sizes], "o-", ms=3, label=name)
        axis.set_xlabel("unknowns")
        axis.set_ylabel(what)
    axis.legend()


def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Measures, draws, saves and prints; ``quick`` takes two beams and a cube of eight elements."""
    beams, cubes = (BEAMS[:2], (2,)) if quick else (BEAMS, CUBES)
    print(f"load average before: {os.getloadavg()}, {os.cpu_count()} CPUs")
    numbers: common.Numbers = {}
    for name, make, sizes in (("beam", beam, beams), ("cube", cube, cubes)):
        for n in sizes:
            problem = make(n)
            if make is beam:
                steps, repeated = max(2, min(500, WORK // problem.system.nv)), REPEATED
            else:
                steps, repeated = GLIMPSE if quick else CONTACT, 1
            found = cost(problem, steps, repeated)
            numbers |= {f"{name}, {n}: {what}": x for what, x in found.items()}
            print(
                f"{name} {n:5d}, {steps} steps:",
                ", ".join(f"{k} {x:.4g}" for k, x in found.items()),
                flush=True,
            )
    numbers["beam: slope"] = slope(numbers, beams)
    print(f"{'slope of the beams':36}  {'<= 1.1':>8}  {numbers['beam: slope']:8.3f}")
    if 20 in cubes:
        print(f"{'cube, 20: ms/step':36}  {'<= 1000':>8}  {numbers['cube, 20: CPU time [ms/step]']:8.1f}")
    print(f"load average after: {os.getloadavg()}")
    return common.finish(
        __file__, folder, numbers, numbers, (14.0, 7.0), lambda f: _paint(f, numbers, beams, cubes),
        expected={},
    )  # fmt: skip


if __name__ == "__main__":
    common.command(main)
