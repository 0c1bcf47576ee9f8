"""Contacts that depend on each other: the slider-crank with a clearance that closes all four corners.

With the clearance going to zero both walls hold the slider at once: four normal rows for two degrees of
freedom (height and tilt), on both levels in the unified scheme. [S&U&S (43)-(52)] would meet a singular
matrix; the contact solver takes the least-norm answer. A tolerance of 1e-6 m on the tested gap makes
all four corners act together below that clearance. Restitution 0.1, frictionless and with mu = 0.3
(the extension), dt = 1e-5 s, 0.2 s.

Per run: share of steps with 0, 2 and 4 acting corners, iterations of the contact solver per step, largest
certificate, least gap, and the distance of the crank angle from the mechanism with an ideal guide (only
without friction, which that mechanism does not have). For the unified scheme also passes of the stage
solver: linearisations of the whole step.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import nsjax
from nsjax import models, schemes
from nsjax.core import State
from nsjax.schemes.building import Carry, ImpulseRun
from nsjax.schemes.impulses.ggl_unified import unified_stage

from .. import common

STEP, DURATION, TOLERANCE, RESTITUTION = 1e-5, 0.2, 1e-6, 0.1
CLEARANCES = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 0.0)
FRICTIONS = (0.0, 0.3)
SCHEMES: dict[str, Any] = {
    "Moreau": schemes.moreau(gap_tolerance=TOLERANCE),
    "decoupled": schemes.ggl_decoupled(gap_tolerance=TOLERANCE),
    "unified": schemes.ggl_unified(gap_tolerance=TOLERANCE),
}
PASSES_OF = 200
"""States of a run at which passes are counted."""


def run(scheme: Any, clearance: float, friction: float) -> nsjax.Trajectory:
    """The mechanism with every step saved."""
    system, params, state = models.slider_crank(
        restitution=RESTITUTION, friction=friction, clearance=clearance
    )
    return nsjax.simulate(system, params, state, scheme, dt=STEP, time=DURATION)


@jax.jit
def _passes(scheme: Any, problem: Any, t: Any, q: Any, v: Any) -> Any:
    """Passes of the stage solver in the steps from these states."""
    system, params, _ = problem

    def one(row: Any) -> Any:
        state = State(t=row[0], q=row[1], v=row[2])
        run = ImpulseRun(
            scheme=scheme, system=system, params=params, constants=(), carry=Carry(state=state),
            dt=jnp.asarray(STEP), contacts=True,
        )  # fmt: skip
        active = run.midpoint.gap() <= scheme.coef.gap_tolerance
        return unified_stage(dataclasses.replace(run, active=active))[2].passes

    return jax.lax.map(one, (t, q, v))


def passes(traj: nsjax.Trajectory, scheme: Any, clearance: float, friction: float) -> np.ndarray:
    """Passes in every ``n``-th step of a run of the unified scheme in which a corner acts."""
    problem = models.slider_crank(restitution=RESTITUTION, friction=friction, clearance=clearance)
    acting = np.flatnonzero(np.asarray(traj.closed_time)[1:].any(axis=1))
    rows = acting[np.linspace(0, len(acting) - 1, PASSES_OF).astype(int)]
    numbers = jax.tree.map(lambda x: jnp.asarray(x, float), (scheme, problem))
    return np.asarray(_passes(*numbers, traj.t[rows], traj.q[rows], traj.v[rows]))


def statistics(traj: nsjax.Trajectory, ideal: float | None) -> common.Numbers:
    """The columns of the table for one run."""
    acting = np.asarray(traj.closed_time)[1:] > 0.0
    counts = np.bincount(acting.sum(axis=1), minlength=5) / len(acting)
    iterations = np.asarray(traj.iterations)[1:]
    closed = acting.any(axis=1)
    found = {
        "steps with 2 corners": float(counts[2]),
        "steps with 4 corners": float(counts[4]),
        "steps with 1 or 3 corners": float(counts[1] + counts[3]),
        "iterations, mean of acting": float(iterations[closed].mean()),
        "iterations, most": float(iterations.max()),
        "residual": float(np.asarray(traj.residual).max()),
        "penetration": float(-np.asarray(traj.gap).min()),
        "failed": float(int(traj.status) != 0),
    }
    if ideal is not None:
        found["theta1 - ideal guide"] = float(traj.q[-1, 0]) - ideal
    return found


def ideal_guide() -> float:
    """Crank angle at the end with an ideal guide, by a scheme of second order whose error is below 1e-6."""
    system, params, state = models.slider_crank_bilateral()
    steps = 10 * round(DURATION / STEP)
    traj = nsjax.simulate(
        system, params, state, schemes.bathe(), dt=DURATION / steps, steps=steps, every=steps, save=[]
    )
    return float(traj.q[-1, 0])


def table(numbers: dict[str, common.Numbers]) -> str:
    """Prints one line per run."""
    columns = {
        "steps with 2 corners": "2 corners", "steps with 4 corners": "4 corners",
        "iterations, mean of acting": "iter. mean", "iterations, most": "iter. most",
        "passes, mean": "pass. mean", "passes, most": "pass. most",
        "residual": "residual", "penetration": "penetr. [m]", "theta1 - ideal guide": "theta1 - ideal",
    }  # fmt: skip
    lines = [f"{'run':34}" + "".join(f"{c:>15}" for c in columns.values())]
    for name, found in numbers.items():
        cells = "".join(f"{found[c]:15.3g}" if c in found else f"{'-':>15}" for c in columns)
        lines.append(f"{name:34}{cells}")
    return "\n".join(lines)


def summary(found: dict[str, common.Numbers]) -> common.Numbers:
    """Worst cases over all runs, and what the smallest clearances must give."""
    rows = list(found.values())
    largest = {
        what: max(row[what] for row in rows)
        for what in ("failed", "residual", "iterations, most", "steps with 1 or 3 corners")
    }
    numbers = {f"all runs: {what}": value for what, value in largest.items()}
    unified = {key: row for key, row in found.items() if key.startswith("unified")}
    numbers["unified: passes, most"] = max(row["passes, most"] for row in unified.values())
    for name in ("unified", "decoupled"):
        closed = [row for key, row in found.items() if key.startswith(name) and row["steps with 4 corners"]]
        numbers[f"{name}: penetration with four corners"] = max(row["penetration"] for row in closed)
        numbers[f"{name}: steps with 4 corners at c = 0"] = found[f"{name}, mu = 0, c = 0"][
            "steps with 4 corners"
        ]
    for name in SCHEMES:
        numbers[f"{name}: theta1 - ideal guide at c = 0"] = found[f"{name}, mu = 0, c = 0"][
            "theta1 - ideal guide"
        ]
    return numbers


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves and compares the table; ``quick`` keeps the three smallest clearances."""
    ideal = ideal_guide()
    found: dict[str, common.Numbers] = {}
    for name, scheme in SCHEMES.items():
        for friction in FRICTIONS:
            for clearance in CLEARANCES[3:] if quick else CLEARANCES:
                key = f"{name}, mu = {friction:g}, c = {clearance:g}"
                traj = run(scheme, clearance, friction)
                found[key] = statistics(traj, None if friction else ideal)
                if name == "unified":
                    count = passes(traj, scheme, clearance, friction)
                    found[key] |= {"passes, mean": float(count.mean()), "passes, most": float(count.max())}
    arrays = {f"{key}: {what}": np.array(x) for key, row in found.items() for what, x in row.items()}
    return common.finish(__file__, folder, summary(found), arrays, table=table(found))


if __name__ == "__main__":
    common.command(main)
