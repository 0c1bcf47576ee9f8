"""[R&S] section 4.2 with the paper's solver as printed: when generalized-alpha gets unstable, Table 2.

The paper: generalized-alpha with rho_inf = 0.8 and 0.5 "get unstable soon after t = 0.05 s", after all
schemes "behave almost the same before and after the impact" (Figures 24 to 27). Here (42)-(55), (75), (76)
run as they stand (`literal`), with what the paper leaves open varied. No setting gives both; found is:

* With the printed r = 0.1 dt the iteration cannot settle the first impact, whatever the tolerance: above
  2.05e-7 it never starts (no impulse), down to 1.4e-7 it stops at an impulse without friction, below it
  repeats every four iterations for good. The slope is too small to tell stick from slip: |f| at slip is
  r gdot_T, so that every estimate of the normal impulse first sticks, which turns one corner off. It ends
  from r = 1000 dt, the order of 1 / G. Likewise for forces above r gdot_T / mu.
* If iterations are cut off after a number of them, the motion is wrong from 10 to 31 ms on, for all four
  schemes alike. With a limit of 20 generalized-alpha with 0.8 blows up, at 34 ms, long after it has left
  the motion; with (52) as printed it does so at the first impact, with the sign of (149) at 30 ms.
* Where iterations end, nothing blows up: neither with one pass of the outer loop, nor with impulses of
  small approach left out (as a loose tolerance does), nor with other steps, restitutions, or the factor of
  (144). The rod's energy stays below 6e-4 J, and with the data of Table 2 the angles are those of [P].
* Nearest to the paper comes r = 100 dt: up to four iterations are cut in 0.07 s, theta1 is right to 0.6 %,
  and the rod has up to ten times the energy, most for rho_inf = 0.5 (3.8e-3 J). So the instability that the
  paper shows may well be one of its contact iteration; of its schemes, converged, it is not.

Columns: steps in which an iteration was cut off, steps with an impulse, theta1(0.06), largest elastic
energy and energy created [J], outcome; "wrong" means more than 4e-3 J in the rod.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np

from nsjax import models

from .. import common
from .literal import Run, Setting, Solver, gauss_newton, run
from .literal_crank import Mechanism, bent, rigid

STEP, DURATION = 1e-5, 0.07
ELEMENTS = 5
"""Elements of the rod: the outcomes are those of twenty elements, at a third of the cost."""

SLOPES = (0.1, 1.0, 10.0, 100.0, 1e3, 1e4)
PRINTED, ENDING = 0.1, 1e3
"""r of the paper, and one with which every iteration ends."""

BOUND = 4e-3
"""Elastic energy [J] that counts as having left the motion: ten times that of the converged solution."""

INSTANTS = (0.02, 0.04, 0.05, 0.06)


@dataclasses.dataclass(frozen=True)
class Row:
    """One line of the table: a setting, and data of the mechanism other than those of Table 2."""

    name: str
    setting: Setting
    data: tuple[tuple[str, float], ...] = ()


def _of(slope: float, **more: Any) -> Setting:
    given = {"cap": 10, "tolerance": 1e-6, "inner": 1e-8} | more
    return Setting(r=slope, r_impulse=slope, **given)


SCHEMES: dict[str, dict[str, Any]] = {
    "gen-alpha 0.8": {"rho": 0.8},
    "gen-alpha 0.5": {"rho": 0.5},
    "gen-alpha 0": {"rho": 0.0},
    "Bathe": {"scheme": "Bathe"},
}
FIRST = "gen-alpha 0.8"


def rows() -> list[Row]:
    """The settings of the full form."""
    found = [Row(f"{k}, converged", _of(ENDING, **x)) for k, x in SCHEMES.items()]
    found += [Row(f"{k}, r = {r:g}", _of(r, **x)) for r in (0.1, 10.0, 100.0) for k, x in SCHEMES.items()]
    found += [
        Row(f"{FIRST}, r = 0.1, tolerances {x:g}", _of(PRINTED, tolerance=x, inner=x))
        for x in (1e-4, 1e-6, 1e-10)
    ]
    found += [
        Row(f"{FIRST}, r = 0.1, up to {cap} iterations", _of(PRINTED, cap=cap)) for cap in (3, 20, 50)
    ]
    found += [Row(f"{FIRST}, r = 0.1, (52) as printed", _of(PRINTED, printed=True))]
    found += [Row(f"{k}, one pass", _of(ENDING, tolerance=np.inf, **x)) for k, x in SCHEMES.items()]
    found += [
        Row(f"{k}, impulses of approach < 0.1 m/s left out", _of(ENDING, inner=1e-3, **x))
        for k, x in SCHEMES.items()
    ]
    found += [Row(f"{FIRST}, dt = {dt:g}", _of(ENDING, dt=dt)) for dt in (1e-4, 2e-5, 5e-6)]
    found += [Row(f"{FIRST}, restitution {x:g}", _of(ENDING), (("restitution", x),)) for x in (0.0, 0.4)]
    found += [
        Row(f"{FIRST}, sign of (149) as printed", _of(ENDING), (("centrifugal", -1.0),)),
        Row(f"{FIRST}, factor of (144) as printed", _of(ENDING), (("crank", 0.5),)),
    ]
    return found


def mechanism(row: Row, elements: int) -> Mechanism:
    """The mechanism of Table 2 with the row's changes; no elements: the rigid one."""
    changes = dict(row.data)
    misprints: dict[str, Any] = {k: changes.pop(k) for k in ("centrifugal", "crank") if k in changes}
    data = models.TABLE_2 | changes
    return dataclasses.replace(bent(elements, **data) if elements else rigid(**data), **misprints)


# -------------------------------------------------------------------------------- the first impact


def first_impact() -> tuple[np.ndarray, np.ndarray, float]:
    """Relative velocities ``gdot (1 + eps)`` of the closed corners at the first impact of the rigid
    mechanism of Table 2, their change with the impulses, and the coefficient of friction.
    """
    crank = rigid(**models.TABLE_2)
    solver = Solver(crank, _of(ENDING))
    while solver.impact is None:
        solver.step()
    free, delassus = solver.impact
    return free, delassus, float(crank.p.friction)


def misfits(free: np.ndarray, delassus: np.ndarray, friction: float, r: float, count: int) -> np.ndarray:
    """Norms of f (51) along the iteration (43) from zero."""
    m, found = len(free) // 2, []
    for k in range(count):
        x, _ = gauss_newton(free, delassus, r, friction, 0.0, k)
        trial, bound = x - r * (free + delassus @ x), friction * np.abs(x[:m])
        proper = np.concatenate([np.maximum(trial[:m], 0.0), np.clip(trial[m:], -bound, bound)])
        found.append(np.linalg.norm(x - proper))
    return np.array(found)


def period(series: np.ndarray) -> int:
    """The period of the end of a series that repeats itself; 0: none up to 12. The iteration amplifies
    rounding."""
    ends = [p for p in range(1, 13) if np.allclose(series[-12:], series[-12 - p : -p], rtol=1e-4)]
    return ends[0] if ends else 0


def impact_numbers() -> tuple[common.Numbers, list[str]]:
    """The first impact with every r: numbers, and lines of a table."""
    free, delassus, friction = first_impact()
    restitution = 0.1  # of Table 2
    numbers: common.Numbers = {"first impact: approach [m/s]": -float(free[0]) / (1.0 + restitution)}
    lines = [
        "first impact of the rigid mechanism, iteration (43) of (51) from zero",
        f"{'r / dt':>8}{'no impulse if':>16}{'least |f| after':>17}  end",
        f"{'':>8}{'tolerance >':>16}{'some iterations':>17}",
    ]
    for slope in SLOPES:
        size = misfits(free, delassus, friction, slope * STEP, 60)
        ended = size[-1] < 1e-12
        text = (
            f"ends after {int(np.argmax(size < 1e-12))}"
            if ended
            else f"never: repeats every {period(size)}"
        )
        lines.append(f"{slope:>8g}{size[0]:>16.2e}{size[1:].min():>17.1e}  {text}")
        if slope in (PRINTED, ENDING):
            name = f"first impact, r = {slope:g} dt"
            numbers[f"{name}: |f| at zero"] = float(size[0])
            numbers[f"{name}: |f| after 60 iterations"] = float(size[-1])
    return numbers, lines


# -------------------------------------------------------------------------------------- the table


def verdict(found: Run) -> str:
    """What became of a run."""
    left = np.flatnonzero(found.elastic > BOUND)
    since = f", wrong from {1e3 * found.t[left[0]]:.2f} ms" if len(left) else ""
    if found.blown:
        return f"blows up at {1e3 * found.t[-1]:.1f} ms{since}"
    return since.removeprefix(", ") or "stays"


def line(row: Row, found: Run) -> str:
    """One line of the table."""
    cut = int(np.sum(found.iterations >= row.setting.cap))
    at = round(0.06 / row.setting.dt) - 1
    angle = f"{found.q[at, 0]:.4f}" if at < len(found.t) else "-"
    struck, energy = int(found.impulse.sum()), found.elastic.max()
    return (
        f"{row.name:58}{cut:>7}{struck:>6}{angle:>9}{energy:>9.1e}{max(found.excess.max(), 0.0):>9.1e}"
        f"  {verdict(found)}"
    )


def table() -> tuple[common.Numbers, list[str]]:
    """Runs all settings: numbers of the converged ones, and the lines."""
    head = f"{'setting':58}{'cut':>7}{'hits':>6}{'theta1':>9}{'elastic':>9}{'created':>9}  outcome"
    lines, numbers = [head], {}
    for row in rows():
        found = run(mechanism(row, ELEMENTS), row.setting, round(DURATION / row.setting.dt))
        lines.append(line(row, found))
        print(lines[-1], flush=True)
        if row.name.endswith(", converged"):
            name = row.name.removesuffix(", converged")
            for time in INSTANTS:
                for k in (0, 1):
                    numbers[f"{name}: theta{k + 1}({time:g})"] = float(found.q[round(time / STEP) - 1, k])
            numbers[f"{name}: most iterations"] = float(found.iterations.max())
            numbers[f"{name}: largest elastic energy [J]"] = float(found.elastic.max())
    return numbers, lines


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, prints and compares; ``quick``: the first impact alone."""
    numbers, lines = impact_numbers()
    if not quick:
        more, table_lines = table()
        numbers |= more
        lines += ["", *table_lines]
    return common.finish(__file__, folder, numbers, table="\n".join(lines), quick=quick)


if __name__ == "__main__":
    common.command(main)
