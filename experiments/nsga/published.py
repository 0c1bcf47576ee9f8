"""Settings of [C section 4], its error norm, and its counts of linear solves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import nsjax
from nsjax import Problem, schemes

from .. import common

VARIANTS: dict[str, Any] = {
    "DS": schemes.nsga_decoupled,
    "DSn": schemes.nsga_neglected,
    "CS": schemes.nsga_coupled,
    "CS monolithic": lambda **numbers: schemes.nsga_coupled(iteration="monolithic", **numbers),
}
"""Variants by their name in the paper; its coupled scheme iterates block by block."""

COLOURS = {"DS": "#1f4e9c", "DSn": "#c46210", "CS": "#2e7d32", "CS monolithic": "#7b3fa0"}


def scheme(name: str, mass: float) -> Any:
    """A variant with the tolerances and the spectral radius of the paper."""
    return VARIANTS[name](rho_inf=0.8, relative_tolerance=1e-5, force_tolerance=1e-5, mass_scale=mass)


@dataclass(frozen=True)
class Run:
    """A run, and the linear solves of its steps.

    Args:
        traj: all rows.
        average, largest: linear solves per step.
        each: largest numbers of the three subproblems (decoupled schemes).
        failed: whether a step did not converge, or the state stopped being finite.
    """

    traj: nsjax.Trajectory
    average: float
    largest: int
    each: tuple[int, ...]
    failed: bool


def run(problem: Problem, name: str, dt: float, time: float, mass: float) -> Run:
    """Run of a variant for ``time`` seconds; a failed run is returned like any other."""
    system, params, state = problem
    traj = nsjax.simulate(system, params, state, scheme(name, mass), dt=dt, steps=round(time / dt))
    solves = np.asarray(traj.iterations)[1:]
    each = tuple(int(n) for n in traj.carry.carry.memory.solves)
    return Run(traj, float(solves.mean()), int(solves.max()), each, bool(traj.status != 0))


def error(values: np.ndarray, exact: np.ndarray) -> float:
    """Error [C (52)] over the grid points of a run."""
    return float(np.abs(values - exact).sum() / np.abs(exact).sum())


def named(
    errors: Mapping[float, tuple[float, float]], names: tuple[str, str]
) -> dict[float, dict[str, float]]:
    """Errors of a position and its rate by step size and name."""
    return {h: dict(zip(names, both, strict=True)) for h, both in errors.items()}


def coupled_over_decoupled(
    coupled: Mapping[float, Mapping[str, float]], decoupled: Mapping[float, Mapping[str, float]]
) -> common.Numbers:
    """Ratios of the errors of CS and DS at equal step sizes, by step size and quantity."""
    return {
        f"CS / DS, {h:g}: error of {what}": coupled[h][what] / decoupled[h][what]
        for h in coupled if h in decoupled for what in coupled[h]
    }  # fmt: skip


def counts(prefix: str, r: Run) -> common.Numbers:
    """Counts of linear solves of one run, as in the paper."""
    return {
        f"{prefix}: fails": float(r.failed),
        f"{prefix}: solves per step": r.average,
        f"{prefix}: most solves": float(r.largest),
    }


def largest(prefix: str, r: Run) -> common.Numbers:
    """Largest numbers of solves of the three subproblems of a decoupled run."""
    each = zip(("smooth", "position", "velocity"), r.each, strict=True)
    return {f"{prefix}: most solves, {what}": float(n) for what, n in each}


def mark_failures(axis: Any, failed: Mapping[str, list[float]]) -> None:
    """`common.mark_failures` in the colours of the variants."""
    common.mark_failures(axis, {name: (COLOURS[name.split(",")[0]], x) for name, x in failed.items()})


Errors = dict[str, dict[float, tuple[float, float]]]
"""Relative errors of a position and its rate, by scheme and step size."""


def paint_motion(axis: Any, curves: Mapping[str, Any], what: str) -> None:
    """A position ``what`` over time and, dashed, its rate: times, positions and rates by scheme."""
    rates = axis.twinx()
    for name, (t, x, dx) in curves.items():
        colour = COLOURS.get(name.split(",")[0], "black")
        axis.plot(t, x, color=colour, label=name)
        rates.plot(t, dx, "--", color=colour)
    axis.set(xlabel="time $t$ [s]", ylabel=f"{what} [m]")
    rates.set_ylabel("its rate [m/s], dashed")
    axis.legend()


def paint_errors(axis: Any, errors: Errors, failed: Mapping[str, list[float]], what: str) -> None:
    """Errors of a position ``what`` and of its rate against the step size; crosses: failures."""
    for name, by_step in errors.items():
        colour = COLOURS[name.split(",")[0]]
        for k, mark in enumerate(("o-", "s--")):
            axis.loglog(
                list(by_step), [both[k] for both in by_step.values()], mark, color=colour, ms=3,
                mfc="none" if name.endswith("(c)") else colour, label=None if k else name,
            )  # fmt: skip
    axis.set(xlabel=r"time step $h$ [s]", ylabel=f"relative error of {what} (o) and rate")
    if errors:
        mark_failures(axis, failed)
        axis.legend()


def _paint_solves(figure: Any, found: dict[str, dict[float, Run]]) -> None:
    """Average and largest number of linear solves per step against the step size; crosses: failures."""
    for axis, what in zip(figure.subplots(1, 2), ("average", "largest"), strict=True):
        for name, runs in found.items():
            good = {h: getattr(r, what) for h, r in runs.items() if not r.failed}
            axis.loglog(
                list(good), list(good.values()), "o-", color=COLOURS[name.split(",")[0]], ms=3, label=name
            )
        mark_failures(axis, {n: [h for h, r in runs.items() if r.failed] for n, runs in found.items()})
        axis.set_xlabel(r"time step $h$ [s]")
        axis.set_ylabel(f"{what} number of linear solves per step")
    axis.legend()


def finish_solves(
    beside: str, folder: str | Path | None, numbers: common.Numbers, found: dict[str, dict[float, Run]],
    quick: bool,
) -> common.Numbers:  # fmt: skip
    """`common.finish` of a figure of solves per step: saved are step size, average, largest number,
    failure, largest numbers of the subproblems; and the solves of every step.
    """
    arrays = {
        name: np.array([[h, r.average, r.largest, r.failed, *r.each] for h, r in runs.items()])
        for name, runs in found.items()
    }
    for name, runs in found.items():
        arrays |= {f"{name}, {h:g}, of each step": np.asarray(r.traj.iterations) for h, r in runs.items()}
    return common.finish(
        beside, folder, numbers, arrays, (16.0, 7.0), lambda f: _paint_solves(f, found), quick=quick
    )
