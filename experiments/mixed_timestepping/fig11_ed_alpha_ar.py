"""[R&S] Figure 11: ED-alpha with rho_inf = 0 for four alpha_AR, and Bathe's scheme.

alpha_AR moves the cut-off but not the limit of the spectral radius; the period error is least near
alpha_AR = 1/6, exactly there as dt/T tends to zero.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from nsjax import schemes
from nsjax.analysis import relative_period_error, spectral_radius

from .. import common
from .spectral import Curve, order, reproduce

VALUES = ((0.05, "0.05"), (0.1, "0.1"), (1 / 6, "1/6"), (0.3, "0.3"))
CURVES = (
    *(
        Curve(
            f"ED-alpha {text}", rf"ED-$\alpha$, $\alpha_{{AR}} = {text}$", schemes.ed_alpha(0.0, value), k
        )
        for k, (value, text) in enumerate(VALUES)
    ),
    Curve("Bathe", "Bathe", schemes.bathe(), 4),
)


def best_parameter(ratio: float) -> float:
    """alpha_AR of the least |period error|: its zero between 0.05 and 0.3, by bisection."""
    low, high = 0.05, 0.3
    for _ in range(50):
        middle = 0.5 * (low + high)
        positive = relative_period_error(schemes.ed_alpha(0.0, middle), 2.0 * np.pi * ratio) > 0.0
        low, high = (middle, high) if positive else (low, middle)
    return 0.5 * (low + high)


def _more() -> common.Numbers:
    # z = i Omega in the stability function: the error of the angle vanishes to order Omega^3 at 1/6
    numbers = {f"best alpha_AR at dt/T = {x:g}": best_parameter(x) for x in (0.01, 0.1)}
    # [R&S] section 2.7: alpha_AR = 0 conserves; the limit, because the scheme divides by alpha_AR
    conserving = spectral_radius(schemes.ed_alpha(0.0, 1e-6), 2.0 * np.pi)
    numbers["loss of radius at alpha_AR = 1e-6, dt/T = 1"] = 1.0 - float(conserving)
    return numbers | {f"order of {curve.name}": order(curve.scheme) for curve in CURVES[:-1]}


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares Figure 11; ``quick``: a tenth of the points of a curve."""
    return reproduce(__file__, CURVES, quick, folder, more=_more, limit=0.3)


if __name__ == "__main__":
    common.command(main)
