"""[R&S] Figure 10: Newmark's scheme (trapezoidal rule), generalized-alpha (rho_inf = 0) and Bathe's.

Bathe damps high frequencies like generalized-alpha with rho_inf = 0, but resolved motion much less,
and its period error is half of the trapezoidal rule's.
"""

from __future__ import annotations

from pathlib import Path

from nsjax import schemes

from .. import common
from .spectral import Curve, reproduce

CURVES = (
    Curve("Newmark", r"Newmark, $\beta = 1/4$, $\gamma = 1/2$", schemes.newmark(), 0),
    Curve(
        "generalized-alpha 0", r"generalized-$\alpha$, $\rho_\infty = 0$", schemes.generalized_alpha(0.0), 1
    ),
    Curve("Bathe", "Bathe", schemes.bathe(), 2),
)


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares Figure 10; ``quick``: a tenth of the points of a curve."""
    return reproduce(__file__, CURVES, quick, folder)


if __name__ == "__main__":
    common.command(main)
