"""The figure of ``nsjax sweep``: a curve over one axis, a map over two."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from nsjax.figures import new_figure
from nsjax.plot.style import QUANTITIES, RC, math_label, print_unit, scale


def draw(axes: Mapping[str, np.ndarray], values: np.ndarray, name: str, unit: str) -> Any:
    """A matplotlib figure that belongs to no window.

    Args:
        axes: values by name; for a curve the first is drawn, the others run along with it.
        values: one number per lane, (n,) or (n, m); gaps where it is not a number.
        name, unit: of the quantity.
    """
    from matplotlib import rc_context

    factor, printed = scale(values, unit)
    label = math_label(name) + print_unit(printed)
    with rc_context(RC):
        figure = new_figure(
            figsize=(7.0, 3.2) if values.ndim == 1 else (5.2, 4.0), dpi=200, layout="constrained"
        )
        ax = figure.subplots()
        if values.ndim == 1:
            first, x = next(iter(axes.items()))
            ax.plot(x, factor * values, color=QUANTITIES[0], marker=".", markersize=3.0)
            ax.set(xlabel=math_label(first), ylabel=label)
            _log(ax.set_xscale, x)
        else:
            (down, y), (across, x) = axes.items()
            mesh = ax.pcolormesh(x, y, factor * values, shading="nearest", cmap="viridis", rasterized=True)
            ax.set(xlabel=math_label(across), ylabel=math_label(down))
            ax.grid(False)
            _log(ax.set_xscale, x)
            _log(ax.set_yscale, y)
            figure.colorbar(mesh, ax=ax, label=label)
    return figure


def _log(set_scale: Any, values: np.ndarray) -> None:
    """A logarithmic axis for values that were spaced so."""
    if len(values) > 2 and np.all(values > 0.0):
        ratio = values[1:] / values[:-1]
        if np.ptp(ratio) < 1e-9 * abs(ratio[0]) and abs(ratio[0] - 1.0) > 1e-9:
            set_scale("log")
