"""Cost of a step of the elastic bar: proportional to the unknowns, beside a numba loop of the same scheme.

`models.elastic_bar` from its impact on, generalized-alpha (rho_inf = 0.8) and Moreau's midpoint rule, with
time steps of a quarter of the passage of a wave through an element. `nsjax` runs as a user calls it. A
call costs some milliseconds before its first step, so that the time of a step is the difference of a long
and a short run over the difference of their steps. CPU time, interleaved A-B-A-B, medians of seven rounds.
Other codes take 200 to 1500 microseconds for a step of a bar of 200 elements. Target:
the time of a step is proportional to the unknowns.

    python -m experiments.performance.bar [--quick] [--folder FOLDER]
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import nsjax
from nsjax import models, schemes
from nsjax.analysis import observed_order

from .. import common
from .side_by_side import per_step
from .steps import numba_loop

SIZES = (100, 300, 1_000, 3_000, 10_000, 30_000, 100_000)
SCHEMES: dict[str, Any] = {"generalized-alpha": schemes.generalized_alpha(0.8), "Moreau": schemes.moreau()}
ROUNDS = 7
WORK = 3_000_000
"""Unknowns times steps of a long run."""

OTHER_CODES = 200.0
"""Microseconds per step of the fastest other code on 200 elements."""


def step_size(elements: int) -> float:
    """A quarter of the time in which a wave passes an element [s]."""
    return 0.25 * (10.0 / elements) / 30.0


def problem(elements: int) -> nsjax.Problem:
    """The bar that touches the wall in the middle of its first step."""
    return models.elastic_bar(elements=elements, distance=10.0 * 0.5 * step_size(elements))


def simulate(scheme: Any, bar: nsjax.Problem, steps: int) -> nsjax.Trajectory:
    """The measured call."""
    dt = step_size(bar.system.nv - 1)
    system, params, state = bar
    traj = nsjax.simulate(system, params, state, scheme, dt=dt, steps=steps, every=steps)
    np.asarray(traj.q)
    return traj


def run_numba(bar: nsjax.Problem, steps: int) -> Any:
    """``q, v`` of the peer at the end, and how many steps ended closed."""
    parameters = SCHEMES["generalized-alpha"].coef.parameters()
    return numba_loop("bar_loop").run(bar, parameters, step_size(bar.system.nv - 1), steps)


def _one_size(elements: int, rounds: int) -> common.Numbers:
    bar, steps = problem(elements), max(40, min(20_000, WORK // elements))
    calls: dict[str, Callable[[int], Any]] = {
        name: (lambda k, scheme=scheme: simulate(scheme, bar, k))  # type: ignore[misc]
        for name, scheme in SCHEMES.items()
    }
    try:
        numba_loop("bar_loop")
    except ImportError as missing:
        print(f"skipped: {missing}")
    else:
        calls["numba"] = lambda k: run_numba(bar, k)
    found = per_step(calls, steps, rounds)
    print(f"{elements:7d} elements:", ", ".join(f"{name} {x:.4g} us" for name, x in found.items()))
    return {f"{name}, {elements} [us/step]": x for name, x in found.items()}


def _slope(numbers: common.Numbers, name: str, sizes: tuple[int, ...]) -> float:
    """Exponent of the cost over the number of unknowns, by least squares."""
    cost = [numbers[f"{name}, {n} [us/step]"] for n in sizes]
    return observed_order(sizes, cost)


def _paint(figure: Any, numbers: common.Numbers, sizes: tuple[int, ...]) -> None:
    axis = figure.subplots()
    for name, style in (("generalized-alpha", "o-"), ("Moreau", "s-"), ("numba", "x:")):
        if f"{name}, {sizes[0]} [us/step]" in numbers:
            cost = [numbers[f"{name}, {n} [us/step]"] for n in sizes]
            axis.loglog(sizes, cost, style, markersize=3, label=name)
    axis.loglog(sizes, 0.01 * np.array(sizes), color="grey", linewidth=0.5, label="10 ns per element")
    axis.set_xlabel("elements")
    axis.set_ylabel("CPU time of a step [us]")
    axis.legend()


def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Measures, draws, saves and prints; ``quick`` takes three sizes up to 1000 elements."""
    sizes, rounds = ((100, 300, 1_000), 3) if quick else (SIZES, ROUNDS)
    print(f"load average before: {os.getloadavg()}, {os.cpu_count()} CPUs")
    numbers = _one_size(200, rounds)
    for elements in sizes:
        numbers |= _one_size(elements, rounds)
    for name in SCHEMES:
        numbers[f"{name}: slope"] = _slope(numbers, name, sizes)
    own = numbers["generalized-alpha, 200 [us/step]"]
    numbers["other codes / nsjax"] = OTHER_CODES / own
    rows = [
        ("slope, generalized-alpha", "<= 1.1", numbers["generalized-alpha: slope"]),
        ("slope, Moreau", "<= 1.1", numbers["Moreau: slope"]),
        ("200 elements: other codes / nsjax", ">= 10", numbers["other codes / nsjax"]),
    ]
    if "numba, 200 [us/step]" in numbers:
        numbers["nsjax / numba"] = own / numbers["numba, 200 [us/step]"]
        rows.append(("200 elements: nsjax / numba", "<= 3", numbers["nsjax / numba"]))
    for what, asked, measured in rows:
        print(f"{what:36}  {asked:>8}  {measured:8.3f}")
    print(f"load average after: {os.getloadavg()}")
    return common.finish(
        __file__, folder, numbers, numbers, (9.0, 7.0), lambda f: _paint(f, numbers, sizes), expected={}
    )


if __name__ == "__main__":
    common.command(main)
