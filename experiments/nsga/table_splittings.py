"""The splittings of [C section 3.1] beside each other: elastic bar, spinning block (natural coordinates).

What the smooth motion contains, and what is thus of second order. The paper lists five definitions,
computes with the third (coupled) and the fifth (decoupled), and says of the others that the full
acceleration is optimal, and that none at all loses accuracy. Found:

- ``full`` has no better errors than ``constrained`` on these bodies, whose errors are those of impacts. On
  the bar it is the same motion, since the contact acts on one node with a mass of its own; what changes is
  the iteration block by block, with two to three solves a step instead of 6 to 84. It is of second order in
  contacts that last, where ``constrained`` is of first (`tests/schemes/test_nsga_smooth.py`).
- ``free`` is ``constrained`` on the bar, which has no constraints. On the block, whose directors six
  hold, it is as inaccurate as ``zero``: Euler's implicit rule integrates the forces that turn the body and
  damps its rotation (a quarter of the energy is left at 2.5 ms, 86 per cent with ``constrained``), so that
  other corners hit at other times; the first order shows at smaller steps only.
- ``zero`` loses 22, 10 and 5 per cent of the bar's energy where ``constrained`` loses 2.5, 0.6 and 0.2.

The bar's errors are taken to the wave of the continuum: from 1 ms on those of ``constrained`` are the
mesh's, so that their slopes are no orders.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import nsjax
from nsjax import models, schemes
from nsjax.analysis import observed_order

from .. import common
from . import bar, block, fig06_bar_contact, published

SPLITTINGS: dict[str, tuple[Any, str]] = {
    "decoupled, constrained": (schemes.nsga_decoupled, "constrained"),
    "decoupled, free": (schemes.nsga_decoupled, "free"),
    "decoupled, zero": (schemes.nsga_decoupled, "zero"),
    "coupled, constrained": (schemes.nsga_coupled, "constrained"),
    "coupled, full": (schemes.nsga_coupled, "full"),
    "coupled, free": (schemes.nsga_coupled, "free"),
    "coupled, zero": (schemes.nsga_coupled, "zero"),
}
"""Splittings by number in the paper: fifth; second and fourth with its decoupling; third, first, second,
fourth.
"""

STEPS: dict[str, tuple[float, ...]] = {"bar": (5e-3, 1e-3, 2.5e-4), "block": (2.5e-3, 1e-3, 2.5e-4)}
QUICK: dict[str, tuple[float, ...]] = {"bar": (5e-3, 1e-3)}
COLUMNS = ("error of position", "error of velocity", "energy at the end", "solves per step")


def run(name: str, body: str, dt: float) -> nsjax.Trajectory:
    """Run of a splitting with the paper's tolerances."""
    make, smooth = SPLITTINGS[name]
    mass, time = (bar.MASS, bar.TIME) if body == "bar" else (block.MASS, block.TIME)
    problem = models.elastic_bar()
    if body == "block":
        problem = models.block(formulation=block.FORMS["a"], **models.SPINNING_BLOCK)
    scheme = make(
        rho_inf=0.8, relative_tolerance=1e-5, force_tolerance=1e-5, mass_scale=mass, smooth=smooth
    )
    return common.run(problem, scheme, dt, round(time / dt))


def errors(body: str, traj: nsjax.Trajectory, dt: float) -> tuple[float, float]:
    """[C (52)] of the tip beside the exact wave, or of the corner that hits beside the resolved motion."""
    if body == "bar":
        exact = fig06_bar_contact.exact(np.asarray(traj.t), 0.0)
        found = np.asarray(traj.q)[:, bar.TIP], np.asarray(traj.v)[:, bar.TIP]
    else:
        z, dz, _ = block.exact(dt)
        exact, found = (z, dz), block.watched(traj)
    return published.error(found[0], exact[0]), published.error(found[1], exact[1])


def numbers_of(name: str, body: str, dt: float) -> common.Numbers:
    """One row of the table."""
    traj = run(name, body, dt)
    energy = np.asarray(traj["energy"])
    values = *errors(body, traj, dt), energy[-1] / energy[0], np.asarray(traj.iterations)[1:].mean()
    return dict(zip(COLUMNS, map(float, values), strict=True))


def table(numbers: common.Numbers) -> str:
    """Prints one line per run."""
    rows = list(dict.fromkeys(key.split(": ")[0] for key in numbers if ": order" not in key))
    lines = [f"{'':38}" + "".join(f"{x:>20}" for x in COLUMNS)]
    for row in rows:
        lines.append(f"{row:38}" + "".join(f"{numbers[f'{row}: {x}']:>20.4g}" for x in COLUMNS))
    orders = [f"{key}: {x:.2f}" for key, x in numbers.items() if ": order" in key]
    return "\n".join(lines + orders)


def _paint(figure: Any, numbers: common.Numbers, steps: dict[str, tuple[float, ...]]) -> None:
    """Errors of the positions against the step size."""
    for axis, body in zip(figure.subplots(1, 2), STEPS, strict=True):
        for k, name in enumerate(SPLITTINGS):
            values = [
                numbers.get(f"{body}, {name}, {h:g}: {COLUMNS[0]}", np.nan) for h in steps.get(body, ())
            ]
            if np.isfinite(values).any():
                axis.loglog(steps[body], values, "os^Dv<>"[k] + "-", ms=3, color=f"C{k}", label=name)
        axis.set(xlabel=r"time step $h$ [s]", ylabel=f"error of the position, {body}")
    figure.axes[0].legend(fontsize=5)


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares; ``quick`` runs the bar with no smooth motion at all."""
    numbers: common.Numbers = {}
    steps, names = (QUICK, ["decoupled, zero"]) if quick else (STEPS, list(SPLITTINGS))
    for body, sizes in steps.items():
        for name in names:
            rows = [numbers_of(name, body, h) for h in sizes]
            for h, row in zip(sizes, rows, strict=True):
                numbers |= {f"{body}, {name}, {h:g}: {what}": x for what, x in row.items()}
            for what in COLUMNS[:2]:
                order = observed_order(list(sizes), [row[what] for row in rows])
                numbers[f"{body}, {name}: order, {what}"] = order
    print(table(numbers))
    arrays = {key: np.array(x) for key, x in numbers.items()}
    return common.finish(
        __file__, folder, numbers, arrays, (16.0, 7.0), lambda f: _paint(f, numbers, steps), quick=quick
    )


if __name__ == "__main__":
    common.command(main)
