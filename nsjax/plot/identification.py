"""Figure of an identification: fit, residuals, intervals, correlation."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from nsjax.core import InputError
from nsjax.core.arguments import check_is
from nsjax.figures import new_figure
from nsjax.identify import Estimate, Fit
from nsjax.plot import style
from nsjax.trajectory import quantity_unit

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def identification(
    estimate: Estimate, path: str | os.PathLike[str] | None = None, recording: int = 0
) -> Figure:
    """Figure of an identification: the model through the data of one recording, residuals of all fitted
    ones, intervals relative to the estimates, correlations.

    Args:
        estimate: result of `nsjax.identify`.
        path: path of the figure's file; its suffix chooses the format (png, pdf, svg, ...).
        recording: number of the recording in panel (a), held-out ones after the fitted ones.

    Returns:
        The figure, on matplotlib's Agg canvas.

    Raises:
        InputError: if matplotlib is missing, the format is unknown, or there is no such recording.
        OSError: if the file cannot be written.

    Example:
        >>> import nsjax
        >>> from nsjax import plot
        >>> plot.identification.__name__
        'identification'
    """
    check_is("identification", "estimate", estimate, Estimate)
    style.require_matplotlib()
    if path is not None:
        style.check_format(path)
    if not 0 <= recording < len(estimate.fits):
        last = len(estimate.fits) - 1
        raise InputError(f"identification: recording = {recording}; give a number from 0 to {last}")
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    with rc_context(style.RC):
        dpi = 200
        figure = new_figure(figsize=(7.0, 5.0), dpi=dpi, layout="constrained")
        FigureCanvasAgg(figure)
        shown = 3  # largest number of observables drawn; `Estimate.fits` has all of them
        names = list(estimate.fits[recording].measured)[:shown]
        parts: Any = figure.subfigures(1, 2, width_ratios=[1.25, 1.0])
        left = parts[0].subplots(len(names) + 1, 1, sharex=False, squeeze=False)[:, 0]
        for ax, name in zip(left[:-1], names, strict=True):
            _fit(ax, estimate, estimate.fits[recording], name)
        left[0].set_title(f"(a) {estimate.fits[recording].name}", loc="left")
        _residuals(left[-1], estimate, names)
        intervals, correlation = parts[1].subplots(2, 1)
        _intervals(intervals, estimate)
        _correlation(correlation, estimate)
        if path is not None:
            style.save_figure(figure, path)
    return figure


def _fit(ax: Any, estimate: Estimate, fit: Fit, name: str) -> None:
    factor, unit = style.scale(fit.measured[name], quantity_unit(estimate.problem.system, name))
    ax.plot(fit.times, factor * fit.start[name], color="#BBBBBB", label="start of the search")
    ax.plot(fit.times, factor * fit.model[name], color=style.QUANTITIES[0], label="model")
    ax.plot(fit.times, factor * fit.measured[name], ".", color="k", markersize=2.5, label="measured")
    ax.set(xlabel="time (s)", ylabel=style.math_label(name) + style.print_unit(unit))
    if ax.get_subplotspec().is_first_row():
        ax.legend(loc="best")


def _residuals(ax: Any, estimate: Estimate, names: list[str]) -> None:
    ax.axhspan(-2.0, 2.0, color="#EEEEEE", linewidth=0.0)
    for fit in estimate.fits:
        if fit.held_out:
            continue
        for k, name in enumerate(n for n in names if n in fit.measured):
            size = 1.0 if estimate.noise is None else estimate.noise
            ax.plot(fit.times, fit.residual(name) / size, ".", markersize=2.5, color=style.QUANTITIES[k])
    ax.set(xlabel="time (s)", ylabel="residual / noise")
    ax.set_title("(b) measured minus model", loc="left")


def _intervals(ax: Any, estimate: Estimate) -> None:
    """Draws intervals relative to the estimates, or to their own size where the estimate is zero."""
    size = np.where(estimate.values == 0.0, np.maximum(estimate.deviation, 1e-300), np.abs(estimate.values))
    size = np.where(np.isfinite(size), size, 1.0)
    y = np.arange(len(size))[::-1]
    low, high = ((estimate.interval[:, k] - estimate.values) / size for k in (0, 1))
    known = np.isfinite(low) & np.isfinite(high) & np.isfinite(estimate.deviation)
    ax.errorbar(
        np.zeros(known.sum()), y[known], xerr=np.stack([-low[known], high[known]]), fmt="o", capsize=2.5,
        color=style.QUANTITIES[0], markersize=3,
    )  # fmt: skip
    for place in y[~known]:
        ax.text(0.0, place, "not known", ha="center", va="center", color=style.QUANTITIES[1])
    labels = [f"{n} = {v:.4g}" for n, v in zip(estimate.names, estimate.values, strict=True)]
    ax.set(yticks=y, yticklabels=labels, xlabel=f"{100 * estimate.level:g} % interval, relative")
    ax.set_title("(c) intervals", loc="left")
    ax.margins(y=0.2)


def _correlation(ax: Any, estimate: Estimate) -> None:
    shown = estimate.correlation
    ax.imshow(shown, vmin=-1.0, vmax=1.0, cmap="RdBu_r")
    ticks = np.arange(len(shown))
    ax.set(xticks=ticks, yticks=ticks, yticklabels=estimate.names)
    ax.set_xticklabels(estimate.names, rotation=30, ha="right")
    ax.grid(False)
    if len(shown) <= 6:
        for i in ticks:
            for j in ticks:
                dark = abs(shown[i, j]) > 0.6
                ax.text(j, i, f"{shown[i, j]:.2f}", ha="center", va="center", fontsize=6.5,
                        color="w" if dark else "k")  # fmt: skip
    ax.set_title("(d) correlation", loc="left")
