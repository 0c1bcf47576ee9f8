"""What Figures 6 to 12 of [R&S] share: spectral radii and period errors of the real steps.

Every curve is computed from `nsjax.analysis.amplification_matrix`, the derivative of the scheme's step
on the oscillator [R&S (93)], over dt/T from 1e-2 to 1e4. The paper prints no numbers; those of
``expected_spectral.json`` are closed forms, tests/references/spectral.py: the spectral radius at six dt/T
and the period error at dt/T = 0.1.

The panels: spectral radius; period error where a step resolves the period (linear axes); its modulus
over the whole range. Beyond dt/T = 1/2 the numerical motion is an alias. A curve of the period error
ends where all roots become real, at the cusps of HHT 1/2 and of point A.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import nsjax
from nsjax.analysis import amplification_matrix, relative_period_error, spectral_radius

from .. import common

RATIOS = (0.01, 0.1, 0.3, 1.0, 10.0, 1e4)
PERIOD_RATIO = 0.1
COLOURS = ("#1f4e9c", "#c8501e", "#1d7a4a", "#8a2f8f", "#b8860b", "#444444")
DASHES: tuple[Any, ...] = ("-", (0, (6, 2)), (0, (3, 1.5)), (0, (6, 1.5, 1, 1.5)), (0, (1, 1.2)), "-")


@dataclass(frozen=True)
class Curve:
    """One scheme of a figure: name of its numbers, label in the figure, colour and dashes."""

    name: str
    label: str
    scheme: nsjax.Scheme
    style: int
    dashes: int | None = None


def ratios(quick: bool) -> np.ndarray:
    """Values of dt/T: logarithmic over the range, and the resolved part once more linearly."""
    count = 61 if quick else 601
    return np.union1d(np.geomspace(1e-2, 1e4, count), np.linspace(0.01, 0.5, count // 2))


def rise(scheme: nsjax.Scheme) -> float:
    """Depth of a cusp: the largest rise of the spectral radius above its least value at smaller dt/T.

    [R&S] Appendix A: a cusp is where the radius "increases as Omega increases".
    """
    radius = spectral_radius(scheme, 2.0 * np.pi * ratios(quick=False))
    return float(np.max(radius - np.minimum.accumulate(radius)))


def order(scheme: nsjax.Scheme) -> float:
    """Order on the linear oscillator, from the distance of the root to ``exp(i Omega)`` at two steps."""
    errors = []
    for omega in (0.1, 0.05):
        roots = np.linalg.eigvals(np.asarray(amplification_matrix(scheme, omega)))
        errors.append(np.min(np.abs(roots - np.exp(1j * omega))))
    return float(np.log2(errors[0] / errors[1]) - 1.0)


def curve_numbers(curve: Curve) -> common.Numbers:
    """Spectral radius at six dt/T, period error at dt/T = 0.1."""
    omegas = 2.0 * np.pi * np.array(RATIOS)
    radii = spectral_radius(curve.scheme, omegas)
    numbers = {
        f"{curve.name}: radius at dt/T = {x:g}": float(r) for x, r in zip(RATIOS, radii, strict=True)
    }
    error = relative_period_error(curve.scheme, omegas)[RATIOS.index(PERIOD_RATIO)]
    return {**numbers, f"{curve.name}: period error at dt/T = 0.1": float(error)}


def compute(curves: tuple[Curve, ...], quick: bool) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """dt/T, and spectral radius and period error of every curve."""
    x = ratios(quick)
    arrays: dict[str, np.ndarray] = {}
    for curve in curves:
        arrays[f"radius {curve.name}"] = spectral_radius(curve.scheme, 2.0 * np.pi * x)
        arrays[f"period_error {curve.name}"] = relative_period_error(curve.scheme, 2.0 * np.pi * x)
    return x, arrays


def _paint(
    figure: Any, curves: tuple[Curve, ...], x: np.ndarray, arrays: Mapping[str, np.ndarray], limit: float
) -> None:
    figure.get_layout_engine().set(hspace=0.06, wspace=0.06)
    parts = figure.subplot_mosaic([["radius", "radius"], ["near", "far"]], height_ratios=[1.15, 1.0])
    for curve in curves:
        style = {
            "color": COLOURS[curve.style],
            "linestyle": DASHES[curve.style if curve.dashes is None else curve.dashes],
            "linewidth": 1.1,
        }
        radius, error = arrays[f"radius {curve.name}"], arrays[f"period_error {curve.name}"]
        parts["radius"].semilogx(x, radius, label=curve.label, **style)
        parts["near"].plot(x, error, **style)
        parts["far"].loglog(x, np.abs(error), **style)
    parts["radius"].set(xlim=(1e-2, 1e4), ylim=(-0.03, 1.05), xlabel=r"$\Delta t/T$")
    parts["radius"].set(ylabel=r"spectral radius $\rho$")
    columns = 2 if len(curves) == 4 else 3
    figure.legend(*parts["radius"].get_legend_handles_labels(), loc="outside lower center",
                  ncols=columns, handlelength=3.5, columnspacing=3.0)  # fmt: skip
    parts["near"].axhline(0.0, color="0.55", linewidth=0.6, linestyle=(0, (5, 3)), zorder=0)
    parts["near"].set(xlim=(0.0, 0.4), xlabel=r"$\Delta t/T$", ylabel="relative period error")
    low = min(0.0, *(float(np.min(arrays[f"period_error {c.name}"][x <= 0.4])) for c in curves))
    parts["near"].set_ylim(max(1.05 * low, -limit) if low < -0.01 else -0.03 * limit, limit)
    parts["far"].set(xlim=(1e-2, 1e4), xlabel=r"$\Delta t/T$", ylabel="|relative period error|")
    for key, letter in (("radius", "a"), ("near", "b"), ("far", "c")):
        parts[key].set_title(f"({letter})", loc="left")


def reproduce(
    beside: str, curves: tuple[Curve, ...], quick: bool, folder: str | Path | None,
    more: Callable[[], common.Numbers] = dict, limit: float = 0.5,
) -> common.Numbers:  # fmt: skip
    """Computes, saves, draws and compares one figure of curves.

    Args:
        beside: path of the figure's module.
        curves: what is drawn, in this order.
        quick: a tenth of the points per curve, the same numbers.
        folder: for the results.
        more: numbers beside those of the curves.
        limit: upper end of the axis of the period error.
    """
    numbers: common.Numbers = {}
    for curve in curves:
        numbers |= curve_numbers(curve)
    numbers |= more()
    x, arrays = compute(curves, quick)
    return common.finish(
        beside, folder, numbers, {"dt/T": x, **arrays}, (16.0, 12.5),
        lambda f: _paint(f, curves, x, arrays, limit),
    )  # fmt: skip
