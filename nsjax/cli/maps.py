"""The figure of ``nsjax sweep``: a curve over one axis, a map over two."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from nsjax.figures import new_figure
from nsjax.plot.style import QUANTITIES, RC, math_label, print_unit, scale


def draw(
    axes: Mapping[str, np.ndarray], values: np.ndarray, name: str, unit: str, title: str = "",
    units: Mapping[str, str] | None = None,
) -> Any:  # fmt: skip
    """Matplotlib figure of a sweep, without a window.

    Args:
        axes: values by name; for a curve the first is the axis, the others vary with it.
        values: one number per lane, (n,) or (n, m); gaps where it is not a number.
        name, unit: name and unit of the quantity.
        title: description of the run.
        units: known units of the axes, by name.
    """
    from matplotlib import rc_context

    known = units or {}

    def axis(name: str) -> str:
        return math_label(name) + print_unit(known.get(name, ""))

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
            ax.set(xlabel=axis(first), ylabel=label)
            _log(ax.set_xscale, x)
        else:
            (down, y), (across, x) = axes.items()
            mesh = ax.pcolormesh(x, y, factor * values, shading="nearest", cmap="viridis", rasterized=True)
            ax.set(xlabel=axis(across), ylabel=axis(down))
            ax.grid(False)
            _log(ax.set_xscale, x)
            _log(ax.set_yscale, y)
            figure.colorbar(mesh, ax=ax, label=label)
        ax.set_title(title, fontsize=RC["axes.labelsize"])
    return figure


def _log(set_scale: Any, values: np.ndarray) -> None:
    """Makes an axis logarithmic for logarithmically spaced values."""
    if len(values) > 2 and np.all(values > 0.0):
        ratio = values[1:] / values[:-1]
        if np.ptp(ratio) < 1e-9 * abs(ratio[0]) and abs(ratio[0] - 1.0) > 1e-9:
            set_scale("log")


UNIT = re.compile(r"\[((?:[A-Za-z]+(?:\^[0-9]+)?[ /]?)+)\]")
"""Pattern of units in a docstring, such as ``[kg m^2]`` or ``[m/s]``."""


def documented_units(factory: Callable[..., Any]) -> dict[str, str]:
    """Units of the keywords of a model, from its docstring; keywords without a unit are left out.

    Example:
        >>> from nsjax import models
        >>> from nsjax.cli.maps import documented_units
        >>> units = documented_units(models.slider_crank)
        >>> units["clearance"], units["rod_inertia"], "friction" in units
        ('m', 'kg m^2', False)
    """
    text = (factory.__doc__ or "").partition("Args:")[2].partition("\n\n")[0]
    found: dict[str, str] = {}
    # an entry is indented by eight spaces, its further lines by more
    for entry in re.split(r"\n {8}(?=\w)", text):
        names, _, said = entry.partition(":")
        listed = [name.strip() for name in names.split(",")]
        units = UNIT.findall(said)
        units = units if len(units) == len(listed) else units[:1] * len(listed)
        found |= dict(zip(listed, units, strict=False))
    return found
