"""Work-precision of all schemes on a bilateral, a unilateral and a stiff problem.

* Bilateral: the slider-crank in an ideal guide, 0.05 s; reference: DOP853 with the crank angle as the only
  coordinate ([R&S] Table 4 uses the same). Smooth, so every scheme shows the order of its smooth part.
* Unilateral: a ball that bounces four times in 2.5 s (restitution 0.8); reference: parabolas. An impact
  enters at the end of the step in which it happens, so every scheme is of first order, and those of
  second order gain nothing but their constant.
* Stiff: three masses on soft springs and one of 1e7 N/m, frequency 3162 rad/s, started without its
  vibration, 2 s; reference: the soft modes. Explicit forces are lost above dt = 2 / 3162 s = 6.3e-4 s.
  The gravity-free motion is smooth, so implicit schemes keep their order beyond.

Errors are means over output times and entries, relative to the largest value of an entry, see
`nsjax.sweep_time_step`; cost is CPU time of one run on one core.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import nsjax
from nsjax import models, schemes

from .. import common
from ..half_explicit import fig_bouncing_ball
from ..mixed_timestepping import table4_bilateral

QUICK = ("moreau",)
"""Scheme of the quick mode."""

Reference = Callable[[float], tuple[np.ndarray, np.ndarray]]


def bilateral() -> tuple[nsjax.Problem, dict[str, Any]]:
    """The slider-crank in its guide, and the arguments of its sweep."""
    problem = models.slider_crank_bilateral()
    start = np.concatenate([problem.state.q, problem.state.v])
    x = np.vstack([start, table4_bilateral.reference(10).x])
    dts = 0.005 / np.array([10, 20, 40, 80, 160, 320])
    return problem, {"dts": dts, "time": 0.05, "samples": 10, "reference": (x[:, :2], x[:, 2:])}


def unilateral() -> tuple[nsjax.Problem, dict[str, Any]]:
    """The ball, with output times away from its impacts, and the arguments of its sweep."""
    e, g, height, duration, rows = 0.8, fig_bouncing_ball.GRAVITY, 1.0, 2.5, 50
    ball = models.bouncing_ball(height=height, radius=0.0, restitution=e, gravity=g)
    t = np.linspace(0.0, duration, rows + 1)
    at, speed = np.sqrt(2 * height / g), np.sqrt(2 * g * height)
    q, v = height - g / 2 * t**2, -g * t
    while at < duration:
        speed *= e
        after = t >= at
        q = np.where(after, speed * (t - at) - g / 2 * (t - at) ** 2, q)
        v = np.where(after, speed - g * (t - at), v)
        at += 2 * speed / g
    # primes, so that grids do not nest and no impact lies on one
    dts = duration / rows / np.array([7, 13, 29, 59, 113, 229, 457, 919])
    return ball, {"dts": dts, "time": duration, "samples": rows, "reference": (q[:, None], v[:, None])}


def stiff() -> tuple[nsjax.Problem, dict[str, Any]]:
    """The chain, started in its two soft modes, and the arguments of its sweep."""
    k, stiffest = 1.0, 1e7
    stiffness = np.array([[2 * k, -k, 0.0], [-k, 2 * k, -k], [0.0, -k, k + stiffest]])
    squares, modes = np.linalg.eigh(stiffness)
    omega, modes, weights = np.sqrt(squares[:2]), modes[:, :2], np.array([1.0, -0.5])
    t = np.linspace(0.0, 2.0, 11)
    q = (weights * np.cos(np.outer(t, omega))) @ modes.T
    v = (-weights * omega * np.sin(np.outer(t, omega))) @ modes.T
    dts = 0.2 / np.array([2, 4, 8, 16, 32, 64, 128, 256, 512, 1024])
    start = models.mass_spring_chain(support="spring", gravity=0.0, initial_q=q[0])
    return start, {"dts": dts, "time": 2.0, "samples": 10, "reference": (q, v)}


PROBLEMS = {"bilateral": bilateral, "unilateral": unilateral, "stiff": stiff}


def table(name: str, quick: bool) -> nsjax.WorkPrecision:
    """Work-precision table of one problem with all schemes that accept it."""
    problem, given = PROBLEMS[name]()
    named = {n: entry.factory() for n, entry in schemes.REGISTRY.items() if not quick or n in QUICK}
    if quick:
        given["dts"] = given["dts"][: 5 if name != "stiff" else 10]
    return nsjax.sweep_time_step(problem, named, repeats=1 if quick else 3, **given)


def _numbers(name: str, found: nsjax.WorkPrecision) -> common.Numbers:
    numbers: common.Numbers = {}
    for scheme in dict.fromkeys(found.scheme):
        rows = found.of(scheme)
        # errors above 3e-2 are those of coarse steps, errors below 1e-9 those of rounding or the reference
        numbers[f"{name}, {scheme}: order of q"] = found.slope(scheme, "error_q", 3e-2, 1e-9)
        lost = rows.dt[~(rows.error_q < 1.0)]
        numbers[f"{name}, {scheme}: least lost dt [s]"] = float(lost.min()) if len(lost) else 0.0
        numbers[f"{name}, {scheme}: impacts"] = float(rows.impacts[-1])
    return numbers


def _paint(figure: Any, tables: dict[str, nsjax.WorkPrecision]) -> None:
    axes = np.atleast_2d(figure.subplots(len(tables), 2, sharey="row"))
    for (by_step, by_cost), (name, found) in zip(axes, tables.items(), strict=True):
        lost: dict[str, tuple[str, np.ndarray]] = {}
        for k, scheme in enumerate(dict.fromkeys(found.scheme)):
            rows = found.of(scheme)
            error = np.where(rows.error_q < 1.0, rows.error_q, np.nan)
            look: Any = {"color": f"C{k % 10}", "marker": "osD^v<>PX*hpd"[k % 13], "markersize": 2.5}
            look["linestyle"] = "--" if k >= 10 else "-"
            lost[scheme] = look["color"], rows.dt[np.isnan(error)]
            by_step.loglog(rows.dt, error, label=scheme, **look)
            by_cost.loglog(rows.seconds, error, **look)
        common.mark_failures(by_step, lost)
        by_step.set(xlabel=r"step size $\Delta t$ [s]", ylabel=f"{name}: error of $q$")
        by_cost.set(xlabel="CPU time [s]")
        by_step.xaxis.set_minor_formatter("")
    shown = {x: h for a in axes[:, 0] for h, x in zip(*a.get_legend_handles_labels(), strict=True)}
    figure.legend(shown.values(), shown.keys(), loc="outside lower center", ncols=5, fontsize=6.0)


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves tables and figure, compares the orders; ``quick``: one scheme, fewer step sizes."""
    path = common.results(__file__, folder)
    tables = {name: table(name, quick) for name in PROBLEMS}
    numbers: common.Numbers = {}
    for name, found in tables.items():
        found.save(path.with_name(f"{path.name}_{name}.csv"))
        numbers |= _numbers(name, found)
    text = json.dumps({name: found.csv() for name, found in tables.items()})
    return common.finish(
        __file__, folder, numbers, {"tables": text}, (16.0, 18.0), lambda f: _paint(f, tables)
    )


if __name__ == "__main__":
    common.command(main)
