"""Style of figures: palette, prefixes of units, mathematical labels."""

from __future__ import annotations

import os
import re
from typing import Any

import numpy as np

from nsjax.core import InputError
from nsjax.core.arguments import file_path
from nsjax.figures import require_matplotlib
from nsjax.io.files import replacing
from nsjax.types import scale

__all__ = [
    "CONTACTS", "QUANTITIES", "RC", "check_format", "finite", "math_label", "print_unit",
    "require_matplotlib", "save_figure", "scale",
]  # fmt: skip

# Okabe and Ito's colours, distinguishable with every kind of colour vision and in this order also in grey.
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

GREEK = (
    "alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "kappa", "lambda", "mu", "nu",
    "xi", "rho", "sigma", "tau", "phi", "chi", "psi", "omega",
)  # fmt: skip


def check_format(path: str | os.PathLike[str]) -> None:
    """Refuses a figure that could not be drawn; call it before the run that the figure is for.

    Args:
        path: path of the figure's file; its suffix chooses the format.

    Raises:
        InputError: if matplotlib is missing or does not write that format.

    Example:
        >>> from nsjax import plot
        >>> plot.check_format("run.png")
    """
    require_matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    suffix = file_path(path).suffix.removeprefix(".").lower()
    known = sorted(FigureCanvasAgg.get_supported_filetypes())
    if suffix not in known:
        raise InputError(f"{path}: no figure format {suffix!r}; end the name in one of {', '.join(known)}")


def save_figure(figure: Any, path: str | os.PathLike[str]) -> None:
    """Writes a figure, whole or not at all; the suffix of the path chooses its format."""
    with replacing(path) as file:
        figure.savefig(file, format=file_path(path).suffix.removeprefix(".").lower())


def math_label(name: str) -> str:
    r"""A label for print: Latin and Greek letters with their indices as mathematics, words unchanged.

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


def print_unit(unit: str) -> str:
    """``"[rad s⁻¹]"``-free form of a unit for an axis: ``(rad/s)``, nothing for a bare number."""
    return f" ({unit})" if unit else ""


def finite(values: Any) -> np.ndarray:
    """Values as float64, not a number where they are not finite, which interrupts lines."""
    array = np.asarray(values, float)
    return np.where(np.isfinite(array), array, np.nan)
