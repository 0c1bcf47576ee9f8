"""Spheres that fall into a box, with friction: certificate, time and memory against active contacts.

Boxes of equal height hold 25 to 200 spheres of slightly different radii. Every contact problem must meet
its tolerance in a bounded number of sweeps, and memory, which is in proportion to the work of a sweep, must
not grow faster than with the power 1.5 of the contacts that carry a load. Memory is what the compiled run
needs beside its input and output. The time of a step is drawn, not judged: it is that of its sweeps, whose
number depends on how far the heap has come to rest (2 for 25 spheres at rest, 23 for 50 that still move).
"""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import nsjax
from nsjax import schemes
from nsjax.analysis import observed_order
from nsjax.loop import LoopProgram, begin_run
from nsjax.multibody import spheres
from nsjax.simulate import _advance, _chunk_rows

from .. import common

RADIUS, DENSITY, FRICTION, DT = 0.05, 2000.0, 0.3, 1e-3
SIZES = (25, 50, 100, 200)
FALL, MEASURED = 500, 100
"""Steps until they lie, and steps that are timed."""

TOLERANCE = 1e-3
"""The tolerance of impulses, relative to the largest: up to some 50 sweeps a step. 1e-4 is met in every
step of these boxes too, but by 7, 62, 166 and 339 sweeps a step: time grows with the power 1.9. In a few
steps wedged contacts creep along a direction in which they hardly move anything (eigenvalues of the scaled
Delassus operator down to 1e-6 of the largest), from kink to kink: Newton's method goes on there
(`nsjax.contact.newton`); such a step costs ten times as much as others.
"""

SAVED = ("gap", "impulse_normal", "gap_min", "iterations", "residual")


def layers(count: int, pitch: float) -> tuple[np.ndarray, list[tuple[np.ndarray, float]]]:
    """Centres (n, 3), ``pitch`` radii apart, in some four layers of as many as the floor holds; and normals
    and levels of floor and walls.
    """
    across = max(2, round((count / 4.0) ** 0.5))
    side = across * pitch * RADIUS
    layer, place = np.divmod(np.arange(count), across * across)
    y, x = np.divmod(place, across)
    centres = pitch * RADIUS * np.stack([x + 0.5, y + 0.5, layer + 0.6], axis=1)
    east, north, up = np.eye(3)
    return centres, [(up, 0.0), (east, 0.0), (-east, -side), (north, 0.0), (-north, -side)]


def box(count: int, seed: int = 0) -> Any:
    """Spheres in layers, with sideways speed."""
    draw = np.random.default_rng(seed)
    centres, walls = layers(count, 2.2)
    centres += draw.uniform(-0.08, 0.08, (count, 3)) * RADIUS
    radius = RADIUS * draw.uniform(0.9, 1.0, count)
    mass = DENSITY * 4.0 / 3.0 * np.pi * radius**3
    speed = 0.3 * draw.normal(size=(count, 3))
    return spheres(radius, mass, centres, speed, walls=walls, friction=FRICTION)


def memory(problem: Any, scheme: Any) -> float:
    """Bytes of the compiled run beside input and output."""
    scheme = dataclasses.replace(scheme, gradient="discrete")  # as in a run that nobody differentiates
    scheme, problem = jax.tree.map(lambda x: jnp.asarray(x, float), (scheme, problem))
    program = LoopProgram(system=problem.system, keep=SAVED, events=0)
    step = jnp.asarray(DT)
    start = begin_run(program, scheme, problem.params, problem.state, step, None)
    counts = np.zeros(_chunk_rows(problem.system), int)
    made = _advance.lower(program, scheme, problem.params, start, step, counts).compile()
    analysis: Any = made.memory_analysis()
    return float(analysis.temp_size_in_bytes)


def measure(count: int, fall: int, measured: int) -> tuple[common.Numbers, dict[str, float]]:
    """Runs one box; its numbers, and what a step of the heap costs."""
    problem, scheme = box(count), schemes.moreau(contact_tolerance=TOLERANCE)
    system, params, state = problem
    first = nsjax.simulate(system, params, state, scheme, dt=DT, steps=fall, save=SAVED)
    began = time.process_time()
    last = nsjax.simulate(
        system, params, state, scheme, dt=DT, steps=measured, save=SAVED, carry=first.carry
    )
    spent = time.process_time() - began
    runs = first, last
    v = np.asarray(last.v[-1]).reshape(count, 6)
    push = np.asarray(last.impulse_normal)[1:]
    numbers = {
        "largest certificate over tolerance": max(float(np.max(x.residual)) for x in runs) / TOLERANCE,
        "largest status": float(first.status | last.status),
        "deepest penetration over radius": -min(float(np.min(x.gap)) for x in runs) / RADIUS,
        "fastest sphere in the end [m/s]": float(np.max(np.linalg.norm(v[:, :3], axis=1))),
    }
    cost = {
        "contacts": float(np.mean(np.sum(push > 0.0, axis=1))), "ms": 1e3 * spent / measured,
        "iterations": float(np.mean(np.asarray(last.iterations)[1:])),
    }  # fmt: skip
    return numbers, cost


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares; ``quick`` runs one small box for a short time."""
    sizes = (20,) if quick else SIZES
    numbers: common.Numbers = {}
    costs = []
    for count in sizes:
        found, cost = measure(count, 250 if quick else FALL, 50 if quick else MEASURED)
        numbers = {name: max(x, numbers.get(name, x)) for name, x in found.items()}
        # compiles once more
        cost["MB"] = (
            np.nan if quick else memory(box(count), schemes.moreau(contact_tolerance=TOLERANCE)) / 1e6
        )
        costs.append(cost)
        print(count, {name: round(x, 3) for name, x in (cost | found).items()}, flush=True)
    table = {name: np.array([cost[name] for cost in costs]) for name in costs[0]}
    if not quick:
        numbers["most iterations of a step, mean of a box"] = float(np.max(table["iterations"]))
        numbers["slope of the memory"] = observed_order(table["contacts"], table["MB"])

    def paint(figure: Any) -> None:
        for k, name in enumerate(("ms", "MB"), 1):
            axes = figure.add_subplot(1, 2, k)
            axes.loglog(table["contacts"], table[name], "ko-")
            axes.set_xlabel("contacts under load")
            axes.set_ylabel({"ms": "CPU time of a step [ms]", "MB": "memory [MB]"}[name])

    arrays = {"size": sizes, **table}
    return common.finish(__file__, folder, numbers, arrays, (14.0, 6.0), paint, quick=quick)


if __name__ == "__main__":
    common.command(main)
