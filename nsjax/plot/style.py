"""How figures look and how they name things: palette, prefixes of units, mathematical labels."""

from __future__ import annotations

import functools
import io
import os
import pathlib
import re
from typing import Any

import numpy as np

from nsjax.core import InputError

# Okabe and Ito's colours, told apart with every kind of colour vision and in this order also in grey.
QUANTITIES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
CONTACTS = ("#0072B2", "#56B4E9", "#D55E00", "#E69F00", "#009E73", "#CC79A7")  # neighbours in pairs

RC: Any = {
    "font.size": 8.0,
    "axes.titlesize": 8.5,
    "axes.labelsize": 8.0,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "legend.fontsize": 7.5,
    "mathtext.fontset": "dejavusans",
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#E3E3E3",
    "grid.linewidth": 0.5,
    "axes.axisbelow": True,
    "lines.linewidth": 1.1,
    "legend.frameon": False,
    "legend.handlelength": 1.4,
    "legend.handletextpad": 0.5,
    "legend.columnspacing": 1.1,
    "legend.borderaxespad": 0.1,
    "axes.formatter.useoffset": False,
    "axes.formatter.limits": (-4, 5),
    "axes.formatter.use_mathtext": True,
}

SCREEN_DPI = 110
"""Of figures in notebooks."""

GREEK = (
    "alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "kappa", "lambda", "mu", "nu",
    "xi", "rho", "sigma", "tau", "phi", "chi", "psi", "omega",
)  # fmt: skip

PREFIXES = {-9: "n", -6: "µ", -3: "m", 0: "", 3: "k", 6: "M", 9: "G"}


def require_matplotlib() -> None:
    """Refuses in a sentence where matplotlib is missing."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise InputError("figures need matplotlib; install it with: pip install 'nsjax[plot]'") from None


@functools.cache
def _shown_figure() -> Any:
    """A figure that notebooks show, whatever backend is set and without pyplot."""
    from matplotlib.figure import Figure

    class ShownFigure(Figure):
        """Figure with a picture for notebooks."""

        def _repr_png_(self) -> bytes:
            drawn = io.BytesIO()
            self.savefig(drawn, format="png", dpi=SCREEN_DPI)
            return drawn.getvalue()

    return ShownFigure


def new_figure(**options: Any) -> Any:
    """An empty figure of matplotlib that belongs to no window and that notebooks show.

    Args:
        options: of `matplotlib.figure.Figure`.
    """
    return _shown_figure()(**options)


def check_format(path: str | os.PathLike[str]) -> None:
    """Refuses a figure that could not be drawn; call it before the run that the figure is for.

    Args:
        path: the figure's file; its suffix chooses the format.

    Raises:
        InputError: if matplotlib is missing or does not write that format.

    Example:
        >>> from nsjax import plot
        >>> plot.check_format("run.png")
    """
    require_matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    suffix = pathlib.Path(path).suffix.removeprefix(".").lower()
    known = sorted(FigureCanvasAgg.get_supported_filetypes())
    if suffix not in known:
        raise InputError(f"{path}: no figure format {suffix!r}; end the name in one of {', '.join(known)}")


def math_label(name: str) -> str:
    r"""A label as it stands in print: letters of the alphabets with their indices in mathematics,
    words as they are.

    Example:
        >>> from nsjax.plot.style import math_label
        >>> [math_label(name) for name in ("omega1", "y", "vx2", "table_velocity")]
        ['$\\omega_{1}$', '$y$', '$v_{x2}$', 'table velocity']
    """
    match = re.fullmatch(r"([A-Za-z]+?)_?([wxyz]?)_?([0-9]*)", name)
    if match is not None:
        letters, axis, number = match.groups()
        symbol = f"\\{letters.lower()}" if letters.lower() in GREEK else letters
        if symbol == "\\phi":
            symbol = "\\varphi"
        if len(letters) == 1 or symbol.startswith("\\"):
            index = axis + number
            return f"${symbol}_{{{index}}}$" if index else f"${symbol}$"
    return name.replace("_", " ")


def scale(values: Any, unit: str) -> tuple[float, str]:
    """Factor and prefixed unit that bring the largest magnitude between 1 and 1000.

    Angles and numbers without unit keep theirs.

    Example:
        >>> from nsjax.plot.style import scale
        >>> scale([0.0, 0.2], "s")
        (1000.0, 'ms')
    """
    values = np.abs(np.asarray(values, float))
    values = values[np.isfinite(values)]
    largest = float(values.max()) if values.size else 0.0
    if largest == 0.0 or not unit or unit.startswith("rad"):
        return 1.0, unit
    # a little below a power counts as the power: 0.9999 mm of a clearance of 1 mm stays in mm
    exponent = 3 * int(np.floor(np.log10(largest * 1.05) / 3))
    exponent = min(max(exponent, -9), 9)
    return 10.0**-exponent, PREFIXES[exponent] + unit


def print_unit(unit: str) -> str:
    """``"[rad s⁻¹]"``-free form of a unit for an axis: ``(rad/s)``, nothing for a bare number."""
    return f" ({unit})" if unit else ""


def finite(values: Any) -> np.ndarray:
    """Values as float64 with what is not finite left out of lines."""
    array = np.asarray(values, float)
    return np.where(np.isfinite(array), array, np.nan)
