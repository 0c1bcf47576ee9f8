"""Cost of a step of the frictional slider-crank: `nsjax` beside numpy and numba, in one run.

Table 1 of [R&S] (e_N = 0.4, mu = 0.01, c = 1 mm), Moreau's midpoint rule, dt = 1e-5 s, 1e5 steps; four
frictional corners, eight multipliers, some corner closed in 15 % of the steps. `nsjax` runs as a
user calls it, with all outputs, masks, status bits and certificates; its peers return the states
alone. Times are CPU time, interleaved A-B-A-B, medians; two devices are compared by wall time.
Targets: those that a prototype reached, [P].

    python -m experiments.performance.steps [--quick]
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import os
from collections.abc import Callable
from typing import Any

import numpy as np

import nsjax
from nsjax import models, schemes

from ..common import Numbers
from . import child, numpy_loop
from .side_by_side import interleaved

STEP = child.STEP
THETA1 = 83.555112
"""Crank angle after 1e5 steps [P]."""

NUMPY_STEPS = 20_000
LANE_STEPS = 400


def numba_loop(name: str = "numba_loop") -> Any:
    """A module of numba peers.

    Raises:
        ImportError: naming the extra, if numba is not installed.
    """
    try:
        return importlib.import_module(f"{__package__}.{name}")
    except ImportError as error:
        raise ImportError("the numba row needs numba: pip install 'nsjax[bench]'") from error


def simulate(steps: int, every: int) -> nsjax.Trajectory:
    """The measured call."""
    system, params, state = models.slider_crank()
    return nsjax.simulate(system, params, state, schemes.moreau(), dt=STEP, steps=steps, every=every)


def run_numpy(steps: int, every: int) -> np.ndarray:
    """Rows ``(q, v)`` of the numpy peer."""
    _, params, state = models.slider_crank()
    return numpy_loop.run(params, np.asarray(state.q), np.asarray(state.v), STEP, steps, every)


def run_numba(steps: int, every: int, compact: bool) -> np.ndarray:
    """Rows ``(q, v)`` of the numba peer; ``compact``: contact problem of the closed corners only."""
    _, params, state = models.slider_crank()
    numbers = tuple(float(x) for x in dataclasses.astuple(params))
    q, v = (tuple(float(x) for x in part) for part in (state.q, state.v))
    return np.asarray(numba_loop().run(numbers, q, v, STEP, steps, every, compact))


def _lanes(lanes: int, steps: int) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """The batch as a call, and one that returns contact iterations per step-lane."""
    import jax

    problem = models.slider_crank()
    q, v = child.lane_states(lanes, simulate(100_000, 20))
    program = jax.jit(child.lane_program(problem, STEP, steps, 100))

    def call() -> Any:
        return jax.block_until_ready(program(problem.params, q, v))

    return call, lambda: float(np.sum(call().iterations)) / (lanes * steps)


def _measure(quick: bool) -> Numbers:
    """Times per step, the agreement of all answers, and the batch beside the single run."""
    steps = 20_000 if quick else 100_000
    numpy_steps = 2_000 if quick else NUMPY_STEPS
    lanes = 64 if quick else 4096
    lane_call, lane_iterations = _lanes(lanes, LANE_STEPS)
    calls: dict[str, tuple[Callable[[], Any], int]] = {
        "nsjax": (lambda: simulate(steps, 100), steps),
        "numpy": (lambda: run_numpy(numpy_steps, 100), numpy_steps),
        "lanes": (lane_call, lanes * LANE_STEPS),
    }
    ends = {"nsjax": simulate(steps, 100).q[-1, 0], "numpy": run_numpy(steps, 100)[-1, 0]}
    try:
        numba_loop()
    except ImportError as missing:
        print(f"skipped: {missing}")
    else:
        calls["numba"] = (lambda: run_numba(steps, 100, True), steps)
        calls["numba_all"] = (lambda: run_numba(steps, 100, False), steps)
        ends |= {name: run_numba(steps, 100, name == "numba")[-1, 0] for name in ("numba", "numba_all")}
    found = interleaved(calls, 7 if quick else 9)
    single = np.asarray(simulate(steps, 100).iterations)
    return {
        **{f"{name}_us": x for name, x in found.items()},
        **{f"theta1_{name}": float(x) for name, x in ends.items()},
        "iterations_per_step": float(single.sum()) / steps,
        "iterations_per_lane_step": lane_iterations(),
    }


def _children(quick: bool) -> Numbers:
    """Compile time of a fresh process, and two host devices beside one."""
    first = [child.ask("child.compile_seconds") for _ in range(1 if quick else 5)]
    two = child.ask("child.device_seconds", *((64, 200, 7) if quick else (4096, LANE_STEPS, 15)))
    return {
        "compile_s": float(np.median([x["first_call"] for x in first])),
        "process_s": float(np.median([x["process"] for x in first])),
        **{f"devices_{name}": x for name, x in two.items()},
    }


def _report(n: Numbers) -> None:
    """Prints required and measured figures."""
    rows: list[tuple[str, str, str]] = [
        ("nsjax [us/step]", "", f"{n['nsjax_us']:.4f}"),
        ("numpy [us/step]", "", f"{n['numpy_us']:.2f}"),
        ("numpy / nsjax", "about 100", f"{n['numpy_us'] / n['nsjax_us']:.1f}"),
        ("compile, first call [CPU s]", "< 2.5", f"{n['compile_s']:.2f}"),
        ("lanes by lax.map [us/step-lane]", "", f"{n['lanes_us']:.4f}"),
        ("lanes / single run", "<= 1.15", f"{n['lanes_us'] / n['nsjax_us']:.3f}"),
        ("two host devices, speed-up (wall)", ">= 1.8", f"{n['devices_speedup']:.2f}"),
        ("  the same, best of rounds (wall)", "", f"{n['devices_speedup_best']:.2f}"),
        ("  the same, busiest thread (CPU)", "", f"{n['devices_speedup_thread']:.2f}"),
    ]
    names = {"numba": "numba, closed corners only", "numba_all": "numba, all corners with masks"}
    for name in [name for name in names if f"{name}_us" in n]:
        ratio = n["nsjax_us"] / n[f"{name}_us"]
        rows.insert(1, (f"nsjax / {names[name]}", "<= 3.5", f"{ratio:.2f}"))
        rows.insert(1, (f"{names[name]} [us/step]", "", f"{n[f'{name}_us']:.4f}"))
    width = max(len(row[0]) for row in rows)
    print(f"{'':{width}}  {'asked':>10}  {'measured':>10}")
    for what, asked, measured in rows:
        print(f"{what:{width}}  {asked:>10}  {measured:>10}")
    print("theta1 at the end:", {k[7:]: f"{x:.9f}" for k, x in n.items() if k.startswith("theta1_")})
    print(
        f"contact iterations per step: {n['iterations_per_step']:.4f}, in lanes "
        f"{n['iterations_per_lane_step']:.4f}; answers of one and two devices identical: "
        f"{bool(n['devices_identical'])}"
    )


def main(quick: bool = False) -> Numbers:
    """Measures everything, prints the table and returns its numbers; ``quick`` measures less work."""
    nsjax.configure()
    print(f"load average before: {os.getloadavg()}, {os.cpu_count()} CPUs")
    numbers = {"load_before": os.getloadavg()[0], **_measure(quick), **_children(quick)}
    numbers["load_after"] = os.getloadavg()[0]
    _report(numbers)
    print(f"load average after: {os.getloadavg()}")
    if not quick:
        ends = [x for name, x in numbers.items() if name.startswith("theta1_")]
        assert max(abs(x - THETA1) for x in ends) < 1e-6, "the programs disagree"
    return numbers


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="cost of a step: nsjax beside numpy and numba")
    parser.add_argument("--quick", action="store_true", help="less work, rougher numbers")
    main(quick=parser.parse_args().quick)
