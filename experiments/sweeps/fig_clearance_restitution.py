"""Map of the slider-crank over clearance and restitution: 10^4 runs in one program, and what they cost.

Table 1 of [R&S] with restitution 0.1 to 0.9 and clearance 0.2 to 2 mm, 0.05 s (one turn of the crank and a
bit), Moreau's rule with forces at the forecast velocity (else steps of this size lose a tenth more energy
than the motion does), dt = 1e-5 s: 5e7 steps of lanes. Three maps: impacts, energy lost in impacts and
friction, and the largest finite-time Lyapunov exponent (`nsjax.analysis.lyapunov_exponent`). Beside the
sweep the same runs one by one and under plain `jax.vmap`, on a part of the lanes.

Costs are CPU time, so other work on the machine disturbs them little; memory is the growth of the resident
size of the process, sampled between compiled calls, after the program was compiled by a sweep of 16 lanes.
"""

from __future__ import annotations

import importlib
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np

import nsjax
from nsjax import models, reductions, schemes

from .. import common

STEP, DURATION, RADIAN = 1e-5, 0.05, 1 / 150.0
"""Step size, duration and the time in which the crank turns by one radian at the start [s]."""

STEPS = round(DURATION / STEP)
SCHEME = schemes.moreau(force_velocity="midpoint")
KEPT = {
    "impacts": reductions.total("impacts"),
    "start": reductions.initial("energy"),
    "end": reductions.final("energy"),
}


def axes(number: int) -> dict[str, np.ndarray]:
    """Values of clearance and restitution, ``number`` each."""
    return {
        "params.restitution": np.linspace(0.1, 0.9, number),
        "params.clearance": np.linspace(2e-4, 2e-3, number),
    }


def lanes(over: dict[str, np.ndarray], **options: Any) -> nsjax.SweepResult:
    """The sweep."""
    return nsjax.sweep(
        models.slider_crank(), SCHEME, over, mode="product", reduce=KEPT, dt=STEP, steps=STEPS, every=STEPS,
        **options,
    )  # fmt: skip


def one(restitution: float, clearance: float) -> nsjax.Trajectory:
    """A single run with the same outputs."""
    system, params, state = models.slider_crank(restitution=restitution, clearance=clearance)
    return nsjax.simulate(system, params, state, SCHEME, dt=STEP, steps=STEPS, every=STEPS)


@jax.jit
def batch(restitution: Any, clearance: Any) -> tuple[Any, Any]:
    """All lanes side by side: `jax.vmap` around `nsjax.simulate`."""

    def run(e: Any, c: Any) -> tuple[Any, Any]:
        system, params, state = models.slider_crank(restitution=e, clearance=c)
        traj = nsjax.simulate(
            system, params, state, SCHEME, dt=STEP, steps=STEPS, every=STEPS, gradient="discrete",
            save=["impacts"],
        )  # fmt: skip
        return traj.impacts, traj["energy"]

    return jax.vmap(run)(restitution, clearance)


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    """Result of a call, and its CPU time [s]."""
    before = time.process_time()
    found = jax.block_until_ready(call())
    return found, time.process_time() - before


def resident() -> float:
    """Memory of this process now [MB]; not a number where Linux's /proc is missing."""
    place = Path("/proc/self/statm")
    return (
        int(place.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20 if place.exists() else np.nan
    )


def costs(number: int, singles: int, side: int) -> tuple[nsjax.SweepResult, common.Numbers]:
    """The map, and CPU times per step and lane of the sweep, of single runs and of the plain batch."""
    program = importlib.import_module("nsjax.sweep.program")
    programs = program.call._cache_size()
    _, first = timed(lambda: lanes(axes(4)))
    sizes = [resident()]
    found, seconds = timed(lambda: lanes(axes(number), progress=lambda *_: sizes.append(resident())))
    count = number**2 * STEPS
    some = np.linspace(0, number**2 - 1, singles).astype(int)
    restitution, clearance = (x.reshape(-1) for x in found.lanes().values())
    one(0.5, 1e-3)  # compiles
    runs, looped = timed(lambda: [one(restitution[k], clearance[k]) for k in some])
    impacts = found["impacts"].reshape(-1, 4)
    numbers = {
        "step-lanes per second and core": count / seconds,
        "time per step-lane [us]": 1e6 * seconds / count,
        "programs compiled": float(program.call._cache_size() - programs),
        "first call, compilation included [s]": first,
        "growth of memory [MB]": max(sizes) - sizes[0],
        "single runs, time per step [us]": 1e6 * looped / (singles * STEPS),
        "single runs whose impacts differ": float(
            sum(np.any(run.impacts.sum(0) != impacts[k]) for run, k in zip(runs, some, strict=True))
        ),
        "failed lanes": float(np.count_nonzero(~found.ok)),
    }
    if side:
        some = np.linspace(0, number**2 - 1, side).astype(int)
        batch(restitution[some], clearance[some])
        _, spread = timed(lambda: batch(restitution[some], clearance[some]))
        numbers["plain vmap, time per step-lane [us]"] = 1e6 * spread / (side * STEPS)
    return found, numbers


def _physics(found: nsjax.SweepResult) -> common.Numbers:
    """Numbers of the map that do not depend on its resolution."""
    alone = lanes({"params.restitution": np.array([0.4]), "params.clearance": np.array([1e-3])})
    loss = (found["start"] - found["end"]).reshape(found.shape)
    corner = lanes({name: x[-1:] for name, x in found.over.items()})
    return {
        "Table 1: impacts": float(alone["impacts"].sum()),
        "Table 1: energy lost [J]": float((alone["start"] - alone["end"])[0, 0]),
        "least energy lost [J]": float(loss.min()),
        "bits of the last lane that differ alone": float(
            np.count_nonzero(corner["end"][0, 0] != found["end"][-1, -1])
        ),
    }


def _paint(figure: Any, found: nsjax.SweepResult, exponent: np.ndarray | None) -> None:
    maps = {
        "impacts": found["impacts"].sum(-1),
        "energy lost [J]": found["start"] - found["end"],
    }
    if exponent is not None:
        maps["Lyapunov exponent x one turn"] = exponent * 2 * np.pi * RADIAN
    restitution, clearance = found.over.values()
    for ax, (name, values) in zip(figure.subplots(1, len(maps), sharey=True), maps.items(), strict=True):
        mesh = ax.pcolormesh(1e3 * clearance, restitution, values, shading="nearest", rasterized=True)
        figure.colorbar(mesh, ax=ax, location="top", label=name)
        ax.set_xlabel("clearance [mm]")
    figure.axes[0].set_ylabel("restitution")


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, draws and compares; ``quick``: 64 lanes, no exponents, no plain batch."""
    print(f"load average before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    found, numbers = costs(*((8, 4, 0) if quick else (100, 64, 256)))
    numbers |= _physics(found)
    arrays = {**found.values, "restitution": found.over["params.restitution"]}
    arrays["clearance"] = found.over["params.clearance"]
    exponent = None
    if not quick:
        exponent, seconds = timed(
            lambda: nsjax.sweep_lyapunov(
                models.slider_crank(), SCHEME, found.over, mode="product", dt=STEP, steps=STEPS,
                unit_time=RADIAN,
            )
        )  # fmt: skip
        arrays["exponent"] = exponent
        numbers["exponents, time per step-lane [us]"] = 1e6 * seconds / (found.axes.count * STEPS)
        numbers["share of lanes that part tenfold per turn"] = float(
            np.mean(exponent * 2 * np.pi * RADIAN > np.log(10.0))
        )
    print(f"load average after: {os.getloadavg()[0]:.1f}")
    print("\n".join(f"{name}: {x:.6g}" for name, x in numbers.items()))
    return common.finish(
        __file__, folder, numbers, arrays, (16.0, 7.5), lambda f: _paint(f, found, exponent)
    )


if __name__ == "__main__":
    common.command(main)
