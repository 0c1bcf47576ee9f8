"""[R&S] Figure 8: generalized-alpha for five spectral radii rho_inf, from no damping to annihilation.

Along the line alpha_f = (alpha_m + 1)/3 of Figure 6, from point D (rho_inf = 1) to B (rho_inf = 0).
"""

from __future__ import annotations

from pathlib import Path

from nsjax import schemes

from .. import common
from .spectral import Curve, reproduce

VALUES = ((1.0, "1"), (0.8, "0.8"), (0.5, "0.5"), (1 / 3, "1/3"), (0.0, "0"))
CURVES = tuple(
    Curve(f"generalized-alpha {text}", rf"$\rho_\infty = {text}$", schemes.generalized_alpha(value), k)
    for k, (value, text) in enumerate(VALUES)
)


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares Figure 8; ``quick``: a tenth of the points of a curve."""
    return reproduce(__file__, CURVES, quick, folder)


if __name__ == "__main__":
    common.command(main)
