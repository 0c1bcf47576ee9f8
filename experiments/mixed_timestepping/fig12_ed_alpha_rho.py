"""[R&S] Figure 12: ED-alpha (alpha_AR = 1/6) and generalized-alpha for three rho_inf.

Same limits of the spectral radius, which ED-alpha approaches much sooner. Its period error at
dt/T = 0.1 is smaller by two orders of magnitude.
"""

from __future__ import annotations

from pathlib import Path

from nsjax import schemes

from .. import common
from .spectral import Curve, order, reproduce

VALUES = ((0.0, "0"), (0.5, "0.5"), (0.8, "0.8"))
CURVES = tuple(
    curve
    for k, (value, text) in enumerate(VALUES)
    for curve in (
        Curve(f"ED-alpha {text}", rf"ED-$\alpha$, $\rho_\infty = {text}$", schemes.ed_alpha(value), k, 0),
        Curve(
            f"generalized-alpha {text}",
            rf"generalized-$\alpha$, $\rho_\infty = {text}$",
            schemes.generalized_alpha(value),
            k,
            2,
        ),
    )
)


def _orders() -> common.Numbers:
    return {f"order of {curve.name}": order(curve.scheme) for curve in CURVES}


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares Figure 12; ``quick``: a tenth of the points of a curve."""
    return reproduce(__file__, CURVES, quick, folder, more=_orders)


if __name__ == "__main__":
    common.command(main)
