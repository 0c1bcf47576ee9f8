"""Drift on the slider-crank with an ideal guide: every level of the constraint in every base scheme.

Bilateral mechanism [S&U&S (21)-(24)], dt = 1e-4 s, 1 s; [P]. Levels: index 1 keeps the
constraint on acceleration, index 2 on velocity, index 3 on position level, GGL (25)-(28) on position
and velocity level. The numbers of Moreau's rule are those of the specification; those of the
implicit schemes are measured here, and their orders in dt are what is expected of them.

What the table says: no drift of the position with index 3 and GGL, in any scheme; with index 3 the velocity
violates the constraint instead, by O(dt^2), and two schemes cannot take it at all: ED-alpha, whose two
stages would both sit on the constraint (its force would not converge: refused), and generalized-alpha
without damping (unstable). Only GGL keeps both levels. On index 2 and below the drift has the scheme's
order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

import nsjax
from nsjax import models, schemes
from nsjax.core.operators import row_rates

from .. import common
from . import looks

STEP, DURATION = 1e-4, 1.0
INSTANTS = (0.05, 0.1, 0.5, 1.0)
FORMS = ("index_1", "index_2", "index_3", "ggl")
FAMILIES: dict[str, Callable[..., Any]] = {
    "Moreau": schemes.moreau,
    "gen-alpha 0.8": lambda **form: schemes.generalized_alpha(0.8, **form),
    "gen-alpha 0": lambda **form: schemes.generalized_alpha(0.0, **form),
    "gen-alpha 1": lambda **form: schemes.generalized_alpha(1.0, **form),
    "Bathe": schemes.bathe,
    "ED-alpha 0": lambda **form: schemes.ed_alpha(0.0, **form),
}
SINGLE: dict[str, Any] = {
    "HETS, index_2": schemes.half_explicit(),
    "unified, ggl": schemes.ggl_unified(),
    "unified without position rows, index_2": schemes.ggl_unified(position_multiplier=False),
    "decoupled, ggl": schemes.ggl_decoupled(),
}
UNSTABLE = "gen-alpha 1, index_3"
REFUSED = ("ED-alpha 0", "index_3")
QUICK = ("Moreau", "gen-alpha 0.8")
ROUNDING = 1e-14
"""Residuals below, some hundred roundings of a position of half a metre [m], say nothing of a scheme."""


@dataclass(frozen=True)
class Drift:
    """Time, residual of the constraint [m], its rate [m/s] and the energy [J] at all steps; ``end`` is the
    time up to which all steps were solved.
    """

    t: np.ndarray
    g: np.ndarray
    rate: np.ndarray
    energy: np.ndarray
    end: float


def drift(scheme: Any, step: float = STEP) -> Drift:
    """A run of the mechanism; one that fails is cut there."""
    system, params, state = models.slider_crank_bilateral()
    traj = nsjax.simulate(system, params, state, scheme, dt=step, time=DURATION, save=["constraint_force"])
    rate = jax.jit(jax.vmap(lambda t, q, v: row_rates(system, t, q, v, params)))
    failed = int(traj.first_failure.step)
    rows = len(traj.t) if failed < 0 else failed
    t, q, v = (np.asarray(x)[:rows] for x in (traj.t, traj.q, traj.v))
    return Drift(
        t=t, g=np.asarray(traj["y"])[:rows], rate=np.asarray(rate(t, q, v))[:, 0],
        energy=np.asarray(traj["energy"])[:rows], end=float(t[-1]),
    )  # fmt: skip


def runs(families: tuple[str, ...]) -> dict[str, Any]:
    """Schemes by name ``family, form``."""
    found = {
        f"{family}, {form}": FAMILIES[family](constraint_form=form)
        for family in families
        for form in FORMS
        if (family, form) != REFUSED
    }
    return {**found, **SINGLE}


def _numbers(found: dict[str, Drift]) -> common.Numbers:
    numbers: common.Numbers = {}
    for name, run in found.items():
        if name == UNSTABLE:
            numbers[f"{name}: unsolved from [s]"] = run.end
            continue
        for instant in INSTANTS:
            part = run.t <= instant + 1e-9
            numbers[f"{name}: |g| to {instant:g} s"] = float(np.abs(run.g[part]).max())
        numbers[f"{name}: |dg/dt|"] = float(np.abs(run.rate).max())
        numbers[f"{name}: |E - E0|"] = float(np.abs(run.energy - run.energy[0]).max())
    return numbers


def _orders(all_schemes: dict[str, Any], found: dict[str, Drift]) -> common.Numbers:
    """Orders in dt of the drift and, where there is none, of the violated velocity."""
    numbers: common.Numbers = {}
    for name, scheme in all_schemes.items():
        if name in (UNSTABLE, "Moreau, index_1"):  # out of bounds, and out of the range of small errors
            continue
        fine = drift(scheme, STEP / 8)
        corrected = name.endswith(("index_3", "ggl"))
        pairs = [(np.abs(run.rate if corrected else run.g).max()) for run in (found[name], fine)]
        if pairs[0] > 1e-8:
            what = "|dg/dt|" if corrected else "|g|"
            numbers[f"{name}: order of {what}"] = float(np.log(pairs[0] / pairs[1]) / np.log(8))
    return numbers


def table(numbers: common.Numbers, names: list[str]) -> str:
    """One line per scheme and level."""
    columns = [*(f"|g| to {x:g} s" for x in INSTANTS), "|dg/dt|", "|E - E0|"]
    lines = [f"{'scheme, level':40}" + "".join(f"{c:>15}" for c in columns)]
    for name in names:
        if name == UNSTABLE:
            lines.append(f"{name:40}   unsolved from {numbers[f'{name}: unsolved from [s]']:.3f} s on")
        else:
            lines.append(f"{name:40}" + "".join(f"{numbers[f'{name}: {c}']:15.2e}" for c in columns))
    return "\n".join(lines)


def _paint(figure: Any, found: dict[str, Drift]) -> None:
    axes = figure.subplots(2, 2, sharex=True, sharey=True).ravel()
    titles = ("index 1 (acceleration)", "index 2 (velocity)", "index 3 (position)", "GGL (both)")
    for axis, form, title in zip(axes, FORMS, titles, strict=True):
        for name, run in found.items():
            family, _, level = name.partition(", ")
            if level == form and family in looks.COLOURS and name != UNSTABLE:
                envelope = np.maximum.accumulate(np.abs(run.g)) + 1e-17
                axis.loglog(run.t[1:], envelope[1:], color=looks.COLOURS[family], label=family)
        axis.axhspan(1e-17, ROUNDING, color="0.92", zorder=0)
        axis.text(0.98, 0.02, "rounding", transform=axis.transAxes, ha="right", fontsize=6, color="0.4")
        if UNSTABLE in found and UNSTABLE.endswith(form):
            says = f"{UNSTABLE.partition(',')[0]} is unstable, not drawn"
            axis.text(0.98, 0.94, says, transform=axis.transAxes, ha="right", fontsize=6)
        axis.set_title(title)
        axis.set(xlim=(STEP, DURATION), ylim=(1e-17, 3.0))
    for axis in axes[2:]:
        axis.set_xlabel("time $t$ [s]")
    for axis in axes[::2]:
        axis.set_ylabel("largest $|g|$ so far [m]")
    handles = {label: h for a in axes for h, label in zip(*a.get_legend_handles_labels(), strict=True)}
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=4)


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares the table; ``quick`` keeps two families of schemes."""
    all_schemes = runs(QUICK if quick else tuple(FAMILIES))
    found = {name: drift(scheme) for name, scheme in all_schemes.items()}
    numbers = _numbers(found)
    numbers |= _orders(all_schemes, found)
    arrays = {name: run.g for name, run in found.items()}
    return common.finish(
        __file__, folder, numbers, arrays, (16.0, 11.0), lambda f: _paint(f, found),
        table=table(numbers, list(found)), quick=quick,
    )  # fmt: skip


if __name__ == "__main__":
    common.command(main)
