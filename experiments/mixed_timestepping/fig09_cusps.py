"""[R&S] Figure 9: points A and C of Figure 6 and their smooth partners.

A partner has the same spectral radius at infinite frequency but lies on the line where all three
roots meet there: rho_inf = 1 for A(-1, 1/2), whose radius falls to a cusp and rises back to 1, and
rho_inf = 1/3 for C(-1, -1/2). The paper "may expect the cusp" away from that line. C lies on the other
side of it, where the pair of roots stays the largest: its radius falls monotonically to 1/3.
"""

from __future__ import annotations

from pathlib import Path

from nsjax import schemes

from .. import common
from .spectral import Curve, reproduce, rise

CURVES = (
    Curve("A", r"$A$: $\alpha_m = -1$, $\alpha_f = 1/2$",
          schemes.generalized_alpha(alpha_m=-1.0, alpha_f=0.5), 0, 0),
    Curve("partner of A", r"$\rho_\infty = 1$", schemes.generalized_alpha(1.0), 0, 2),
    Curve("C", r"$C$: $\alpha_m = -1$, $\alpha_f = -1/2$",
          schemes.generalized_alpha(alpha_m=-1.0, alpha_f=-0.5), 1, 0),
    Curve("partner of C", r"$\rho_\infty = 1/3$", schemes.generalized_alpha(1 / 3), 1, 2),
)  # fmt: skip


def _cusps() -> common.Numbers:
    return {f"rise of the radius, {curve.name}": rise(curve.scheme) for curve in CURVES}


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares Figure 9; ``quick``: a tenth of the points of a curve."""
    return reproduce(__file__, CURVES, quick, folder, more=_cusps)


if __name__ == "__main__":
    common.command(main)
